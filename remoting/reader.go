package remoting

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"

	"rocketd/protocol"
)

// A run is what a connection does between two flushes. It is ended, and its answers sent, when no
// further frame is complete, and also after this many requests or bytes.
const (
	runMaxCalls = 256
	runMaxBytes = 1 << 20
)

// Ext fields are cut from slabs: a request with a dozen of them costs no allocation of its own. A slab keeps the
// headers alive that its fields point into, as long as the connection, so large headers have a slice of their own.
const (
	slabFields = 64
	slabLeft   = 20      // with less room a new slab is begun
	slabHeader = 4 << 10 // bytes of the largest header whose fields may lie in a slab
)

// frameError says why a frame is no frame. The connection is then closed without an answer.
type frameError struct{ reason string }

// Error implements error.
func (e *frameError) Error() string { return e.reason }

func badFrame(format string, args ...any) error { return &frameError{fmt.Sprintf(format, args...)} }

// frame is a frame whose header has been taken from the input, and whose body is still there.
type frame struct {
	form   protocol.SerializeType
	header string
	body   int // bytes
}

// serve is OnRequest: it takes all that is in the input. It returns with bytes unread only after closing
// the connection, because netpoll would call it again at once, for ever.
func (c *Conn) serve() {
	defer func() {
		if reason := recover(); reason != nil {
			c.owner.log.Error("connection panic", "remote", c.remote, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			c.end(ClosedBadFrame)
			c.sock.Close()
		}
	}()
	defer c.release()
	c.beginRun()
	c.runBegan = time.Time{}
	if err := c.takeFrames(); err != nil {
		c.endRun()
		c.in.Release()
		c.fail(err)
	}
}

// takeFrames serves frames until the input is empty.
func (c *Conn) takeFrames() error {
	for {
		f, whole, err := c.next(false)
		if err == nil && !whole {
			c.endRun()
			c.in.Release()
			if c.in.Len() == 0 {
				return nil
			}
			// Half a frame. The wait holds this goroutine and none of others'; the sweep bounds it.
			c.waits.Add(1)
			c.release()
			f, _, err = c.next(true)
			c.beginRun()
		}
		if err != nil {
			return err
		}
		if err := c.take(f); err != nil {
			return err
		}
		if c.suspect {
			c.suspect = false
			c.sock.narrow(false)
		}
		if !whole {
			c.waits.Add(1)
		}
		c.boundUnread()
		if c.runCalls >= runMaxCalls || c.runBytes >= runMaxBytes || !c.brakes && c.arriving.Len() > brakeAt {
			c.endRun()
			c.in.Release()
			c.brake()
			c.beginRun()
		}
		if c.reason.Load() != nil {
			return ErrClosed
		}
	}
}

// next takes the head of the next frame. Without wait it does so only when the whole frame is there.
func (c *Conn) next(wait bool) (f frame, whole bool, err error) {
	if !c.sniffed {
		if err := c.sniff(); err != nil {
			return f, false, err
		}
	}
	if !wait {
		if ok, err := c.ready(4); !ok {
			return f, false, err
		}
	}
	p, err := c.in.Peek(4)
	if err != nil {
		return f, false, err
	}
	length := int(binary.BigEndian.Uint32(p))
	if length < 4 || length > c.owner.limits.frame-4 {
		return f, false, badFrame("length %d%s", length, stranger([4]byte(p)))
	}
	if !wait {
		if ok, err := c.ready(4 + length); !ok {
			return f, false, err
		}
	}
	if p, err = c.in.Peek(8); err != nil {
		return f, false, err
	}
	f.form = protocol.SerializeType(p[4])
	head := int(p[5])<<16 | int(p[6])<<8 | int(p[7])
	f.body = length - 4 - head
	if f.form != protocol.JSON && f.form != protocol.Binary {
		return f, false, badFrame("serialize type %d", p[4])
	}
	if f.body < 0 {
		return f, false, badFrame("header length %d in a frame of %d", head, length)
	}
	if err = c.in.Skip(8); err != nil {
		return f, false, err
	}
	if head > 0 {
		if f.header, err = c.in.ReadString(head); err != nil {
			return f, false, err
		}
	}
	c.consume(8 + head)
	return f, true, nil
}

// take serves one frame.
func (c *Conn) take(f frame) error {
	cmd := &c.scratch
	defer func() { *cmd = Command{} }() // an idle connection keeps nothing of its last request
	if err := c.decode(f, cmd); err != nil {
		return badFrame("header: %v", err)
	}
	size := 8 + len(f.header) + f.body
	c.runCalls++
	c.runBytes += size

	refused := !cmd.IsResponse() && c.overloaded(c.in.Len()-f.body)
	if f.body > 0 {
		var err error
		if refused {
			err = c.in.Skip(f.body)
		} else {
			cmd.Body, err = c.in.ReadBinary(f.body)
		}
		if err != nil {
			return err
		}
		c.consume(f.body)
	}
	switch {
	case cmd.IsResponse():
		c.deliver(cmd)
	case refused:
		c.refuse(cmd)
	default:
		c.dispatch(cmd, int64(size))
	}
	return nil
}

// decode reads the header of a frame, its fields into the slab when they fit.
func (c *Conn) decode(f frame, cmd *Command) error {
	if len(f.header) > slabHeader {
		*cmd = Command{}
		if err := protocol.DecodeHeader(f.form, f.header, cmd); err != nil {
			return err
		}
		cmd.Serialize = f.form
		return nil
	}
	if cap(c.slab) < slabLeft {
		c.slab = make([]protocol.Field, 0, slabFields)
	}
	*cmd = Command{Fields: c.slab}
	if err := protocol.DecodeHeader(f.form, f.header, cmd); err != nil {
		return err
	}
	cmd.Serialize = f.form
	switch n := len(cmd.Fields); {
	case n == 0:
		cmd.Fields = nil
	case n > cap(c.slab): // the decoder has moved to a larger one
		cmd.Fields = cmd.Fields[:n:n]
	default:
		cmd.Fields, c.slab = cmd.Fields[:n:n], cmd.Fields[n:]
	}
	return nil
}

// deliver gives an answer to whoever waits for it.
func (c *Conn) deliver(cmd *Command) {
	c.endBatch()
	done := c.pending.take(cmd.Opaque)
	if done == nil {
		c.owner.stats.lateAnswers.Add(1)
		c.owner.log.Debug("late answer", "remote", c.remote, "opaque", cmd.Opaque, "code", cmd.Code)
		return
	}
	answer := *cmd
	done(&answer, nil)
}

// refuse answers a request that came past the bounds.
func (c *Conn) refuse(cmd *Command) {
	c.owner.stats.busy.Add(1)
	if r := c.owner.mux.find(cmd.Code); r != nil && r.watch != nil {
		call := &Call{conn: c, route: r, command: *cmd}
		call.tell(busyAnswer())
	}
	if !cmd.IsOneway() {
		c.enqueue(busyAnswer(), c.run, cmd.Opaque, protocol.FlagResponse, cmd.Serialize)
	}
}

// dispatch runs a request or gives it to its lane.
func (c *Conn) dispatch(cmd *Command, size int64) {
	r := c.owner.mux.find(cmd.Code)
	var call *Call
	if r != nil {
		call = r.make()
	} else {
		call = &Call{}
	}
	call.conn, call.route, call.command, call.size = c, r, *cmd, size
	if cmd.IsOneway() {
		call.state.Store(callOneway)
	}
	if err := c.owner.mux.pass(call); err != nil {
		c.endBatch() // answers keep the order of their requests
		call.run = c.run
		call.ReplyError(err)
		return
	}
	switch {
	case r == nil:
		c.endBatch()
		call.run = c.run
		c.owner.unknown(call)
	case r.group != nil:
		call.run = c.run
		c.join(call)
	case r.lane == Inline:
		c.endBatch()
		call.run = c.run
		r.serve(call)
	default:
		c.endBatch()
		call.pend()
		if !r.lane.submit(call) {
			c.owner.stats.busy.Add(1)
			call.Reply(busyAnswer())
		}
	}
}

// join adds a call to the batch of its group.
func (c *Conn) join(call *Call) {
	if c.batch != nil && c.group != call.route.group {
		c.endBatch()
	}
	if err := call.route.bind(call); err != nil {
		c.endBatch() // answers keep the order of their requests
		call.ReplyError(err)
		return
	}
	if c.batch == nil {
		c.group, c.batch, c.inBatch = call.route.group, call.route.group.take(), 0
	}
	c.batch.add(call)
	if c.inBatch++; c.inBatch >= runMaxCalls {
		c.endBatch()
	}
}

// endBatch runs what was collected.
func (c *Conn) endBatch() {
	if b := c.batch; b != nil {
		c.batch, c.group = nil, nil
		b.serve()
	}
}

func (c *Conn) consume(n int) { c.consumed.Add(int64(n)) }

// fail ends the connection after an error of the frame loop.
func (c *Conn) fail(err error) {
	e := c.owner
	bad, isBad := err.(*frameError)
	noTLS, isTLS := err.(*tlsError)
	if c.secure != nil {
		if !isBad && brokeTLS(err) {
			noTLS, isTLS = &tlsError{"TLS: " + err.Error()}, true
		}
		c.farewell() // the alert that says why, if there is one
	}
	switch {
	case isTLS:
		if n, ok := e.tlsLog.allow(e.now()); ok {
			e.log.Warn("connection closed", "remote", c.remote, "error", noTLS, "unlogged", n)
		}
		c.end(ClosedTLS)
	case isBad:
		e.stats.badFrames.Add(1)
		if n, ok := e.badLog.allow(e.now()); ok {
			e.log.Warn("bad frame, connection closed", "remote", c.remote, "error", bad.reason, "unlogged", n)
		}
		c.end(ClosedBadFrame)
	default:
		c.end(ClosedByPeer)
	}
	// In OnRequest, netpoll only notes it and ends the connection when OnRequest has returned; without
	// it, it would call again for the bytes that are left.
	c.sock.Close()
}
