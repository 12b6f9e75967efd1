package broker

import (
	"math"
	"testing"
	"time"

	"rocketd/remoting/remotingtest"
)

func TestSpans(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for n, want := range map[int64]time.Duration{
		0: 0, 500: 500 * time.Millisecond, -5: -5 * time.Millisecond, math.MaxInt64: time.Duration(most) * time.Millisecond,
		math.MinInt64: -time.Duration(most) * time.Millisecond, most + 1: time.Duration(most) * time.Millisecond,
	} {
		if got := millis(n); got != want {
			t.Errorf("%d ms: %v, want %v", n, got, want)
		}
	}
}

// TestLongTimes: a broker whose file names times as long as there are numbers for starts, and serves.
func TestLongTimes(t *testing.T) {
	b := startPathBroker(t, func(c *Config) {
		c.FlushConsumerOffsetInterval, c.FlushDelayOffsetInterval, c.TimerFlushIntervalMs = math.MaxInt, math.MaxInt, math.MaxInt
		c.FilterDataCleanTimeSpan, c.TransactionCheckInterval, c.TransactionTimeOut = math.MaxInt64, math.MaxInt64, math.MaxInt64
		c.ShortPollingTimeMills, c.LongPollingEnable = math.MaxInt64, false
		c.FlushDiskType, c.SyncFlushTimeout, c.TimerMaxDelaySec = "SYNC_FLUSH", math.MaxInt, math.MaxInt
	})
	b.send("T", 0, "", "x")
	b.send("T", 0, "TIMER_DELAY_SEC=5000000", "later")
	b.stored("T", 0, 0, 1)
	remotingtest.Eventually(t, "a timer message waits", func() bool { return b.store.MaxOffset("rmq_sys_wheel_timer", 0) == 1 })
}
