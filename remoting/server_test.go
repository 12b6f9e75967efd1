package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

const (
	echo protocol.RequestCode = 30
	run  protocol.RequestCode = 310
	hold protocol.RequestCode = 11
	slow protocol.RequestCode = 307
	big  protocol.RequestCode = 21
)

// testMux: echo and run answer with topic and body; hold gives the call to the channel; big answers with
// 1 MiB.
func testMux(held chan *remoting.Call) *remoting.Mux {
	m := remoting.NewMux(func(c *remoting.Call) *remoting.Command {
		return c.Answer(protocol.RequestCodeNotSupported, " request type "+fmt.Sprint(c.Command().Code)+" not supported", nil)
	})
	remoting.Handle(m, echo, remoting.Inline, func(c *remoting.Call, r *header.GetMaxOffsetRequest) (*remoting.Command, error) {
		a := c.Answer(protocol.Success, r.Topic, nil)
		a.Body = c.Command().Body
		return a, nil
	})
	remoting.HandleRun(m, []protocol.RequestCode{run}, func(calls []*remoting.Call, reqs []*header.SendMessageRequest) {
		for i, c := range calls {
			c.Reply(c.Answer(protocol.Success, reqs[i].Topic, nil))
		}
	})
	remoting.Handle(m, hold, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		held <- c
		return nil, nil
	})
	answer := make([]byte, 1<<20)
	remoting.Handle(m, big, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		a := c.Success(nil)
		a.Body = answer
		return a, nil
	})
	return m
}

func req(code protocol.RequestCode, opaque int32, topic string, body []byte) *protocol.Command {
	var h any
	switch code {
	case echo:
		h = &header.GetMaxOffsetRequest{Topic: topic, QueueId: 1}
	case run:
		h = &header.SendMessageRequest{Topic: topic}
	}
	cmd := protocol.NewRequest(code, h, body)
	cmd.Opaque = opaque
	return cmd
}

func stop(t *testing.T, s *remoting.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestByteByByte sends requests in both forms over a socket, one byte a packet.
func TestByteByByte(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		r := req(echo, 5, "TopicA", []byte("body"))
		r.Serialize = form
		b := protocol.AppendFrame(nil, r)
		b = protocol.AppendFrame(b, r)
		for i := range b {
			p.SendBytes(b[i : i+1])
		}
		for range 2 {
			if a := p.Receive(); a.Opaque != 5 || a.Remark != "TopicA" || string(a.Body) != "body" || a.Serialize != form {
				t.Errorf("form %d: answer %+v", form, a)
			}
		}
	}
}

// TestPipelined sends 1,000 requests at once on each of some connections, in several kinds of pieces:
// the answers come in their order.
func TestPipelined(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	pipelined(t, []int{1 << 30, 100_000, 8192, 1999}, func() *remotingtest.Peer { return remotingtest.Dial(t, remotingtest.Addr(s)) })
}

// TestLargeBodies sends and receives frames far larger than any buffer.
func TestLargeBodies(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	echoed(t, remotingtest.Dial(t, remotingtest.Addr(s)), 100<<10, 4<<20, protocol.MaxFrame-300)
}

// TestSilentPeerStallsNobody: a peer asks for much and reads nothing. Whoever answers it returns at once,
// and other connections are served meanwhile, more of them than any pool has threads.
func TestSilentPeerStallsNobody(t *testing.T) {
	held := make(chan *remoting.Call, 100)
	s := remotingtest.Start(t, testMux(held))
	silent := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(20) {
		silent.Send(req(big, i, "", nil), req(hold, 1000+i, "", nil))
	}
	var conn *remoting.Conn
	for range 20 {
		call := <-held
		conn = call.Conn()
		call.Reply(call.Success(nil))
	}
	remotingtest.Eventually(t, "answers queue up", func() bool { return conn.Queued() > 10<<20 })

	for range 50 {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		if a := p.Ask(req(echo, 7, "TopicA", nil)); a.Remark != "TopicA" {
			t.Fatalf("answer %+v", a)
		}
	}
	// It may read after all: everything is there, the large answers in their order.
	seen := map[int32]bool{}
	for next := int32(0); len(seen) < 40; {
		a := silent.Receive()
		seen[a.Opaque] = true
		if a.Opaque < 1000 {
			if a.Opaque != next || len(a.Body) != 1<<20 {
				t.Fatalf("answer %d, %d bytes; want %d", a.Opaque, len(a.Body), next)
			}
			next++
		}
	}
}

// TestSilentPeerIsClosed: past the second bound.
func TestSilentPeerIsClosed(t *testing.T) {
	cfg := remotingtest.Config()
	cfg.QueuedBytesBusy, cfg.QueuedBytesClose = 0, 20<<20
	reasons := make(chan remoting.CloseReason, 1)
	s := remotingtest.StartWith(t, cfg, testMux(nil), remoting.Events{Closed: func(_ *remoting.Conn, r remoting.CloseReason) { reasons <- r }})
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(100) {
		p.SetWriteDeadline(time.Now().Add(remotingtest.Patience))
		if _, err := p.Write(protocol.AppendFrame(nil, req(big, i, "", nil))); err != nil {
			break
		}
	}
	if r := <-reasons; r != remoting.ClosedOverload {
		t.Errorf("reason %q", r)
	}
	if st := s.Stats(); st.ClosedOverload != 1 || st.Accepted != 1 {
		t.Errorf("stats %+v", st)
	}
}

