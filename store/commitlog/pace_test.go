package commitlog

import (
	"math"
	"testing"
	"time"
)

// TestPaceOfAnySize: times and pages as large as there are numbers for do not go round to none, with which the flusher would never rest.
func TestPaceOfAnySize(t *testing.T) {
	l := new(Log)
	l.SetFlush(500, 4, 10_000)
	if got, want := *l.flush.pace.Load(), (pace{500 * time.Millisecond, 10 * time.Second, 16 << 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	const longest = 9_223_372_036_854 * time.Millisecond
	for _, n := range []int{math.MaxInt, math.MaxInt64/4096 + 1, math.MaxInt64/1_000_000 + 1} {
		l.SetFlush(n, n, n)
		if got := *l.flush.pace.Load(); got.interval != longest && n > math.MaxInt64/1_000_000 || got.thorough != got.interval || got.least < 1<<50 {
			t.Errorf("%d: %+v", n, got)
		}
	}
}
