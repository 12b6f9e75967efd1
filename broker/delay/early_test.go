package delay

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/store"
)

// slowStore takes its time before it answers for an entry; meanwhile messages come.
type slowStore struct {
	*queues
	meanwhile func(q int32, offset int64)
}

func (s *slowStore) Entry(topic string, q int32, offset int64) (store.Entry, bool) {
	s.meanwhile(q, offset)
	return s.queues.Entry(topic, q, offset)
}

// TestStoredDuringATurn: a message that is stored while its level looks at the queue, on a machine that is busy, is due a whole
// delay after that and not at once, as if the clock had been moved back.
func TestStoredDuringATurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{queues: newStore()}
		var stalled atomic.Int64 // how far the clock is ahead of the fake one
		clock := func() time.Time { return time.Now().Add(time.Duration(stalled.Load())) }
		s.wait(2, clock().Add(-time.Second), "due", properties("T", 0))
		looked := false
		s.meanwhile = func(q int32, offset int64) {
			if q == 1 && offset == 1 && !looked { // behind the one that is due
				looked = true
				stalled.Add(int64(3 * time.Second))
				s.wait(2, clock().Add(5*time.Second), "stored meanwhile", properties("T", 0))
			}
		}
		d := openOn(t, s, path, clock)
		d.Start()
		defer d.Close()
		synctest.Wait()
		if got := s.Bodies(); len(got) != 1 || got[0] != "due" {
			t.Fatalf("delivered at once: %q", got)
		}
		pass(5 * time.Second)
		synctest.Wait()
		if got := s.Bodies(); len(got) != 2 {
			t.Fatalf("delivered when due: %q", got)
		}
	})
}

// TestStoreTimeAhead: store times do not follow a clock that steps back by less than a second, so that they rise with the
// offsets; a message that is stored then is due by its store time, not at once.
func TestStoreTimeAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		now := time.Now()
		s.wait(18, now.Add(2*time.Hour+time.Second), "stored with a time one second ahead", properties("T", 0))
		d := open(t, s, path, time.Now)
		d.Start()
		defer d.Close()
		pass(2 * time.Hour)
		synctest.Wait()
		if got := s.Bodies(); len(got) != 0 {
			t.Fatalf("delivered too early: %q", got)
		}
		pass(time.Second)
		synctest.Wait()
		if got := s.Bodies(); len(got) != 1 {
			t.Fatalf("delivered when due: %q", got)
		}
	})
}

// TestLongestDelay: a message whose level is as long as there is a time for is not due now, and its due time is not too far ahead.
func TestLongestDelay(t *testing.T) {
	levels, err := store.ParseDelayLevels("9223372036854775s 106751991167d 1s")
	if err != nil {
		t.Fatal(err)
	}
	l := newLevel(&Delay{o: Options{Levels: levels, Log: slog.New(slog.DiscardHandler)}}, 1)
	now := time.UnixMilli(1_800_000_000_000)
	for n := 1; n <= 2; n++ {
		l.n = n
		if got := l.countdown(now, levels.DeliverTime(n, now.UnixMilli())); got != longestWait {
			t.Errorf("level %d: it is due in %v", n, got)
		}
	}
}
