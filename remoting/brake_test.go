package remoting

import (
	"slices"
	"testing"
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
