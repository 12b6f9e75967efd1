package remoting

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudwego/netpoll"
)

// sweepEvery is the distance of two looks at each connection: idle ones, peers that stop in the middle of
// a frame or stop reading, bounds passed while a handler is stuck, and requests of ours whose time is
// over. Reading and writing have no time-outs of their own.
const sweepEvery = 250 * time.Millisecond

// watchEvery is the distance of two looks at connections with much unread input: a peer on this machine can send
// some hundred MiB between two sweeps.
const watchEvery = 20 * time.Millisecond

// Events tells the owner about connections. Each func may be nil, and must not block.
type Events struct {
	Connected func(*Conn)              // before the first request; on a poller, which reads for others too
	Closed    func(*Conn, CloseReason) // exactly once for each connection that was reported, after its last inline handler
}

// CloseReason says why a connection ended.
type CloseReason string

// The reasons.
const (
	ClosedByPeer   CloseReason = "closed by peer"
	ClosedIdle     CloseReason = "idle"
	ClosedSlow     CloseReason = "half a frame" // its rest did not come in time
	ClosedCrowded  CloseReason = "memory"       // all connections together had too much buffered, and this one the most
	ClosedForRoom  CloseReason = "room"         // at the bound of connections it gave way to one of an address with fewer
	ClosedBadFrame CloseReason = "bad frame"
	ClosedOverload CloseReason = "overload"
	ClosedHere     CloseReason = "closed by server"
	ClosedTLS      CloseReason = "no TLS connection" // refused by the mode, or the handshake failed or took too long
)

// Stats are the counters of a server or client since its start.
type Stats struct {
	Accepted       int64 // connections opened
	Refused        int64 // connections closed at once: bound of connections, or no descriptor left
	ClosedForRoom  int64 // connections of the address with the most, closed for one of another address
	ClosedIdle     int64 // connections closed because nothing was read or written
	ClosedSlow     int64 // connections closed because the rest of a frame did not come in time
	ClosedOverload int64 // connections closed because a second bound of theirs was passed
	Braked         int64 // times that a connection was slowed down because it sent faster than it was served
	ClosedCrowded  int64 // connections closed because the bound of all buffered bytes was passed
	LargeAnswers   int64 // answers replaced by an error because no frame could hold them
	BadFrames      int64 // connections closed because of what they sent
	Busy           int64 // requests answered SYSTEM_BUSY by a bound or a full lane
	LateAnswers    int64 // answers for which nobody waited any more
	Panics         int64 // handlers that panicked
	Handshakes     int64 // TLS handshakes that succeeded
	ClosedTLS      int64 // connections closed because there is TLS and should not be, or the reverse, or it failed
}

// counters are the live form of Stats.
type counters struct {
	accepted, refused, forRoom, idle, slow, overload, braked, crowded, large, badFrames, busy, lateAnswers, panics, handshakes, noTLS atomic.Int64
}

func (c *counters) stats() Stats {
	return Stats{
		Accepted: c.accepted.Load(), Refused: c.refused.Load(), ClosedForRoom: c.forRoom.Load(), ClosedIdle: c.idle.Load(),
		ClosedSlow: c.slow.Load(), ClosedOverload: c.overload.Load(), Braked: c.braked.Load(), ClosedCrowded: c.crowded.Load(), LargeAnswers: c.large.Load(),
		BadFrames: c.badFrames.Load(), Busy: c.busy.Load(),
		LateAnswers: c.lateAnswers.Load(), Panics: c.panics.Load(),
		Handshakes: c.handshakes.Load(), ClosedTLS: c.noTLS.Load(),
	}
}

// endpoint is what all connections of one server or one client share: their bounds, their routes, and
// the sweep that looks after them.
type endpoint struct {
	limits limits
	mux    *Mux // nil = requests are not answered
	events Events
	log    *slog.Logger
	now    func() time.Time
	stats  counters
	tls    *TLS // nil = no TLS
	shakes handshakes
	badLog rateLog
	tlsLog rateLog
	limLog rateLog

	crowded atomic.Bool // more than half of the bound of all buffered bytes is in use; set by the sweep

	mu struct {
		sync.Mutex
		conns   map[*Conn]struct{}
		from    map[netip.Addr]map[*Conn]struct{} // the same connections by their peer's address
		wasted  map[netip.Addr]int64              // bytes of half frames that were not finished, of late
		closing bool
		empty   chan struct{} // closed when closing and the last connection has ended
	}

	sweeping  sync.Mutex // one sweep at a time; guards what of a connection only the sweep touches
	sweepOnce sync.Once
	sweepStop chan struct{}
	sweepDone chan struct{} // nil until the sweep runs; guarded by mu
}

