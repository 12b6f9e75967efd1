package remoting

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"rocketd/protocol"
)

// TestBrake: a peer that sends far more than is served is braked, until most of it is served; answers and their order stay.
func TestBrake(t *testing.T) {
	var b []byte
	body := make([]byte, 32<<10)
	const n = 400 // 12.5 MiB
	for i := range int32(n) {
		b = append(b, frames(request(echoInline, i, "T", body))...)
	}
	in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	before := braked.Load()
	feed(c, in)
	if !slices.Equal(out.narrowed, []bool{true, false}) || braked.Load() != before || c.brakes {
		t.Errorf("narrowed %v, %d braked before, %d now", out.narrowed, before, braked.Load())
	}
	answers := out.commands(t)
	for i, a := range answers {
		if a.Opaque != int32(i) || a.Code != 0 {
			t.Fatalf("answer %d: opaque %d, code %d", i, a.Opaque, a.Code)
		}
	}
	if len(answers) != n || c.owner.stats.stats().Braked != 1 {
		t.Errorf("%d answers, %+v", len(answers), c.owner.stats.stats())
	}
}

// TestBrakeOfHalfAFrame: nobody is braked while the rest of a frame is waited for.
func TestBrakeOfHalfAFrame(t *testing.T) {
	b := frames(request(echoInline, 1, "T", make([]byte, 12<<20)), request(echoInline, 2, "T", nil))
	in, out := &arrivals{pieces: [][]byte{b[:9<<20], b[9<<20:]}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	braking := true
	in.onWait = func() { braking = c.brakes }
	feed(c, in)
	if braking || len(out.narrowed) != 0 || len(out.commands(t)) != 2 {
		t.Errorf("braked %v, narrowed %v, %d answers", braking, out.narrowed, len(out.commands(t)))
	}
}

// TestBrakeEndsWithTheConnection: a braked connection that ends is not counted any more.
func TestBrakeEndsWithTheConnection(t *testing.T) {
	var b []byte
	for i := range int32(300) {
		b = append(b, frames(request(echoInline, i, "T", make([]byte, 32<<10)))...)
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff) // no frame
	in, out := &arrivals{pieces: [][]byte{append(b, make([]byte, 4<<20)...)}}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	before := braked.Load()
	feed(c, in)
	if reasonOf(c) != ClosedBadFrame || braked.Load() != before || c.owner.stats.stats().Braked != 1 {
		t.Errorf("%q, %d braked before, %d now, %+v", reasonOf(c), before, braked.Load(), c.owner.stats.stats())
	}
}

// TestWaste: an address that leaves large half frames begins its next connections braked until a frame is whole, for a while;
// another address does not.
func TestWaste(t *testing.T) {
	e := newEndpoint(limits{frame: protocol.MaxFrame}, echoMux(nil), Events{}, slog.New(slog.DiscardHandler))
	from := func(addr string, unread int) *Conn {
		c := newConn(e, &arrivals{buf: make([]byte, unread)}, &recorder{})
		c.remote = netip.AddrPortFrom(netip.MustParseAddr(addr), 1)
		e.add(c)
		return c
	}
	end := func(c *Conn, half bool) {
		if half {
			c.waits.Add(1)
		}
		c.Close()
		c.closed()
	}
	const bad, good = "192.0.2.1", "192.0.2.2"
	for _, step := range []struct {
		unread  int
		half    bool
		suspect bool // the next connection of the address
	}{{15 << 20, true, false}, {15 << 20, false, false}, {wasteLeast, true, false}, {2 << 20, true, true}} {
		end(from(bad, step.unread), step.half)
		next := from(bad, 0)
		if next.suspect != step.suspect {
			t.Errorf("after %+v: suspect %v", step, next.suspect)
		}
		end(next, false)
	}
	if c := from(good, 0); c.suspect {
		t.Error("another address is suspect")
	} else {
		end(c, false)
	}
	c := from(bad, 0)
	in, out := &arrivals{pieces: [][]byte{frames(request(echoInline, 1, "T", nil), request(echoInline, 2, "T", nil))}}, &recorder{}
	c.arriving, c.in, c.sock = in, in, out
	feed(c, in)
	if c.suspect || !slices.Equal(out.narrowed, []bool{false}) || len(out.commands(t)) != 2 {
		t.Errorf("after a whole frame: suspect %v, narrowed %v, %d answers", c.suspect, out.narrowed, len(out.commands(t)))
	}
	end(c, false)
	for range 6 {
		e.forgetWaste()
	}
	if c := from(bad, 0); c.suspect || len(e.mu.wasted) != 0 {
		t.Errorf("it does not fade: %v", e.mu.wasted)
	} else {
		end(c, false)
	}
	if err := e.close(t.Context()); err != nil {
		t.Error(err)
	}
}
