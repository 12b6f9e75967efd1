package remoting_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// connected starts a server with testMux, connects a peer, and returns the server's side of it.
func connected(t *testing.T) (*remotingtest.Peer, *remoting.Conn, *remoting.Server) {
	t.Helper()
	held := make(chan *remoting.Call, 1)
	s := remotingtest.Start(t, testMux(held))
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	p.Send(req(hold, 1, "", nil))
	call := <-held
	call.Reply(call.Success(nil))
	p.Receive()
	return p, call.Conn(), s
}

func answerTo(r *protocol.Command, remark string) *protocol.Command {
	a := protocol.NewResponse(protocol.Success, remark, nil)
	a.Opaque = r.Opaque
	return a
}

// TestRequestsBothWays: the server asks the client while the client asks the server. Their opaques are
// two number spaces.
func TestRequestsBothWays(t *testing.T) {
	p, conn, _ := connected(t)
	var wg sync.WaitGroup
	const n = 50
	for range n {
		wg.Go(func() {
			a, err := conn.Call(t.Context(), protocol.NewRequest(protocol.GetConsumerRunningInfo, &header.GetConsumerRunningInfoRequest{ClientId: "c", ConsumerGroup: "g"}, nil), remotingtest.Patience)
			if err != nil || a.Remark != "from the client" || string(a.Body) != "{}" {
				t.Errorf("answer %+v, %v", a, err)
			}
		})
	}
	var asked []*protocol.Command
	mine := map[int32]bool{}
	for i := range int32(n) {
		mine[i+1] = true
		p.Send(req(echo, i+1, "TopicA", nil)) // the server's opaques begin with 1, too
	}
	for len(asked) < n || len(mine) > 0 {
		c := p.Receive()
		if !c.IsResponse() {
			if c.Code != int32(protocol.GetConsumerRunningInfo) || c.Version != 409 {
				t.Fatalf("request %+v", c)
			}
			asked = append(asked, c)
			continue
		}
		if !mine[c.Opaque] || c.Remark != "TopicA" {
			t.Fatalf("answer %+v", c)
		}
		delete(mine, c.Opaque)
	}
	for i := range asked { // the last asked is answered first
		a := answerTo(asked[len(asked)-1-i], "from the client")
		a.Body = []byte("{}")
		p.Send(a)
	}
	wg.Wait()
}

func TestOneway(t *testing.T) {
	p, conn, _ := connected(t)
	if err := conn.Oneway(protocol.NewRequest(protocol.NotifyConsumerIdsChanged, &header.NotifyConsumerIdsChangedRequest{ConsumerGroup: "g"}, nil)); err != nil {
		t.Fatal(err)
	}
	if c := p.Receive(); !c.IsOneway() || c.IsResponse() || c.Code != 40 {
		t.Errorf("request %+v", c)
	}
	// A client's oneway request gets no answer: the next one that comes is for the next request.
	r := req(echo, 8, "T", nil)
	r.Flag = protocol.FlagOneway
	p.Send(r)
	unknown := req(4711, 9, "", nil)
	unknown.Flag = protocol.FlagOneway
	p.Send(unknown)
	p.Ask(req(echo, 10, "T", nil))
}

