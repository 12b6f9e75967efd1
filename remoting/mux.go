package remoting

import (
	"fmt"
	"slices"
	"sync"

	"rocketd/protocol"
)

// Command is protocol.Command; the short name reads better here.
type Command = protocol.Command

// Mux finds the route of a request code. Routes are added before the server starts and never change.
type Mux struct {
	near    [512]*route          // by code: all official ones are below
	far     map[int32]*route     // the others
	unknown func(*Call) *Command // answers requests without a route; nil = silence
	guards  []func(*Call) error  // what a request must pass before its route
}

// route is how requests of one code are served.
type route struct {
	code  protocol.RequestCode
	lane  *Lane
	plan  *protocol.Plan
	make  func() *Call // a call with room for the route's header
	serve func(*Call)  // binds the header and runs the handler
	bind  func(*Call) error
	group *group // set when neighbouring requests are served together; then serve is nil
	watch *watch // nil = nobody watches
}

// watch is one Watch.
type watch struct {
	permit func(*Call) error
	told   func(*Call, *Command)
}

// group is one HandleRun: the routes that share it are served together.
type group struct{ take func() batch }

// batch collects neighbouring calls of one group.
type batch interface {
	add(*Call)
	serve() // runs the handler and gives the batch back
}

// NewMux makes an empty Mux. unknown answers requests without a route (the broker: code 3); nil = no
// answer at all, as the name server does. It runs on the connection's goroutine
// and may not wait; when it returns nil there is no answer.
func NewMux(unknown func(*Call) *Command) *Mux {
	return &Mux{far: map[int32]*route{}, unknown: unknown}
}

// Guard has every request pass check before its route sees it, one without a route before its answer: an error is the
// answer, by the rule of Handle. Checks run in the order in which they were added, on the connection's goroutine; they may
// not wait. One that panics refuses.
func (m *Mux) Guard(check func(*Call) error) { m.guards = append(m.guards, check) }

// Watch has every request of the codes pass permit, before the guards and by the same rule, and has told called with the
// first answer of each, whoever gives it: a handler, a guard, a lane that is full, permit itself. Of a oneway request it is the answer
// that is not sent; nil = the handler has dropped the request. told runs where the answer is given and may not wait. Other
// requests are not slowed down. Codes without a route are passed over; to watch one twice panics.
func (m *Mux) Watch(codes []protocol.RequestCode, permit func(*Call) error, told func(c *Call, answer *Command)) {
	for _, code := range codes {
		if r := m.find(int32(code)); r != nil {
			if r.watch != nil {
				panic(fmt.Sprintf("remoting: request code %v is watched already", code))
			}
			r.watch = &watch{permit, told}
		}
	}
}

