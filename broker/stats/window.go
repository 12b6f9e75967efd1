package stats

import "time"

// The windows of an item (StatsItem of 4.9.8): a minute in steps of 10 s, an hour in steps of 10 min, a day in steps
// of an hour.
const (
	minuteWindow = iota
	hourWindow
	dayWindow
	windows
)

var (
	intervals = [windows]int{6, 6, 24}
	steps     = [windows]time.Duration{10 * time.Second, 10 * time.Minute, time.Hour}
)

// clock knows when the last ticks of a window were.
type clock struct {
	step time.Duration
	next time.Time // when the next tick is due
	tick int       // number of the newest tick; the first is 0
	at   []int64   // times (ms) of the last ticks, one more than there are intervals, by tick modulo length
}

func newClock(w int, start time.Time) clock {
	return clock{step: steps[w], next: start, tick: -1, at: make([]int64, intervals[w]+1)}
}

// due tells whether a tick is due and counts it. Ticks that were missed are left out.
func (c *clock) due(now time.Time) bool {
	if now.Before(c.next) {
		if c.next.Sub(now) <= c.step {
			return false
		}
		c.next = now // the clock was set back
	}
	c.tick++
	c.at[c.tick%len(c.at)] = now.UnixMilli()
	c.next = c.next.Add(c.step)
	if c.next.Before(now) {
		c.next = now.Add(c.step)
	}
	return true
}

// covers is the time (ms) from the first to the last of so many ticks. An item that has not seen enough of them for a
// whole window counts from one step before its first.
func (c *clock) covers(ticks int) int64 {
	last := c.at[c.tick%len(c.at)]
	first := c.at[(c.tick-ticks+1)%len(c.at)]
	if ticks < len(c.at) {
		first -= c.step.Milliseconds()
	}
	return last - first
}
