package remoting

import (
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rocketd/protocol"
)

// TestSlowFrame: a frame whose bytes come one by one, and never end, is given up; many frames that each come in halves are not.
func TestSlowFrame(t *testing.T) {
	in, out := &arrivals{buf: []byte{0}}, &recorder{}
	c := newMemoryConn(nil, in, out, func(l *limits) { l.frameTime = 100 * time.Second })
	now := time.Unix(1000, 0)
	step := func(want CloseReason) {
		t.Helper()
		now = now.Add(20 * time.Second)
		in.buf = append(in.buf, 0)
		c.sweep(now)
		if reason := reasonOf(c); reason != want {
			t.Fatalf("at %v: %q, want %q", now.Sub(time.Unix(1000, 0)), reason, want)
		}
	}
	for range 20 { // each wait is another frame's
		c.waits.Add(1)
		step("")
		c.waits.Add(1)
		c.waits.Add(1)
		step("")
		c.waits.Add(1)
	}
	for range 20 { // no frame has begun
		step("")
	}
	c.waits.Add(1)
	for range 6 {
		step("")
	}
	step(ClosedSlow)
}

// TestSlowFrameInTheLoop: the loop says that it waits, and that it does no more.
func TestSlowFrameInTheLoop(t *testing.T) {
	b := frames(request(echoInline, 1, "T", []byte("body")))
	var seen []int64
	in, out := &arrivals{pieces: [][]byte{b[:10], b[10:20], b[20:]}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	in.onWait = func() { seen = append(seen, c.waits.Load()) }
	feed(c, in)
	if len(seen) == 0 || seen[0] != 1 || c.waits.Load() != 2 || len(out.commands(t)) != 1 {
		t.Errorf("waits %v, at last %d, %d answers", seen, c.waits.Load(), len(out.commands(t)))
	}
}

// crowd makes an endpoint with connections that have so many bytes unread.
func crowd(limit int64, unread ...int) (*endpoint, []*Conn) {
	e := newEndpoint(limits{buffered: limit, frame: protocol.MaxFrame}, echoMux(nil), Events{}, slog.New(slog.DiscardHandler))
	var conns []*Conn
	for _, n := range unread {
		c := newConn(e, &arrivals{buf: make([]byte, n)}, &recorder{})
		e.add(c)
		conns = append(conns, c)
	}
	return e, conns
}

func closeCrowd(t *testing.T, e *endpoint, conns []*Conn) {
	t.Helper()
	for _, c := range conns {
		c.Close()
		c.closed()
	}
	if err := e.close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCrowded: past half of the common bound a connection with more than its share is refused and the others served;
// past the bound those with the most are closed until the rest is within half of it.
func TestCrowded(t *testing.T) {
	const share = crowdedShare
	e, conns := crowd(12*share, 2*share, 1000, share, 3*share-500)
	e.sweep(time.Unix(1000, 0), nil)
	if !e.crowded.Load() {
		t.Fatal("not crowded")
	}
	for i, want := range []bool{true, false, false, true} {
		if got := conns[i].overloaded(conns[i].arriving.Len()); got != want || reasonOf(conns[i]) != "" {
			t.Errorf("connection %d: refused %v, closed %q", i, got, reasonOf(conns[i]))
		}
	}
	// Answers that nobody reads count as well.
	conns[1].out.bytes.Add(8 * share)
	e.sweep(time.Unix(1001, 0), nil)
	for i, want := range []CloseReason{"", ClosedCrowded, "", ""} {
		if got := reasonOf(conns[i]); got != want {
			t.Errorf("connection %d: %q, want %q", i, got, want)
		}
	}
	conns[1].out.bytes.Add(-8 * share)
	for _, c := range conns {
		c.Close()
		c.closed()
	}
	if n := e.stats.stats().ClosedCrowded; n != 1 {
		t.Errorf("%d counted", n)
	}
	e.sweep(time.Unix(1002, 0), nil)
	if e.crowded.Load() {
		t.Error("still crowded")
	}
	closeCrowd(t, e, nil)
}

// TestRoom: at the bound the address with the most connections gives way to one with few, and to no other.
func TestRoom(t *testing.T) {
	e, conns := crowd(0, 0)
	closeCrowd(t, e, conns)
	e, _ = crowd(0)
	e.limits.connections = 10
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	add := func(from netip.Addr) bool {
		if !e.room(from) {
			return false
		}
		c := newConn(e, &arrivals{}, &recorder{})
		c.remote = netip.AddrPortFrom(from, 1)
		e.add(c)
		return true
	}
	evicted := func() (n int) {
		for _, c := range e.connections() {
			if reasonOf(c) == ClosedForRoom {
				c.closed()
				n++
			}
		}
		return n
	}
	for range 10 {
		if !add(a) {
			t.Fatal("no room below the bound")
		}
	}
	if add(a) || evicted() != 0 {
		t.Error("room for the address that has all")
	}
	for i := range 3 { // 9 and 1, 8 and 2, 7 and 3
		if !add(b) {
			t.Fatalf("no room for connection %d of another address", i)
		}
		if n := evicted(); n != 1 {
			t.Errorf("%d closed", n)
		}
	}
	if add(b) || evicted() != 0 {
		t.Error("7 and 4 of 10: room at the cost of the other")
	}
	if st := e.stats.stats(); st.ClosedForRoom != 3 || len(e.mu.from) != 2 {
		t.Errorf("%+v, %d addresses", st, len(e.mu.from))
	}
	conns = e.connections()
	closeCrowd(t, e, conns)
	if len(e.mu.from) != 0 {
		t.Errorf("%d addresses are left", len(e.mu.from))
	}
}

// TestWithinDescriptors: the bound of connections leaves descriptors to files.
func TestWithinDescriptors(t *testing.T) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if n := withinDescriptors(math.MaxInt, 9876, log); uint64(n) != files.Cur-min(files.Cur/4, 4096) {
		t.Errorf("%d of %d", n, files.Cur)
	}
	for _, n := range []int{0, 1, 10} {
		if got := withinDescriptors(n, 9876, log); got != n {
			t.Errorf("%d became %d", n, got)
		}
	}
}

// TestLargeAnswer: an answer that no frame can hold is an error, and the connection lives.
func TestLargeAnswer(t *testing.T) {
	for _, test := range []struct {
		name  string
		size  int
		large bool
	}{{"fits", 10_000 - 300, false}, {"with its header too large", 10_000 - 20, true}, {"too large", 10_000, true}, {"far too large", 1 << 20, true}} {
		t.Run(test.name, func(t *testing.T) {
			m := NewMux(nil)
			Handle(m, echoInline, Inline, func(c *Call, _ *struct{}) (*Command, error) {
				a := c.Success(nil)
				a.Body = make([]byte, test.size)
				return a, nil
			})
			in, out := &arrivals{}, &recorder{}
			c := newMemoryConn(m, in, out, func(l *limits) { l.frame = 10_000 })
			for i := range int32(2) {
				in.pieces = [][]byte{frames(request(echoInline, i, "T", nil))}
				feed(c, in)
			}
			answers := out.commands(t)
			if len(answers) != 2 || reasonOf(c) != "" {
				t.Fatalf("%d answers, closed %q", len(answers), reasonOf(c))
			}
			for i, a := range answers {
				large := a.Code == int32(protocol.SystemError) && strings.HasPrefix(a.Remark, "the answer has ") && strings.HasSuffix(a.Remark, "at most 10000") && len(a.Body) == 0
				if large != test.large || !large && len(a.Body) != test.size || a.Opaque != int32(i) {
					t.Errorf("answer %d: code %d, remark %q, body of %d bytes", i, a.Code, a.Remark, len(a.Body))
				}
			}
			if n := c.owner.stats.stats().LargeAnswers; (n == 2) != test.large {
				t.Errorf("%d counted", n)
			}
		})
	}
	// A request of ours that does not fit is an error of the caller.
	c := newMemoryConn(nil, &arrivals{}, &recorder{}, func(l *limits) { l.frame = 10_000 })
	if err := c.Oneway(protocol.NewRequest(protocol.RegisterBroker, nil, make([]byte, 10_000))); err == nil || c.out.bytes.Load() != 0 {
		t.Errorf("request: %v, %d bytes queued", err, c.out.bytes.Load())
	}
}
