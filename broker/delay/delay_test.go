package delay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
	"rocketd/store/doubletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queues is a store with the queues of SCHEDULE_TOPIC_XXXX.
type queues struct{ *doubletest.Store }

func newStore() *queues { return &queues{doubletest.New(message.TopicSchedule)} }

// queueOf is the queue of a level.
func queueOf(level int) doubletest.Queue {
	return doubletest.Queue{Topic: message.TopicSchedule, QueueId: int32(level - 1)}
}

// wait puts a message of a level into its queue, due at the given time.
func (s *queues) wait(level int, due time.Time, body, properties string) {
	s.Append(message.Message{Topic: message.TopicSchedule, QueueId: queueOf(level).QueueId, Body: []byte(body), Properties: properties,
		Flag: 7, SysFlag: message.Compressed, BornTimestamp: 11, ReconsumeTimes: 2}, due.UnixMilli())
}

func open(t *testing.T, s *queues, path string, clock func() time.Time) *Delay {
	t.Helper()
	return openOn(t, s, path, clock)
}

func openOn(t *testing.T, s Store, path string, clock func() time.Time) *Delay {
	t.Helper()
	levels, err := store.ParseDelayLevels(store.DefaultConfig("").MessageDelayLevel)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(Options{Levels: levels, Store: s, Clock: clock, Files: compat.OSFiles, Path: path, SavePeriod: 10 * time.Second,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func properties(topic string, queueId int) string {
	return fmt.Sprintf("REAL_TOPIC\x01%s\x02DELAY\x013\x02TAGS\x01TagA\x02REAL_QID\x01%d", topic, queueId)
}

// TestOnTime: messages go out when they are due, to the ms, in order, whether they were there at the start or
// came later.
func TestOnTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		start := time.Now()
		s.wait(3, start.Add(10*time.Second), "a", properties("T", 2))
		s.wait(3, start.Add(10*time.Second), "b", properties("%RETRY%g", 0))
		s.wait(3, start.Add(10*time.Second+7*time.Millisecond), "c", properties("T", 1))
		s.wait(1, start.Add(time.Second), "first", properties("U", 0))
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		pass(3 * time.Second)
		s.wait(2, start.Add(8*time.Second), "late", properties("T", 0))
		d.Arrived(1)
		pass(10 * time.Second)
		synctest.Wait()
		want := []struct {
			body, topic string
			queueId     int32
			at          time.Duration
		}{
			{"first", "U", 0, time.Second}, {"late", "T", 0, 8 * time.Second},
			{"a", "T", 2, 10 * time.Second}, {"b", "%RETRY%g", 0, 10 * time.Second}, {"c", "T", 1, 10*time.Second + 7*time.Millisecond},
		}
		if len(s.Delivered) != len(want) {
			t.Fatalf("delivered %q", s.Bodies())
		}
		for i, w := range want {
			g := s.Delivered[i]
			if string(g.Body) != w.body || g.Topic != w.topic || g.QueueId != w.queueId || g.At.Sub(start) != w.at {
				t.Errorf("%d: %s to %s/%d after %v, want %+v", i, g.Body, g.Topic, g.QueueId, g.At.Sub(start), w)
			}
		}
		// The copy is the message as it was sent, its text untouched.
		g := s.Delivered[2]
		if g.Properties != properties("T", 2) || g.Flag != 7 || g.SysFlag != message.Compressed || g.BornTimestamp != 11 || g.ReconsumeTimes != 2 {
			t.Errorf("the copy: %+v", g.Message)
		}
	})
}

func TestClockMovedBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		now := time.Now()
		s.wait(2, now.Add(5*time.Second+storeAhead*time.Millisecond+time.Millisecond), "more than one delay ahead", properties("T", 0))
		s.wait(3, now.Add(10*time.Second), "one delay ahead", properties("T", 0))
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		synctest.Wait()
		if got := s.Bodies(); len(got) != 1 || got[0] != "more than one delay ahead" {
			t.Fatalf("delivered at once: %q", got)
		}
	})
}

// TestClockMovedForward: a step of the clock shows within a second, though the timer was set for longer.
func TestClockMovedForward(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var mu sync.Mutex
		var step time.Duration
		clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(step) }
		s.wait(18, time.Now().Add(2*time.Hour), "x", properties("T", 0))
		d := open(t, s, path, clock)
		d.Start()
		defer d.Close()
		pass(time.Minute)
		mu.Lock()
		step = 3 * time.Hour
		mu.Unlock()
		pass(time.Second)
		synctest.Wait()
		if len(s.Bodies()) != 1 {
			t.Fatal("not delivered within a second after the clock's step")
		}
	})
}

