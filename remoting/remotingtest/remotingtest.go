// Package remotingtest is set-up shared by tests that speak the remoting protocol: a server of a Mux on
// a free port of the loopback address, and a peer that sends and reads frames over a plain socket.
package remotingtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
)

// Patience is how long a test waits for what must happen: only one that fails waits so long, and a busy machine needs some.
const Patience = time.Minute

// Log is a logger that writes to the test's log, from Warn up. What comes after the test's end is lost.
func Log(tb testing.TB) *slog.Logger {
	w := &testWriter{tb: tb}
	tb.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tb = nil
	})
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct {
	mu sync.Mutex
	tb testing.TB // nil after the test
}

// Write implements io.Writer.
func (w *testWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tb != nil {
		w.tb.Logf("%s", line)
	}
	return len(line), nil
}

// Config is the default configuration on a free port of the loopback address.
func Config() remoting.ServerConfig {
	cfg := remoting.DefaultServerConfig()
	cfg.BindAddress, cfg.ListenPort = "127.0.0.1", 0
	return cfg
}

// Start serves a Mux with Config until the test ends.
func Start(tb testing.TB, mux *remoting.Mux) *remoting.Server {
	tb.Helper()
	return StartWith(tb, Config(), mux, remoting.Events{})
}

// StartWith serves a Mux until the test ends.
func StartWith(tb testing.TB, cfg remoting.ServerConfig, mux *remoting.Mux, events remoting.Events) *remoting.Server {
	tb.Helper()
	s := remoting.NewServer(cfg, mux, events, Log(tb))
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Addr is the address of a server made by Start.
func Addr(s *remoting.Server) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
}

// Eventually waits until a condition holds, and fails the test when it does not.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	deadline := time.After(Patience)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !condition() {
		select {
		case <-look.C:
		case <-deadline:
			tb.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Peer is one end of a plain connection.
type Peer struct {
	tb testing.TB
	net.Conn
	in *bufio.Reader
}

// Dial connects to a server; the connection is closed when the test ends.
func Dial(tb testing.TB, addr string) *Peer {
	tb.Helper()
	nc, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		tb.Fatal(err)
	}
	return NewPeer(tb, nc)
}

// NewPeer makes a peer of a connection, which is closed when the test ends.
func NewPeer(tb testing.TB, nc net.Conn) *Peer {
	tb.Cleanup(func() { nc.Close() })
	return &Peer{tb: tb, Conn: nc, in: bufio.NewReaderSize(nc, 64<<10)}
}

// Send sends commands in one write.
func (p *Peer) Send(cmds ...*protocol.Command) {
	p.tb.Helper()
	var b []byte
	for _, c := range cmds {
		b = protocol.AppendFrame(b, c)
	}
	p.SendBytes(b)
}

// SendBytes sends bytes.
func (p *Peer) SendBytes(b []byte) {
	p.tb.Helper()
	p.SetWriteDeadline(time.Now().Add(Patience))
	if _, err := p.Write(b); err != nil {
		p.tb.Fatal(err)
	}
}

// Receive reads the next command.
func (p *Peer) Receive() *protocol.Command {
	p.tb.Helper()
	c, err := p.TryReceive(Patience)
	if err != nil {
		p.tb.Fatal(err)
	}
	return c
}

// TryReceive reads the next command, or returns why there is none in this time.
func (p *Peer) TryReceive(within time.Duration) (*protocol.Command, error) {
	p.SetReadDeadline(time.Now().Add(within))
	frame := make([]byte, 4)
	if _, err := io.ReadFull(p.in, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	if _, err := io.ReadFull(p.in, frame[4:]); err != nil {
		return nil, err
	}
	return protocol.DecodeFrame(frame)
}

// Ask sends a request and reads its answer, which must have the same opaque.
func (p *Peer) Ask(req *protocol.Command) *protocol.Command {
	p.tb.Helper()
	p.Send(req)
	answer := p.Receive()
	if answer.Opaque != req.Opaque || !answer.IsResponse() {
		p.tb.Fatalf("answer to opaque %d has opaque %d, flag %d", req.Opaque, answer.Opaque, answer.Flag)
	}
	return answer
}

// Closed fails the test unless the server closes the connection without sending a byte more.
func (p *Peer) Closed() {
	p.tb.Helper()
	p.SetReadDeadline(time.Now().Add(Patience))
	b, err := p.in.ReadByte()
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		p.tb.Fatalf("connection is not closed: byte %#x, error %v", b, err)
	}
}
