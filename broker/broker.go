// Package broker is the broker: it keeps messages in a store and answers the requests of clients,
// administrators and other brokers. Handlers lie in files by family; requests.go lists every code that has
// one, unsupported.go every code that has none, with the reason.
//
// Who owns what: each table (topics, groups, offsets, clients, locks) has its own lock, and no code holds
// two of them at once; only the registrar's is taken under that of topics. The configuration is swapped whole.
// Handlers of the inline lane never wait.
package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/broker/clients"
	"rocketd/broker/filter"
	"rocketd/broker/groups"
	"rocketd/broker/locks"
	"rocketd/broker/offsets"
	"rocketd/broker/stats"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
	"rocketd/store"
	"rocketd/store/vfs"
)

// Options is what a broker needs beside its Config.
type Options struct {
	FS    vfs.FS            // the store's files; nil = the operating system's
	Files compat.FileSystem // the config files; nil = the operating system's
	Clock func() time.Time  // nil = time.Now
	Log   *slog.Logger

	StoreKey string // what sets the store's folder, for errors; "" = storePathRootDir in the configuration file
}

// Broker is one broker: New opens the store and the tables, Start the ports.
type Broker struct {
	// Fixed at New.
	log     *slog.Logger
	clock   func() time.Time
	boot    time.Time
	fs      vfs.FS
	files   compat.FileSystem
	address advertised    // told to clients
	haHost  string        // told to slaves
	port    atomic.Uint32 // listenPort; when that is 0 (tests) the port that the system chose, from Start on

	cfg      atomic.Pointer[Config] // swapped by UPDATE_BROKER_CONFIG
	settings settings

	// Tables; each guards itself.
	topics    *topics.Table
	groups    *groups.Table
	offsets   *offsets.Table
	bodies    jsonBodies
	memory    *clients.Memory // what the next two take
	consumers *clients.Consumers
	producers *clients.Producers
	locks     *locks.Table
	acl       *acl.Table    // nil = access control is off
	accounts  *acl.Table    // the same, and also there when only administrators have accounts
	tls       *remoting.TLS // certificates
	filters   *filter.Table // the expressions of consumers
	compiled  filter.Compiled
	stats     totals       // of the whole store
	traffic   *stats.Table // by topic and group
	notices   notices
	asked     consumerCalls
	pushed    consumerCalls // replies that wait for the client that asked

	// The message path.
	store *store.Store
	path  messagePath

	// The network.
	lanes   lanes
	mux     *remoting.Mux    // of the main port
	server  *remoting.Server // listenPort: every code
	fast    *remoting.Server // listenPort-2: every code but PULL_MESSAGE
	client  *remoting.Client // to name servers
	surface *admin.Surface

	credentials atomic.Pointer[acl.Credentials] // sign what goes to name servers; nil = nothing does
	registrar   *registrar

	// housekeeping's goroutine.
	stop chan struct{}
	wg   sync.WaitGroup
	once sync.Once // guards Close
}