// TestStuckHandlerIsClosed: netpoll goes on reading behind a handler that does not return; the sweep
// ends the connection, and its handler when that returns.
func TestStuckHandlerIsClosed(t *testing.T) {
	cfg := remotingtest.Config()
	cfg.UnreadBytesClose = 1 << 20
	m := testMux(nil)
	gate := make(chan struct{})
	remoting.Handle(m, slow, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		<-gate
		return c.Success(nil), nil
	})
	reasons := make(chan remoting.CloseReason, 1)
	s := remotingtest.StartWith(t, cfg, m, remoting.Events{Closed: func(_ *remoting.Conn, r remoting.CloseReason) { reasons <- r }})
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	p.Send(req(slow, 1, "", nil))
	sent := 0
	for err := error(nil); err == nil; sent += 64 << 10 {
		p.SetWriteDeadline(time.Now().Add(remotingtest.Patience))
		if _, err = p.Write(make([]byte, 64<<10)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server neither reads nor closes")
		}
	}
	if sent < 1<<20 {
		t.Errorf("closed after %d bytes", sent)
	}
	if s.Connections() != 1 || len(reasons) != 0 {
		t.Error("reported closed while its handler runs")
	}
	close(gate)
	if r := <-reasons; r != remoting.ClosedOverload {
		t.Errorf("reason %q", r)
	}
}

// TestHalfFramesHoldNobody: hundreds of peers send half a frame each.
func TestHalfFramesHoldNobody(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	b := protocol.AppendFrame(nil, req(echo, 1, "TopicA", []byte("body")))
	var halves []*remotingtest.Peer
	for i := range 300 {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		p.SendBytes(b[:1+i%(len(b)-1)])
		halves = append(halves, p)
	}
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(100) {
		p.Ask(req(echo, i, "TopicB", nil))
	}
	for i, p := range halves {
		p.SendBytes(b[1+i%(len(b)-1):])
		if a := p.Receive(); a.Remark != "TopicA" || string(a.Body) != "body" {
			t.Fatalf("answer %+v", a)
		}
	}
}

// TestIdleClose: no byte for longer than the idle time, also in the middle of a frame.
func TestIdleClose(t *testing.T) {
	var mu sync.Mutex
	reasons := map[remoting.CloseReason]int{}
	s := remotingtest.StartWith(t, remotingtest.Config(), testMux(nil), remoting.Events{Closed: func(_ *remoting.Conn, r remoting.CloseReason) {
		mu.Lock()
		defer mu.Unlock()
		reasons[r]++
	}})
	whole, half := remotingtest.Dial(t, remotingtest.Addr(s)), remotingtest.Dial(t, remotingtest.Addr(s))
	whole.Ask(req(echo, 1, "T", nil))
	half.Ask(req(echo, 1, "T", nil))
	half.SendBytes([]byte{0, 0, 0})
	now := time.Now()
	s.Sweep(now)
	s.Sweep(now.Add(110 * time.Second))
	whole.Ask(req(echo, 2, "T", nil))
	half.Conn.Write([]byte{100})
	// The byte has come when the sweep sees it; what it has not seen yet cannot count.
	remotingtest.Eventually(t, "both connections closed", func() bool {
		s.Sweep(now.Add(111 * time.Second))
		s.Sweep(now.Add(240 * time.Second))
		return s.Connections() == 0
	})
	whole.Closed()
	half.Closed()
	mu.Lock()
	defer mu.Unlock()
	if reasons[remoting.ClosedIdle] != 2 || s.Stats().ClosedIdle != 2 {
		t.Errorf("reasons %v", reasons)
	}
}

// TestBadFrameCloses: without an answer, and others go on.
func TestBadFrameCloses(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	other := remotingtest.Dial(t, remotingtest.Addr(s))
	for _, bad := range []string{"\x00\x00\x00\x00", "\x01\x00\x00\x01\x00\x00\x00\x10", "\x00\x00\x00\x06\x00\x00\x00\x02xx", "GET / HTTP/1.1\r\n\r\n"} {
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		p.SendBytes([]byte(bad))
		p.Closed()
		other.Ask(req(echo, 1, "T", nil))
	}
	if n := s.Stats().BadFrames; n != 4 {
		t.Errorf("%d bad frames counted", n)
	}
}

// TestPortTaken: the error says what to do.
func TestPortTaken(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	cfg := remotingtest.Config()
	cfg.ListenPort = s.Port()
	err := remoting.NewServer(cfg, testMux(nil), remoting.Events{}, remotingtest.Log(t)).Start()
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "listenPort") || !strings.Contains(err.Error(), remotingtest.Addr(s)) {
		t.Errorf("error %v", err)
	}
}

