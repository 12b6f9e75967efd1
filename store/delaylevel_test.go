package store

import (
	"fmt"
	"math"
	"testing"

	"rocketd/store/vfs"
)

// officialLevels is the default of messageDelayLevel of 4.9.8.
const officialLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

func TestParseDelayLevels(t *testing.T) {
	l, err := ParseDelayLevels(officialLevels)
	if err != nil || l.Max() != 18 {
		t.Fatalf("%d levels, error %v", l.Max(), err)
	}
	for level, want := range map[int]int64{1: 1_000, 2: 5_000, 3: 10_000, 4: 30_000, 5: 60_000, 14: 600_000, 17: 3_600_000, 18: 7_200_000,
		0: 1_000, 19: 1_000, -1: 1_000} {
		if got := l.Delay(level); got != want {
			t.Errorf("level %d: %d ms, want %d", level, got, want)
		}
		if level == 19 { // not where a message becomes due
			want = 7_200_000
		}
		if got := l.DeliverTime(level, 5); got != want+5 {
			t.Errorf("level %d: due at %d, want %d", level, got, want+5)
		}
	}
	if l, err = ParseDelayLevels("1d 0s"); err != nil || l.Delay(1) != 86_400_000 || l.Delay(2) != 0 {
		t.Errorf("days: %v, error %v", l, err)
	}
	for _, bad := range []string{"", "1s  5s", "1s ", "s", "1", "1x", "1.5s", "-1s", "99999999999999999d", "1S"} {
		if _, err := ParseDelayLevels(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestLongDelays: what is due later than there is a time for is due at the last, not before 1970, and not where an address of
// consumequeue_ext would be.
func TestLongDelays(t *testing.T) {
	const now = 1_800_000_000_000
	for text, want := range map[string]int64{
		"9223372036854775s": math.MaxInt64, "106751991167d": math.MaxInt64, "2562047788015h": math.MaxInt64, // just below 2^63 ms
		"92233720368547d": 0, "9223372036854776s": 0, "9223372036854775807s": 0, // beyond
		"100000000000d": now + 8_640_000_000_000_000_000,
	} {
		l, err := ParseDelayLevels(text)
		switch {
		case want == 0 && err == nil:
			t.Errorf("%s was read", text)
		case want > 0 && err != nil:
			t.Error(err)
		case want > 0:
			for _, level := range []int{1, 2, 1000} {
				if got := l.DeliverTime(level, now); got != want {
					t.Errorf("%s: level %d is due at %d, want %d", text, level, got, want)
				}
			}
		}
	}
}

// TestBrokenDelayLevels: a store does not open with levels that it can't read, as the official broker does not start, but when somebody
// else knows the levels.
func TestBrokenDelayLevels(t *testing.T) {
	cfg := DefaultConfig("/store")
	cfg.MessageDelayLevel = "1s 5x"
	if s, err := Open(cfg, Options{FS: vfs.NewMem(nil)}); err == nil || fmt.Sprint(err) != `store: messageDelayLevel, level 2: "5x" does not end in one of the units s, m, h, d` {
		t.Error(err)
		if s != nil {
			s.Close()
		}
	}
}
