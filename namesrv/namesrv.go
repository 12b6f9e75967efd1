// Package namesrv is the name server: it knows which brokers live, which topics they have, and tells
// clients the way to them. Name servers share nothing; a broker registers with each.
//
// The way of a request: every handler runs on the connection's goroutine (remoting.Inline), because
// nothing it needs is further away than the route table (route.go) or the KV table (kv.go), both in memory.
// Only what changes the KV file answers later: when the write that carries its change is durable. So what one
// connection asks is done in its order, a registration before the unregistration behind it.
//
// Locks: routeTable.mu and kvTable.mu are leaves. Goroutines: the sweep for brokers that have fallen silent,
// the saver of the KV file, and the watches of certificates and ACL files; Close ends them.
package namesrv

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// A broker is gone when it has not registered for brokerExpiry; the first look is after firstSweep, the others
// follow every sweepEvery (RouteInfoManager and NamesrvController of 4.9.8).
const (
	brokerExpiry = 2 * time.Minute
	firstSweep   = 5 * time.Second
	sweepEvery   = 10 * time.Second
)

// Server is one name server.
type Server struct {
	log   *slog.Logger
	clock func() time.Time

	config    atomic.Pointer[Config] // replaced as a whole by UPDATE_NAMESRV_CONFIG
	updates   sync.Mutex             // held while it is replaced
	blackList map[string]bool        // keys that UPDATE_NAMESRV_CONFIG refuses; as of the start

	routes *routeTable
	kv     *kvTable
	remote *remoting.Server

	tls *remoting.TLS // certificates

	accounts *acl.Table // nil = nobody is checked
	surface  *admin.Surface

	adminAccountsOnly bool // as of the start

	turns chan struct{} // of connections whose large registration is being read

	kvFile *compat.Saver // writes kvConfigPath; from Start on

	stop    chan struct{} // closed by Close
	stopped sync.WaitGroup
	once    sync.Once
}

// New makes a name server and reads its KV configuration. The error says what in cfg is not served, or which file
// can't be read. clock is the time by which brokers expire.
func New(cfg Config, log *slog.Logger, clock func() time.Time) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.ListenPort != 0 {
		if err := remoting.CheckListen(cfg.ServerConfig); err != nil {
			return nil, err
		}
	}
	if abs, err := filepath.Abs(cfg.KvConfigPath); err == nil {
		cfg.KvConfigPath = abs
	}
	s := &Server{
		log:       log,
		clock:     clock,
		blackList: cfg.blackList(),
		routes:    newRouteTable(log, clock),
		kv:        newKVTable(log),
		stop:      make(chan struct{}),
		turns:     make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),

		adminAccountsOnly: cfg.AdminAccountsOnly,
	}
	s.config.Store(&cfg)
	s.routes.bound.limit = func() int64 { return s.config.Load().MaxRouteBytes }
	s.kv.bound.limit = func() int64 { return s.config.Load().MaxKvConfigBytes }
	if err := s.kv.load(compat.OSFiles, cfg.KvConfigPath); err != nil {
		return nil, err
	}
	var err error
	if s.tls, err = remoting.NewTLS(cfg.TLS, log); err != nil {
		return nil, err
	}
	if cfg.wantsAccounts() {
		if s.accounts, err = acl.Open(acl.Options{Folder: cfg.AclFolder(), Clock: clock, Log: log}); err != nil {
			return nil, err
		}
	}
	s.surface, err = admin.New(cfg.SurfaceConfig, admin.Options{
		Server: "name server", Accounts: s.accounts, Clock: clock, Log: log, BrokerAccountsOnly: cfg.BrokerAccountsOnly,
	})
	if err != nil {
		return nil, err
	}
	m := remoting.NewMux(nil) // compat: 4.9.8 does not answer codes that it does not know
	s.handle(m)
	s.surface.Watch(m)
	events := remoting.Events{Closed: func(c *remoting.Conn, why remoting.CloseReason) { s.routes.linkClosed(c, string(why)) }}
	port := cfg.ServerConfig
	port.TLS = s.tls
	s.remote = remoting.NewServer(port, m, events, log)
	return s, nil
}

// Start opens the port. The error names the address when it is taken.
func (s *Server) Start() error {
	cfg := s.config.Load()
	cfg.tell(s.log)
	s.kvFile = compat.NewSaver(compat.OSFiles, cfg.KvConfigPath, s.kv.encode, s.log)
	s.tls.Start()
	if s.accounts != nil {
		s.accounts.Start()
	}
	if err := s.remote.Start(); err != nil {
		s.tls.Close()
		s.closeAccounts()
		_ = s.kvFile.Close()
		return err
	}
	s.stopped.Add(1)
	go s.sweep()
	s.log.Info("name server started", "listening", s.Listening())
	return nil
}

// Port is the port it listens on, after Start.
func (s *Server) Port() int { return s.remote.Port() }

// Addr is host:port by which a process on this machine reaches it, after Start.
func (s *Server) Addr() string {
	host := s.config.Load().BindAddress
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(s.Port()))
}

// Listening is where it listens: *:port is every address of this machine.
func (s *Server) Listening() string {
	host := s.config.Load().BindAddress
	if host == "" {
		host = "*"
	}
	return net.JoinHostPort(host, strconv.Itoa(s.Port()))
}

// About is what a started name server says of itself in one line.
func (s *Server) About() string {
	about := "listening on " + s.Listening()
	if s.config.Load().BindAddress == "" {
		about += " (all addresses; bindAddress in the configuration file changes it)"
	}
	return about + ", KV configuration " + s.config.Load().KvConfigPath
}

// Close writes what is not written, closes every connection (answers that are queued go out first, as long as
// ctx lasts), and ends its goroutines. Only the first call, after a Start, does something.
func (s *Server) Close(ctx context.Context) error {
	var err error
	s.once.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		err = s.remote.Close(ctx)
		s.tls.Close()
		s.closeAccounts()
		if s.kvFile != nil {
			if ferr := s.kvFile.Close(); err == nil {
				err = ferr
			}
		}
		s.log.Info("name server stopped")
	})
	return err
}

func (s *Server) closeAccounts() {
	if s.accounts != nil {
		s.accounts.Close()
	}
}

// sweep removes brokers that have fallen silent.
func (s *Server) sweep() {
	defer s.stopped.Done()
	refused := s.Refusals()
	timer := time.NewTimer(firstSweep)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
			s.routes.expire()
			refused = s.tellRefusals(refused)
			timer.Reset(sweepEvery)
		}
	}
}
