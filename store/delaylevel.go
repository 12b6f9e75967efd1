package store

import (
	"strconv"
	"strings"
	"time"
)

// deliverTimes returns the default of Options.DeliverTime for a messageDelayLevel such as `1s 5s 10m 2h`: levels
// beyond the last count as the last, texts that don't parse as no delay.
func deliverTimes(levels string) func(level int, storeTimestamp int64) int64 {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var delays []int64
	for text := range strings.FieldsSeq(levels) {
		n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
		if err != nil {
			n = 0
		}
		delays = append(delays, n*units[text[len(text)-1]].Milliseconds())
	}
	return func(level int, storeTimestamp int64) int64 {
		if level < 1 || len(delays) == 0 {
			return storeTimestamp
		}
		return storeTimestamp + delays[min(level, len(delays))-1]
	}
}
