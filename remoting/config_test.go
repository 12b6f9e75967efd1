package remoting

import (
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