func newEndpoint(l limits, mux *Mux, events Events, log *slog.Logger) *endpoint {
	e := &endpoint{limits: l, mux: mux, events: events, log: log, now: time.Now, sweepStop: make(chan struct{})}
	e.badLog.every, e.tlsLog.every, e.limLog.every = time.Second, time.Minute, time.Second
	e.mu.conns = map[*Conn]struct{}{}
	e.mu.from = map[netip.Addr]map[*Conn]struct{}{}
	e.mu.wasted = map[netip.Addr]int64{}
	e.mu.empty = make(chan struct{})
	return e
}

// open makes a connection of a netpoll one that nobody reads yet. It is nil when the endpoint closes; the
// caller then closes nc.
func (e *endpoint) open(nc netpoll.Connection) *Conn {
	sock, remote, local := newPollSocket(nc)
	c := newConn(e, nc.Reader(), sock)
	c.remote, c.local = remote, local
	nc.AddCloseCallback(func(netpoll.Connection) error {
		c.closed()
		return nil
	})
	if !e.add(c) {
		return nil
	}
	if c.suspect {
		e.stats.braked.Add(1)
		c.sock.narrow(true)
	}
	return c
}

// newConn makes a connection of what it reads from and writes to.
func newConn(e *endpoint, in input, sock socket) *Conn {
	return &Conn{owner: e, arriving: in, in: in, sock: sock}
}

func (e *endpoint) add(c *Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closing {
		return false
	}
	e.mu.conns[c] = struct{}{}
	addr := c.remote.Addr()
	if e.mu.from[addr] == nil {
		e.mu.from[addr] = map[*Conn]struct{}{}
	}
	e.mu.from[addr][c] = struct{}{}
	c.suspect = e.mu.wasted[addr] > wasteLimit
	e.stats.accepted.Add(1)
	if e.sweepDone == nil {
		e.sweepDone = make(chan struct{})
		go e.sweepLoop(e.sweepDone)
	}
	return true
}

// connected reports a connection to the owner.
func (e *endpoint) connected(c *Conn) {
	c.reported.Store(true)
	if e.events.Connected != nil {
		defer e.recovered("Connected", c)
		e.events.Connected(c)
	}
}

// recovered, deferred, keeps a fault of the owner's from ending the process.
func (e *endpoint) recovered(event string, c *Conn) {
	if reason := recover(); reason != nil {
		e.stats.panics.Add(1)
		e.log.Error("event panic", "event", event, "remote", c.remote, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}
}

// remove is the end of a connection.
func (e *endpoint) remove(c *Conn) {
	reason := *c.reason.Load()
	switch reason {
	case ClosedIdle:
		e.stats.idle.Add(1)
	case ClosedTLS:
		e.stats.noTLS.Add(1)
	case ClosedForRoom:
		e.stats.forRoom.Add(1)
	case ClosedSlow:
		e.stats.slow.Add(1)
	case ClosedOverload:
		e.stats.overload.Add(1)
	case ClosedCrowded:
		e.stats.crowded.Add(1)
	}
	switch reason {
	case ClosedForRoom, ClosedSlow, ClosedOverload, ClosedCrowded:
		if n, ok := e.limLog.allow(e.now()); ok {
			e.log.Warn("connection closed by a limit", "reason", reason, "remote", c.remote, "unread", c.arriving.Len(), "pending", c.held.Load(), "queued", c.out.bytes.Load(), "unlogged", n)
		}
	}
	if c.reported.Load() && e.events.Closed != nil {
		func() {
			defer e.recovered("Closed", c)
			e.events.Closed(c, reason)
		}()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.conns, c)
	addr := c.remote.Addr()
	if delete(e.mu.from[addr], c); len(e.mu.from[addr]) == 0 {
		delete(e.mu.from, addr)
	}
	if half := int64(c.arriving.Len()); half > wasteLeast && c.waits.Load()%2 == 1 {
		e.mu.wasted[addr] += half
	}
	e.emptyLocked()
}

func (e *endpoint) emptyLocked() {
	if e.mu.closing && len(e.mu.conns) == 0 {
		select {
		case <-e.mu.empty:
		default:
			close(e.mu.empty)
		}
	}
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.conns)
}