// TestCallTimesOut: the caller gets ErrTimeout, and the late answer is dropped.
func TestCallTimesOut(t *testing.T) {
	p, conn, s := connected(t)
	ask := protocol.NewRequest(protocol.GetConsumerRunningInfo, nil, nil)
	if _, err := conn.Call(t.Context(), ask, 20*time.Millisecond); !errors.Is(err, remoting.ErrTimeout) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.Call(ctx, ask, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	p.Send(answerTo(p.Receive(), "late"), answerTo(p.Receive(), "late"))
	p.Ask(req(echo, 3, "T", nil))
	if n := s.Stats().LateAnswers; n != 2 {
		t.Errorf("%d late answers", n)
	}
}

// TestGo: done is called once, with the answer, the time-out or the connection's end.
func TestGo(t *testing.T) {
	p, conn, s := connected(t)
	ask := protocol.NewRequest(protocol.GetConsumerRunningInfo, nil, nil)
	type result struct {
		remark string
		err    error
	}
	results := make(chan result, 10)
	var calls atomic.Int32
	done := func(c *protocol.Command, err error) {
		calls.Add(1)
		if err != nil {
			results <- result{"", err}
			return
		}
		results <- result{c.Remark, nil}
	}
	conn.Go(ask, time.Minute, done)
	p.Send(answerTo(p.Receive(), "in time"))
	if r := <-results; r.remark != "in time" {
		t.Errorf("result %+v", r)
	}
	conn.Go(ask, time.Minute, done)
	p.Receive()
	s.Sweep(time.Now().Add(59 * time.Second))
	if len(results) != 0 {
		t.Error("timed out too early")
	}
	s.Sweep(time.Now().Add(61 * time.Second))
	if r := <-results; !errors.Is(r.err, remoting.ErrTimeout) {
		t.Errorf("result %+v", r)
	}
	conn.Go(ask, time.Minute, done)
	p.Receive()
	p.Close()
	if r := <-results; !errors.Is(r.err, remoting.ErrClosed) {
		t.Errorf("result %+v", r)
	}
	remotingtest.Eventually(t, "closed", func() bool { return !conn.Active() && s.Connections() == 0 })
	conn.Go(ask, time.Minute, done)
	if r := <-results; !errors.Is(r.err, remoting.ErrClosed) {
		t.Errorf("result %+v", r)
	}
	if err := conn.Oneway(ask); !errors.Is(err, remoting.ErrClosed) {
		t.Errorf("oneway: %v", err)
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("done called %d times", n)
	}
}

// TestClosedOnce: whoever ends a connection, and however many at once, it is reported once, and only
// when it was reported open.
func TestClosedOnce(t *testing.T) {
	tests := map[string]struct {
		end  func(*remotingtest.Peer, *remoting.Conn)
		want remoting.CloseReason // "" = any
	}{
		"peer":      {func(p *remotingtest.Peer, _ *remoting.Conn) { p.Close() }, remoting.ClosedByPeer},
		"server":    {func(_ *remotingtest.Peer, c *remoting.Conn) { c.Close() }, remoting.ClosedHere},
		"bad frame": {func(p *remotingtest.Peer, _ *remoting.Conn) { p.SendBytes(make([]byte, 4)) }, remoting.ClosedBadFrame},
		"all at once": {func(p *remotingtest.Peer, c *remoting.Conn) {
			for range 3 {
				go c.Close()
			}
			p.Write(make([]byte, 4))
			p.Close()
			c.Close()
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var opened, closed atomic.Int32
			conns := make(chan *remoting.Conn, 1)
			reasons := make(chan remoting.CloseReason, 10)
			s := remotingtest.StartWith(t, remotingtest.Config(), testMux(nil), remoting.Events{
				Connected: func(c *remoting.Conn) { opened.Add(1); conns <- c },
				Closed:    func(_ *remoting.Conn, r remoting.CloseReason) { closed.Add(1); reasons <- r },
			})
			for i := range int32(30) {
				p := remotingtest.Dial(t, remotingtest.Addr(s))
				conn := <-conns
				if i%2 == 0 {
					p.Ask(req(echo, 1, "T", nil))
				}
				test.end(p, conn)
				if r := <-reasons; test.want != "" && r != test.want {
					t.Errorf("reason %q, want %q", r, test.want)
				}
				if conn.Active() {
					t.Error("active after its end")
				}
				conn.Close()
			}
			stop(t, s)
			if opened.Load() != 30 || closed.Load() != 30 {
				t.Errorf("%d opened, %d closed", opened.Load(), closed.Load())
			}
		})
	}
}

// TestCloseWithLockHeld: an owner may close a connection under the lock that its Closed func takes.
func TestCloseWithLockHeld(t *testing.T) {
	var table sync.Mutex
	closed := make(chan struct{})
	conns := make(chan *remoting.Conn, 1)
	s := remotingtest.StartWith(t, remotingtest.Config(), testMux(nil), remoting.Events{
		Connected: func(c *remoting.Conn) { conns <- c },
		Closed: func(*remoting.Conn, remoting.CloseReason) {
			table.Lock()
			defer table.Unlock()
			close(closed)
		},
	})
	remotingtest.Dial(t, remotingtest.Addr(s))
	conn := <-conns
	table.Lock()
	conn.Close()
	table.Unlock()
	<-closed
}

// TestLastRequestsAreServed: requests that came just before the peer closed are run.
func TestLastRequestsAreServed(t *testing.T) {
	held := make(chan *remoting.Call, 100)
	s := remotingtest.Start(t, testMux(held))
	for range 20 {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		p.Send(req(hold, 1, "", nil), req(hold, 2, "", nil), req(hold, 3, "", nil))
		p.Close()
		for want := range int32(3) {
			call := <-held
			if call.Command().Opaque != want+1 {
				t.Fatalf("request %d, want %d", call.Command().Opaque, want+1)
			}
			call.Reply(call.Success(nil)) // to nobody
		}
	}
	remotingtest.Eventually(t, "all closed", func() bool { return s.Connections() == 0 })
}

// TestEventPanics: a fault in an owner's event does not end the server.
func TestEventPanics(t *testing.T) {
	s := remotingtest.StartWith(t, remotingtest.Config(), testMux(nil), remoting.Events{
		Connected: func(*remoting.Conn) { panic("connected") },
		Closed:    func(*remoting.Conn, remoting.CloseReason) { panic("closed") },
	})
	for range 2 {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		p.Ask(req(echo, 1, "T", nil))
		p.Close()
	}
	remotingtest.Eventually(t, "both closed", func() bool { return s.Connections() == 0 && s.Stats().Panics == 4 })
}

// TestCloseWithStuckHandler: Close returns when its context ends and says why; the connection ends with
// the handler.
func TestCloseWithStuckHandler(t *testing.T) {
	m := testMux(nil)
	gate, started := make(chan struct{}), make(chan struct{})
	remoting.Handle(m, slow, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		close(started)
		<-gate
		return c.Success(nil), nil
	})
	s := remoting.NewServer(remotingtest.Config(), m, remoting.Events{}, remotingtest.Log(t))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	p.Send(req(slow, 1, "", nil))
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	p.Closed() // the peer is not kept waiting
	close(gate)
	remotingtest.Eventually(t, "the connection has ended", func() bool { return s.Connections() == 0 })
}
