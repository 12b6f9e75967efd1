// Package remoting moves frames: a server and a client of the RocketMQ remoting protocol on netpoll,
// connections that carry requests both ways, routes from request codes to handlers, and bounded lanes
// for handlers that may be slow. It knows nothing of what the requests mean.
package remoting

import (
	"context"
	"log/slog"
	"time"
)

// ServerConfig is what a listening server can be told; keys and defaults as NettyServerConfig of 4.9.8.
type ServerConfig struct {
	ListenPort                      int    // TCP port; 0 = the system chooses (tests)
	BindAddress                     string // "" = all addresses
	ServerChannelMaxIdleTimeSeconds int    // s without a byte read or written until a connection is closed; 120
	ServerSocketBacklog             int    // listen backlog; 1024
	FrameMaxLength                  int    // bytes, length field included; protocol.MaxFrame
	// Bounds of one connection; past the first of each pair requests are answered SYSTEM_BUSY without
	// being run, past the second the connection is closed.
	UnreadBytesBusy, UnreadBytesClose         int64
	PendingRequestsBusy, PendingRequestsClose int   // requests taken and not yet answered
	QueuedBytesBusy, QueuedBytesClose         int64 // answers that the peer does not read
	MaxConnections                            int   // further connections are closed at once; 0 = no bound
}

// DefaultServerConfig returns the official defaults and our bounds.
func DefaultServerConfig() ServerConfig { panic("skeleton") }

// Events tells the owner about connections. Each func may be nil; they run on a connection's goroutine
// or the sweep's and must not block.
type Events struct {
	Connected func(*Conn)
	Closed    func(*Conn, CloseReason) // exactly once for each connection that was reported
}

// CloseReason says why a connection ended.
type CloseReason string

// The reasons.
const (
	ClosedByPeer   CloseReason = "closed by peer"
	ClosedIdle     CloseReason = "idle"
	ClosedBadFrame CloseReason = "bad frame"
	ClosedOverload CloseReason = "overload"
	ClosedHere     CloseReason = "closed by server"
)

// Server listens on one port and serves the routes of one Mux.
type Server struct{ skeleton struct{} }

// NewServer makes a server; Start opens the port.
func NewServer(cfg ServerConfig, mux *Mux, events Events, log *slog.Logger) *Server {
	panic("skeleton")
}

// Start listens. The error names the address and says how to change it when it is taken.
func (s *Server) Start() error { panic("skeleton") }

// Port is the port it listens on, after Start.
func (s *Server) Port() int { panic("skeleton") }

// Connections returns the number of open connections.
func (s *Server) Connections() int { panic("skeleton") }

// StopAccepting closes the listener; open connections go on. Used first in an orderly stop.
func (s *Server) StopAccepting() { panic("skeleton") }

// Close waits until queued answers are written (bounded by ctx), then closes every connection.
func (s *Server) Close(ctx context.Context) error { panic("skeleton") }

// ClientConfig is what an outgoing side can be told; keys as NettyClientConfig of 4.9.8.
type ClientConfig struct {
	ConnectTimeoutMillis            int // 3000
	ClientChannelMaxIdleTimeSeconds int // 120
	FrameMaxLength                  int
	ClientCloseSocketIfTimeout      bool // true
}

// DefaultClientConfig returns the official defaults.
func DefaultClientConfig() ClientConfig { panic("skeleton") }

// Client dials servers by address and keeps one connection to each.
type Client struct{ skeleton struct{} }

// NewClient makes a client. mux serves requests that arrive on its connections (nil: none).
func NewClient(cfg ClientConfig, mux *Mux, log *slog.Logger) *Client { panic("skeleton") }

// Call sends req to addr ("host:port") and waits for the answer, at most timeout.
func (c *Client) Call(ctx context.Context, addr string, req *Command, timeout time.Duration) (*Command, error) {
	panic("skeleton")
}

// Oneway sends req to addr and waits for nothing but the connection.
func (c *Client) Oneway(ctx context.Context, addr string, req *Command) error { panic("skeleton") }

// Close closes all its connections and stops its goroutines.
func (c *Client) Close() { panic("skeleton") }
