package remoting

import (
	"log/slog"
	"testing"
	"time"

	"rocketd/protocol"
)

func countBusy(t *testing.T, answers []*Command) (busy int) {
	t.Helper()
	for _, a := range answers {
		if a.Code == int32(protocol.SystemBusy) {
			if a.Remark != "[OVERLOAD]system busy, start flow control for a while" {
				t.Errorf("remark %q", a.Remark)
			}
			busy++
		}
	}
	return busy
}

func reasonOf(c *Conn) CloseReason {
	if r := c.reason.Load(); r != nil {
		return *r
	}
	return ""
}

// TestPendingBusy: past the bound of unanswered requests further ones are refused, until some are
// answered.
func TestPendingBusy(t *testing.T) {
	parked := make(chan *Call, 10)
	in, out := &arrivals{}, &recorder{}
	mux, told := echoMux(parked), 0
	mux.Watch([]protocol.RequestCode{echoInline}, func(*Call) error { return nil }, func(_ *Call, answer *Command) {
		if answer.Code == int32(protocol.SystemBusy) {
			told++
		}
	})
	c := newMemoryConn(mux, in, out, func(l *limits) { l.pendingBusy = 5 })
	for i := range int32(8) {
		in.pieces = [][]byte{frames(request(park, i, "T", []byte("body")))}
		feed(c, in)
	}
	if busy := countBusy(t, out.commands(t)); busy != 3 || len(parked) != 5 {
		t.Fatalf("%d refused, %d parked; want 3, 5", busy, len(parked))
	}
	oneway := request(echoInline, 99, "T", nil)
	oneway.Flag = protocol.FlagOneway
	in.pieces = [][]byte{frames(oneway)}
	feed(c, in) // refused without an answer
	(<-parked).Reply(&Command{})
	<-c.drained()
	in.pieces = [][]byte{frames(request(echoInline, 100, "TopicZ", nil))}
	feed(c, in)
	answers := out.commands(t)
	if last := answers[len(answers)-1]; len(answers) != 5 || last.Opaque != 100 || last.Code != 0 {
		t.Errorf("answers %v", describe(answers))
	}
	if n := c.owner.stats.busy.Load(); n != 4 {
		t.Errorf("%d refusals counted", n)
	}
	if told != 1 { // who watches a code is told of those of it, answered or not
		t.Errorf("told of %d refusals", told)
	}
}

func TestPendingClose(t *testing.T) {
	parked := make(chan *Call, 20)
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(echoMux(parked), in, out, func(l *limits) { l.pendingBusy, l.pendingClose = 0, 10 })
	for i := range int32(10) {
		in.pieces = [][]byte{frames(request(park, i, "T", nil))}
		feed(c, in)
	}
	if reason := reasonOf(c); reason != "" {
		t.Fatalf("closed at the bound: %s", reason)
	}
	in.pieces = [][]byte{frames(request(park, 11, "T", nil))}
	feed(c, in)
	if reason := reasonOf(c); reason != ClosedOverload {
		t.Errorf("past the bound: %q", reason)
	}
}

// TestDrop: a request to which nothing is due does not count.
func TestDrop(t *testing.T) {
	parked := make(chan *Call, 1)
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(echoMux(parked), in, out, nil)
	in.pieces = [][]byte{frames(request(park, 1, "T", nil))}
	feed(c, in)
	if c.held.Load() != 1 {
		t.Fatalf("%d pending", c.held.Load())
	}
	call := <-parked
	call.Drop()
	call.Reply(&Command{})
	if c.held.Load() != 0 || c.heldBytes.Load() != 0 || len(out.commands(t)) != 0 {
		t.Errorf("%d pending, %d bytes, %d answers", c.held.Load(), c.heldBytes.Load(), len(out.commands(t)))
	}
}

