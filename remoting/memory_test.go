package remoting

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// arrivals is an input whose bytes arrive in pieces: a wait gets the next ones, and the end of them is
// the peer's end.
type arrivals struct {
	pieces [][]byte
	buf    []byte
	onWait func() // called when the frame loop waits
}

func (a *arrivals) arrive() bool {
	if len(a.pieces) == 0 {
		return false
	}
	a.buf = append(a.buf, a.pieces[0]...)
	a.pieces = a.pieces[1:]
	return true
}

func (a *arrivals) wait(n int) error {
	if len(a.buf) < n && a.onWait != nil {
		a.onWait()
	}
	for len(a.buf) < n {
		if !a.arrive() {
			return io.EOF
		}
	}
	return nil
}

func (a *arrivals) Len() int       { return len(a.buf) }
func (a *arrivals) Release() error { return nil }

func (a *arrivals) Peek(n int) ([]byte, error) {
	if err := a.wait(n); err != nil {
		return nil, err
	}
	return a.buf[:n], nil
}

// Next is ReadBinary.
func (a *arrivals) Next(n int) ([]byte, error) { return a.ReadBinary(n) }

func (a *arrivals) Skip(n int) error {
	_, err := a.ReadBinary(n)
	return err
}

func (a *arrivals) ReadString(n int) (string, error) {
	p, err := a.ReadBinary(n)
	return string(p), err
}

func (a *arrivals) ReadBinary(n int) ([]byte, error) {
	if err := a.wait(n); err != nil {
		return nil, err
	}
	p := append([]byte(nil), a.buf[:n]...)
	a.buf = a.buf[n:]
	return p, nil
}

// recorder is a socket that keeps what is written. It takes at most step bytes at a time (0 = all), and
// none without waiting while stuck is open.
type recorder struct {
	mu     sync.Mutex
	buf    []byte
	step   int
	stuck  chan struct{} // nil = takes bytes
	closed bool
	sends  int
	waits  int

	narrowed []bool // what narrow was told
}

var errRecorderClosed = errors.New("closed")

func (r *recorder) send(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends++
	if r.closed {
		return 0, errRecorderClosed
	}
	select {
	case <-r.stuck:
	default:
		if r.stuck != nil {
			return 0, nil
		}
	}
	if r.step > 0 && r.sends%2 == 0 {
		return 0, nil // like a full socket buffer
	}
	if r.step > 0 && len(p) > r.step {
		p = p[:r.step]
	}
	r.buf = append(r.buf, p...)
	return len(p), nil
}

func (r *recorder) sendWait(p []byte) error {
	if r.stuck != nil {
		<-r.stuck
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits++
	if r.closed {
		return errRecorderClosed
	}
	r.buf = append(r.buf, p...)
	return nil
}

func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *recorder) shut() {}

func (r *recorder) narrow(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.narrowed = append(r.narrowed, on)
}

func (r *recorder) IsActive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closed
}

// commands decodes what was written so far.
func (r *recorder) commands(t testing.TB) []*Command {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return decodeAll(t, r.buf)
}

// tester is what testing's and rapid's T share.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func decodeAll(t tester, b []byte) (cmds []*Command) {
	t.Helper()
	for len(b) > 0 {
		if len(b) < 4 {
			t.Fatalf("%d bytes behind the last frame", len(b))
		}
		n := 4 + (int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3]))
		if n > len(b) {
			t.Fatalf("a frame of %d bytes, %d are there", n, len(b))
		}
		cmd, err := protocol.DecodeFrame(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		cmds, b = append(cmds, cmd), b[n:]
	}
	return cmds
}

// newMemoryConn makes a connection without netpoll.
func newMemoryConn(m *Mux, in input, sock socket, change func(*limits)) *Conn {
	l := DefaultServerConfig().limits()
	if change != nil {
		change(&l)
	}
	e := newEndpoint(l, m, Events{}, slog.New(slog.DiscardHandler))
	return newConn(e, in, sock)
}

// eventually waits for a condition that must come to hold.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !condition() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// The test requests. Each echoes its topic, and the length of its body as offset.
const (
	echoInline protocol.RequestCode = 30
	echoRun    protocol.RequestCode = 310
	echoRun2   protocol.RequestCode = 320
	fails      protocol.RequestCode = 31
	panics     protocol.RequestCode = 32
	park       protocol.RequestCode = 11
)

// echoMux is a Mux of inline handlers; parked calls go to the channel.
func echoMux(parked chan *Call) *Mux {
	m := NewMux(func(c *Call) *Command {
		return c.Answer(protocol.RequestCodeNotSupported, "unknown", nil)
	})
	echo := func(c *Call, topic string) *Command {
		a := c.Answer(protocol.Success, topic, &header.QueryConsumerOffsetResponse{Offset: int64(len(c.Command().Body))})
		a.Body = c.Command().Body
		return a
	}
	Handle(m, echoInline, Inline, func(c *Call, r *header.GetMaxOffsetRequest) (*Command, error) {
		return echo(c, r.Topic), nil
	})
	HandleRun(m, []protocol.RequestCode{echoRun, echoRun2}, func(calls []*Call, reqs []*header.SendMessageRequest) {
		for i, c := range calls {
			c.Reply(echo(c, reqs[i].Topic))
		}
	})
	Handle(m, fails, Inline, func(*Call, *header.GetMaxOffsetRequest) (*Command, error) {
		return nil, protocol.Errorf(protocol.TopicNotExist, "no such topic")
	})
	Handle(m, panics, Inline, func(*Call, *header.GetMaxOffsetRequest) (*Command, error) {
		panic("boom")
	})
	Handle(m, park, Inline, func(c *Call, _ *header.GetMaxOffsetRequest) (*Command, error) {
		parked <- c
		return nil, nil
	})
	return m
}

// request makes a request of the test codes with a topic and a body.
func request(code protocol.RequestCode, opaque int32, topic string, body []byte) *Command {
	cmd := protocol.NewRequest(code, nil, body)
	cmd.Opaque = opaque
	cmd.SetField("topic", topic)
	cmd.SetField("queueId", "1")
	switch code {
	case echoRun, echoRun2:
		cmd.Fields = nil
		cmd.Header = &header.SendMessageRequest{Topic: topic, ProducerGroup: "g"}
	}
	return cmd
}

func frames(cmds ...*Command) (b []byte) {
	for _, c := range cmds {
		b = protocol.AppendFrame(b, c)
	}
	return b
}
