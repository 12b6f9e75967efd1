package remoting_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// TestChurn opens and closes connections from both ends at any moment, while handlers of every kind and
// goroutines of others answer small and large: each peer gets only frames of its own, whole; each
// connection is reported open and closed once; and nothing is left.
func TestChurn(t *testing.T) {
	var opened, closed atomic.Int64
	parked := make(chan *remoting.Call, 1000)
	lane := remoting.NewLane("churn", 4, 1000)
	answer := func(c *remoting.Call, topic string) *remoting.Command {
		a := c.Answer(protocol.Success, topic, nil)
		a.Body = bytes.Repeat([]byte(topic), 1+int(c.Command().Opaque)%2000)
		return a
	}
	m := remoting.NewMux(nil)
	remoting.HandleRun(m, []protocol.RequestCode{run}, func(calls []*remoting.Call, reqs []*header.SendMessageRequest) {
		for i, c := range calls {
			c.Reply(answer(c, reqs[i].Topic))
		}
	})
	remoting.Handle(m, echo, lane, func(c *remoting.Call, r *header.GetMaxOffsetRequest) (*remoting.Command, error) {
		return answer(c, r.Topic), nil
	})
	remoting.Handle(m, hold, remoting.Inline, func(c *remoting.Call, r *header.GetMinOffsetRequest) (*remoting.Command, error) {
		parked <- c
		return nil, nil
	})
	s := remotingtest.StartWith(t, remotingtest.Config(), m, remoting.Events{
		Connected: func(*remoting.Conn) { opened.Add(1) },
		Closed:    func(*remoting.Conn, remoting.CloseReason) { closed.Add(1) },
	})
	ctx, stopCompleter := context.WithCancel(t.Context())
	var completer sync.WaitGroup
	for range 2 {
		completer.Go(func() {
			for {
				select {
				case c := <-parked:
					topic, _ := c.Command().Field("topic")
					c.Reply(answer(c, topic))
					c.Reply(answer(c, "twice"))
					if rand.IntN(20) == 0 {
						c.Conn().Close()
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	var peers sync.WaitGroup
	var frames atomic.Int64
	deadline := time.Now().Add(700 * time.Millisecond)
	for g := range 8 {
		peers.Go(func() {
			for n := 0; time.Now().Before(deadline); n++ {
				topic := fmt.Sprintf("<%d-%d>", g, n)
				frames.Add(churnPeer(t, s, topic))
			}
		})
	}
	peers.Wait()
	remotingtest.Eventually(t, "all closed", func() bool { return s.Connections() == 0 })
	stop(t, s)
	lane.Close()
	stopCompleter()
	completer.Wait()
	if opened.Load() != closed.Load() || opened.Load() == 0 || frames.Load() == 0 {
		t.Errorf("%d opened, %d closed, %d frames", opened.Load(), closed.Load(), frames.Load())
	}
	t.Logf("%d connections, %d answers", opened.Load(), frames.Load())
}

// churnPeer is one connection's life; it returns the number of answers.
func churnPeer(t *testing.T, s *remoting.Server, topic string) (frames int64) {
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	defer p.Close()
	p.SetDeadline(time.Now().Add(remotingtest.Patience))
	requests := 1 + rand.IntN(60)
	var b []byte
	for i := range requests {
		code := []protocol.RequestCode{run, echo, hold}[rand.IntN(3)]
		r := protocol.NewRequest(code, &header.GetMaxOffsetRequest{Topic: topic, QueueId: 1}, nil)
		if code == run {
			r.Header = &header.SendMessageRequest{Topic: topic}
		}
		r.Opaque = int32(i + rand.IntN(2000)*100)
		b = protocol.AppendFrame(b, r)
	}
	if rand.IntN(5) == 0 {
		b = b[:rand.IntN(len(b))] // ends in the middle of a frame
	}
	if _, err := p.Write(b); err != nil {
		return 0 // closed by the completer
	}
	for range rand.IntN(requests + 1) {
		a, err := p.TryReceive(100 * time.Millisecond)
		if err != nil {
			return frames
		}
		if a.Remark != topic || !bytes.Equal(a.Body, bytes.Repeat([]byte(topic), 1+int(a.Opaque)%2000)) {
			t.Errorf("%s: frame of %q, %d bytes of body", topic, a.Remark, len(a.Body))
		}
		frames++
	}
	return frames
}
