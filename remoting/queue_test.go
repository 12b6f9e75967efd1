package remoting

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// TestChunkSizes: a chunk has the room asked for, and comes from the pool of its size.
func TestChunkSizes(t *testing.T) {
	for _, test := range []struct{ ask, room int }{
		{0, 4 << 10}, {1, 4 << 10}, {4 << 10, 4 << 10}, {4<<10 + 1, 8 << 10}, {100_000, 128 << 10},
		{1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1}, {16 << 20, 16 << 20},
	} {
		c := newChunk(test.ask)
		if len(c.b) != 0 || cap(c.b) != test.room {
			t.Errorf("asked for %d: length %d, room %d, want %d", test.ask, len(c.b), cap(c.b), test.room)
		}
		c.free()
	}
	grown := &chunk{make([]byte, 5000)}
	grown.free() // must not be handed out as 8 KiB
	for range 10 {
		if c := newChunk(8 << 10); cap(c.b) < 8<<10 {
			t.Fatalf("room %d for 8 KiB", cap(c.b))
		}
	}
}

// TestQueueKeepsBytes answers from several goroutines into sockets that take a few bytes at a time: every
// frame arrives whole, once, and in the order in which each goroutine answered.
func TestQueueKeepsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := &recorder{step: rapid.IntRange(0, 5000).Draw(t, "step")}
		c := newMemoryConn(nil, &arrivals{}, out, nil)
		goroutines := rapid.IntRange(1, 4).Draw(t, "goroutines")
		bodies := rapid.SliceOfN(rapid.IntRange(0, 100_000), 1, 20).Draw(t, "bodies")
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i, n := range bodies {
					call := &Call{conn: c}
					call.command.Opaque = int32(g<<16 | i)
					call.Reply(&Command{Remark: fmt.Sprint(n), Body: bytes.Repeat([]byte{byte(i)}, n)})
				}
			})
		}
		wg.Wait()
		<-c.drained()
		next := map[int32]int{}
		answers := decodeAll(t, out.buf)
		for _, a := range answers {
			g, i := a.Opaque>>16, int(a.Opaque&0xffff)
			if next[g] != i || a.Remark != fmt.Sprint(bodies[i]) || !bytes.Equal(a.Body, bytes.Repeat([]byte{byte(i)}, bodies[i])) {
				t.Fatalf("goroutine %d: answer %d (%s), expected %d", g, i, a.Remark, next[g])
			}
			next[g]++
		}
		if len(answers) != goroutines*len(bodies) || c.out.bytes.Load() != 0 || c.written.Load() != int64(len(out.buf)) {
			t.Fatalf("%d answers, %d bytes queued, %d of %d counted", len(answers), c.out.bytes.Load(), c.written.Load(), len(out.buf))
		}
	})
}

// TestReplyWhileStuck: with a peer that reads nothing, answering returns at once, the connection goes on
// serving, and all is written when the peer reads again.
func TestReplyWhileStuck(t *testing.T) {
	stuck := make(chan struct{})
	in, out := &arrivals{}, &recorder{stuck: stuck}
	parked := make(chan *Call, 1000)
	c := newMemoryConn(echoMux(parked), in, out, nil)
	for i := range int32(100) {
		in.pieces = [][]byte{frames(request(echoInline, i, "T", nil), request(park, i+1000, "T", nil))}
		feed(c, in) // would hang here if a run waited for the peer
		(<-parked).Reply(&Command{Code: int32(protocol.PullNotFound)})
	}
	if got := out.commands(t); len(got) != 0 || c.out.bytes.Load() == 0 {
		t.Fatalf("%d answers taken, %d bytes queued", len(got), c.out.bytes.Load())
	}
	close(stuck)
	<-c.drained()
	if n := len(out.commands(t)); n != 200 {
		t.Errorf("%d answers, want 200", n)
	}
}

// TestRunFlushesItsAnswers: a call that is answered by another goroutine after its run is written though
// no run follows, also while a later run is in progress.
func TestRunFlushesItsAnswers(t *testing.T) {
	in, out := &arrivals{}, &recorder{}
	parked := make(chan *Call, 1)
	m := echoMux(parked)
	c := newMemoryConn(m, in, out, nil)
	in.pieces = [][]byte{frames(request(park, 1, "T", nil))}
	feed(c, in)
	c.beginRun()
	(<-parked).Reply(&Command{})
	eventually(t, "the answer of the earlier run", func() bool { return len(out.commands(t)) == 1 })
	c.endRun()
}

