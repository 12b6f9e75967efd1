// Package remoting moves frames: a server and a client of the RocketMQ remoting protocol on netpoll,
// connections that carry requests both ways, routes from request codes to handlers, and bounded lanes
// for handlers that may be slow. It knows nothing of what the requests mean.
//
// The way of a request: netpoll calls serve (reader.go) on a goroutine of the connection, which takes
// all complete frames, decodes and dispatches each. Handlers of the lane Inline run right there, those
// of HandleRun for all neighbouring requests at once, others in their lane. Answers are encoded into the
// connection's write queue (queue.go), which is written once at the end of the run, or by a task of the
// connection when another goroutine answers, or the peer does not read. So nobody waits for a peer, and
// what a peer makes us keep is bounded (config.go).
//
// Locks: a writeQueue's mu, a pendingTable's and an endpoint's are leaves: nothing is called with one
// held. An endpoint's sweeping is held during a sweep, which takes these. A writeQueue's writing is held
// during system calls that may wait for the peer, only by the one who flushes, and by the connection's end;
// crypto/tls' own locks are taken with it held, and during the handshake it is taken with those held.
package remoting

import (
	"context"
	"log/slog"
	"sync"

	"github.com/cloudwego/netpoll"
)

// Server listens on one port and serves the routes of one Mux.
type Server struct {
	cfg  ServerConfig
	end  *endpoint
	log  *slog.Logger
	ln   *listener
	loop netpoll.EventLoop // netpoll keeps only its address: it must live as long as the poller knows it

	stopOnce sync.Once
	accepts  chan struct{} // closed when no further connection will come
	full     rateLog
}

// NewServer makes a server; Start opens the port.
func NewServer(cfg ServerConfig, mux *Mux, events Events, log *slog.Logger) *Server {
	s := &Server{cfg: cfg, end: newEndpoint(cfg.limits(), mux, events, log), log: log, accepts: make(chan struct{})}
	s.end.tls = cfg.TLS
	s.full.every = s.end.badLog.every
	return s
}

// Start listens. The error names the address and says how to change it when it is taken.
func (s *Server) Start() error {
	ln, err := listen(s.cfg)
	if err != nil {
		return err
	}
	s.end.limits.connections = withinDescriptors(s.cfg.MaxConnections, s.cfg.ListenPort, s.log)
	ln.room = s.end.room
	ln.refused = s.refuse
	loop, err := netpoll.NewEventLoop(onRequest, netpoll.WithOnPrepare(s.onPrepare))
	if err != nil {
		ln.Close()
		return err
	}
	s.ln, s.loop = ln, loop
	go func() {
		defer close(s.accepts)
		if err := loop.Serve(ln); err != nil && !ln.stopped.Load() {
			s.log.Error("accepting ended", "addr", ln.Addr(), "error", err)
		}
	}()
	return nil
}

// connKey is the key of a connection in its context.
type connKey struct{}

// onPrepare meets a connection before netpoll reads from it; it runs on a poller. netpoll's OnConnect
// would run on a goroutine, but with it and several pollers the requests of a peer that closes at once
// are lost.
func (s *Server) onPrepare(nc netpoll.Connection) context.Context {
	c := s.end.open(nc)
	if c == nil {
		nc.Close()
		return context.Background()
	}
	s.end.connected(c)
	return context.WithValue(context.Background(), connKey{}, c)
}

func onRequest(ctx context.Context, nc netpoll.Connection) error {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		c.serve()
		return nil
	}
	return nc.Close()
}

func (s *Server) refuse(reason string) {
	s.end.stats.refused.Add(1)
	if n, ok := s.full.allow(s.end.now()); ok {
		s.log.Warn("connection refused", "reason", reason, "open", s.end.count(), "unlogged", n)
	}
}

// Port is the port it listens on, after Start.
func (s *Server) Port() int { return s.ln.port() }

// Connections returns the number of open connections.
func (s *Server) Connections() int { return s.end.count() }

// Stats returns the counters.
func (s *Server) Stats() Stats { return s.end.stats.stats() }

// StopAccepting closes the listener; open connections go on. Used first in an orderly stop.
func (s *Server) StopAccepting() {
	if s.ln == nil {
		return
	}
	s.stopOnce.Do(func() {
		// The poller sees that the socket is shut, forgets it, and Serve returns. netpoll's own Shutdown
		// would close connections that wait for an answer.
		if err := s.ln.stop(); err != nil {
			s.log.Error("listener does not stop", "addr", s.ln.Addr(), "error", err)
		}
		<-s.accepts
		s.ln.Close()
	})
}

// Close waits until queued answers are written (bounded by ctx), then closes every connection. It
// returns when each has ended, an error when a handler did not end in time.
func (s *Server) Close(ctx context.Context) error {
	s.StopAccepting()
	return s.end.close(ctx)
}
