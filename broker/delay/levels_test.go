package delay

import "testing"

// official is the default of messageDelayLevel (spec/broker-config.tsv).
const official = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

func TestParseLevels(t *testing.T) {
	l, err := ParseLevels(official)
	if err != nil || l.Max() != 18 {
		t.Fatalf("%d levels, error %v", l.Max(), err)
	}
	for level, want := range map[int]int64{1: 1_000, 2: 5_000, 3: 10_000, 4: 30_000, 5: 60_000, 14: 600_000, 17: 3_600_000, 18: 7_200_000,
		0: 1_000, 19: 1_000, -1: 1_000} {
		if got := l.Delay(level); got != want {
			t.Errorf("level %d: %d ms, want %d", level, got, want)
		}
		if got := l.DeliverTime(level, 5); got != want+5 {
			t.Errorf("level %d: due at %d, want %d", level, got, want+5)
		}
	}
	if l, err = ParseLevels("1d 0s"); err != nil || l.Delay(1) != 86_400_000 || l.Delay(2) != 0 {
		t.Errorf("days: %v, error %v", l, err)
	}
	for _, bad := range []string{"", "1s  5s", "1s ", "s", "1", "1x", "1.5s", "-1s", "99999999999999999d", "1S"} {
		if _, err := ParseLevels(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