// TestReplyOnce: of any number of answers, from any goroutines, one is sent.
func TestReplyOnce(t *testing.T) {
	in, out := &arrivals{}, &recorder{}
	parked := make(chan *Call, 1)
	c := newMemoryConn(echoMux(parked), in, out, nil)
	for i := range int32(200) {
		in.pieces = [][]byte{frames(request(park, i, "T", nil))}
		feed(c, in)
		call := <-parked
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				if k == 3 {
					call.ReplyError(protocol.Errorf(protocol.NoPermission, "no"))
					return
				}
				call.Reply(call.Answer(protocol.PullNotFound, "", nil))
			})
		}
		wg.Wait()
	}
	<-c.drained()
	answers := out.commands(t)
	if len(answers) != 200 {
		t.Fatalf("%d answers to 200 requests", len(answers))
	}
	for i, a := range answers {
		if a.Opaque != int32(i) {
			t.Fatalf("answer %d has opaque %d", i, a.Opaque)
		}
	}
	if c.held.Load() != 0 || c.heldBytes.Load() != 0 {
		t.Errorf("%d calls pending, %d bytes", c.held.Load(), c.heldBytes.Load())
	}
}

// TestHeaderThatDoesNotEncode is answered, and the connection goes on.
func TestHeaderThatDoesNotEncode(t *testing.T) {
	m := NewMux(nil)
	type wrong struct{ Queues []int }
	Handle(m, echoInline, Inline, func(c *Call, _ *struct{}) (*Command, error) { return c.Success(&wrong{}), nil })
	in, out := &arrivals{pieces: [][]byte{frames(request(echoInline, 7, "T", nil))}}, &recorder{}
	feed(newMemoryConn(m, in, out, nil), in)
	answers := out.commands(t)
	if len(answers) != 1 || answers[0].Code != int32(protocol.SystemError) || answers[0].Opaque != 7 {
		t.Errorf("answers %v", describe(answers))
	}
}

// TestHeaderThatIsTooLong: an answer whose header can't be told in 24 bits becomes a short one, a request of ours an
// error; the frames around them stay whole.
func TestHeaderThatIsTooLong(t *testing.T) {
	const tooLong protocol.RequestCode = 33
	m := echoMux(nil)
	long := strings.Repeat("\x01", 3<<20) // 6 bytes each in JSON
	Handle(m, tooLong, Inline, func(c *Call, _ *header.GetMaxOffsetRequest) (*Command, error) {
		err := c.Conn().Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, &header.NotifyConsumerIdsChangedRequest{ConsumerGroup: long}, nil))
		if err == nil {
			t.Error("a request with a header too long was queued")
		}
		return c.Success(&header.RegisterBrokerResponse{HaServerAddr: long}), nil
	})
	in, out := &arrivals{pieces: [][]byte{frames(request(echoInline, 6, "T", nil), request(tooLong, 7, "T", nil), request(echoInline, 8, "T", nil))}}, &recorder{}
	feed(newMemoryConn(m, in, out, nil), in)
	answers := out.commands(t)
	if len(answers) != 3 || answers[1].Code != int32(protocol.SystemError) || answers[1].Opaque != 7 || answers[0].Code+answers[2].Code != 0 {
		t.Errorf("answers %v", describe(answers))
	}
}

// TestReplyDoesNotKeep: command and body of an answer may be used again when Reply has returned.
func TestReplyDoesNotKeep(t *testing.T) {
	out := &recorder{stuck: make(chan struct{})}
	c := newMemoryConn(nil, &arrivals{}, out, nil)
	answer := &Command{Body: []byte("first")}
	for i := range int32(2) {
		call := &Call{conn: c}
		call.command.Opaque = i
		call.Reply(answer)
		copy(answer.Body, "other")
	}
	if answer.Opaque != 0 || answer.Flag != 0 {
		t.Errorf("answer was changed: %+v", answer)
	}
	close(out.stuck)
	<-c.drained()
	got := out.commands(t)
	if len(got) != 2 || string(got[0].Body) != "first" || string(got[1].Body) != "other" || got[1].Opaque != 1 {
		t.Errorf("answers %v", describe(got))
	}
}
