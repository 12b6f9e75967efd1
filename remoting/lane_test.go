package remoting

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol"
)

// laneCall makes a call whose handler is f, on a connection that records.
func laneCall(c *Conn, opaque int32, f func(*Call)) *Call {
	call := &Call{conn: c, route: &route{serve: f}}
	call.command.Opaque = opaque
	return call
}

func TestLane(t *testing.T) {
	out := &recorder{}
	c := newMemoryConn(nil, &arrivals{}, out, nil)
	l := NewLane("test", 2, 3)
	if l.Capacity() != 3 || l.Queued() != 0 || l.Name() != "test" {
		t.Errorf("capacity %d, queued %d", l.Capacity(), l.Queued())
	}
	gate := make(chan struct{})
	var running, most, served atomic.Int32
	work := func(*Call) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-gate
		running.Add(-1)
		served.Add(1)
	}
	for i := range int32(5) {
		if !l.submit(laneCall(c, i, work)) {
			t.Fatalf("call %d refused", i)
		}
	}
	if l.submit(laneCall(c, 5, work)) {
		t.Error("a full lane took a call")
	}
	if l.Queued() != 3 {
		t.Errorf("queued %d", l.Queued())
	}
	eventually(t, "two run", func() bool { return running.Load() == 2 })
	close(gate)
	eventually(t, "all served", func() bool { return served.Load() == 5 })
	if most.Load() != 2 {
		t.Errorf("%d ran at once", most.Load())
	}
	l.Close()
	if l.submit(laneCall(c, 6, work)) {
		t.Error("a closed lane took a call")
	}
}

// TestLaneFull: a request that finds its lane full is answered SYSTEM_BUSY.
func TestLaneFull(t *testing.T) {
	l := NewLane("one", 1, 0)
	gate, started := make(chan struct{}), make(chan struct{}, 10)
	m := NewMux(nil)
	Handle(m, echoInline, l, func(c *Call, _ *struct{}) (*Command, error) {
		started <- struct{}{}
		<-gate
		return c.Success(nil), nil
	})
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(m, in, out, nil)
	in.pieces = [][]byte{frames(request(echoInline, 1, "T", nil))}
	feed(c, in)
	<-started
	in.pieces = [][]byte{frames(request(echoInline, 2, "T", nil))}
	feed(c, in)
	<-c.drained()
	answers := out.commands(t)
	if countBusy(t, answers) != 1 || answers[0].Opaque != 2 {
		t.Fatalf("answers %v", describe(answers))
	}
	if n := c.held.Load(); n != 1 {
		t.Errorf("%d requests pending while one runs", n)
	}
	close(gate)
	l.Close()
	<-c.drained()
	if answers = out.commands(t); len(answers) != 2 || answers[1].Opaque != 1 || answers[1].Code != 0 {
		t.Errorf("answers %v", describe(answers))
	}
}

// TestLaneWorkersEnd: idle workers end, and new ones come with new work.
func TestLaneWorkersEnd(t *testing.T) {
	l := NewLane("idle", 4, 100)
	l.idleTime = time.Millisecond
	c := newMemoryConn(nil, &arrivals{}, &recorder{}, nil)
	for round := range 3 {
		var wg sync.WaitGroup
		wg.Add(20)
		for i := range int32(20) {
			l.submit(laneCall(c, i, func(*Call) { wg.Done() }))
		}
		wg.Wait()
		eventually(t, "workers ended", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.mu.running == 0
		})
		_ = round
	}
	l.Close()
}

// TestLaneClose: calls that wait are refused, those that run are waited for.
func TestLaneClose(t *testing.T) {
	l := NewLane("closing", 1, 10)
	out := &recorder{}
	c := newMemoryConn(nil, &arrivals{}, out, nil)
	gate, started := make(chan struct{}), make(chan struct{})
	l.submit(laneCall(c, 1, func(call *Call) { close(started); <-gate; call.Reply(&Command{Remark: "done"}) }))
	<-started
	l.submit(laneCall(c, 2, func(call *Call) { t.Error("a waiting call ran") }))
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	eventually(t, "the waiting call refused", func() bool { return len(out.commands(t)) == 1 })
	select {
	case <-closed:
		t.Fatal("Close did not wait for the running call")
	default:
	}
	close(gate)
	<-closed
	<-c.drained()
	answers := out.commands(t)
	if len(answers) != 2 || answers[0].Code != int32(protocol.SystemBusy) || answers[1].Remark != "done" {
		t.Errorf("answers %v", describe(answers))
	}
	l.Close() // again
}

// TestLaneStress submits from many goroutines while workers come and go.
func TestLaneStress(t *testing.T) {
	l := NewLane("stress", 8, 64)
	l.idleTime = 100 * time.Microsecond
	c := newMemoryConn(nil, &arrivals{}, &recorder{}, nil)
	var served, taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range int32(2000) {
				if l.submit(laneCall(c, i, func(*Call) { served.Add(1) })) {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all served", func() bool { return served.Load() == taken.Load() })
	l.Close()
}
