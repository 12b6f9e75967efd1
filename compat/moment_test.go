package compat

import (
	"math"
	"testing"
	"time"
)

const (
	last  = int64(math.MaxInt64)
	first = int64(math.MinInt64)
)

func TestLater(t *testing.T) {
	for _, c := range []struct{ at, millis, want int64 }{
		{1000, 500, 1500}, {1000, 0, 1000}, {1000, -500, 500}, {1000, last, last}, {last, 1, last}, {first, last, -1},
		{0, last, last}, {1, last - 1, last}, {last, last, last}, {first, -1, first}, {-2, first, first}, {first, first, first}, {last, first, -1}, {last - 1, 5, last}, {3, first, first + 3}, {0, first, first},
	} {
		if got := Later(c.at, c.millis); got != c.want {
			t.Errorf("%d ms after %d: %d, want %d", c.millis, c.at, got, c.want)
		}
	}
}

func TestUntil(t *testing.T) {
	const longest = 9_223_372_036_854 * time.Millisecond // some 292 years
	for _, c := range []struct {
		at, now int64
		want    time.Duration
	}{
		{1500, 1000, 500 * time.Millisecond}, {1000, 1500, -500 * time.Millisecond}, {last, 1_800_000_000_000, longest},
		{last, first, longest}, {first, last, -longest}, {last, last, 0}, {first, first, -time.Millisecond}, {last, -1, longest}, {first, 1, -longest},
	} {
		if got := Until(c.at, c.now); got != c.want {
			t.Errorf("from %d until %d: %v, want %v", c.now, c.at, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	const most = last / int64(time.Millisecond)
	for n, want := range map[int64]time.Duration{
		0: 0, 500: 500 * time.Millisecond, -5: -5 * time.Millisecond, last: time.Duration(most) * time.Millisecond,
		first: -time.Duration(most) * time.Millisecond, most: time.Duration(most) * time.Millisecond, most + 1: time.Duration(most) * time.Millisecond,
	} {
		if got := Millis(n); got != want {
			t.Errorf("%d ms: %v, want %v", n, got, want)
		}
	}
	if got, want := Span(int32(math.MaxInt32), time.Hour), time.Duration(2_562_047)*time.Hour; got != want { // 2^63-1 ns are 2562047.79 h
		t.Errorf("%v, want %v", got, want)
	}
	if got := Span(72, time.Hour); got != 72*time.Hour {
		t.Errorf("%v", got)
	}
}
