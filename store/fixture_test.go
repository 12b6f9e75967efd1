package store

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// smallConfig is that of the official brokers which wrote testdata: files of 64 kB, 50 and 400 entries.
func smallConfig(root string) Config {
	cfg := DefaultConfig(root)
	cfg.MappedFileSizeCommitLog = 64 << 10
	cfg.MappedFileSizeConsumeQueue = 1000
	cfg.MaxHashSlotNum = 500
	cfg.MaxIndexNum = 400
	cfg.MaxMessageSize = 16 << 10
	return cfg
}

// clock is a clock that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1795976475252)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openStore opens and starts a store; the test closes it.
func openStore(t testing.TB, fsys vfs.FS, cfg Config, o Options) *Store {
	t.Helper()
	s, err := tryOpen(fsys, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryOpen(fsys vfs.FS, cfg Config, o Options) (*Store, error) {
	o.FS = fsys
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := Open(cfg, o)
	if err != nil {
		return nil, err
	}
	s.Start()
	return s, nil
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// newMessage is a message with a body, a tag, a unique key and two keys.
func newMessage(topic string, queueId int32, n int) *message.Message {
	p := message.AppendProperty(nil, "KEYS", fmt.Sprintf("key-%d shared", n))
	p = message.AppendProperty(p, "UNIQ_KEY", fmt.Sprintf("uniq-%s-%d-%d", topic, queueId, n))
	p = message.AppendProperty(p, "TAGS", fmt.Sprintf("Tag%d", n%2))
	return &message.Message{Topic: topic, QueueId: queueId, BornHost: host, StoreHost: host, Body: fmt.Appendf(nil, "body-%s-%d-%d", topic, queueId, n), Properties: string(p)}
}

// put stores messages and waits until they can be read. It returns the Puts.
func put(t testing.TB, s *Store, messages ...*message.Message) []*Put {
	t.Helper()
	run := make([]*Put, len(messages))
	for i, m := range messages {
		run[i] = &Put{Message: m}
	}
	s.Put(run)
	for _, p := range run {
		if p.Err != nil {
			t.Fatal(p.Err)
		}
	}
	if s.SyncFlush() {
		waitFlushed(t, s, run[len(run)-1].End)
	}
	waitDispatched(t, s, run[len(run)-1].End)
	return run
}

// putAll puts n messages, twenty at a time.
func putAll(t testing.TB, s *Store, n int, nth func(i int) *message.Message) {
	t.Helper()
	var run []*message.Message
	for i := range n {
		if run = append(run, nth(i)); len(run) == 20 || i == n-1 {
			put(t, s, run...)
			run = run[:0]
		}
	}
}

func waitFlushed(t testing.TB, s *Store, end int64) {
	t.Helper()
	done := make(chan error, 1)
	s.WaitFlushed(end, time.Minute, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// waitFor waits for a condition.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for n := 0; !condition(); n++ {
		if n < 1000 {
			runtime.Gosched()
			continue
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
		<-tick.C
	}
}

func waitDispatched(t testing.TB, s *Store, end int64) {
	t.Helper()
	waitFor(t, "dispatch", func() bool { return s.dispatched.Load() >= end })
}

// records splits the body of a Get.
func records(t testing.TB, body []byte) []message.Record {
	t.Helper()
	var all []message.Record
	for len(body) > 0 {
		n, err := message.Check(body, true)
		if err != nil {
			t.Fatal(err)
		}
		all, body = append(all, message.Record(body[:n])), body[n:]
	}
	return all
}

// readAll reads a queue from its minimum to its end.
func readAll(t testing.TB, s *Store, topic string, queueId int32) []message.Record {
	t.Helper()
	var all []message.Record
	for offset := s.MinOffset(topic, queueId); offset < s.MaxOffset(topic, queueId); {
		r := s.Get(topic, queueId, offset, 32, nil)
		if r.Status != Found || r.NextBeginOffset != offset+int64(r.Count) {
			t.Fatalf("%s %d: Get(%d) = %+v", topic, queueId, offset, r)
		}
		got := records(t, r.Body)
		if len(got) != r.Count {
			t.Fatalf("%d records, count %d", len(got), r.Count)
		}
		for i, rec := range got {
			if rec.QueueOffset() != offset+int64(i) || rec.Topic() != topic || rec.QueueId() != queueId {
				t.Fatalf("%s %d %d: got %s %d %d", topic, queueId, offset+int64(i), rec.Topic(), rec.QueueId(), rec.QueueOffset())
			}
		}
		all, offset = append(all, got...), r.NextBeginOffset
	}
	return all
}

// logger writes to the test's log.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, nil))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
