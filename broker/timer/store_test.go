package timer

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore has the queue of timer messages and what was delivered from it. Each record has 100 bytes.
type fakeStore struct {
	mu        sync.Mutex
	queue     []store.Entry
	first     int64 // minimum offset of the queue
	minPhy    int64 // records before it are gone
	messages  map[int64]message.Message
	delivered []copied
	runs      []int
	reads     int // entries
	hashes    bool
	fail      func(*message.Message) error
	readErr   error
	phy       int64
	flushed   func(done func(error))
	again     int
	lag       int64 // bytes of the log that are not in the queue yet
}

func (s *fakeStore) ConfirmOffset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phy + s.lag
}

func (s *fakeStore) DispatchedOffset() int64 { return s.MaxPhyOffset() }

type copied struct {
	message.Message
	at time.Time
}

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

func newStore() *fakeStore { return &fakeStore{messages: map[int64]message.Message{}} }

func text(due int64, topic string, queueId int, name string) string {
	return fmt.Sprintf("UNIQ_KEY\x01%s\x02TIMER_OUT_MS\x01%d\x02REAL_TOPIC\x01%s\x02REAL_QID\x01%d", name, due, topic, queueId)
}

// wait puts a message into the queue.
func (s *fakeStore) wait(due time.Time, name string) {
	s.put(text(due.UnixMilli(), "T", 3, name), name)
}

func (s *fakeStore) recall(due time.Time, name string) {
	s.put(text(due.UnixMilli(), "T", 0, name)+"\x02TIMER_DEL_UNIQKEY\x01T+"+name, "0")
}

func (s *fakeStore) put(properties, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(message.Message{Topic: message.TopicTimer, Body: []byte(body), Properties: properties, Flag: 7, BornTimestamp: 11, ReconsumeTimes: 2})
}

func (s *fakeStore) append(m message.Message) {
	m.PhyOffset, m.StoreTimestamp, m.QueueOffset = s.phy, time.Now().UnixMilli(), int64(len(s.queue))
	s.messages[s.phy] = m
	code := message.TimerCode(m.Properties)
	if s.hashes {
		code = 12345
	}
	s.queue = append(s.queue, store.Entry{PhyOffset: s.phy, Size: 100, TagsCode: code})
	s.phy += 100
}

func (s *fakeStore) MinOffset(string, int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *fakeStore) MaxOffset(string, int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.queue))
}

func (s *fakeStore) MaxPhyOffset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phy
}

func (s *fakeStore) Entry(_ string, _ int32, offset int64) (store.Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.first || offset >= int64(len(s.queue)) {
		return store.Entry{}, false
	}
	return s.queue[offset], true
}

func (s *fakeStore) Entries(_ string, _ int32, offset int64, n int) ([]store.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.first || offset >= int64(len(s.queue)) {
		return nil, true, nil
	}
	e := s.queue[offset:min(offset+int64(n), int64(len(s.queue)))]
	s.reads += len(e)
	return append([]store.Entry(nil), e...), true, nil
}

func (s *fakeStore) Message(phy int64) (message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readErr != nil {
		return message.Message{}, s.readErr
	}
	m, ok := s.messages[phy]
	if !ok || phy < s.minPhy {
		return m, commitlog.ErrNotFound
	}
	return m, nil
}

func (s *fakeStore) PutAgain(run []*store.Put) {
	s.mu.Lock()
	s.again += len(run)
	s.mu.Unlock()
	s.Put(run)
}

func (s *fakeStore) Put(run []*store.Put) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, len(run))
	for _, p := range run {
		if s.fail != nil {
			if p.Err = s.fail(p.Message); p.Err != nil {
				continue
			}
		}
		p.PhyOffset = s.phy
		if p.Message.Topic == message.TopicTimer {
			s.append(*p.Message)
		} else {
			s.phy += 100
			s.delivered = append(s.delivered, copied{*p.Message, time.Now()})
		}
		p.End = s.phy
	}
}

func (s *fakeStore) WaitFlushed(end int64, timeout time.Duration, done func(error)) {
	s.mu.Lock()
	f := s.flushed
	s.mu.Unlock()
	if f != nil {
		f(done)
		return
	}
	done(nil)
}

func (s *fakeStore) bodies() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.delivered {
		all = append(all, string(c.Body))
	}
	return all
}

// rig is a timer on a fake store whose places lie in a folder.
type rig struct {
	*fakeStore
	t       testing.TB
	files   compat.FileSystem
	path    string
	pending int
	clock   func() time.Time
	timer   *Timer
}

func newRig(t testing.TB) *rig {
	return &rig{fakeStore: newStore(), t: t, files: compat.OSFiles, path: filepath.Join(t.TempDir(), "rocketd-timer.json"), clock: time.Now}
}

func (r *rig) start() {
	r.t.Helper()
	r.timer = r.opened()
	r.timer.Start()
}

// opened is a timer that has not been started.
func (r *rig) opened() *Timer {
	r.t.Helper()
	tm, err := Open(Options{Store: r.fakeStore, Clock: r.clock, Files: r.files, Path: r.path, SavePeriod: time.Second, Pending: r.pending,
		Log: discard})
	if err != nil {
		r.t.Fatal(err)
	}
	return tm
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.timer.Close(); err != nil {
		r.t.Error(err)
	}
}

// kill ends the goroutine as a kill does: nothing more is saved.
func (r *rig) kill() {
	r.t.Helper()
	r.timer.once.Do(func() {
		close(r.timer.stop)
		r.timer.running.Wait()
		r.timer.file.mu.Lock()
		r.timer.file.mu.closed = true
		r.timer.file.mu.Unlock()
		if err := r.timer.file.saver.Close(); err != nil {
			r.t.Error(err)
		}
	})
}
