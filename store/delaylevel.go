package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"rocketd/compat"
)

// DelayLevels are the delay levels 1 to Max, each with its delay in ms.
type DelayLevels struct{ millis []int64 }

// ParseDelayLevels reads messageDelayLevel: numbers with a unit (s, m, h, d), parted by one space each; the first is
// level 1. As ScheduleMessageService#parseDelayLevel of 4.9.8, which does not start with a text it can't read.
func ParseDelayLevels(text string) (DelayLevels, error) {
	var l DelayLevels
	for part := range strings.SplitSeq(text, " ") {
		millis, err := parseDelay(part)
		if err != nil {
			return DelayLevels{}, fmt.Errorf("messageDelayLevel, level %d: %w", len(l.millis)+1, err)
		}
		l.millis = append(l.millis, millis)
	}
	return l, nil
}

var delayUnits = map[byte]int64{'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

func parseDelay(s string) (int64, error) {
	if s == "" {
		return 0, fmt.Errorf("%q is not a number with a unit", s)
	}
	unit, ok := delayUnits[s[len(s)-1]]
	if !ok {
		return 0, fmt.Errorf("%q does not end in one of the units s, m, h, d", s)
	}
	n, err := strconv.ParseInt(s[:len(s)-1], 10, 64)
	if err != nil || n > math.MaxInt64/unit || n < 0 {
		return 0, fmt.Errorf("%q is not a number with a unit", s)
	}
	return n * unit, nil
}

// Max is the highest level.
func (l DelayLevels) Max() int { return len(l.millis) }

// Delay is the delay of a level in ms; of a level that does not exist the official 1 s.
func (l DelayLevels) Delay(level int) int64 {
	if level < 1 || level > len(l.millis) {
		return 1000
	}
	return l.millis[level-1]
}

// DeliverTime is when a message of a level that was stored at storeTimestamp is due (ms): the last moment that there is, when that
// is later. A level beyond the last counts as the last, as where CommitLog of 4.9.8 asks: there are fewer now than when the
// message was stored.
func (l DelayLevels) DeliverTime(level int, storeTimestamp int64) int64 {
	return compat.Later(storeTimestamp, l.Delay(min(level, l.Max())))
}