// TestQueuedBusyThenClose: answers that the peer does not read.
func TestQueuedBusyThenClose(t *testing.T) {
	in, out := &arrivals{}, &recorder{stuck: make(chan struct{})}
	defer close(out.stuck)
	c := newMemoryConn(echoMux(nil), in, out, func(l *limits) { l.queuedBusy, l.queuedClose = 10_000, 20_000 })
	body := make([]byte, 1000)
	refusedAt := int64(0)
	for i := int32(0); reasonOf(c) == "" && i < 10_000; i++ {
		before := c.owner.stats.busy.Load()
		queued := c.out.bytes.Load()
		in.pieces = [][]byte{frames(request(echoInline, i, "T", body))}
		feed(c, in)
		if busy := c.owner.stats.busy.Load() > before; busy != (queued > 10_000) {
			t.Fatalf("with %d bytes queued: refused %v", queued, busy)
		} else if busy && refusedAt == 0 {
			refusedAt = queued
		}
	}
	if reason := reasonOf(c); reason != ClosedOverload || refusedAt == 0 {
		t.Errorf("reason %q, first refusal at %d bytes", reason, refusedAt)
	}
	if queued := c.out.bytes.Load(); queued < 20_000 || queued > 22_000 {
		t.Errorf("%d bytes queued at the end", queued)
	}
	// Requests of ours to such a peer fail at once.
	if err := c.Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, nil, nil)); err != ErrQueueFull {
		t.Errorf("oneway: %v", err)
	}
	if _, err := c.Call(t.Context(), protocol.NewRequest(protocol.GetConsumerRunningInfo, nil, nil), time.Second); err != ErrQueueFull {
		t.Errorf("call: %v", err)
	}
}

// TestUnreadBusy: what came in a burst behind a slow handler is refused until the rest is below the
// bound.
func TestUnreadBusy(t *testing.T) {
	var b []byte
	body := make([]byte, 1000)
	for i := range int32(40) {
		b = append(b, frames(request(echoInline, i, "T", body))...)
	}
	in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, func(l *limits) { l.unreadBusy = int64(len(b) / 4) })
	feed(c, in)
	answers := out.commands(t)
	if busy := countBusy(t, answers); len(answers) != 40 || busy < 29 || busy > 31 {
		t.Errorf("%d answers, %d of them refusals", len(answers), busy)
	}
	if answers[39].Code != 0 {
		t.Errorf("the last one was refused")
	}
}

// TestHeldBytesBusy: the bytes of requests that wait for their answer count like unread ones.
func TestHeldBytesBusy(t *testing.T) {
	parked := make(chan *Call, 10)
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(echoMux(parked), in, out, func(l *limits) { l.unreadBusy = 10_000 })
	for i := range int32(5) {
		in.pieces = [][]byte{frames(request(park, i, "T", make([]byte, 4000)))}
		feed(c, in)
	}
	if busy := countBusy(t, out.commands(t)); busy != 2 || len(parked) != 3 {
		t.Errorf("%d refused, %d parked", busy, len(parked))
	}
}

// TestUnreadClose: the sweep closes a connection whose handler is stuck while input piles up.
func TestUnreadClose(t *testing.T) {
	in, out := &arrivals{buf: make([]byte, 2001)}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, func(l *limits) { l.unreadClose = 2001 })
	now := time.Unix(1000, 0)
	c.sweep(now)
	if reason := reasonOf(c); reason != "" {
		t.Fatalf("closed at the bound: %s", reason)
	}
	in.buf = append(in.buf, 0)
	c.sweep(now)
	if reason := reasonOf(c); reason != ClosedOverload {
		t.Errorf("past the bound: %q", reason)
	}
}

// TestUnreadCloseInTheLoop: the frame loop itself looks between two frames, whatever the requests are.
func TestUnreadCloseInTheLoop(t *testing.T) {
	var b []byte
	for i := range int32(40) {
		b = append(b, frames(request(echoInline, i, "T", make([]byte, 1000)))...)
	}
	in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, func(l *limits) { l.unreadClose = int64(len(b) / 2) })
	feed(c, in)
	if reason := reasonOf(c); reason != ClosedOverload || len(in.buf) < len(b)*9/10 {
		t.Errorf("%q, %d of %d bytes left", reason, len(in.buf), len(b))
	}
}

// TestFloods: the sweep names the connections that are to be looked at again soon.
func TestFloods(t *testing.T) {
	e := newEndpoint(limits{unreadBusy: 8000, unreadClose: 16000}, nil, Events{}, slog.New(slog.DiscardHandler))
	var want *Conn
	for _, n := range []int{0, 1000, 1001, 16001} {
		c := newConn(e, &arrivals{buf: make([]byte, n)}, &recorder{})
		e.mu.conns[c] = struct{}{}
		if n == 1001 {
			want = c
		}
	}
	if got := e.sweep(time.Unix(1000, 0), nil); len(got) != 1 || got[0] != want {
		t.Errorf("%d connections flood", len(got))
	}
}

