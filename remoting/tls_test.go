package remoting_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// settings is a TLS configuration of keys and values; its properties file is one that says nothing.
func settings(t *testing.T, pairs ...string) remoting.TLSConfig {
	t.Helper()
	var cfg remoting.TLSConfig
	none := filepath.Join(t.TempDir(), "tls.properties")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Set("tls.config.file", none)
	for i := 0; i < len(pairs); i += 2 {
		if !cfg.Set(pairs[i], pairs[i+1]) {
			t.Fatalf("no key %s", pairs[i])
		}
	}
	return cfg
}

func newTLS(t *testing.T, cfg remoting.TLSConfig) *remoting.TLS {
	t.Helper()
	s, err := remoting.NewTLS(cfg, remotingtest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func startTLS(t *testing.T, s *remoting.TLS, change func(*remoting.ServerConfig), held chan *remoting.Call) *remoting.Server {
	t.Helper()
	cfg := remotingtest.Config()
	cfg.TLS = s
	if change != nil {
		change(&cfg)
	}
	return remotingtest.StartWith(t, cfg, testMux(held), remoting.Events{})
}

// dialTLS connects with TLS; cfg nil checks nothing.
func dialTLS(t *testing.T, s *remoting.Server, cfg *tls.Config) (*remotingtest.Peer, *tls.Conn) {
	t.Helper()
	nc := tls.Client(rawDial(t, s), insecure(cfg))
	return remotingtest.NewPeer(t, nc), nc
}

func insecure(cfg *tls.Config) *tls.Config {
	if cfg == nil {
		return &tls.Config{InsecureSkipVerify: true}
	}
	return cfg
}

func rawDial(t *testing.T, s *remoting.Server) net.Conn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", remotingtest.Addr(s), remotingtest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// TestTLSModes: which connections each mode serves.
func TestTLSModes(t *testing.T) {
	for _, test := range []struct {
		mode          string
		plain, secure bool
	}{{"permissive", true, true}, {"enforcing", false, true}, {"Enforcing", false, true}, {"disabled", true, false}} {
		t.Run(test.mode, func(t *testing.T) {
			s := startTLS(t, newTLS(t, settings(t, "tls.server.mode", test.mode)), nil, nil)
			p := remotingtest.Dial(t, remotingtest.Addr(s))
			if test.plain {
				if a := p.Ask(req(echo, 1, "T", nil)); a.Remark != "T" {
					t.Errorf("answer %+v", a)
				}
			} else {
				p.Send(req(echo, 1, "T", nil))
				p.Closed()
			}
			p, nc := dialTLS(t, s, nil)
			err := nc.Handshake()
			if test.secure != (err == nil) {
				t.Fatalf("handshake: %v", err)
			}
			if test.secure {
				if a := p.Ask(req(echo, 1, "T", []byte("body"))); a.Remark != "T" || string(a.Body) != "body" {
					t.Errorf("answer %+v", a)
				}
			}
			remotingtest.Eventually(t, "both are counted", func() bool {
				return s.Stats().ClosedTLS == int64(b2i(!test.plain)+b2i(!test.secure)) && s.Stats().Handshakes == int64(b2i(test.secure))
			})
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestTLSVersions: 1.2 and 1.3, nothing older; and a peer can't renegotiate, which Go's client can't even try.
func TestTLSVersions(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	for version, good := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		p, nc := dialTLS(t, s, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err := nc.Handshake(); good != (err == nil) {
			t.Errorf("version %#x: %v", version, err)
		}
		if good {
			p.Ask(req(echo, 1, "T", nil))
		}
	}
}

// dribble writes in pieces of size bytes.
type dribble struct {
	net.Conn
	size int
}

// Write implements net.Conn.
func (d dribble) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var k int
		k, err = d.Conn.Write(p[:min(d.size, len(p))])
		n, p = n+k, p[k:]
	}
	return n, err
}

// TestTLSPieces: handshake and frames come byte by byte, and in others.
func TestTLSPieces(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, size := range []int{1, 7, 1000} {
			nc := tls.Client(dribble{rawDial(t, s), size}, &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
			p := remotingtest.NewPeer(t, nc)
			b := protocol.AppendFrame(nil, req(echo, 5, "TopicA", []byte("body")))
			b = protocol.AppendFrame(b, req(echo, 6, "TopicB", make([]byte, 3000)))
			p.SendBytes(b[:30])
			p.SendBytes(b[30:])
			if a := p.Receive(); a.Opaque != 5 || string(a.Body) != "body" {
				t.Errorf("answer %+v", a)
			}
			if a := p.Receive(); a.Opaque != 6 || len(a.Body) != 3000 {
				t.Errorf("answer %+v", a)
			}
		}
	}
}

// TestTLSPipelined: 1,000 requests at once, in records of several sizes, are answered in their order.
func TestTLSPipelined(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	pipelined(t, []int{1 << 30, 8192, 1999}, func() *remotingtest.Peer {
		p, _ := dialTLS(t, s, nil)
		return p
	})
}

// TestTLSLargeBodies: frames larger than any buffer, both ways, and large headers.
func TestTLSLargeBodies(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	p, _ := dialTLS(t, s, nil)
	echoed(t, p, 0, 16<<10, 32<<10-200, 33<<10, 300<<10, 4<<20, protocol.MaxFrame-300)
	topic := string(bytes.Repeat([]byte("x"), 100<<10))
	if a := p.Ask(req(echo, 1, topic, []byte("b"))); !strings.HasPrefix(topic, a.Remark) || a.Remark == "" || string(a.Body) != "b" { // remarks have a bound
		t.Errorf("a header of 100 KiB: remark of %d bytes, body %q", len(a.Remark), a.Body)
	}
}

// TestTLSSilentPeerStallsNobody: a peer asks for much and reads nothing, then everything: other peers are served all
// the while, whoever answers returns at once, and no byte is lost or twice there.
func TestTLSSilentPeerStallsNobody(t *testing.T) {
	held := make(chan *remoting.Call, 100)
	s := startTLS(t, newTLS(t, settings(t)), nil, held)
	silent, _ := dialTLS(t, s, nil)
	const n = 20
	for i := range int32(n) {
		silent.Send(req(hold, i, "", nil))
	}
	body := make([]byte, 1<<20)
	for i := range body {
		body[i] = byte(i * 7 / 5)
	}
	for range n {
		call := <-held
		a := call.Answer(protocol.Success, "", nil)
		a.Body = body
		call.Reply(a)
	}
	other, _ := dialTLS(t, s, nil)
	for i := range int32(50) {
		other.Ask(req(echo, i, "T", nil))
	}
	for i := range int32(n) {
		if a := silent.Receive(); a.Opaque != i || !bytes.Equal(a.Body, body) {
			t.Fatalf("answer %d: opaque %d, %d bytes", i, a.Opaque, len(a.Body))
		}
	}
}

// TestTLSGarbage: what follows the first byte of a handshake is none, or stops being TLS later; the connection is
// closed, and others go on.
func TestTLSGarbage(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	for name, garbage := range map[string]string{
		"text": "\x16GET / HTTP/1.1\r\n\r\n", "an SSL 2 record": "\x16\x00\x02\x00\x05abcde",
		"a record of 64 KiB": "\x16\x03\x01\xff\xff" + string(make([]byte, 1000)),
		"a hello that lies":  "\x16\x03\x01\x00\x04\x01\xff\xff\xff", "zeros": "\x16" + string(make([]byte, 100)),
	} {
		nc := rawDial(t, s)
		if _, err := nc.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(remotingtest.Patience))
		if name == "a hello that lies" {
			nc.(*net.TCPConn).CloseWrite() // else it would be waited for
		}
		if b, err := io.ReadAll(nc); len(b) > 100 || os.IsTimeout(err) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	raw := rawDial(t, s)
	nc := tls.Client(raw, insecure(nil))
	remotingtest.NewPeer(t, nc).Ask(req(echo, 1, "T", nil))
	if _, err := raw.Write(bytes.Repeat([]byte{23, 3, 3, 0, 40}, 50)); err != nil {
		t.Fatal(err)
	}
	nc.SetReadDeadline(time.Now().Add(remotingtest.Patience))
	if _, err := nc.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad record MAC") { // the alert comes before the end
		t.Errorf("records that do not decrypt: %v", err)
	}
	p, _ := dialTLS(t, s, nil)
	p.Ask(req(echo, 1, "T", nil))
	p.SendBytes([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	p.Closed()
	remotingtest.Eventually(t, "all closed", func() bool { return s.Connections() == 0 })
}

// TestTLSHalfOpen: handshakes that do not go on are given up after their time, and beyond the bound the oldest.
func TestTLSHalfOpen(t *testing.T) {
	s := startTLS(t, newTLS(t, settings(t)), func(cfg *remoting.ServerConfig) { cfg.MaxTlsHandshakes = 3 }, nil)
	half := func() *remotingtest.Peer {
		p := remotingtest.NewPeer(t, rawDial(t, s))
		p.SendBytes([]byte("\x16\x03\x01"))
		return p
	}
	first := half()
	remotingtest.Eventually(t, "one handshake", func() bool { return s.Handshaking() == 1 })
	half()
	half()
	remotingtest.Eventually(t, "three handshakes", func() bool { return s.Handshaking() == 3 })
	half()
	first.Closed()
	p, _ := dialTLS(t, s, nil)
	p.Ask(req(echo, 1, "T", nil))
	s.Sweep(time.Now().Add(9 * time.Second))
	if s.Handshaking() == 0 {
		t.Error("given up before its time")
	}
	s.Sweep(time.Now().Add(11 * time.Second))
	remotingtest.Eventually(t, "only the one with TLS left", func() bool { return s.Connections() == 1 && s.Handshaking() == 0 })
	p.Ask(req(echo, 2, "T", nil))
}

// TestTLSClose: the last answers come, and then the word that nothing more will, which tells an end from a cut.
func TestTLSClose(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	cfg := remotingtest.Config()
	cfg.TLS = newTLS(t, settings(t))
	s := remoting.NewServer(cfg, testMux(held), remoting.Events{}, remotingtest.Log(t))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	p, nc := dialTLS(t, s, nil)
	p.Send(req(hold, 3, "", nil))
	call := <-held
	a := call.Answer(protocol.Success, "last", nil)
	a.Body = make([]byte, 3<<20)
	call.Reply(a)
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
		defer cancel()
		done <- s.Close(ctx)
	}()
	if a := p.Receive(); a.Remark != "last" || len(a.Body) != 3<<20 {
		t.Errorf("answer %+v", a)
	}
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF { // without the word it is ErrUnexpectedEOF or a reset
		t.Errorf("end: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// certName is the name in the certificate that a server shows.
func certName(t *testing.T, s *remoting.Server, roots *x509.CertPool) string {
	t.Helper()
	_, nc := dialTLS(t, s, &tls.Config{RootCAs: roots, ServerName: "localhost"})
	if err := nc.Handshake(); err != nil {
		t.Fatal(err)
	}
	return nc.ConnectionState().PeerCertificates[0].Subject.CommonName
}
