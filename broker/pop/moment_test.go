package pop

import (
	"math"
	"testing"
	"time"
)

func TestMoments(t *testing.T) {
	const last = math.MaxInt64
	for _, c := range []struct{ at, millis, want int64 }{
		{1000, 500, 1500}, {1000, 0, 1000}, {1000, -500, 500}, {1000, last, last}, {last, 1, last}, {math.MinInt64, last, -1},
	} {
		if got := later(c.at, c.millis); got != c.want {
			t.Errorf("%d ms after %d: %d, want %d", c.millis, c.at, got, c.want)
		}
	}
	for _, c := range []struct {
		at, now int64
		want    time.Duration
	}{
		{1500, 1000, 500 * time.Millisecond}, {1000, 1500, -500 * time.Millisecond},
		{last, 1_800_000_000_000, 9_223_372_036_854 * time.Millisecond}, // some 292 years
	} {
		if got := until(c.at, c.now); got != c.want {
			t.Errorf("from %d until %d: %v, want %v", c.now, c.at, got, c.want)
		}
	}
}

// A request that waits as long as there is a time for keeps nobody busy, and goes on at an arrival.
func TestHeldForEver(t *testing.T) {
	holding(t, 10, 10, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		hold("for ever", Held{Key: Key{Group: "G", QueueId: -1}, Deadline: math.MaxInt64})
		w.want(t) // the watch sleeps
		pass(time.Hour)
		w.want(t)
		h.Arrive("T", 0, 0, "")
		w.want(t, "for ever arrived")
	})
}

// A message that is popped for as long as there is a time for does not come again, however the numbers add up, and bars the
// next batch when it was popped in order.
func TestInvisibleForEver(t *testing.T) {
	for _, invisible := range []int64{math.MaxInt64, math.MaxInt64 - 1000, 1 << 60, 10_000_000_000_000_000} {
		started(t, 0, func(t *testing.T, b *bed) {
			b.fill("T", 2)
			q, now := b.queue(queueT), time.Now().UnixMilli()
			q.Lock()
			err := b.Popped(q, 0, now, invisible, []int64{0}, 1)
			q.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			pass(24 * time.Hour)
			b.wantAgain()
			b.PoppedOrderly(q, "", now, invisible, []int64{1}, nil)
			if b.Busy(q, 1, "", 0) <= now {
				t.Errorf("invisible for %d ms: the batch bars nobody", invisible)
			}
		})
	}
}