// TestStartAgain: the port is free at once after Close, though connections were open.
func TestStartAgain(t *testing.T) {
	cfg := remotingtest.Config()
	for range 3 {
		s := remoting.NewServer(cfg, testMux(nil), remoting.Events{}, remotingtest.Log(t))
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		cfg.ListenPort = s.Port()
		p := remotingtest.Dial(t, remotingtest.Addr(s))
		p.Ask(req(echo, 1, "T", nil))
		stop(t, s)
		p.Closed()
		stop(t, s) // twice does no harm
	}
}

// TestStopAccepting: no new connections, the open ones go on.
func TestStopAccepting(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	p.Ask(req(echo, 1, "T", nil))
	s.StopAccepting()
	if nc, err := net.DialTimeout("tcp", remotingtest.Addr(s), time.Second); err == nil {
		nc.Close()
		t.Error("a connection was made after StopAccepting")
	}
	p.Ask(req(echo, 2, "T", nil))
	s.StopAccepting()
}

// TestCloseWritesFirst: what is queued reaches a peer that reads only now.
func TestCloseWritesFirst(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	s := remotingtest.Start(t, testMux(held))
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(10) {
		p.Send(req(big, i, "", nil))
	}
	p.Send(req(hold, 10, "", nil))
	call := <-held
	call.Reply(call.Success(nil))
	done := make(chan struct{})
	go func() { stop(t, s); close(done) }()
	for range 11 {
		p.Receive()
	}
	p.Closed()
	<-done
	call.Reply(call.Success(nil)) // after the end: nothing
}

// TestCloseIsBounded: a peer that never reads does not hold Close beyond its context.
func TestCloseIsBounded(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(20) {
		p.Send(req(big, i, "", nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	s.Close(ctx)
	if d := time.Since(begin); d > remotingtest.Patience/2 { // it would never end
		t.Errorf("Close took %v", d)
	}
}

// TestCloseLeavesDeafPeers: peers that read nothing cost a stop one short wait, together, and are no error; one that
// reads, slowly, still gets all that is queued for it.
func TestCloseLeavesDeafPeers(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	for range 3 {
		deaf := remotingtest.Dial(t, remotingtest.Addr(s))
		for i := range int32(20) {
			deaf.Send(req(big, i, "", nil))
		}
	}
	slow := remotingtest.Dial(t, remotingtest.Addr(s))
	for i := range int32(20) {
		slow.Send(req(big, i, "", nil))
	}
	slow.Receive() // it is at it
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- s.Close(ctx) }()
	for range 19 {
		slow.Receive()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > remotingtest.Patience/2 { // not until the context ends
		t.Errorf("Close took %v", d)
	}
}

func TestMaxConnections(t *testing.T) {
	cfg := remotingtest.Config()
	cfg.MaxConnections = 2
	s := remotingtest.StartWith(t, cfg, testMux(nil), remoting.Events{})
	a, b := remotingtest.Dial(t, remotingtest.Addr(s)), remotingtest.Dial(t, remotingtest.Addr(s))
	a.Ask(req(echo, 1, "T", nil))
	b.Ask(req(echo, 1, "T", nil))
	remotingtest.Dial(t, remotingtest.Addr(s)).Closed()
	if st := s.Stats(); st.Refused != 1 || st.Accepted != 2 || s.Connections() != 2 {
		t.Errorf("stats %+v, %d connections", st, s.Connections())
	}
	a.Close()
	remotingtest.Eventually(t, "the place is free", func() bool { return s.Connections() == 1 })
	remotingtest.Dial(t, remotingtest.Addr(s)).Ask(req(echo, 1, "T", nil))
}

// TestNoDescriptorLeft: a connection for which there is no file descriptor is closed, and the server
// goes on when there are some again.
func TestNoDescriptorLeft(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	remotingtest.Dial(t, remotingtest.Addr(s)).Ask(req(echo, 1, "T", nil))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 512
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var all []int
	for {
		n, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: s.Port(), Addr: [4]byte{127, 0, 0, 1}})
	n := -1
	if err == nil {
		n, _ = unix.Read(fd, make([]byte, 1)) // until it is closed
	}
	for _, n := range all {
		unix.Close(n)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil || n > 0 || s.Stats().Refused != 1 {
		t.Errorf("connect: %v, read %d bytes, stats %+v", err, n, s.Stats())
	}
	remotingtest.Dial(t, remotingtest.Addr(s)).Ask(req(echo, 2, "T", nil))
}

// TestAddresses: an IPv4 peer of a server on all addresses has an IPv4 address, and the local address is
// the one that it reached.
func TestAddresses(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	cfg := remotingtest.Config()
	cfg.BindAddress = ""
	s := remotingtest.StartWith(t, cfg, testMux(held), remoting.Events{})
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	p.Send(req(hold, 1, "", nil))
	conn := (<-held).Conn()
	if got := conn.RemoteAddr().String(); got != p.LocalAddr().String() || !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("remote %s, peer is %s", got, p.LocalAddr())
	}
	if got := conn.LocalAddr().String(); got != remotingtest.Addr(s) {
		t.Errorf("local %s, want %s", got, remotingtest.Addr(s))
	}
}
