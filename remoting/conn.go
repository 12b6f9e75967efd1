package remoting

import (
	"container/list"
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"rocketd/protocol"
)

// Conn is one connection, accepted or dialled. It carries requests both ways.
type Conn struct {
	owner         *endpoint
	arriving      input  // what netpoll has read; others only ask for its length
	sock          socket // of netpoll
	remote, local netip.AddrPort

	// Reading. Only the goroutine of the connection's OnRequest touches this.
	in       input            // what frames are taken from: arriving, or secure
	secure   *secure          // the TLS between the two, nil = none
	sniffed  bool             // the first byte has been looked at
	scratch  Command          // the header being decoded
	slab     []protocol.Field // room for the ext fields of the next requests
	run      uint32           // number of the run in progress or of the last one
	runCalls int              // requests of this run
	runBytes int              // bytes of this run
	brakes   bool             // the peer is braked
	suspect  bool             // the peer is braked until its first frame is whole: its address has wasted much of late
	runBegan time.Time        // when the run began, if others of a peer without a pause went before
	group    *group           // of the batch
	batch    batch            // neighbouring calls collected, nil = none
	inBatch  int              // how many
	consumed atomic.Int64     // bytes taken from the input, of TLS those taken from what arrives too; others only read it
	waits    atomic.Int64     // waits for the rest of a frame, each counted when it begins and when it ends: odd while one lasts; others only read it

	// Writing, and requests of ours. Anyone.
	out     writeQueue
	written atomic.Int64 // bytes that the socket has taken
	pending pendingTable

	// The TLS handshake in progress. Guarded by the endpoint's handshakes.
	shaking *list.Element

	// Requests taken up and not yet answered, and the bytes of their frames. Anyone.
	held, heldBytes atomic.Int64

	// The end. Whoever sets reason first ends it.
	reason   atomic.Pointer[CloseReason]
	reported atomic.Bool // Events.Connected was called, so Events.Closed is due

	// Only the sweep touches this.
	lastRead, lastWritten, lastDrained, lastWait progress
}

// progress is a number of bytes, and when it was seen to have become that.
type progress struct {
	bytes int64
	since time.Time
}

// look notes the number and returns for how long it has not changed.
func (p *progress) look(bytes int64, now time.Time) time.Duration {
	if bytes != p.bytes || p.since.IsZero() {
		p.bytes, p.since = bytes, now
	}
	return now.Sub(p.since)
}

// RemoteAddr is the peer's address; an IPv4 address is one also when it came in IPv6 form.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr is our address of the connection.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Active tells whether it is still open.
func (c *Conn) Active() bool { return c.reason.Load() == nil && c.sock.IsActive() }

// Call sends a request to the peer and waits for its answer, at most timeout. Not for inline handlers.
func (c *Conn) Call(ctx context.Context, req *Command, timeout time.Duration) (*Command, error) {
	type result struct {
		cmd *Command
		err error
	}
	answer := make(chan result, 1)
	opaque, err := c.request(req, timeout, func(cmd *Command, err error) { answer <- result{cmd, err} })
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		return r.cmd, r.err
	case <-timer.C:
		err = ErrTimeout
	case <-ctx.Done():
		err = ctx.Err()
	}
	if c.pending.take(opaque) == nil {
		r := <-answer // it came at the same moment
		return r.cmd, r.err
	}
	return nil, err
}

// Go sends a request to the peer and calls done, once, with the answer or an error; never waits. done
// runs on the connection's goroutine, the sweep's, or the caller's own, and may not wait. A time-out is
// noticed within half a second.
func (c *Conn) Go(req *Command, timeout time.Duration, done func(*Command, error)) {
	if _, err := c.request(req, timeout, done); err != nil {
		done(nil, err)
	}
}

// request registers and queues a request. After an error done is not called.
func (c *Conn) request(req *Command, timeout time.Duration, done func(*Command, error)) (opaque int32, err error) {
	if c.queueFull() {
		return 0, ErrQueueFull
	}
	opaque, ok := c.pending.add(c.owner.now().Add(timeout), done)
	if !ok {
		return 0, ErrClosed
	}
	if err := c.enqueue(req, 0, opaque, requestFlag(req), req.Serialize); err != nil && c.pending.take(opaque) != nil {
		return 0, err
	}
	return opaque, nil
}

// Oneway queues a request that gets no answer; never waits. The error says the connection is closed or
// its queue is full.
func (c *Conn) Oneway(req *Command) error {
	if c.queueFull() {
		return ErrQueueFull
	}
	return c.enqueue(req, 0, c.pending.next(), requestFlag(req)|protocol.FlagOneway, req.Serialize)
}

