package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// putLatency counts requests that store messages by how long that took, in the two scales of StoreStatsService of
// 4.9.8: a coarse one that is shown, and a fine one from which percentiles are told.
type putLatency struct {
	coarse [len(coarseBounds) + 1]atomic.Int64
	fine   []atomic.Int64 // by fineBounds, one more for what is longer
}

// coarseBounds are the upper bounds (ms, exclusive but for the first) of the intervals of coarseNames but the last.
var coarseBounds = [...]int64{1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000}

// coarseNames are the names of putMessageDistributeTime's intervals.
var coarseNames = [...]string{
	"[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]",
	"[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
}

// fineBounds are the upper bounds (ms, inclusive) of the fine intervals: to 20 ms each ms, then ever wider ones to 10 s.
var fineBounds = makeFineBounds()

func makeFineBounds() []int64 {
	var bounds []int64
	end := int64(0)
	for _, part := range []struct{ step, times int64 }{{1, 20}, {2, 15}, {5, 10}, {10, 10}, {50, 6}, {100, 5}, {1000, 9}} {
		for range part.times {
			end += part.step
			bounds = append(bounds, end)
		}
	}
	return bounds
}

func newPutLatency() *putLatency { return &putLatency{fine: make([]atomic.Int64, len(fineBounds)+1)} }

func (l *putLatency) add(ms, requests int64) {
	i := 0
	for i < len(coarseBounds) && ms >= coarseBounds[i] {
		i++
	}
	l.coarse[i].Add(requests)
	i = 0
	if ms > 1 {
		i, _ = slices.BinarySearch(fineBounds, ms)
	}
	l.fine[i].Add(requests)
}

// distribution is how many requests took how long. compat: in the first minute the official text is that of Java's
// null.
func (l *putLatency) distribution() string {
	if l == nil {
		return "null"
	}
	var text strings.Builder
	for i, name := range coarseNames {
		fmt.Fprintf(&text, "%s:%d ", name, l.coarse[i].Load())
	}
	return text.String()
}

// percentile is the time (ms) within which the given share of requests was done, between the bounds of its interval as
// if these were spread evenly. What took longer than the last bound counts as that.
func (l *putLatency) percentile(share float64) float64 {
	if l == nil {
		return 0
	}
	var all int64
	for i := range l.fine {
		all += l.fine[i].Load()
	}
	wanted, below, lower := int64(float64(all)*share), int64(0), int64(0)
	for i, upper := range fineBounds {
		n := l.fine[i].Load()
		if wanted <= below+n {
			if n == 0 {
				return float64(lower)
			}
			return float64(lower) + float64((upper-lower)*(wanted-below))/float64(n)
		}
		below, lower = below+n, upper
	}
	return float64(lower)
}
