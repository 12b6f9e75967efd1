package delay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Levels are the delay levels 1 to Max, each with its delay in ms.
type Levels struct{ millis []int64 }

// ParseLevels reads messageDelayLevel: numbers with a unit (s, m, h, d), parted by one space each; the first is
// level 1. As ScheduleMessageService#parseDelayLevel of 4.9.8, which does not start with a text it can't read.
func ParseLevels(text string) (Levels, error) {
	var l Levels
	for part := range strings.SplitSeq(text, " ") {
		millis, err := parseDelay(part)
		if err != nil {
			return Levels{}, fmt.Errorf("messageDelayLevel, level %d: %w", len(l.millis)+1, err)
		}
		l.millis = append(l.millis, millis)
	}
	return l, nil
}

var units = map[byte]int64{'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

func parseDelay(s string) (int64, error) {
	if s == "" {
		return 0, fmt.Errorf("%q is not a number with a unit", s)
	}
	unit, ok := units[s[len(s)-1]]
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
func (l Levels) Max() int { return len(l.millis) }

// Delay is the delay of a level in ms; of a level that does not exist the official 1 s.
func (l Levels) Delay(level int) int64 {
	if level < 1 || level > len(l.millis) {
		return 1000
	}
	return l.millis[level-1]
}

// DeliverTime is when a message of a level that was stored at storeTimestamp is due (ms).
func (l Levels) DeliverTime(level int, storeTimestamp int64) int64 {
	return storeTimestamp + l.Delay(level)
}
