package remoting

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"

	"rocketd/protocol"
)

// BenchmarkTLSServe is BenchmarkServe through TLS: what the server's side spends on 32 pipelined sends, decrypting and
// sealing included, without sockets. The sender's sealing is measured too.
func BenchmarkTLSServe(b *testing.B) {
	const depth = 32
	c, client := securePair(b, sendMux())
	var frames []byte
	for i := range depth {
		frames = protocol.AppendFrame(frames, sendRequest(protocol.JSON, int32(i), 128))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(frames); err != nil {
			b.Fatal(err)
		}
		c.serve()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/depth, "ns/request")
}

// TestTLSServeAllocates no more for each request than the same without TLS, up to what a record costs.
func TestTLSServeAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const depth = 32
	var frames []byte
	for i := range depth {
		frames = protocol.AppendFrame(frames, sendRequest(protocol.JSON, int32(i), 128))
	}
	plain, in, _ := memoryConn(sendMux())
	want := testing.AllocsPerRun(200, func() {
		in.WriteBinary(frames)
		in.Flush()
		plain.serve()
	})
	c, client := securePair(t, sendMux())
	got := testing.AllocsPerRun(200, func() {
		if _, err := client.Write(frames); err != nil {
			t.Fatal(err)
		}
		c.serve()
	})
	if got > want+10 {
		t.Errorf("%.0f allocations for %d requests, without TLS %.0f", got, depth, want)
	}
}

// securePair is a connection in memory whose handshake is over, and its client.
func securePair(tb testing.TB, m *Mux) (*Conn, *tls.Conn) {
	tb.Helper()
	var cfg TLSConfig
	cfg.File = os.DevNull
	secure, err := NewTLS(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	c, in, _ := memoryConn(m)
	secure.server.Load().SessionTicketsDisabled = true // nobody reads them from the pipe
	c.owner.tls = secure
	sock := &answers{}
	c.sock = sock
	near, far := net.Pipe()
	end := &feeder{Conn: near, in: func(p []byte) {
		in.WriteBinary(append([]byte(nil), p...))
		in.Flush()
	}}
	client := tls.Client(end, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	// The handshake needs both ends at once: it goes over a pipe.
	c.arriving = &piped{far}
	c.in = c.arriving
	sock.to = far
	done := make(chan error, 1)
	go func() { done <- client.Handshake() }()
	if err := c.sniff(); err != nil {
		tb.Fatal(err)
	}
	if err := <-done; err != nil {
		tb.Fatal(err)
	}
	sock.to, end.direct = nil, true
	c.secure.arriving, c.arriving = in, in
	return c, client
}

// feeder is a client's socket, which writes into the server's input once the handshake is over.
type feeder struct {
	net.Conn
	direct bool
	in     func([]byte)
}

// Write implements net.Conn.
func (f *feeder) Write(p []byte) (int, error) {
	if f.direct {
		f.in(p)
		return len(p), nil
	}
	return f.Conn.Write(p)
}

// answers is a socket that drops what is written, or hands it on during the handshake.
type answers struct {
	discard
	to io.Writer
}

func (a *answers) send(p []byte) (int, error) {
	if a.to != nil {
		return a.to.Write(p)
	}
	return len(p), nil
}

func (a *answers) sendWait(p []byte) error {
	_, err := a.send(p)
	return err
}

// piped is a server's input during the handshake: what comes through a pipe.
type piped struct{ net.Conn }

func (piped) Len() int       { return 1 }
func (piped) Release() error { return nil }

// Peek implements input: the first byte is that of a handshake; others come by Next.
func (piped) Peek(int) ([]byte, error) { return []byte{tlsHandshake}, nil }

func (piped) Skip(int) error { return nil }

func (piped) ReadString(int) (string, error) { return "", io.EOF }

func (piped) ReadBinary(int) ([]byte, error) { return nil, io.EOF }

// Next implements input.
func (p piped) Next(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(p.Conn, b)
	return b, err
}
