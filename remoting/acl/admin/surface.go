// Package admin is the admin surface of a server: which request codes change something (kind.go), from which networks
// and by whom they may come, whether or not access control checks all other requests (surface.go, network.go), and a line in
// the audit log for each of them (audit.go, argument.go).
package admin

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/acl"
)

// SurfaceConfig is what the admin surface can be told; broker and name server have the same keys. No request changes
// them; the networks are heeded again when the configuration file is read again.
type SurfaceConfig struct {
	AdminAllowedNetworks string // networks (CIDR) and addresses that codes which change something may come from; "" = from everywhere, as officially
	AdminAccountsOnly    bool   // such codes must be signed by an account with admin: true of the ACL files, whatever aclEnable says and white lists have. Read at start
}

// Keys are the keys of SurfaceConfig: no request may change them.
var Keys = []string{"adminAllowedNetworks", "adminAccountsOnly"}

// Validate says which network is none.
func (c *SurfaceConfig) Validate() error {
	if _, err := parseNetworks(c.AdminAllowedNetworks); err != nil {
		return &keyError{"adminAllowedNetworks", err}
	}
	return nil
}

type keyError struct {
	key string
	err error
}

// Error implements error.
func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }

// Options is what a Surface needs.
type Options struct {
	Server   string     // who refuses, for remarks and the audit log: "broker broker-a"
	Accounts *acl.Table // nil = there are none, and AdminAccountsOnly refuses everything
	Clock    func() time.Time
	Log      *slog.Logger

	// BrokerAccountsOnly has registrations of brokers signed by an administrator too; of a name server. Read at the start.
	BrokerAccountsOnly bool
}

// Surface is the admin surface of one server. Its methods may be called from any goroutine.
type Surface struct {
	o     Options
	rules atomic.Pointer[rules] // replaced whole
	plans map[protocol.RequestCode]*protocol.Plan

	refused atomic.Uint64

	mu struct {
		sync.Mutex // a leaf
		window     time.Time
		failures   int // lines of failed requests in the window
		omitted    int // such lines that were left out and not told of yet
	}
}

// rules is a SurfaceConfig, read.
type rules struct {
	networks     networks
	accountsOnly bool
}

// New makes the surface of a server.
func New(cfg SurfaceConfig, o Options) (*Surface, error) {
	s := &Surface{o: o}
	return s, s.Set(cfg)
}

// Set puts another configuration in force. After an error the old one stays.
func (s *Surface) Set(cfg SurfaceConfig) error {
	n, err := parseNetworks(cfg.AdminAllowedNetworks)
	if err != nil {
		return &keyError{"adminAllowedNetworks", err}
	}
	s.rules.Store(&rules{networks: n, accountsOnly: cfg.AdminAccountsOnly})
	return nil
}

// Watch has the requests of m that belong to the surface pass it. Called once, before the server starts.
func (s *Surface) Watch(m *remoting.Mux) {
	s.plans = m.Plans()
	m.Watch(kinds[Change], s.permit, s.audit)
	if s.o.BrokerAccountsOnly {
		m.Watch(kinds[Registration], s.permitBroker, s.auditRefused)
	}
}

// Refused is how many requests were refused.
func (s *Surface) Refused() uint64 { return s.refused.Load() }

// permit refuses what comes from elsewhere, or is not signed by an administrator.
func (s *Surface) permit(c *remoting.Call) error {
	r, code := s.rules.Load(), protocol.RequestCode(c.Command().Code)
	if from := c.Conn().RemoteAddr().Addr(); !r.networks.has(from) {
		return s.refuse("%v is refused from %v: adminAllowedNetworks of %s does not have this address", code, from, s.o.Server)
	}
	if r.accountsOnly {
		return s.signed(c, "adminAccountsOnly")
	}
	return nil
}

// permitBroker refuses registrations that are not signed by an administrator.
func (s *Surface) permitBroker(c *remoting.Call) error { return s.signed(c, "brokerAccountsOnly") }

func (s *Surface) signed(c *remoting.Call, key string) error {
	code := protocol.RequestCode(c.Command().Code)
	if s.o.Accounts == nil {
		return s.refuse("%v is refused: %s of %s wants accounts, and there are none", code, key, s.o.Server)
	}
	if err := s.o.Accounts.Administrator(c.Command()); err != nil {
		return s.refuse("%v is refused: %s of %s wants the signature of an account with admin: true (%v)", code, key, s.o.Server, err)
	}
	return nil
}

func (s *Surface) refuse(format string, args ...any) error {
	s.refused.Add(1)
	return protocol.Errorf(protocol.NoPermission, format, args...)
}
