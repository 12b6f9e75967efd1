package timer

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/doubletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discard = slog.New(slog.DiscardHandler)

// queue is a store with the queue of timer messages.
type queue struct {
	*doubletest.Store
	hashes bool // entries have no times, as an official broker makes them
}

// ofTimers is the queue of timer messages.
var ofTimers = doubletest.Queue{Topic: message.TopicTimer}

func newStore() *queue {
	s := &queue{Store: doubletest.New(message.TopicTimer)}
	s.Code = func(m *message.Message) int64 {
		if s.hashes {
			return 12345
		}
		return message.TimerCode(m.Properties)
	}
	return s
}

func text(due int64, topic string, queueId int, name string) string {
	return fmt.Sprintf("UNIQ_KEY\x01%s\x02TIMER_OUT_MS\x01%d\x02REAL_TOPIC\x01%s\x02REAL_QID\x01%d", name, due, topic, queueId)
}

// wait puts a message into the queue.
func (s *queue) wait(due time.Time, name string) {
	s.enter(text(due.UnixMilli(), "T", 3, name), name)
}

func (s *queue) recall(due time.Time, name string) {
	s.enter(text(due.UnixMilli(), "T", 0, name)+"\x02TIMER_DEL_UNIQKEY\x01T+"+name, "0")
}

func (s *queue) enter(properties, body string) {
	m := message.Message{Topic: message.TopicTimer, Body: []byte(body), Properties: properties, Flag: 7, BornTimestamp: 11, ReconsumeTimes: 2}
	s.Append(m, s.Code(&m))
}

// rig is a timer on a fake store whose places lie in a folder.
type rig struct {
	*queue
	t       testing.TB
	files   compat.FileSystem
	path    string
	pending int
	clock   func() time.Time
	timer   *Timer
}

func newRig(t testing.TB) *rig {
	return &rig{queue: newStore(), t: t, files: compat.OSFiles, path: filepath.Join(t.TempDir(), "rocketd-timer.json"), clock: time.Now}
}

// lag has so many bytes of the log be in no queue yet.
func (r *rig) lag(bytes int64) {
	r.Lock()
	defer r.Unlock()
	r.Lag = bytes
}

func (r *rig) start() {
	r.t.Helper()
	r.timer = r.opened()
	r.timer.Start()
}

// opened is a timer that has not been started.
func (r *rig) opened() *Timer {
	r.t.Helper()
	tm, err := Open(Options{Store: r.queue, Clock: r.clock, Files: r.files, Path: r.path, SavePeriod: time.Second, Pending: r.pending,
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
