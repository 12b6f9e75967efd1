package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"

	"rocketd/compat"
)

// Client dials servers by address and keeps one connection to each.
type Client struct {
	cfg ClientConfig
	end *endpoint

	mu struct {
		sync.Mutex
		peers  map[string]*peer
		closed bool
	}
}

// peer is one address.
type peer struct {
	turn chan struct{} // held while dialling and while conn is looked at
	conn *Conn
}

// NewClient makes a client. mux serves requests that arrive on its connections (nil: none).
func NewClient(cfg ClientConfig, mux *Mux, log *slog.Logger) *Client {
	c := &Client{cfg: cfg, end: newEndpoint(cfg.limits(), mux, Events{}, log)}
	c.mu.peers = map[string]*peer{}
	return c
}

// Call sends req to addr ("host:port") and waits for the answer, at most timeout, the time to connect
// included.
func (c *Client) Call(ctx context.Context, addr string, req *Command, timeout time.Duration) (*Command, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	conn, err := c.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	answer, err := conn.Call(ctx, req, time.Until(deadline))
	if err == nil {
		return answer, nil
	}
	if err = timedOut(err); errors.Is(err, ErrTimeout) && c.cfg.ClientCloseSocketIfTimeout {
		conn.Close()
	}
	return nil, fmt.Errorf("call %s: %w", addr, err)
}

// Oneway sends req to addr and waits for nothing but the connection.
func (c *Client) Oneway(ctx context.Context, addr string, req *Command) error {
	conn, err := c.connect(ctx, addr)
	if err != nil {
		return err
	}
	if err := conn.Oneway(req); err != nil {
		return fmt.Errorf("call %s: %w", addr, err)
	}
	return nil
}

// Connect returns the connection to addr, dialling when there is none.
func (c *Client) Connect(ctx context.Context, addr string) (*Conn, error) {
	return c.connect(ctx, addr)
}

// Stats returns the counters.
func (c *Client) Stats() Stats { return c.end.stats.stats() }

// Close closes all its connections and stops its goroutines.
func (c *Client) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	// What is queued gets a moment; a peer that does not read is not waited for.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.end.close(ctx); err != nil {
		c.end.log.Warn("client closed", "error", err)
	}
}

func (c *Client) connect(ctx context.Context, addr string) (*Conn, error) {
	p, err := c.peer(addr)
	if err != nil {
		return nil, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w", addr, timedOut(ctx.Err()))
	}
	if p.conn != nil && p.conn.Active() {
		return p.conn, nil
	}
	p.conn = nil
	conn, err := c.dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	p.conn = conn
	return conn, nil
}

// timedOut makes of a context's end by time what it means here.
func timedOut(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrTimeout
	}
	return err
}

func (c *Client) peer(addr string) (*peer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, fmt.Errorf("connect to %s: client is closed: %w", addr, ErrClosed)
	}
	p := c.mu.peers[addr]
	if p == nil {
		p = &peer{turn: make(chan struct{}, 1)}
		c.mu.peers[addr] = p
	}
	return p, nil
}

func (c *Client) dial(ctx context.Context, addr string) (*Conn, error) {
	if c.cfg.ConnectTimeoutMillis > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, compat.Millis(c.cfg.ConnectTimeoutMillis))
		defer cancel()
	}
	nc, err := dialSocket(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn := c.end.open(nc)
	if conn == nil {
		nc.Close()
		return nil, ErrClosed
	}
	if c.cfg.TLS != nil {
		if err := c.secure(ctx, conn); err != nil {
			conn.end(ClosedTLS)
			return nil, err
		}
	}
	c.end.connected(conn)
	err = nc.SetOnRequest(func(context.Context, netpoll.Connection) error {
		conn.serve()
		return nil
	})
	if err != nil || !nc.IsActive() {
		// It broke before netpoll knew whom to tell.
		conn.end(ClosedByPeer)
	}
	if err == nil && !conn.Active() {
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// secure shakes hands with a server. Nobody else reads from the connection yet.
func (c *Client) secure(ctx context.Context, conn *Conn) error {
	cfg := c.cfg.TLS.client.Load()
	if cfg == nil {
		return &tlsError{"the certificates could not be loaded"}
	}
	over := context.AfterFunc(ctx, func() { conn.end(ClosedTLS) })
	defer over()
	conn.sniffed = true
	err := conn.shakeHands(func(s *secure) *tls.Conn { return tls.Client(s, cfg) })
	if err != nil && ctx.Err() != nil {
		return timedOut(ctx.Err())
	}
	return err
}

// dialSocket connects to an address and gives the socket to netpoll. netpoll's own dialer can't be
// cancelled, and calls a refused connection "closed by peer".
func dialSocket(ctx context.Context, addr string) (netpoll.Connection, error) {
	nc, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	controlErr := raw.Control(func(old uintptr) {
		// Go's poller keeps the old descriptor until it is closed.
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3)
	})
	if err := errors.Join(controlErr, err); err != nil {
		return nil, fmt.Errorf("duplicate socket: %w", err)
	}
	conn, err := netpoll.NewFDConnection(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return conn, nil
}
