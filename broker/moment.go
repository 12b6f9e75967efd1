package broker

import (
	"math"
	"time"
)

// Moments are ms since 1970, as on the wire. Clients and configuration files name times of any size: what no int64 or Duration can
// hold ends at the greatest that it can.

// later is the moment so many ms after another.
func later(at, millis int64) int64 {
	if millis > 0 && at > math.MaxInt64-millis {
		return math.MaxInt64
	}
	return at + millis
}

// span is a time of the configuration, a number of units.
func span[N int | int64](n N, unit time.Duration) time.Duration {
	most := math.MaxInt64 / int64(unit)
	return time.Duration(max(-most, min(int64(n), most))) * unit
}

// millis is span of ms.
func millis[N int | int64](n N) time.Duration { return span(n, time.Millisecond) }