func (e *endpoint) connections() []*Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	conns := make([]*Conn, 0, len(e.mu.conns))
	for c := range e.mu.conns {
		conns = append(conns, c)
	}
	return conns
}

// unknown answers a request without a route.
func (e *endpoint) unknown(c *Call) {
	defer func() {
		if reason := recover(); reason != nil {
			c.caught(reason)
		}
	}()
	if e.mux == nil || e.mux.unknown == nil {
		c.Drop()
		return
	}
	if cmd := e.mux.unknown(c); cmd != nil {
		c.Reply(cmd)
		return
	}
	c.Drop()
}

func (e *endpoint) sweepLoop(done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var watch *time.Ticker // runs while a connection floods
	var floods <-chan time.Time
	var watched []*Conn
	for {
		select {
		case <-e.sweepStop:
			if watch != nil {
				watch.Stop()
			}
			return
		case <-ticker.C:
			clear(watched)
			watched = e.sweep(e.now(), watched[:0])
		case <-floods:
			watched = slices.DeleteFunc(watched, func(c *Conn) bool { return c.boundUnread() || !c.floods() })
			if e.crowded.Load() {
				e.boundBuffered(e.connections())
			}
		}
		switch {
		case len(watched) > 0 && watch == nil:
			watch = time.NewTicker(watchEvery)
			floods = watch.C
		case len(watched) == 0 && watch != nil:
			watch.Stop()
			watch, floods = nil, nil
		}
	}
}

// sweep looks at every connection, and appends those with much unread input to floods.
func (e *endpoint) sweep(now time.Time, floods []*Conn) []*Conn {
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	e.endLateHandshakes(now)
	e.forgetWaste()
	conns := e.connections()
	for _, c := range conns {
		if c.sweep(now); c.floods() {
			floods = append(floods, c)
		}
	}
	e.boundBuffered(conns)
	return floods
}

// unreadPatience is how long a connection's peer may read nothing at all of what is queued for it while the endpoint
// closes: one that never reads does not hold up the stop.
const unreadPatience = time.Second

// drain waits until the connections have written what is queued, at most unreadPatience; it returns those that have
// written a part of it in that time.
func drain(ctx context.Context, conns []*Conn) (going []*Conn) {
	written := make([]int64, len(conns))
	for i, c := range conns {
		written[i] = c.written.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, unreadPatience)
	defer cancel()
	for i, c := range conns {
		drained := c.drained()
		select {
		case <-drained:
			continue
		default:
		}
		select {
		case <-drained:
		case <-ctx.Done():
			if c.written.Load() > written[i] {
				going = append(going, c)
			}
		}
	}
	return going
}

// close writes what is queued, closes every connection, waits for their ends and stops the sweep.
func (e *endpoint) close(ctx context.Context) error {
	e.mu.Lock()
	e.mu.closing = true
	e.emptyLocked()
	e.mu.Unlock()

	conns := e.connections()
	for waiting := conns; len(waiting) > 0 && ctx.Err() == nil; {
		waiting = drain(ctx, waiting)
	}
	for _, c := range conns {
		c.Close()
	}
	var err error
	select {
	case <-e.mu.empty:
	case <-ctx.Done():
		err = fmt.Errorf("%d connections still in a handler: %w", e.count(), ctx.Err())
	}
	e.sweepOnce.Do(func() { close(e.sweepStop) })
	e.mu.Lock()
	done := e.sweepDone
	e.mu.Unlock()
	if done != nil {
		<-done
	}
	return err
}

// rateLog lets one event in a while through and counts the others.
type rateLog struct {
	every time.Duration
	mu    sync.Mutex
	last  time.Time
	muted int
}

// allow tells whether to log now, and how many events were not logged since the last.
func (r *rateLog) allow(now time.Time) (muted int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && now.Sub(r.last) < r.every {
		r.muted++
		return 0, false
	}
	muted, r.last, r.muted = r.muted, now, 0
	return muted, true
}
