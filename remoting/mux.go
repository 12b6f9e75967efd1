package remoting

import "rocketd/protocol"

// Command is protocol.Command; the short name reads better here.
type Command = protocol.Command

// Mux finds the route of a request code. Routes are added before the server starts and never change.
type Mux struct{ skeleton struct{} }

// NewMux makes an empty Mux. unknown answers requests without a route (the broker: code 3); nil = no
// answer at all, as the name server does (spec/wire.md section 6).
func NewMux(unknown func(*Call) *Command) *Mux { panic("skeleton") }

// Without returns a Mux with the same routes but for the given codes: the fast port has no pull.
func (m *Mux) Without(codes ...protocol.RequestCode) *Mux { panic("skeleton") }

// Codes returns the codes that have a route.
func (m *Mux) Codes() []protocol.RequestCode { panic("skeleton") }

// Handle adds a route: code, the lane it runs in, and its handler. The header type's plan is built
// here; adding a code twice panics. The handler returns the answer, or an error (*protocol.Error: its
// code and remark; any other: SYSTEM_ERROR and its text), or nil, nil when it will call c.Reply later
// or when no answer is due. For a oneway request whatever it returns is dropped. A header that does not
// bind is answered SYSTEM_ERROR with a remark that names the field, without calling the handler.
// req and c belong to the handler until the answer is given.
func Handle[Req any](m *Mux, code protocol.RequestCode, lane *Lane, handler func(c *Call, req *Req) (*Command, error)) {
	panic("skeleton")
}

// HandleRun adds a route for codes whose pipelined requests are served together: the handler gets all
// neighbouring requests of the codes that are complete in a connection's buffer, in order, on the
// connection's goroutine, and completes each with Call.Reply, now or later. It may not wait.
// Requests whose header did not bind have been answered already and are not among them.
func HandleRun[Req any](m *Mux, codes []protocol.RequestCode, handler func(calls []*Call, reqs []*Req)) {
	panic("skeleton")
}
