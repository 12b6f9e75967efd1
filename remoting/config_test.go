package remoting

import (
	"math"
	"testing"
	"time"

	"rocketd/protocol"
)

// TestLimitsOfConfig: each key reaches its bound, and no other; without one there is none, but for the frame.
func TestLimitsOfConfig(t *testing.T) {
	cfg := ServerConfig{
		ServerChannelMaxIdleTimeSeconds: 1, FrameMaxLength: 2, UnreadBytesBusy: 3, UnreadBytesClose: 4, PendingRequestsBusy: 5, PendingRequestsClose: 6,
		QueuedBytesBusy: 7, QueuedBytesClose: 8, MaxConnections: 9, MaxBufferedBytes: 10, FrameTimeoutMillis: 11, TlsHandshakeTimeoutMillis: 12, MaxTlsHandshakes: 13,
	}
	want := limits{
		idle: time.Second, frame: 2, unreadBusy: 3, unreadClose: 4, pendingBusy: 5, pendingClose: 6, queuedBusy: 7, queuedClose: 8,
		connections: 9, buffered: 10, frameTime: 11 * time.Millisecond, handshakeTime: 12 * time.Millisecond, handshakes: 13,
	}
	if got := cfg.limits(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := (ServerConfig{}).limits(); got != (limits{frame: protocol.MaxFrame}) {
		t.Errorf("nothing configured: %+v", got)
	}
	// Whom we call is bounded like who calls us, and may be as many as there are.
	want = DefaultServerConfig().limits()
	want.idle, want.frame, want.connections = 14*time.Second, 15, 0
	if got := (ClientConfig{ClientChannelMaxIdleTimeSeconds: 14, FrameMaxLength: 15}).limits(); got != want {
		t.Errorf("a client: %+v\nwant %+v", got, want)
	}
}

// TestDefaultLimits: the figures of SECURITY.md.
func TestDefaultLimits(t *testing.T) {
	if got, want := DefaultServerConfig().limits(), (limits{
		idle: 120 * time.Second, frame: 16777216, unreadBusy: 64 << 20, unreadClose: 128 << 20, pendingBusy: 80_000, pendingClose: 160_000,
		queuedBusy: 64 << 20, queuedClose: 256 << 20, connections: 100_000, buffered: 2 << 30, frameTime: 120 * time.Second, handshakeTime: 10 * time.Second, handshakes: 1000,
	}); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestLimitsOfAnySize: what a configuration file may say, however large, is no limit below nothing: connections would end at once, or
// never. Config values of int have 64 bits.
func TestLimitsOfAnySize(t *testing.T) {
	for _, c := range []struct {
		n        int
		s, ms    time.Duration
		ofConfig string
	}{
		{0, 0, 0, "no limit"},
		{120, 120 * time.Second, 120 * time.Millisecond, "usual"},
		{math.MaxInt, 9_223_372_036 * time.Second, 9_223_372_036_854 * time.Millisecond, "the greatest"},
		{math.MaxInt64/1000 + 1, 9_223_372_036 * time.Second, 9_223_372_036_854 * time.Millisecond, "what goes round to near 0"},
	} {
		server := ServerConfig{ServerChannelMaxIdleTimeSeconds: c.n, FrameTimeoutMillis: c.n, TlsHandshakeTimeoutMillis: c.n}.limits()
		client := ClientConfig{ClientChannelMaxIdleTimeSeconds: c.n}.limits()
		if server.idle != c.s || server.frameTime != c.ms || server.handshakeTime != c.ms || client.idle != c.s {
			t.Errorf("%s: %v, %v, %v, %v", c.ofConfig, server.idle, server.frameTime, server.handshakeTime, client.idle)
		}
	}
}
