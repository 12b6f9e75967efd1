package remoting

import (
	"time"

	"rocketd/compat"
	"rocketd/protocol"
)

// ServerConfig is what a listening server can be told. The keys of the first group and their defaults
// are those of NettyServerConfig of 4.9.8; the bounds are ours. A bound of 0 is no bound.
type ServerConfig struct {
	ListenPort                      int    // TCP port; 0 = the system chooses (tests)
	BindAddress                     string // "" = all addresses
	ServerChannelMaxIdleTimeSeconds int    // s without a byte read or written until a connection is closed; 120, 0 = never
	ServerSocketBacklog             int    // listen backlog; 1024
	FrameMaxLength                  int    // bytes, length field included; protocol.MaxFrame

	// Bounds of one connection. Past the first of each pair its requests are answered SYSTEM_BUSY
	// without being run, past the second it is closed.
	UnreadBytesBusy, UnreadBytesClose         int64 // requests received and not yet answered (busy); received and not yet taken up (close)
	PendingRequestsBusy, PendingRequestsClose int   // requests taken up and not yet answered
	QueuedBytesBusy, QueuedBytesClose         int64 // answers that the peer has not read

	FrameTimeoutMillis int // ms for the rest of a frame that has begun to come; 120000, 0 = as long as bytes come

	// Bounds of all connections of the port together.
	MaxConnections   int   // past it an address makes room for those with fewer connections, else further ones are closed at once; lowered to what the descriptors of the process allow
	MaxBufferedBytes int64 // requests unread or unanswered and answers unread, of all; past half of it the connections with more than 1 MiB are answered SYSTEM_BUSY, past it those with the most are closed

	// Bounds of TLS handshakes in progress. Past the second the oldest is closed.
	TlsHandshakeTimeoutMillis int // ms until a TLS handshake is given up; 10000 (Netty's)
	MaxTlsHandshakes          int // at once; 1000

	TLS      *TLS   `rmq:"-"` // nil = TLS connections are closed
	PortHint string `rmq:"-"` // how to choose another port, for errors; "" = listenPort in the configuration file
}

// DefaultServerConfig returns the official defaults and our bounds.
//
// The bounds are chosen so that no stock client meets them in health. A Java client has at most 65,535
// asynchronous requests in flight (clientAsyncSemaphoreValue) besides one for each calling thread, and a
// frame is at most 16 MiB; the official broker refuses sends when 10,000 wait for a thread. A connection
// can hold about 64 MiB of requests and 64 MiB of answers before it is asked to slow down. The answers
// to requests that are held already (long polls) come on top, hence the distance to the second bound. No stock client
// waits for two minutes for the answer to a frame that it is still sending.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{
		ListenPort:                      8888,
		ServerChannelMaxIdleTimeSeconds: 120,
		ServerSocketBacklog:             1024,
		FrameMaxLength:                  protocol.MaxFrame,
		UnreadBytesBusy:                 64 << 20,
		UnreadBytesClose:                128 << 20,
		PendingRequestsBusy:             80_000,
		PendingRequestsClose:            160_000,
		QueuedBytesBusy:                 64 << 20,
		QueuedBytesClose:                256 << 20,
		FrameTimeoutMillis:              120_000,
		MaxConnections:                  100_000,
		MaxBufferedBytes:                2 << 30,
		TlsHandshakeTimeoutMillis:       10_000,
		MaxTlsHandshakes:                1000,
	}
}

// ClientConfig is what an outgoing side can be told; keys and defaults as NettyClientConfig of 4.9.8.
type ClientConfig struct {
	ConnectTimeoutMillis            int  // ms until an attempt to connect is given up; 3000
	ClientChannelMaxIdleTimeSeconds int  // s without a byte read or written until a connection is closed; 120, 0 = never
	FrameMaxLength                  int  // bytes, length field included; protocol.MaxFrame
	ClientCloseSocketIfTimeout      bool // close a connection on which a call timed out; true

	TLS *TLS `rmq:"-"` // nil = plain connections
}

// DefaultClientConfig returns the official defaults.
func DefaultClientConfig() ClientConfig {
	return ClientConfig{
		ConnectTimeoutMillis:            3000,
		ClientChannelMaxIdleTimeSeconds: 120,
		FrameMaxLength:                  protocol.MaxFrame,
		ClientCloseSocketIfTimeout:      true,
	}
}

// limits are the bounds of each connection of an endpoint, 0 = none.
type limits struct {
	idle                      time.Duration
	frame                     int
	unreadBusy, unreadClose   int64
	pendingBusy, pendingClose int64
	queuedBusy, queuedClose   int64
	connections               int
	buffered                  int64
	frameTime                 time.Duration
	handshakeTime             time.Duration
	handshakes                int
}

func (cfg ServerConfig) limits() limits {
	return limits{
		idle:         compat.Span(cfg.ServerChannelMaxIdleTimeSeconds, time.Second),
		frame:        frameLimit(cfg.FrameMaxLength),
		unreadBusy:   cfg.UnreadBytesBusy,
		unreadClose:  cfg.UnreadBytesClose,
		pendingBusy:  int64(cfg.PendingRequestsBusy),
		pendingClose: int64(cfg.PendingRequestsClose),
		queuedBusy:   cfg.QueuedBytesBusy,
		queuedClose:  cfg.QueuedBytesClose,
		connections:  cfg.MaxConnections,
		buffered:     cfg.MaxBufferedBytes,

		frameTime:     compat.Millis(cfg.FrameTimeoutMillis),
		handshakeTime: compat.Millis(cfg.TlsHandshakeTimeoutMillis),
		handshakes:    cfg.MaxTlsHandshakes,
	}
}

// limits of a client's connections: a server that we called is bounded like a client that calls us.
func (cfg ClientConfig) limits() limits {
	l := DefaultServerConfig().limits()
	l.idle = compat.Span(cfg.ClientChannelMaxIdleTimeSeconds, time.Second)
	l.frame = frameLimit(cfg.FrameMaxLength)
	l.connections = 0
	return l
}

func frameLimit(n int) int {
	if n <= 0 {
		return protocol.MaxFrame
	}
	return n
}
