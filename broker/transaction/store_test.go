package transaction

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/doubletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// The queues of half messages and of ops.
var (
	halves = doubletest.Queue{Topic: message.TopicTransHalf}
	opsOf  = doubletest.Queue{Topic: message.TopicTransOpHalf}
)

// asked is a check that a producer got.
type asked struct {
	at    time.Duration // since the start of the test
	group string
	h     header.CheckTransactionStateRequest
	m     message.Message
}

// fataler is what a testing.TB and a rapid.T have in common.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// fixture is checks on a fake store, in a bubble of synctest.
type fixture struct {
	mu     sync.Mutex // taken by what the checks call; the test changes the rest between two calls of pass
	tb     fataler
	store  *doubletest.Store
	places map[string]int64
	s      Settings
	master bool
	topics map[string]bool
	checks *Checks
	asked  []asked
	read   map[string]int64 // messages, by topic
	busy   int
	passed int
	start  time.Time
	now    func() time.Time
	log    io.Writer
}

// newFixture makes checks with the official settings.
func newFixture(tb fataler) *fixture {
	return &fixture{tb: tb, places: map[string]int64{}, read: map[string]int64{}, master: true, topics: map[string]bool{}, log: io.Discard, start: time.Now(), now: time.Now,
		store: doubletest.New(),
		s:     Settings{Interval: time.Minute, TimeOut: 6 * time.Second, CheckMax: 15, Reserved: 72 * time.Hour}}
}

// run starts checks, as a broker does; those before have been closed.
func (f *fixture) run() {
	f.open()
	f.checks.Start()
}

// open makes them.
func (f *fixture) open() {
	locked := func() func() {
		f.mu.Lock()
		return f.mu.Unlock
	}
	f.checks = New(Options{
		Store: f.store, Clock: f.now, Log: slog.New(slog.NewTextHandler(f.log, nil)),
		Settings: func() Settings { defer locked()(); return f.s },
		Master:   func() bool { defer locked()(); return f.master },
		Place: func(topic string) (int64, bool) {
			defer locked()()
			o, ok := f.places[topic]
			return o, ok
		},
		SetPlace: func(topic string, o int64) { defer locked()(); f.places[topic] = o },
		Topic:    func(name string) { defer locked()(); f.topics[name] = true },
		Read:     func(topic string, messages, _ int64) { defer locked()(); f.read[topic] += messages },
		Ask: func(group string, h *header.CheckTransactionStateRequest, body []byte) bool {
			defer locked()()
			if f.busy > 0 {
				f.busy--
				return true
			}
			m, _, err := message.Parse(body)
			if err != nil {
				f.tb.Fatal(err)
			}
			f.asked = append(f.asked, asked{f.now().Sub(f.start), group, *h, m})
			return false
		},
	})
}

// pass lets time go by.
func (f *fixture) pass(d time.Duration) {
	for _, mu := range []*sync.Mutex{&f.mu, &f.store.Mutex} { // so that the checks see what the test has changed
		mu.Lock()
		f.passed++
		mu.Unlock()
	}
	time.Sleep(d)
	synctest.Wait()
}

// half stores a half message with more properties and returns its queue offset.
func (f *fixture) half(body string, properties ...string) int64 {
	text := message.AppendProperty(nil, "TRAN_MSG", "true")
	for _, p := range append([]string{"PGROUP=G", "REAL_TOPIC=T", "REAL_QID=3", "UNIQ_KEY=" + body}, properties...) {
		name, value, _ := strings.Cut(p, "=")
		text = message.AppendProperty(text, name, value)
	}
	m := message.Message{Topic: message.TopicTransHalf, Flag: 5, Body: []byte(body), Properties: string(text), BornTimestamp: f.now().UnixMilli(),
		BornHost: host, StoreHost: host}
	p := store.Put{Message: &m}
	f.store.Put([]*store.Put{&p})
	return p.QueueOffset
}

// op ends the transaction of a half message.
func (f *fixture) op(half int64) {
	m := OpMessage(0, half, host, f.now())
	f.store.Put([]*store.Put{{Message: &m}})
}

// times are the times of the checks of a message, in seconds, and the counts that they had.
func (f *fixture) times(body string) string {
	var all []string
	for _, a := range f.asked {
		if string(a.m.Body) == body {
			n, _ := a.m.Property("TRANSACTION_CHECK_TIMES")
			all = append(all, fmt.Sprintf("%v:%s", int(a.at.Seconds()), n))
		}
	}
	return strings.Join(all, " ")
}

// place tells where the checks are, by the table of offsets.
func (f *fixture) place() string {
	return strconv.Itoa(int(f.places[message.TopicTransHalf])) + " " + strconv.Itoa(int(f.places[message.TopicTransOpHalf]))
}
