package pop

import (
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps messages in memory: of each queue, and of all in the order of the log.
type fakeStore struct {
	sync.Mutex
	queues map[Key][]*message.Message // Group is ""
	log    []*message.Message
	fail   error // what the next puts end with
}

func newStore() *fakeStore { return &fakeStore{queues: map[Key][]*message.Message{}} }

func (s *fakeStore) queue(topic string, queueId int32) []*message.Message {
	s.Lock()
	defer s.Unlock()
	return s.queues[Key{Topic: topic, QueueId: queueId}]
}

func (s *fakeStore) MinOffset(string, int32) int64 { return 0 }
func (s *fakeStore) MaxOffset(topic string, queueId int32) int64 {
	return int64(len(s.queue(topic, queueId)))
}
func (s *fakeStore) MaxPhyOffset() int64 { s.Lock(); defer s.Unlock(); return int64(len(s.log)) }

func (s *fakeStore) MendNow() error { return nil }

func (s *fakeStore) Entry(topic string, queueId int32, offset int64) (store.Entry, bool) {
	q := s.queue(topic, queueId)
	if offset < 0 || offset >= int64(len(q)) {
		return store.Entry{}, false
	}
	return store.Entry{PhyOffset: q[offset].PhyOffset}, true
}

func (s *fakeStore) Message(phyOffset int64) (message.Message, error) {
	s.Lock()
	defer s.Unlock()
	if phyOffset >= int64(len(s.log)) {
		return message.Message{}, commitlog.ErrNotFound
	}
	return *s.log[phyOffset], nil
}

func (s *fakeStore) Get(topic string, queueId int32, offset int64, most int, _ store.Filter) (r store.GetResult) {
	q := s.queue(topic, queueId)
	for ; offset < int64(len(q)) && r.Count < most; offset++ {
		r.Body = message.AppendRecord(r.Body, q[offset])
		r.Count++
	}
	r.NextBeginOffset = offset
	return r
}

func (s *fakeStore) Put(run []*store.Put) {
	s.Lock()
	defer s.Unlock()
	for _, p := range run {
		if p.Err = s.fail; p.Err != nil {
			continue
		}
		m := *p.Message
		m.Body = append([]byte(nil), m.Body...)
		k := Key{Topic: m.Topic, QueueId: m.QueueId}
		m.QueueOffset, m.PhyOffset = int64(len(s.queues[k])), int64(len(s.log))
		s.queues[k], s.log = append(s.queues[k], &m), append(s.log, &m)
		p.QueueOffset, p.PhyOffset, p.End = m.QueueOffset, m.PhyOffset, m.PhyOffset+1
		p.StoreTimestamp = time.Now().UnixMilli()
	}
}

func (s *fakeStore) WaitFlushed(_ int64, _ time.Duration, done func(error)) { done(nil) }

// bed is a table on a store, with what the broker would do.
type bed struct {
	*Checkpoints
	tb    testing.TB
	store *fakeStore

	unsaved error // what Save ends with

	mu struct {
		sync.Mutex
		place   int64
		placed  bool
		saves   int
		offsets map[Key]int64
		again   []string // group, topic and offset of what has come again
		refuse  error    // what Copy ends with
	}
}

func newBed(tb testing.TB, s *fakeStore) *bed {
	b := &bed{tb: tb, store: s}
	b.mu.offsets = map[Key]int64{}
	return b
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// open makes the table anew, as a start of the broker does.
func (b *bed) open(limit int) {
	b.Checkpoints = New(Options{
		Store: b.store, Clock: time.Now, Log: slog.New(slog.DiscardHandler), Limit: limit,
		Host: func() netip.AddrPort { return host },
		Place: func() (int64, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.mu.place, b.mu.placed
		},
		SetPlace: func(offset int64) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.mu.place, b.mu.placed = offset, true
		},
		Advance: func(k Key, offset int64) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.mu.offsets[k] = max(b.mu.offsets[k], offset)
		},
		Copy: func(k Key, _ int64, m *message.Message) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.mu.refuse != nil {
				return b.mu.refuse
			}
			b.mu.again = append(b.mu.again, k.Group+" "+k.Topic+" "+strconv.FormatInt(m.QueueOffset, 10))
			m.Topic, m.QueueId = RetryTopic(k.Group, k.Topic), 0
			m.ReconsumeTimes++
			return nil
		},
		Save: func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.mu.saves++
			return b.unsaved
		},
		SavePeriod: 5 * time.Second,
	})
	b.Start()
}

// again is what has come again since it was asked last.
func (b *bed) again() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.mu.again
	b.mu.again = nil
	return list
}

// fill stores n messages of queue 0 of a topic.
func (b *bed) fill(topic string, n int) {
	for range n {
		b.store.Put([]*store.Put{{Message: &message.Message{Topic: topic, Body: []byte("x"), BornHost: host, StoreHost: host}}})
	}
}

// pop pops n messages from an offset on, at this time.
func (b *bed) pop(k Key, start int64, n int, invisible time.Duration) (popTime int64) {
	b.tb.Helper()
	var offsets []int64
	for i := range n {
		offsets = append(offsets, start+int64(i))
	}
	q := b.Take(k)
	defer q.Release()
	popTime = time.Now().UnixMilli()
	if err := b.Popped(q, start, popTime, invisible.Milliseconds(), offsets, start+int64(n)); err != nil {
		b.tb.Fatal(err)
	}
	return popTime
}

// ack acknowledges messages of one pop.
func (b *bed) ack(k Key, start, popTime int64, offsets ...int64) {
	b.tb.Helper()
	var run []Ack
	for _, o := range offsets {
		run = append(run, Ack{k, start, popTime, o})
	}
	if err := b.Acked(run); err != nil {
		b.tb.Fatal(err)
	}
}

var errFull = errors.New("full")

// saved is the place, and how often the offsets were saved.
func (b *bed) saved() (place int64, saves int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.place, b.mu.saves
}

// refuse lets copies fail, or not.
func (b *bed) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.refuse = err
}

// failing lets the store take nothing, or everything.
func (s *fakeStore) failing(err error) {
	s.Lock()
	defer s.Unlock()
	s.fail = err
}