// New checks the configuration and opens the store and the tables. The error says what to do about it.
func New(cfg Config, o Options) (*Broker, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Files == nil {
		o.Files = compat.OSFiles
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	cfg, err := cfg.readUpdates(o.Files, o.Log)
	if err != nil {
		return nil, err
	}
	if o.StoreKey == "" {
		o.StoreKey = storeKey
	}
	brokerId := cfg.BrokerId
	cfg.complete()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := errors.Join(cfg.checkPaths(o.FS), cfg.checkPorts()); err != nil {
		return nil, err
	}
	cfg.logOddities(o.Log, brokerId)
	b := &Broker{log: o.Log, clock: o.Clock, boot: o.Clock(), fs: o.FS, files: o.Files, stop: make(chan struct{})}
	b.settings.mu.version = body.DataVersion{Timestamp: b.boot.UnixMilli()}
	if err := b.choose(&cfg); err != nil {
		return nil, err
	}
	b.cfg.Store(&cfg)
	if err := b.open(); err != nil {
		b.abandon()
		return nil, cfg.explain(err, o.StoreKey)
	}
	return b, nil
}

// choose fixes the addresses that clients and slaves are told.
func (b *Broker) choose(cfg *Config) error {
	var err error
	if b.address, err = advertise(cfg.BrokerIP1); err != nil {
		return err
	}
	cfg.BrokerIP1 = b.address.Host
	if cfg.BrokerIP2 == "" {
		cfg.BrokerIP2 = b.address.Host
	}
	b.haHost = cfg.BrokerIP2
	b.port.Store(uint32(cfg.ListenPort))
	b.log.Info("address told to clients", "host", b.address.Host, "ip", b.address.IP, "source", b.address.Source)
	if b.address.Local {
		b.log.Warn("ONLY THIS MACHINE CAN REACH THE ADDRESS THAT CLIENTS ARE TOLD; set brokerIP1 in the configuration "+
			"(or environment variable "+addressEnv+") to an address that the others can reach", "host", b.address.Host)
	}
	return nil
}

// open opens the store first: it locks the folder, so nothing below it is touched while another broker runs there.
func (b *Broker) open() error {
	cfg := b.config()
	b.lanes = newLanes(cfg)
	b.memory = clients.NewMemory(func() clients.Limits {
		cfg := b.config()
		return clients.Limits{Groups: cfg.MaxClientGroups, Bytes: cfg.MaxClientBytes}
	})
	b.consumers = clients.NewConsumers(b.clock, b.log, b.memory)
	b.producers = clients.NewProducers(b.clock, b.log, b.memory)
	client, err := b.openTLS(cfg)
	if err != nil {
		return err
	}
	b.client = remoting.NewClient(client, nil, b.log)
	b.registrar = newRegistrar(b)
	b.stats.latency.Store(newPutLatency())
	b.traffic = stats.New(cfg.BrokerClusterName, b.boot, b.log)
	if err := b.openAcl(cfg); err != nil {
		return err
	}
	if err := b.openPath(); err != nil {
		return err
	}
	crashed, err := b.crashed(cfg)
	if err != nil {
		return err
	}
	s, err := store.Open(cfg.Config, store.Options{
		FS: b.fs, Clock: b.clock, Log: b.log,
		DeliverTime: b.deliverTime, Arrive: b.arrive, Release: b.releaseLog, FilterBitMap: b.filterBits,
	})
	if err != nil {
		return err
	}
	b.store = s
	if err := b.openTables(cfg); err != nil {
		return err
	}
	if b.path.pop.crashed = crashed; crashed {
		b.limitOffsets()
	}
	b.mux = remoting.NewMux(b.refuse)
	b.routes(b.mux)
	b.surface.Watch(b.mux)
	if b.acl != nil {
		b.mux.Guard(b.permit)
	}
	events := remoting.Events{Closed: func(c *remoting.Conn, _ remoting.CloseReason) { b.connClosed(c) }}
	b.server = remoting.NewServer(b.serveTLS(cfg.ServerConfig), b.mux, events, b.log)
	b.fast = remoting.NewServer(b.serveTLS(cfg.fastConfig()), b.mux.Without(fastWithout...), events, b.log)
	return nil
}

// openTables opens what lies below config/.
func (b *Broker) openTables(cfg *Config) (err error) {
	if err := b.makeConfigDir(cfg.configDir()); err != nil {
		return fmt.Errorf("folder of the configuration files: %w", err)
	}
	at := func(name string) string { return filepath.Join(cfg.configDir(), name) }
	trace := ""
	if cfg.TraceTopicEnable {
		trace = cfg.MsgTraceTopicName
	}
	b.topics, err = topics.Open(topics.Options{
		Path: at("topics.json"), Files: b.files, Clock: b.clock, Log: b.log, Changed: b.registrar.changed,
		AutoCreate: func() bool { return b.config().AutoCreateTopicEnable }, Lmq: cfg.EnableLmq,
		Limit: func() int { return b.config().MaxTopics },
		System: topics.System{
			Cluster: cfg.BrokerClusterName, ClusterEnable: cfg.ClusterTopicEnable,
			Broker: cfg.BrokerName, BrokerEnable: cfg.BrokerTopicEnable,
			DefaultQueueNums: cfg.DefaultTopicQueueNums, Trace: trace,
		},
	})
	if err != nil {
		return err
	}
	b.groups, err = groups.Open(groups.Options{
		Path: at("subscriptionGroup.json"), Files: b.files, Clock: b.clock, Log: b.log,
		AutoCreate: func() bool { return b.config().AutoCreateSubscriptionGroup }, Lmq: cfg.EnableLmq,
		Limit: func() int { return b.config().MaxSubscriptionGroups },
	})
	if err != nil {
		return err
	}
	o := offsets.Options{
		Path: at("consumerOffset.json"), Files: b.files, Log: b.log,
		Limit: func() int { return b.config().MaxConsumerOffsets },
	}
	if cfg.EnableLmq {
		o.Lmq, o.Path, o.Older = true, at("lmqConsumerOffset.json"), o.Path
	}
	b.offsets, err = offsets.Open(o)
	if err != nil {
		return err
	}
	if err := b.openPopTables(cfg); err != nil {
		return err
	}
	b.locks, err = locks.Open(locks.Options{Path: at("rocketd-locks.json"), Files: b.files, Clock: b.clock, Log: b.log,
		Limit: func() int { return b.config().MaxQueueLocks }})
	if err != nil {
		return err
	}
	bloom, err := cfg.bloom()
	if err != nil {
		return err
	}
	b.filters, err = filter.OpenTable(filter.TableOptions{
		Path: at("consumerFilter.json"), Files: b.files, Clock: b.clock, Log: b.log, Bloom: bloom, Compiled: &b.compiled,
		Limit: func() int64 { return b.config().MaxExpressionBytes },
		Keep:  func() time.Duration { return compat.Millis(b.config().FilterDataCleanTimeSpan) },
	})
	return err
}

// makeConfigDir makes the folder of the config files durable: a file in it is no safer than its folder.
func (b *Broker) makeConfigDir(dir string) error {
	if err := b.files.MkdirAll(dir); err != nil {
		return err
	}
	return b.files.SyncDir(filepath.Dir(dir))
}

// config is the configuration in force; it must not be changed.
func (b *Broker) config() *Config { return b.cfg.Load() }

// Config returns a copy of the configuration in force.
func (b *Broker) Config() Config { return *b.config() }

// Addr is the address told to clients: brokerIP1:listenPort.
func (b *Broker) Addr() string { return hostPort(b.address.Host, int(b.port.Load())) }

// storeHost is the address that is written into every message, and so into its offset id.
func (b *Broker) storeHost() netip.AddrPort {
	return netip.AddrPortFrom(b.address.IP, uint16(b.port.Load()))
}

// FastPort is the port for all codes but PULL_MESSAGE, after Start.
func (b *Broker) FastPort() int { return b.fast.Port() }

// haAddr is the address told to slaves; nothing listens there yet.
func (b *Broker) haAddr() string { return hostPort(b.haHost, b.config().HaListenPort) }
