package remoting_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// startBounded serves m with TLS and tells why connections end.
func startBounded(t *testing.T, m *remoting.Mux, change func(*remoting.ServerConfig)) (*remoting.Server, chan remoting.CloseReason) {
	t.Helper()
	cfg := remotingtest.Config()
	cfg.TLS = newTLS(t, settings(t))
	change(&cfg)
	reasons := make(chan remoting.CloseReason, 100)
	return remotingtest.StartWith(t, cfg, m, remoting.Events{Closed: func(_ *remoting.Conn, r remoting.CloseReason) { reasons <- r }}), reasons
}

// TestTLSSilentPeerIsClosed: past the second bound of answers that it does not read.
func TestTLSSilentPeerIsClosed(t *testing.T) {
	s, reasons := startBounded(t, testMux(nil), func(cfg *remoting.ServerConfig) { cfg.QueuedBytesBusy, cfg.QueuedBytesClose = 0, 20<<20 })
	p, _ := dialTLS(t, s, nil)
	for i := range int32(100) {
		p.SetWriteDeadline(time.Now().Add(remotingtest.Patience))
		if _, err := p.Write(protocol.AppendFrame(nil, req(big, i, "", nil))); err != nil {
			break
		}
	}
	if r := <-reasons; r != remoting.ClosedOverload {
		t.Errorf("reason %q", r)
	}
}

// TestTLSStuckHandlerIsClosed: what arrives behind a handler that does not return is bounded as without TLS.
func TestTLSStuckHandlerIsClosed(t *testing.T) {
	m, gate := testMux(nil), make(chan struct{})
	remoting.Handle(m, slow, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		<-gate
		return c.Success(nil), nil
	})
	s, reasons := startBounded(t, m, func(cfg *remoting.ServerConfig) { cfg.UnreadBytesClose = 1 << 20 })
	p, _ := dialTLS(t, s, nil)
	p.Send(req(slow, 1, "", nil))
	for err := error(nil); err == nil; {
		p.SetWriteDeadline(time.Now().Add(remotingtest.Patience))
		if _, err = p.Write(make([]byte, 64<<10)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server neither reads nor closes")
		}
	}
	close(gate)
	if r := <-reasons; r != remoting.ClosedOverload {
		t.Errorf("reason %q", r)
	}
}

// TestTLSHalves: peers that send half a frame, and half a record, hold up nobody; those that stay so are closed
// when they have been silent for the idle time.
func TestTLSHalves(t *testing.T) {
	s, reasons := startBounded(t, testMux(nil), func(*remoting.ServerConfig) {})
	whole := protocol.AppendFrame(nil, req(echo, 1, "TopicA", make([]byte, 100)))
	var halves []*remotingtest.Peer
	for i := range 50 {
		p, _ := dialTLS(t, s, nil)
		p.SendBytes(whole[:1+i*2])
		halves = append(halves, p)
	}
	raw := rawDial(t, s)
	cut := &gated{Conn: raw, open: true}
	record := remotingtest.NewPeer(t, tls.Client(cut, insecure(nil)))
	record.Ask(req(echo, 1, "T", nil))
	cut.open = false
	record.Send(req(echo, 2, "T", nil)) // half of the record goes out

	other, _ := dialTLS(t, s, nil)
	for i := range int32(50) {
		other.Ask(req(echo, i, "TopicB", nil))
	}
	for i, p := range halves[:25] {
		p.SendBytes(whole[1+i*2:])
		if a := p.Receive(); a.Remark != "TopicA" || len(a.Body) != 100 {
			t.Fatalf("answer %+v", a)
		}
	}
	s.Sweep(time.Now())
	s.Sweep(time.Now().Add(130 * time.Second))
	for range 52 {
		if r := <-reasons; r != remoting.ClosedIdle {
			t.Errorf("reason %q", r)
		}
	}
	remotingtest.Eventually(t, "all are closed", func() bool { return s.Connections() == 0 })
}

// gated sends half of what it is given when it is not open.
type gated struct {
	net.Conn
	open bool
}

// Write implements net.Conn.
func (g *gated) Write(p []byte) (int, error) {
	if g.open {
		return g.Conn.Write(p)
	}
	_, err := g.Conn.Write(p[:len(p)/2])
	return len(p), err
}
