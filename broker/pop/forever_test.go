package pop

import (
	"math"
	"testing"
	"time"
)

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
