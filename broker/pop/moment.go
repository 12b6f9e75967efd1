package pop

import (
	"math"
	"time"
)

// Times of clients are ms of any size: an invisible time or a time to wait may be as long as they like. A moment that no int64 can
// hold is the last one, and a wait that no Duration can hold the longest.

// later is the moment (ms) so many ms after another.
func later(at, millis int64) int64 {
	if millis > 0 && at > math.MaxInt64-millis {
		return math.MaxInt64
	}
	return at + millis
}

// until is how long it is from now to a moment, both in ms.
func until(at, now int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(at-now, longest)) * time.Millisecond
}

// forever is a wait that only something else ends.
const forever = time.Duration(math.MaxInt64)