func requestFlag(req *Command) int32 { return req.Flag &^ protocol.FlagResponse }

func (c *Conn) queueFull() bool {
	limit := c.owner.limits.queuedBusy
	return limit > 0 && c.out.bytes.Load() > limit
}

// Close closes the connection; Events.Closed follows, on another goroutine. What is queued is dropped.
func (c *Conn) Close() { c.end(ClosedHere) }

// end closes the connection for a reason; only the first counts. It may be called with any lock held:
// the rest happens on other goroutines.
func (c *Conn) end(reason CloseReason) {
	if c.reason.CompareAndSwap(nil, &reason) {
		go c.shut()
	}
}

// shut closes the socket. netpoll may run the end of the connection right here, in which the owner is
// told. But while OnRequest runs, it only takes note, and goes on reading what the peer sends, for as
// long as a handler is stuck; shutting the socket itself stops the peer.
func (c *Conn) shut() {
	c.farewell()
	c.sock.Close()
	c.out.writing.Lock()
	defer c.out.writing.Unlock()
	if !c.out.gone {
		c.sock.shut()
	}
}

// closed is netpoll's word that the connection is over: nothing is read any more, and OnRequest will not
// run again. It comes once. The socket is still ours until it returns.
func (c *Conn) closed() {
	byPeer := ClosedByPeer
	c.reason.CompareAndSwap(nil, &byPeer)
	c.closeQueue()
	c.pending.end()
	c.owner.remove(c)
}

// pend counts a request whose answer will come later.
func (c *Conn) pend(size int64) {
	c.heldBytes.Add(size)
	held := c.held.Add(1)
	if limit := c.owner.limits.pendingClose; limit > 0 && held > limit {
		c.end(ClosedOverload)
	}
}

func (c *Conn) unpend(size int64) {
	c.held.Add(-1)
	c.heldBytes.Add(-size)
}

// overloaded tells whether a request is refused that has so many unread bytes behind it.
func (c *Conn) overloaded(unread int) bool {
	l := &c.owner.limits
	requests, answers := int64(unread)+c.heldBytes.Load(), c.out.bytes.Load()
	return l.unreadBusy > 0 && requests > l.unreadBusy ||
		l.pendingBusy > 0 && c.held.Load() >= l.pendingBusy ||
		l.queuedBusy > 0 && answers > l.queuedBusy ||
		requests+answers > crowdedShare && c.owner.crowded.Load()
}

// buffered is the number of bytes that the connection has us keep.
func (c *Conn) buffered() int64 {
	return int64(c.arriving.Len()) + c.heldBytes.Load() + c.out.bytes.Load()
}

// boundUnread closes the connection when more is unread than the second bound allows, and tells whether it did. The
// frame loop looks after each frame, the sweep while a handler is stuck.
func (c *Conn) boundUnread() bool {
	limit := c.owner.limits.unreadClose
	if limit <= 0 || int64(c.arriving.Len()) <= limit {
		return false
	}
	c.end(ClosedOverload)
	return true
}

// floods tells whether so much is unread that the next look may not wait for the next sweep.
func (c *Conn) floods() bool {
	limit := c.owner.limits.unreadBusy
	return limit > 0 && c.reason.Load() == nil && int64(c.arriving.Len()) > limit/8
}

// sweep looks after the connection from time to time.
func (c *Conn) sweep(now time.Time) {
	c.pending.expire(now)
	l := &c.owner.limits
	if c.boundUnread() {
		return
	}
	// What has arrived counts, taken up or not: the half of a frame may come slowly.
	silent := c.lastRead.look(c.consumed.Load()+int64(c.arriving.Len()), now)
	written := c.written.Load()
	unused := min(silent, c.lastWritten.look(written, now))
	if c.out.bytes.Load() == 0 {
		written = -1 // nothing waits for the peer
	}
	stuck := c.lastDrained.look(written, now)
	wait := c.waits.Load()
	half, waited := wait%2 == 1, c.lastWait.look(wait, now)
	switch {
	case l.idle > 0 && unused > l.idle:
		c.end(ClosedIdle)
	case l.idle > 0 && silent > l.idle && half:
		c.end(ClosedIdle) // half a frame holds a goroutine
	case l.frameTime > 0 && half && waited > l.frameTime:
		c.end(ClosedSlow)
	case l.idle > 0 && stuck > l.idle && written >= 0:
		c.end(ClosedOverload)
	}
}
