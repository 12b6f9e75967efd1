package broker

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// fakeNamesrv is a name server that notes what it is told.
type fakeNamesrv struct {
	server *remoting.Server
	order  map[string]string // its order table; nil = none
	known  body.DataVersion  // what it answers 322 with

	mu   sync.Mutex
	cond *sync.Cond
	got  []registration
	asks int // QUERY_DATA_VERSION
	gone int // UNREGISTER_BROKER
}

type registration struct {
	header header.RegisterBrokerRequest
	body   *body.RegisterBrokerBody
	oneway bool
	crc    bool // the checksum is right
}

func (r registration) topics() []string {
	var names []string
	for name := range r.body.TopicConfigSerializeWrapper.TopicConfigTable {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func startNamesrv(t *testing.T, port int) *fakeNamesrv {
	t.Helper()
	n := &fakeNamesrv{}
	n.cond = sync.NewCond(&n.mu)
	mux := remoting.NewMux(nil)
	remoting.Handle(mux, protocol.RegisterBroker, remoting.Inline, n.register)
	remoting.Handle(mux, protocol.QueryDataVersion, remoting.Inline, n.version)
	remoting.Handle(mux, protocol.UnregisterBroker, remoting.Inline, n.unregister)
	cfg := remoting.DefaultServerConfig()
	cfg.ListenPort, cfg.BindAddress = port, "127.0.0.1"
	n.server = remoting.NewServer(cfg, mux, remoting.Events{}, slog.New(slog.DiscardHandler))
	if err := n.server.Start(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *fakeNamesrv) addr() string { return hostPort("127.0.0.1", n.server.Port()) }

func (n *fakeNamesrv) stop(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	if err := n.server.Close(ctx); err != nil {
		t.Error(err)
	}
}

func (n *fakeNamesrv) register(c *remoting.Call, req *header.RegisterBrokerRequest) (*protocol.Command, error) {
	cmd := c.Command()
	b, err := body.DecodeRegister(cmd.Body, req.Compressed)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = append(n.got, registration{*req, b, cmd.IsOneway(), req.BodyCrc32 == protocol.Some(int32(crc32.ChecksumIEEE(cmd.Body)&0x7fffffff))})
	n.cond.Broadcast()
	answer := c.Success(&header.RegisterBrokerResponse{})
	if n.order != nil {
		return withBody(answer, &body.KVTable{Table: n.order})
	}
	return answer, nil
}

func (n *fakeNamesrv) version(c *remoting.Call, _ *header.QueryDataVersionRequest) (*protocol.Command, error) {
	var theirs body.DataVersion
	if err := compat.Unmarshal(c.Command().Body, &theirs); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks++
	n.cond.Broadcast()
	return withBody(c.Success(&header.QueryDataVersionResponse{Changed: theirs != n.known}), &n.known)
}

func (n *fakeNamesrv) unregister(c *remoting.Call, _ *header.UnRegisterBrokerRequest) (*protocol.Command, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone++
	return c.Success(nil), nil
}

// at returns the i-th registration.
func (n *fakeNamesrv) at(i int) registration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.got[i]
}

// until waits until ok holds, which is called under the lock.
func (n *fakeNamesrv) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(remotingtest.Patience, func() {
		n.mu.Lock()
		late = true
		n.mu.Unlock()
		n.cond.Broadcast()
	})
	defer timer.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for !ok() {
		if late {
			t.Fatalf("%s did not happen; got %d registrations", what, len(n.got))
		}
		n.cond.Wait()
	}
}

// registering makes a broker that has what a registrar needs, and nothing else.
func registering(t *testing.T, change func(*Config)) *Broker {
	t.Helper()
	cfg := DefaultConfig(t.TempDir())
	cfg.BrokerName, cfg.BrokerIP1 = "broker-a", "127.0.0.1"
	if change != nil {
		change(&cfg)
	}
	cfg.complete()
	b := &Broker{log: slog.New(slog.DiscardHandler), clock: time.Now, files: compat.OSFiles}
	b.address = advertised{Host: "127.0.0.1", IP: netip.MustParseAddr("127.0.0.1")}
	b.haHost = "127.0.0.1"
	b.port.Store(10911)
	b.cfg.Store(&cfg)
	b.client = remoting.NewClient(cfg.ClientConfig, nil, b.log)
	b.registrar = newRegistrar(b)
	var err error
	b.topics, err = topics.Open(topics.Options{
		Path: filepath.Join(cfg.configDir(), "topics.json"), Files: b.files, Clock: b.clock, Log: b.log,
		Changed: b.registrar.changed, AutoCreate: func() bool { return true },
		System: topics.System{Cluster: cfg.BrokerClusterName, ClusterEnable: true, Broker: "broker-a", BrokerEnable: true, DefaultQueueNums: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Broker) endRegistering(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	b.registrar.close(ctx)
	b.client.Close()
	if err := b.topics.Close(); err != nil {
		t.Error(err)
	}
}

func TestRegister(t *testing.T) {
	n := startNamesrv(t, 0)
	defer n.stop(t)
	n.mu.Lock()
	n.order = map[string]string{"Ordered": "broker-a:4"}
	n.mu.Unlock()
	b := registering(t, func(c *Config) { c.NamesrvAddr = n.addr() })
	defer b.endRegistering(t)
	b.topics.CreateBySend("Ordered", "TBW102", 4, 0)
	b.registrar.start()
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	b.registrar.waitFirst(ctx)

	n.until(t, "the first registration", func() bool { return len(n.got) == 1 })
	r := n.at(0)
	want := header.RegisterBrokerRequest{BrokerName: "broker-a", BrokerAddr: "127.0.0.1:10911", ClusterName: "DefaultCluster",
		HaServerAddr: "127.0.0.1:10912", BodyCrc32: r.header.BodyCrc32}
	if r.header != want || !r.crc || r.oneway {
		t.Errorf("%+v, checksum %v, oneway %v", r.header, r.crc, r.oneway)
	}
	if got := len(r.topics()); got != 9 {
		t.Errorf("%d topics: %v", got, r.topics())
	}
	if c, _ := b.topics.Lookup("Ordered"); !c.Order {
		t.Error("the order table of the answer is not applied")
	}

	// A topic that comes into being is sent alone and oneway.
	b.topics.CreateBySend("New", "TBW102", 4, 0)
	n.until(t, "the new topic's registration", func() bool { return len(n.got) == 2 })
	if r := n.at(1); !slices.Equal(r.topics(), []string{"New"}) || !r.oneway || !r.crc {
		t.Errorf("topics %v, oneway %v, checksum %v", r.topics(), r.oneway, r.crc)
	}
	if v := n.at(1).body.TopicConfigSerializeWrapper.DataVersion; v != b.topics.Version() {
		t.Errorf("version %+v, want %+v", v, b.topics.Version())
	}

	// When somebody waits it is no oneway, and the wait ends after it.
	b.topics.Put(&topics.Config{TopicName: "Waited", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: topics.SingleTag})
	b.registrar.await(ctx, func(n *nameServer) bool { return n.mu.reached })
	n.until(t, "the waited-for registration", func() bool {
		return slices.ContainsFunc(n.got, func(r registration) bool { return slices.Contains(r.topics(), "Waited") })
	})
}

func TestRegisterPermissionAndCompression(t *testing.T) {
	n := startNamesrv(t, 0)
	defer n.stop(t)
	b := registering(t, func(c *Config) {
		c.NamesrvAddr, c.CompressedRegister, c.BrokerPermission = n.addr(), true, 4
	})
	defer b.endRegistering(t)
	b.registrar.start()
	n.until(t, "the registration", func() bool { return len(n.got) == 1 })
	r := n.at(0)
	if !r.header.Compressed || !r.crc {
		t.Errorf("%+v, checksum %v", r.header, r.crc)
	}
	for name, c := range r.body.TopicConfigSerializeWrapper.TopicConfigTable {
		if c.Perm != 4 {
			t.Errorf("%s has permission %d, want the broker's", name, c.Perm)
		}
	}
}

// A table that would not fit a frame is sent compressed.
func TestRegisterManyTopics(t *testing.T) {
	n := startNamesrv(t, 0)
	defer n.stop(t)
	b := registering(t, func(c *Config) { c.NamesrvAddr = n.addr() })
	defer b.endRegistering(t)
	for i := range 100 {
		b.topics.CreateBySend(fmt.Sprintf("%0100d", i), "TBW102", 4, 0)
	}
	b.registrar.compressAbove = 30_000
	b.registrar.start()
	n.until(t, "the registration", func() bool { return len(n.got) == 1 })
	if r := n.at(0); !r.header.Compressed || !r.crc || len(r.topics()) != 108 {
		t.Errorf("compressed %v, checksum %v, %d topics", r.header.Compressed, r.crc, len(r.topics()))
	}
}

// A table that no name server would take is not sent: the error tells what to do, where a closed connection tells nothing.
func TestRegisterTooMany(t *testing.T) {
	n := startNamesrv(t, 0)
	defer n.stop(t)
	b := registering(t, func(c *Config) { c.NamesrvAddr = n.addr() })
	defer b.endRegistering(t)
	for i := range 100 {
		b.topics.CreateBySend(fmt.Sprintf("%0100d", i), "TBW102", 4, 0)
	}
	b.registrar.compressAbove, b.registrar.most = 30_000, 500
	all, version := b.topics.All()
	_, err := b.registrar.register(n.addr(), all, version, false)
	if err == nil || !strings.Contains(err.Error(), "the registration of 108 topics has ") || !strings.Contains(err.Error(), "more than 500: delete topics, or spread them") {
		t.Error(err)
	}
	if len(n.got) != 0 {
		t.Error("it was sent")
	}
}

// A name server that is down is tried every second, and holds up no other.
func TestRegisterWhenDown(t *testing.T) {
	t.Parallel()
	up, late := startNamesrv(t, 0), startNamesrv(t, 0)
	defer up.stop(t)
	addr, port := late.addr(), late.server.Port()
	late.stop(t) // the port is free, and known
	b := registering(t, func(c *Config) { c.NamesrvAddr = addr + ";" + up.addr() })
	defer b.endRegistering(t)
	b.registrar.start()
	up.until(t, "the registration at the one that is up", func() bool { return len(up.got) == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	b.registrar.waitFirst(ctx)
	b.topics.CreateBySend("New", "TBW102", 4, 0)
	b.registrar.await(ctx, func(n *nameServer) bool { return n.mu.reached })
	if ctx.Err() != nil {
		t.Error("waited for a name server that is down")
	}

	late = startNamesrv(t, port)
	defer late.stop(t)
	late.until(t, "the registration at the one that came up", func() bool { return len(late.got) > 0 })
	if names := late.at(0).topics(); !slices.Contains(names, "New") || !slices.Contains(names, "TBW102") {
		t.Errorf("the first registration is not a full one: %v", names)
	}
}

// With forceRegister=false a name server that has the data version is asked, and not sent anything.
func TestAskBeforeRegistering(t *testing.T) {
	n := startNamesrv(t, 0)
	defer n.stop(t)
	b := registering(t, func(c *Config) { c.NamesrvAddr, c.ForceRegister = n.addr(), false })
	defer b.endRegistering(t)
	b.registrar.start()
	n.until(t, "the first registration", func() bool { return len(n.got) == 1 })
	n.mu.Lock()
	n.known = b.topics.Version()
	n.mu.Unlock()
	b.registrar.all()
	n.until(t, "the question", func() bool { return n.asks == 1 })
	b.topics.Touch()
	b.registrar.all()
	n.until(t, "the registration after a change", func() bool { return n.asks == 2 && len(n.got) == 2 })
}

func TestSetServersAndUnregister(t *testing.T) {
	first, second := startNamesrv(t, 0), startNamesrv(t, 0)
	defer first.stop(t)
	defer second.stop(t)
	b := registering(t, func(c *Config) { c.NamesrvAddr = first.addr() })
	b.registrar.start()
	first.until(t, "the registration", func() bool { return len(first.got) == 1 })
	b.registrar.setServers([]string{first.addr(), second.addr()})
	second.until(t, "the registration at the second", func() bool { return len(second.got) == 1 })
	b.endRegistering(t)
	for i, n := range []*fakeNamesrv{first, second} {
		n.mu.Lock()
		if n.gone != 1 {
			t.Errorf("name server %d: unregistered %d times", i, n.gone)
		}
		if i == 0 && len(n.got) != 1 {
			t.Errorf("registered again at the first: %d times", len(n.got))
		}
		n.mu.Unlock()
	}
}
