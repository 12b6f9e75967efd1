package stats

import (
	"slices"
	"sync/atomic"
)

// Item counts one thing under one key: how often it happened, how many messages and how many bytes that were (of a
// latency: how many ms, in nums). Add may be called by anybody; the history belongs to the Table's mu.
type Item struct {
	times, nums, size atomic.Int64
	behind            atomic.Int64 // of a group's queue: bytes of the log behind what was got last

	past *history // nil: nothing was counted for a day, or not yet
	old  bool     // past has been given up: it had seen a whole day
}

// Add counts calls, their messages and their bytes.
func (i *Item) Add(times, nums, size int64) {
	if i == nil { // beyond the limit
		return
	}
	if times != 0 { // an addition of nothing costs as much, when others add
		i.times.Add(times)
	}
	i.nums.Add(nums)
	if size != 0 {
		i.size.Add(size)
	}
}

// counts are the values of an Item, or their growth.
type counts struct{ times, nums, size int64 }

func (c counts) less(o counts) counts {
	return counts{c.times - o.times, c.nums - o.nums, c.size - o.size}
}

func (i *Item) load() counts { return counts{i.times.Load(), i.nums.Load(), i.size.Load()} }

// history is what an Item has grown by in each interval of the three windows.
type history [windows]ring

// ring holds the growth in the last intervals of one window. grown is nil while all of it is zero, so that what is
// idle costs little.
type ring struct {
	grown []counts // by tick modulo length
	last  counts   // at the newest tick
	ticks uint8    // that the item has seen, at most one more than the window has intervals
}

// sample takes the growth since the last tick of a window.
func (i *Item) sample(w int, tick int) {
	now := i.load()
	if i.past == nil {
		if now == (counts{}) {
			return
		}
		i.past = new(history)
		if i.old {
			for w := range i.past {
				i.past[w].ticks = uint8(intervals[w] + 1)
			}
		}
	}
	r := &i.past[w]
	r.ticks = min(r.ticks+1, uint8(intervals[w]+1))
	d := now.less(r.last)
	r.last = now
	if r.grown == nil {
		if d == (counts{}) {
			return
		}
		r.grown = make([]counts, intervals[w])
	}
	r.grown[tick%len(r.grown)] = d
	if d == (counts{}) && !slices.ContainsFunc(r.grown, func(c counts) bool { return c != counts{} }) {
		r.grown = nil
	}
}

// rest gives up the history of an item for which nothing was counted for a day.
func (i *Item) rest() {
	if i.past == nil {
		return
	}
	last := i.past[0].last
	for _, r := range i.past {
		if r.grown != nil || r.last != last {
			return
		}
	}
	if i.load() != last || int(i.past[dayWindow].ticks) <= intervals[dayWindow] {
		return
	}
	i.times.Add(-last.times) // what is added meanwhile stays
	i.nums.Add(-last.nums)
	i.size.Add(-last.size)
	i.past, i.old = nil, true
}

// grown is the growth in a window and the time (ms) that it covers; 0 before the first tick.
func (i *Item) grown(w int, at *clock) (counts, int64) {
	if i.past == nil || i.past[w].ticks == 0 {
		return counts{}, 0
	}
	r := &i.past[w]
	var sum counts
	for _, c := range r.grown {
		sum = counts{sum.times + c.times, sum.nums + c.nums, sum.size + c.size}
	}
	return sum, at.covers(int(r.ticks))
}
