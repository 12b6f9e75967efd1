package compat

import (
	"math"
	"time"
)

// Java counts time in ms, in a long. Clients and configuration files name times of any size: what no int64 or Duration can hold
// ends at the greatest, or least, that it can, where Java's sums go round to the other end.

// Later is the moment (ms since 1970) so many ms after another.
func Later(at, millis int64) int64 {
	if millis > 0 && at > math.MaxInt64-millis {
		return math.MaxInt64
	}
	if millis < 0 && at < math.MinInt64-millis {
		return math.MinInt64
	}
	return at + millis
}

// Until is how long it is from now to a moment, both in ms since 1970.
func Until(at, now int64) time.Duration {
	if now == math.MinInt64 {
		now++ // which has no negative
	}
	return Millis(Later(at, -now))
}

// Span is a time of the configuration, a number of units.
func Span[N int | int32 | int64](n N, unit time.Duration) time.Duration {
	most := math.MaxInt64 / int64(unit)
	return time.Duration(max(-most, min(int64(n), most))) * unit
}

// Millis is Span of ms.
func Millis[N int | int32 | int64](n N) time.Duration { return Span(n, time.Millisecond) }

// Forever is a wait that only something else ends.
const Forever = time.Duration(math.MaxInt64)