// pass asks who watches the code, and the guards.
func (m *Mux) pass(c *Call) (err error) {
	if m == nil || len(m.guards) == 0 && (c.route == nil || c.route.watch == nil) {
		return nil
	}
	defer func() {
		if reason := recover(); reason != nil {
			c.panicked(reason)
			err = panicError(reason)
		}
	}()
	if c.route != nil && c.route.watch != nil {
		if err := c.route.watch.permit(c); err != nil {
			return err
		}
	}
	for _, check := range m.guards {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// Without returns a Mux with the same guards, and the same routes but for the given codes: the fast port has no pull.
func (m *Mux) Without(codes ...protocol.RequestCode) *Mux {
	w := NewMux(m.unknown)
	w.guards = slices.Clone(m.guards)
	m.each(func(r *route) {
		if !slices.Contains(codes, r.code) {
			w.add(r)
		}
	})
	return w
}

// Codes returns the codes that have a route, in ascending order.
func (m *Mux) Codes() []protocol.RequestCode {
	var codes []protocol.RequestCode
	m.each(func(r *route) { codes = append(codes, r.code) })
	slices.Sort(codes)
	return codes
}

// Plans returns the plan of each routed code's header.
func (m *Mux) Plans() map[protocol.RequestCode]*protocol.Plan {
	plans := map[protocol.RequestCode]*protocol.Plan{}
	m.each(func(r *route) { plans[r.code] = r.plan })
	return plans
}

func (m *Mux) each(f func(*route)) {
	for _, r := range m.near {
		if r != nil {
			f(r)
		}
	}
	for _, r := range m.far {
		f(r)
	}
}

// find returns the route of a code, nil when there is none.
func (m *Mux) find(code int32) *route {
	if m == nil {
		return nil
	}
	if uint32(code) < uint32(len(m.near)) {
		return m.near[code]
	}
	return m.far[code]
}

func (m *Mux) add(r *route) {
	if r.lane == nil {
		panic(fmt.Sprintf("remoting: request code %v has no lane", r.code))
	}
	if m.find(int32(r.code)) != nil {
		panic(fmt.Sprintf("remoting: request code %v has a route already", r.code))
	}
	if uint32(r.code) < uint32(len(m.near)) {
		m.near[r.code] = r
		return
	}
	m.far[int32(r.code)] = r
}

// typedCall is a call with its header: one allocation.
type typedCall[Req any] struct {
	Call
	req Req
}

func makeCall[Req any]() *Call {
	t := new(typedCall[Req])
	t.self = t
	return &t.Call
}

// binder returns the func that fills a call's header, with the plan built now.
func binder[Req any]() (*protocol.Plan, func(*Call) error) {
	plan := protocol.PlanFor(new(Req))
	return plan, func(c *Call) error { return plan.Bind(&c.command, &c.self.(*typedCall[Req]).req) }
}

// Handle adds a route: code, the lane it runs in, and its handler. The header type's plan is built
// here; adding a code twice panics. The handler returns the answer, or an error (*protocol.Error: its
// code and remark; any other: SYSTEM_ERROR and its text), or nil, nil when it will call c.Reply later
// or when no answer is due (then it calls c.Drop). For a oneway request whatever it returns is dropped.
// A header that does not bind is answered SYSTEM_ERROR with a remark that names the field, without
// calling the handler. req and c belong to the handler, and may be kept.
func Handle[Req any](m *Mux, code protocol.RequestCode, lane *Lane, handler func(c *Call, req *Req) (*Command, error)) {
	plan, bind := binder[Req]()
	m.add(&route{code: code, lane: lane, plan: plan, make: makeCall[Req], serve: func(c *Call) {
		defer func() {
			if reason := recover(); reason != nil {
				c.caught(reason)
			}
		}()
		if err := bind(c); err != nil {
			c.ReplyError(err)
			return
		}
		c.finish(handler(c, &c.self.(*typedCall[Req]).req))
	}})
}

// HandleRun adds a route for codes whose pipelined requests are served together: the handler gets all
// neighbouring requests of the codes that are complete in a connection's buffer, in order, on the
// connection's goroutine, and completes each with Call.Reply, now or later. It may not wait. At most
// 256 come together. Requests whose header did not bind have been answered already and are not among
// them. The two slices are valid until the handler returns; the calls and headers may be kept.
func HandleRun[Req any](m *Mux, codes []protocol.RequestCode, handler func(calls []*Call, reqs []*Req)) {
	plan, bind := binder[Req]()
	pool := &sync.Pool{}
	g := &group{take: func() batch {
		if b, ok := pool.Get().(*typedBatch[Req]); ok {
			return b
		}
		return &typedBatch[Req]{handler: handler, pool: pool}
	}}
	for _, code := range codes {
		m.add(&route{code: code, lane: Inline, plan: plan, make: makeCall[Req], bind: bind, group: g})
	}
}

// typedBatch is the batch of one HandleRun.
type typedBatch[Req any] struct {
	handler func([]*Call, []*Req)
	pool    *sync.Pool
	calls   []*Call
	given   []*Call // the handler's copy, which it may change
	reqs    []*Req
}

func (b *typedBatch[Req]) add(c *Call) {
	b.calls = append(b.calls, c)
	b.reqs = append(b.reqs, &c.self.(*typedCall[Req]).req)
}

func (b *typedBatch[Req]) serve() {
	b.run()
	for _, c := range b.calls {
		c.pend()
	}
	clear(b.calls)
	clear(b.given)
	clear(b.reqs)
	b.calls, b.reqs = b.calls[:0], b.reqs[:0]
	b.pool.Put(b)
}

func (b *typedBatch[Req]) run() {
	defer func() {
		if reason := recover(); reason != nil {
			for i, c := range b.calls {
				if i == 0 {
					c.caught(reason)
					continue
				}
				c.ReplyError(panicError(reason))
			}
		}
	}()
	b.given = append(b.given[:0], b.calls...)
	b.handler(b.given, b.reqs)
}
