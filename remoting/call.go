package remoting

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"rocketd/protocol"
)

// overloadRemark is the official remark of a request that found no room.
const overloadRemark = "[OVERLOAD]system busy, start flow control for a while"

// The states of a call.
const (
	callOpen     = iota
	callPending  // not answered yet, and counted among the connection's pending requests
	callOneway   // nothing is due
	callAnswered // answered
)

// Call is one request in hand: its command, its connection, and the way to answer it.
//
// Calls are not recycled: whoever answers a second time, in whatever race, must find the same call.
type Call struct {
	conn  *Conn
	route *route
	self  any // the *typedCall that it is part of

	command Command
	size    int64  // bytes of its frame
	run     uint32 // the run of the connection in which it may be answered inline, 0 = none

	state  atomic.Uint32
	answer struct {
		taken atomic.Bool
		Command
	}
}

// Command is the request as decoded. Its strings and its body are copies of its own and may be kept.
func (c *Call) Command() *Command { return &c.command }

// Conn is the connection it came by.
func (c *Call) Conn() *Conn { return c.conn }

// Success is Answer with code 0 and no remark.
func (c *Call) Success(header any) *Command { return c.Answer(protocol.Success, "", header) }

// Answer makes the response: a code, a remark ("" = none) and a typed header (nil = none). A header
// without values still gives an empty extFields.
func (c *Call) Answer(code protocol.ResponseCode, remark string, header any) *Command {
	if !c.answer.taken.CompareAndSwap(false, true) {
		return protocol.NewResponse(code, remark, header)
	}
	// The first answer of a call lives in the call.
	a := &c.answer.Command
	a.Code, a.Flag, a.Version, a.Remark, a.Header = int32(code), protocol.FlagResponse, protocol.ServerVersion, remark, header
	return a
}

// Reply answers now. Only the first answer of a call is sent; after the connection's end, or for a
// oneway request, it does nothing. The response gets the opaque and the header form of the request.
// Its bytes have been copied when Reply returns. It queues and never waits for the peer: safe from any
// goroutine.
func (c *Call) Reply(cmd *Command) {
	if cmd != nil && c.settle(cmd) {
		c.conn.answer(c, cmd)
	}
}

// ReplyError answers with an error, by the same rule as a handler's returned error.
func (c *Call) ReplyError(err error) {
	answer := errorAnswer(err)
	if c.settle(answer) {
		c.conn.answer(c, answer)
	}
}

// Drop says that no answer will follow. A handler that returns nil, nil because nothing is due calls it,
// else the request counts as pending until the connection ends.
func (c *Call) Drop() { c.settle(nil) }

// settle takes the right to answer and tells whether it was still there. Who watches the code is told of the first
// answer, also of one that is not due.
func (c *Call) settle(answer *Command) (due bool) {
	switch c.state.Swap(callAnswered) {
	case callAnswered:
		return false
	case callPending:
		c.conn.unpend(c.size)
		due = true
	case callOpen:
		due = true
	}
	if c.route != nil && c.route.watch != nil {
		c.tell(answer)
	}
	return due
}

// tell tells who watches the code of the answer.
func (c *Call) tell(answer *Command) {
	defer func() {
		if reason := recover(); reason != nil {
			c.panicked(reason)
		}
	}()
	c.route.watch.told(c, answer)
}

// pend counts a call that is not answered yet among the pending ones of its connection.
func (c *Call) pend() {
	if c.state.Load() != callOpen {
		return
	}
	c.conn.pend(c.size)
	if !c.state.CompareAndSwap(callOpen, callPending) {
		c.conn.unpend(c.size) // answered meanwhile
	}
}

// finish gives what a handler returned.
func (c *Call) finish(cmd *Command, err error) {
	switch {
	case err != nil:
		c.ReplyError(err)
	case cmd != nil:
		c.Reply(cmd)
	default:
		c.pend()
	}
}

// caught answers a call whose handler panicked.
func (c *Call) caught(reason any) {
	c.panicked(reason)
	c.ReplyError(panicError(reason))
}

// panicked counts a panic and tells the log.
func (c *Call) panicked(reason any) {
	c.conn.owner.stats.panics.Add(1)
	c.conn.owner.log.Error("handler panic", "code", protocol.RequestCode(c.command.Code).String(),
		"remote", c.conn.remote, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
}

func panicError(reason any) error { return fmt.Errorf("internal error: %v", reason) }

// errorAnswer makes the answer of a failed request: an error that carries a response code gives it and
// its remark, any other is SYSTEM_ERROR with its text. There is no header, as when the official handler
// throws.
func errorAnswer(err error) *Command {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e != nil {
		return protocol.NewResponse(e.Code, e.Remark, nil)
	}
	return protocol.NewResponse(protocol.SystemError, err.Error(), nil)
}
