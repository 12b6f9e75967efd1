package remoting

import "rocketd/protocol"

// Call is one request in hand: its command, its connection, and the way to answer it.
type Call struct{ skeleton struct{} }

// Command is the request as decoded.
func (c *Call) Command() *Command { panic("skeleton") }

// Conn is the connection it came by.
func (c *Call) Conn() *Conn { panic("skeleton") }

// Success is Answer with code 0 and no remark.
func (c *Call) Success(header any) *Command { return c.Answer(protocol.Success, "", header) }

// Answer makes the response: a code, a remark ("" = none) and a typed header (nil = none). A header
// without values still gives an empty extFields.
func (c *Call) Answer(code protocol.ResponseCode, remark string, header any) *Command {
	return protocol.NewResponse(code, remark, header)
}

// Reply answers now. Only the first answer of a call is sent; after the connection's end, or for a
// oneway request, it does nothing. It queues and never waits for the peer: safe from any goroutine.
func (c *Call) Reply(*Command) { panic("skeleton") }

// ReplyError answers with an error, by the same rule as a handler's returned error.
func (c *Call) ReplyError(error) { panic("skeleton") }
