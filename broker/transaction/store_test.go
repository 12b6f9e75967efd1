package transaction

import (
	"errors"
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
	"rocketd/store/commitlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps records in memory.
type fakeStore struct {
	mu      sync.Mutex
	queues  map[string][]store.Entry
	first   map[string]int64 // minimum offset of a topic's queue
	records map[int64][]byte
	end     int64
	fail    func(*message.Message) error
	readErr func(phyOffset int64) error
	flush   error
	reads   int
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

func (s *fakeStore) MinOffset(topic string, q int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[topic]
}

func (s *fakeStore) MaxOffset(topic string, q int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.queues[topic]))
}

func (s *fakeStore) MaxPhyOffset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *fakeStore) Entry(topic string, q int32, offset int64) (store.Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q != 0 || offset < s.first[topic] || offset >= int64(len(s.queues[topic])) {
		return store.Entry{}, false
	}
	return s.queues[topic][offset], true
}

func (s *fakeStore) Record(phy int64) (message.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.readErr != nil {
		if err := s.readErr(phy); err != nil {
			return nil, err
		}
	}
	r, ok := s.records[phy]
	if !ok {
		return nil, commitlog.ErrNotFound
	}
	return message.Record(r), nil
}

func (s *fakeStore) Put(run []*store.Put) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, p := range run {
		m := p.Message
		if p.Err = failed; failed == nil && s.fail != nil {
			if p.Err = s.fail(m); !errors.Is(p.Err, commitlog.ErrTooLarge) {
				failed = p.Err
			}
		}
		if p.Err != nil {
			continue
		}
		m.PhyOffset, m.QueueOffset, m.StoreTimestamp = s.end, int64(len(s.queues[m.Topic])), time.Now().UnixMilli()
		r := message.AppendRecord(nil, m)
		s.records[s.end] = r
		s.queues[m.Topic] = append(s.queues[m.Topic], store.Entry{PhyOffset: s.end, Size: int32(len(r))})
		s.end += int64(len(r))
		p.PhyOffset, p.QueueOffset, p.StoreTimestamp, p.End = m.PhyOffset, m.QueueOffset, m.StoreTimestamp, s.end
	}
}

func (s *fakeStore) WaitFlushed(end int64, timeout time.Duration, done func(error)) { done(s.flush) }

// all are the messages of a topic.
func (s *fakeStore) all(topic string) (all []message.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.queues[topic] {
		all = append(all, message.Record(s.records[e.PhyOffset]).Message())
	}
	return all
}

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
	store  *fakeStore
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
		store: &fakeStore{queues: map[string][]store.Entry{}, first: map[string]int64{}, records: map[int64][]byte{}},
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
	for _, mu := range []*sync.Mutex{&f.mu, &f.store.mu} { // so that the checks see what the test has changed
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