// TestIdle: 120 s without a byte read or written; half a frame that grows is not idle.
func TestIdle(t *testing.T) {
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	now := time.Unix(1000, 0)
	step := func(d time.Duration, want CloseReason) {
		t.Helper()
		now = now.Add(d)
		c.sweep(now)
		if reason := reasonOf(c); reason != want {
			t.Fatalf("at %v: %q, want %q", now.Sub(time.Unix(1000, 0)), reason, want)
		}
	}
	step(0, "")
	step(119*time.Second, "")
	in.buf = append(in.buf, 0) // a byte has come
	step(0, "")
	step(119*time.Second, "")
	c.Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, nil, nil)) // bytes are written
	<-c.drained()
	step(0, "")
	step(120*time.Second, "")
	step(time.Second, ClosedIdle)
}

// TestHalfFrameIdle: a connection that waits for the rest of a frame holds a goroutine, so that answers
// written to it do not keep it.
func TestHalfFrameIdle(t *testing.T) {
	in, out := &arrivals{buf: []byte{0}}, &recorder{}
	c := newMemoryConn(nil, in, out, nil)
	now := time.Unix(1000, 0)
	for range 13 {
		if reason := reasonOf(c); reason != "" {
			t.Fatalf("closed at %v: %s", now, reason)
		}
		if c.waits.Load() == 0 {
			c.waits.Add(1)
		}
		c.sweep(now)
		c.Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, nil, nil))
		<-c.drained()
		now = now.Add(10 * time.Second)
	}
	c.sweep(now)
	if reason := reasonOf(c); reason != ClosedIdle {
		t.Errorf("reason %q", reason)
	}
}

// TestNotReading: a peer that sends and reads nothing is closed when it has taken no byte of an answer
// for the idle time.
func TestNotReading(t *testing.T) {
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(nil, in, out, nil)
	now := time.Unix(1000, 0)
	step := func(d time.Duration, want CloseReason) {
		t.Helper()
		now = now.Add(d)
		in.buf = append(in.buf, 0)
		c.sweep(now)
		if reason := reasonOf(c); reason != want {
			t.Fatalf("at %v: %q, want %q", now, reason, want)
		}
	}
	step(0, "")
	step(300*time.Second, "") // nothing to write
	stuck := make(chan struct{})
	out.stuck = stuck
	defer close(stuck)
	c.Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, nil, nil))
	step(60*time.Second, "")
	step(120*time.Second, "")
	step(time.Second, ClosedOverload)
}

// TestDefaultBounds pins what the documentation of the bounds promises to stock clients.
func TestDefaultBounds(t *testing.T) {
	cfg := DefaultServerConfig()
	if cfg.ServerChannelMaxIdleTimeSeconds != 120 || cfg.ServerSocketBacklog != 1024 || cfg.FrameMaxLength != 16777216 || cfg.ListenPort != 8888 {
		t.Errorf("official defaults: %+v", cfg)
	}
	if cfg.PendingRequestsBusy <= 65535 || cfg.UnreadBytesBusy < 4*16777216 || cfg.QueuedBytesBusy < 4*16777216 {
		t.Errorf("a stock client can meet the first bounds: %+v", cfg)
	}
	if cfg.PendingRequestsClose <= cfg.PendingRequestsBusy || cfg.UnreadBytesClose <= cfg.UnreadBytesBusy || cfg.QueuedBytesClose <= cfg.QueuedBytesBusy {
		t.Errorf("second bounds are not beyond the first: %+v", cfg)
	}
	client := DefaultClientConfig()
	if client.ConnectTimeoutMillis != 3000 || client.ClientChannelMaxIdleTimeSeconds != 120 || !client.ClientCloseSocketIfTimeout {
		t.Errorf("official client defaults: %+v", client)
	}
}

// TestRateLog: one event in a while is logged, with the number of those that were not.
func TestRateLog(t *testing.T) {
	r := rateLog{every: time.Minute}
	now := time.Unix(1000, 0)
	for i, test := range []struct {
		after time.Duration
		muted int
		ok    bool
	}{{0, 0, true}, {time.Second, 0, false}, {58 * time.Second, 0, false}, {time.Second, 2, true}, {59 * time.Second, 0, false}, {time.Hour, 1, true}} {
		now = now.Add(test.after)
		if muted, ok := r.allow(now); muted != test.muted || ok != test.ok {
			t.Errorf("event %d: %d, %v; want %d, %v", i, muted, ok, test.muted, test.ok)
		}
	}
}
