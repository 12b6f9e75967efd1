package broker

import (
	"math"
	"testing"

	"rocketd/remoting/remotingtest"
)

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
