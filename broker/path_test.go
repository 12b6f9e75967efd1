package broker

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestMain looks for goroutines that no Close has ended. The network poller of netpoll lives as long as the process.
func TestMain(m *testing.M) {
	flag.Parse()
	// The tests that may run at once wait far more than they work; the default of one a CPU would make them queue for it.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait")); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// pathBroker is a broker on a store in memory, and a connection to it.
type pathBroker struct {
	*Broker
	tb   testing.TB
	fs   *vfs.Mem
	peer *remotingtest.Peer
	next int32
	// failing: files fail on purpose, so Close may report it.
	failing bool
}

// startPathBroker starts a broker whose configuration tweak may change; it is closed when the test ends.
func startPathBroker(tb testing.TB, tweak func(*Config)) *pathBroker {
	tb.Helper()
	return startPathBrokerOn(tb, vfs.NewMem(time.Now), tweak)
}

// pathConfig is the configuration of such a broker.
func pathConfig(tweak func(*Config)) Config {
	cfg := DefaultConfig("/store")
	cfg.ListenPort, cfg.BindAddress = 0, "127.0.0.1"
	cfg.BrokerIP1, cfg.BrokerName, cfg.BrokerClusterName = "127.0.0.1", "broker-a", "DefaultCluster"
	cfg.MappedFileSizeCommitLog = 16 << 20
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = 5000, 20000
	if tweak != nil {
		tweak(&cfg)
	}
	return cfg
}

// startPathBrokerOn does so on a store in memory that may have been used before; nil: on the operating system's files.
func startPathBrokerOn(tb testing.TB, fs vfs.FS, tweak func(*Config)) *pathBroker {
	tb.Helper()
	return startPathBrokerAt(tb, fs, time.Now, tweak)
}

// startPathBrokerAt does so by a clock of the test's.
func startPathBrokerAt(tb testing.TB, fs vfs.FS, now func() time.Time, tweak func(*Config)) *pathBroker {
	tb.Helper()
	cfg := pathConfig(tweak)
	o := Options{Log: remotingtest.Log(tb), Clock: now}
	if fs != nil {
		o.FS, o.Files = fs, vfs.Files{FS: fs}
	}
	b, err := New(cfg, o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &pathBroker{Broker: b, tb: tb}
	p.fs, _ = fs.(*vfs.Mem)
	tb.Cleanup(p.close)
	p.peer = p.dial()
	return p
}

// ahead is a clock that a test puts forward, so that what is due in an hour needs no waiting, and can't be due too soon.
type ahead struct{ by atomic.Int64 }

func (a *ahead) now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

func (a *ahead) forward(d time.Duration) { a.by.Add(int64(d)) }

func (p *pathBroker) close() {
	if p.Broker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	if err := p.Close(ctx); err != nil && !p.failing {
		p.tb.Error(err)
	}
	p.Broker = nil
}

func (p *pathBroker) dial() *remotingtest.Peer {
	return remotingtest.Dial(p.tb, remotingtest.Addr(p.server))
}

// request makes a request with an opaque of its own.
func (p *pathBroker) request(code protocol.RequestCode, h any, body []byte) *protocol.Command {
	p.next++
	r := protocol.NewRequest(code, h, body)
	r.Opaque = p.next
	return r
}

func (p *pathBroker) ask(code protocol.RequestCode, h any, body []byte) *protocol.Command {
	p.tb.Helper()
	return p.peer.Ask(p.request(code, h, body))
}

// sendHeader is the header of a send as the stock clients send it.
func sendHeader(topic string, queueId int32, properties string) *header.SendMessageRequest {
	return &header.SendMessageRequest{ProducerGroup: "PG", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		QueueId: queueId, BornTimestamp: 1_700_000_000_000, Flag: 7, Properties: text(properties)}
}

// send stores a message and returns the answer, which must be a success.
func (p *pathBroker) send(topic string, queueId int32, properties, body string) *protocol.Command {
	p.tb.Helper()
	a := p.ask(protocol.SendMessage, sendHeader(topic, queueId, properties), []byte(body))
	if a.Code != 0 {
		p.tb.Fatalf("send to %s: code %d, %q", topic, a.Code, a.Remark)
	}
	return a
}

// pullHeader is the header of a pull that brings its subscription.
func pullHeader(topic string, queueId int32, offset int64) *header.PullMessageRequest {
	return &header.PullMessageRequest{ConsumerGroup: "CG", Topic: topic, QueueId: queueId, QueueOffset: offset, MaxMsgNums: 32,
		SysFlag: pullSubscription, Subscription: "*"}
}

// stored waits until a queue has n messages that can be pulled, and returns them from an offset.
func (p *pathBroker) stored(topic string, queueId int32, from, n int64) []message.Message {
	p.tb.Helper()
	remotingtest.Eventually(p.tb, "the messages can be pulled", func() bool { return p.store.MaxOffset(topic, queueId) >= n })
	a := p.ask(protocol.PullMessage, pullHeader(topic, queueId, from), nil)
	if a.Code != 0 {
		p.tb.Fatalf("pull of %s/%d: code %d, %q", topic, queueId, a.Code, a.Remark)
	}
	return p.messages(a)
}

func (p *pathBroker) messages(a *protocol.Command) (all []message.Message) {
	p.tb.Helper()
	for b := a.Body; len(b) > 0; {
		m, n, err := message.Parse(b)
		if err != nil {
			p.tb.Fatal(err)
		}
		all, b = append(all, m), b[n:]
	}
	return all
}

// check compares an answer's code, remark (a * at its end stands for the rest) and names of ext fields.
func check(tb testing.TB, what string, a *protocol.Command, code protocol.ResponseCode, remark string, fields ...string) {
	tb.Helper()
	start, open := strings.CutSuffix(remark, "*")
	if a.Code != int32(code) || !(a.Remark == remark || open && strings.HasPrefix(a.Remark, start)) {
		tb.Errorf("%s: code %d, remark %q; want %d, %q", what, a.Code, a.Remark, code, remark)
	}
	for _, f := range fields {
		if _, ok := a.Field(f); !ok && f != "{}" {
			tb.Errorf("%s: no field %s in %v", what, f, a.Fields)
		}
	}
	n := len(fields)
	if n == 1 && fields[0] == "{}" {
		n = 0
	}
	if len(a.Fields) != n || a.HasFields != (len(fields) > 0) {
		tb.Errorf("%s: fields %v (extFields there: %v), want %v", what, a.Fields, a.HasFields, fields)
	}
}

// field returns an ext field that must be there.
func field(tb testing.TB, a *protocol.Command, key string) string {
	tb.Helper()
	v, ok := a.Field(key)
	if !ok {
		tb.Fatalf("no field %s in code %d, %q, %v", key, a.Code, a.Remark, a.Fields)
	}
	return v
}

// anyone is a client for tables that want one.
func (p *pathBroker) anyone() someone { return someone{p.storeHost()} }

type someone struct{ addr netip.AddrPort }

func (s someone) RemoteAddr() netip.AddrPort { return s.addr }
