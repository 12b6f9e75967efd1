// Package broker is the broker: it keeps messages in a store and answers the requests of clients,
// administrators and other brokers. Handlers lie in files by family; requests.go lists every code that has
// one, unsupported.go every code that has none, with the reason.
//
// Who owns what: each table (topics, groups, offsets, clients, locks) has its own lock, and no code holds
// two of them at once. The configuration is swapped whole. Handlers of the inline lane never wait.
package broker

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"rocketd/broker/clients"
	"rocketd/broker/groups"
	"rocketd/broker/locks"
	"rocketd/broker/offsets"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/store"
	"rocketd/store/vfs"
)

// Options is what a broker needs beside its Config.
type Options struct {
	FS    vfs.FS // nil = the operating system's
	Clock func() time.Time
	Log   *slog.Logger
}

// Broker is one broker: New opens the store, Start the ports.
type Broker struct {
	// Fixed at New.
	log   *slog.Logger
	clock func() time.Time
	boot  time.Time
	cfg   atomic.Pointer[Config] // swapped by UPDATE_BROKER_CONFIG

	// Tables; each guards itself.
	topics    *topics.Table
	groups    *groups.Table
	offsets   *offsets.Table
	consumers *clients.Consumers
	producers *clients.Producers
	locks     *locks.Table

	// The message path.
	store *store.Store
	path  messagePath

	// The network.
	lanes  lanes
	server *remoting.Server // listenPort: every code
	fast   *remoting.Server // listenPort-2: every code but PULL_MESSAGE
	client *remoting.Client // to name servers
}

// New opens the store and the tables. The error says what to do about it.
func New(cfg Config, o Options) (*Broker, error) {
	b := &Broker{log: o.Log, clock: o.Clock, boot: o.Clock()}
	b.cfg.Store(&cfg)
	b.lanes = newLanes(&cfg)
	return b, nil
}

// config is the configuration in force; it must not be changed.
func (b *Broker) config() *Config { return b.cfg.Load() }

// Start opens the ports and registers at the name servers.
func (b *Broker) Start() error { return nil }

// Close unregisters, stops taking writes, answers held polls, flushes and closes the ports, in this order.
// It gives up waiting, not closing, when ctx ends.
func (b *Broker) Close(ctx context.Context) error { return nil }

// Addr is the address told to clients: brokerIP1:listenPort.
func (b *Broker) Addr() string { return "" }

// unsupported answers a code that has no route, as AdminBrokerProcessor of 4.9.8.
func unsupported(c *remoting.Call) *protocol.Command {
	return c.Answer(protocol.RequestCodeNotSupported,
		" request type "+strconv.Itoa(int(c.Command().Code))+" not supported", nil)
}
