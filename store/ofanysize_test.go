package store

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/store/vfs"
)

// TestConfigOfAnySize: a store whose configuration has the greatest numbers that Check lets pass opens, flushes and closes.
func TestConfigOfAnySize(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.FlushIntervalConsumeQueue, cfg.CleanResourceInterval, cfg.FileReservedTime = math.MaxInt32, math.MaxInt32, math.MaxInt32
	cfg.FlushIntervalCommitLog, cfg.FlushCommitLogThoroughInterval, cfg.FlushCommitLogLeastPages = math.MaxInt, math.MaxInt, math.MaxInt
	cfg.FlushConsumeQueueThoroughInterval, cfg.FlushConsumeQueueLeastPages = math.MaxInt, math.MaxInt
	cfg.DeleteCommitLogFilesInterval, cfg.DeleteConsumeQueueFilesInterval = math.MaxInt, math.MaxInt
	cfg.SyncFlushTimeout, cfg.OsPageCacheBusyTimeOutMills = math.MaxInt, math.MaxInt64
	cfg.AccessMessageInMemoryMaxRatio = math.MaxInt
	mem := vfs.NewMem(time.Now)
	s := openStore(t, mem, cfg, Options{})
	defer s.Close()
	if got := s.inMemoryBytes(&cfg); got != math.MaxInt64 {
		t.Errorf("%d bytes count as in memory", got)
	}
	if err := s.flushDerived(max(1, cfg.FlushConsumeQueueLeastPages)); err != nil {
		t.Error(err)
	}
	if got, want := cfg.ReservedTime(), 2_562_047*time.Hour; got != want {
		t.Errorf("files are kept for %v, want %v", got, want)
	}
	stop := make(chan struct{})
	close(stop)
	if pause(stop, math.MaxInt) {
		t.Error("a pause is over before a stop")
	}
}

// TestLongPause: a pause as long as there is a number for is not over at once, but with a stop.
func TestLongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop, over := make(chan struct{}), make(chan bool, 1)
		go func() { over <- pause(stop, math.MaxInt64/1_000_000+1) }()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if len(over) > 0 {
			t.Error("the pause is over")
		}
		close(stop)
		if <-over {
			t.Error("the stop was not heeded")
		}
	})
}