// TestDiscard: what can never be delivered is passed over, and holds nobody up; what is gone too.
func TestDiscard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		due := time.Now()
		s.wait(1, due, "half", properties(message.TopicTransHalf, 0))
		s.wait(1, due, "no topic", "DELAY\x011\x02REAL_QID\x010")
		s.wait(1, due, "no queue", "REAL_TOPIC\x01T")
		s.wait(1, due, "bad queue", "REAL_TOPIC\x01T\x02REAL_QID\x01x")
		s.wait(1, due, "gone", properties("T", 0))
		delete(s.Messages, s.Last())
		s.wait(1, due, "long topic", properties("%RETRY%"+strings.Repeat("g", 125), 0))
		s.wait(1, due, "illegal topic", properties("../T", 0))
		s.wait(1, due, "negative queue", properties("T", -1))
		s.wait(1, due, "too large", properties("T", 0))
		s.wait(1, due, "good", properties("T", 0))
		s.Fail = func(m *message.Message) error {
			if string(m.Body) == "too large" {
				return fmt.Errorf("%w: maxMessageSize was lowered", commitlog.ErrTooLarge)
			}
			return nil
		}
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		synctest.Wait()
		if got := s.Bodies(); len(got) != 1 || got[0] != "good" {
			t.Fatalf("delivered %q", got)
		}
		if at := d.Offsets()[1]; at != 10 {
			t.Errorf("place %d, want 10", at)
		}
	})
}

// TestFailures: a message that can't be stored or read now holds back those behind it and is tried again.
func TestFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		for i := range 5 {
			s.wait(1, time.Now(), fmt.Sprint(i), properties("T", 0))
		}
		// At first 2 alone is refused, which 3 and 4 of its run don't know.
		s.Fail = func(m *message.Message) error {
			if string(m.Body) == "2" {
				return commitlog.ErrFull
			}
			return nil
		}
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		synctest.Wait()
		if at := d.Offsets()[1]; at != 2 {
			t.Fatalf("place %d, want 2", at)
		}
		pass(10 * time.Second) // nothing behind it is stored again and again
		synctest.Wait()
		if got := s.Bodies(); fmt.Sprint(got) != "[0 1 3 4]" {
			t.Fatalf("delivered %v", got)
		}
		s.Lock()
		s.Fail = nil
		s.Unlock()
		pass(100 * time.Millisecond)
		synctest.Wait()
		if got := s.Bodies(); fmt.Sprint(got) != "[0 1 3 4 2 3 4]" { // at least once, in order from the one that failed
			t.Fatalf("delivered %v", got)
		}
		s.Lock()
		s.ReadErr = func(int64) error { return errors.New("input/output error") }
		s.Unlock()
		s.wait(1, time.Now(), "5", properties("T", 0))
		d.Arrived(0)
		pass(time.Second)
		s.Lock()
		s.ReadErr = nil
		s.Unlock()
		pass(100 * time.Millisecond)
		synctest.Wait()
		if got := s.Bodies(); got[len(got)-1] != "5" || d.Offsets()[1] != 6 {
			t.Fatalf("delivered %v, place %d", got, d.Offsets()[1])
		}
	})
}

// TestPanic: a panic is survived; the level goes on at the same place.
func TestPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.wait(1, time.Now(), "x", properties("T", 0))
		panics := 1
		s.Fail = func(*message.Message) error {
			if panics--; panics >= 0 {
				panic("on purpose")
			}
			return nil
		}
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		synctest.Wait()
		if len(s.Bodies()) != 0 {
			t.Fatal("delivered")
		}
		pass(10 * time.Second)
		synctest.Wait()
		if len(s.Bodies()) != 1 || d.Offsets()[1] != 1 {
			t.Fatalf("delivered %q, place %d", s.Bodies(), d.Offsets()[1])
		}
	})
}

// TestBurst: a backlog goes out in bounded runs.
func TestBurst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		const n = 10 * runCount
		for i := range n {
			s.wait(4, time.Now(), fmt.Sprint(i), properties("T", 0))
		}
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		synctest.Wait()
		got := s.Bodies()
		if len(got) != n {
			t.Fatalf("%d delivered", len(got))
		}
		for i, b := range got {
			if b != fmt.Sprint(i) {
				t.Fatalf("place %d has %s", i, b)
			}
		}
		for _, r := range s.Runs {
			if r > runCount {
				t.Errorf("a run of %d", r)
			}
		}
		if len(s.Runs) > 11 {
			t.Errorf("%d runs for %d messages", len(s.Runs), n)
		}
	})
}

func BenchmarkDeliver(b *testing.B) {
	s := newStore()
	for range runCount {
		s.wait(1, time.Now().Add(-time.Second), "0123456789", properties("T", 0))
	}
	levels, _ := store.ParseDelayLevels(store.DefaultConfig("").MessageDelayLevel)
	d := &Delay{o: Options{Levels: levels, Store: s, Clock: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	l := newLevel(d, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.Delivered, s.Runs = s.Delivered[:0], s.Runs[:0]
		l.offset.Store(0)
		l.turn()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/runCount, "ns/message")
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
