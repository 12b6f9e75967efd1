package store

import (
	"fmt"
	"math"
	"strings"
	"time"

	"rocketd/compat"
)

// Check refuses what can't work, and what would be served wrongly: better no start than missed messages. Open begins
// with it.
func (c *Config) Check() error {
	for _, size := range []struct {
		key        string
		value, min int
	}{
		{"mappedFileSizeCommitLog", c.MappedFileSizeCommitLog, 4 << 10},
		{"mappedFileSizeConsumeQueue", c.MappedFileSizeConsumeQueue, 20},
		{"mappedFileSizeConsumeQueueExt", c.MappedFileSizeConsumeQueueExt, 128},
		{"maxHashSlotNum", c.MaxHashSlotNum, 1},
		{"maxIndexNum", c.MaxIndexNum, 2},
		{"maxMessageSize", c.MaxMessageSize, 1},
		{"fileReservedTime", c.FileReservedTime, 0},
		{"flushIntervalConsumeQueue", c.FlushIntervalConsumeQueue, 0},
		{"cleanResourceInterval", c.CleanResourceInterval, 0},
	} {
		if size.value < size.min || size.value > math.MaxInt32 {
			return fmt.Errorf("store: %s=%d is not possible: it must be from %d to %d", size.key, size.value, size.min, math.MaxInt32)
		}
	}
	if size := 40 + 4*int64(c.MaxHashSlotNum) + 20*int64(c.MaxIndexNum); size > math.MaxInt32 {
		return fmt.Errorf("store: maxHashSlotNum=%d and maxIndexNum=%d make index files of %d bytes, more than 2 GiB",
			c.MaxHashSlotNum, c.MaxIndexNum, size)
	}
	switch c.FlushDiskType {
	case AsyncFlush, SyncFlush:
	default:
		return fmt.Errorf("store: flushDiskType=%s is neither %s nor %s", c.FlushDiskType, AsyncFlush, SyncFlush)
	}
	switch c.BrokerRole {
	case AsyncMaster:
	case SyncMaster, Slave:
		return fmt.Errorf("store: brokerRole=%s needs replication, which is not served yet", c.BrokerRole)
	default:
		return fmt.Errorf("store: brokerRole=%s is none of %s, %s, %s", c.BrokerRole, AsyncMaster, SyncMaster, Slave)
	}
	switch {
	case c.StorePathRootDir == "":
		return fmt.Errorf("store: storePathRootDir is empty")
	case strings.Contains(c.StorePathCommitLog, ","):
		return fmt.Errorf("store: storePathCommitLog=%s lists several folders, which is not served: the messages in the others would be missed", c.StorePathCommitLog)
	case c.ReadOnlyCommitLogStorePaths != "":
		return fmt.Errorf("store: readOnlyCommitLogStorePaths=%s is not served: the messages there would be missed", c.ReadOnlyCommitLogStorePaths)
	case c.EnableDLegerCommitLog:
		return fmt.Errorf("store: enableDLegerCommitLog=true is not served yet")
	}
	return nil
}

// ReservedTime is how long a file is kept: what no Duration can hold is for good, not less than nothing.
func (c *Config) ReservedTime() time.Duration {
	return compat.Span(c.FileReservedTime, time.Hour)
}

// CommitLogDir is the folder of the commit log.
func (c *Config) CommitLogDir() string {
	if c.StorePathCommitLog != "" {
		return c.StorePathCommitLog
	}
	return c.StorePathRootDir + "/commitlog"
}
