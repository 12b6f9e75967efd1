package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rocketd/compat"
)

// Official limits of cleaning (DefaultMessageStore and MappedFileQueue of 4.9.8).
const (
	cleanDelay           = 60 * time.Second
	diskCheckDelay       = time.Second
	diskCheckInterval    = 10 * time.Second
	deleteFilesBatch     = 10 // files of the log in one run
	manualCleaningRounds = 20
)

// cleanState is the cleaner's.
type cleanState struct {
	minPhyOffset int64 // of the log when queues and index were cleaned last; the cleaner's alone

	manual         atomic.Int32 // runs still to do by request
	unmarked       atomic.Bool  // there was no room for the abort file: nothing may be written until there is
	diskFull       atomic.Bool
	diskFullReason atomic.Pointer[string]
}

// cleanLoop is the cleaner: it deletes what has expired and watches the disk.
func (s *Store) cleanLoop(stop <-chan struct{}) {
	clean, disk := time.NewTimer(cleanDelay), time.NewTimer(diskCheckDelay)
	defer clean.Stop()
	defer disk.Stop()
	for {
		select {
		case <-stop:
			return
		case <-disk.C:
			s.checkDisk()
			disk.Reset(diskCheckInterval)
		case <-clean.C:
			s.cleanFiles(stop)
			clean.Reset(compat.Millis(max(1, s.Config().CleanResourceInterval)))
		}
	}
}

// DeleteExpiredLog makes the next 20 runs of cleaning delete expired log files at any hour (code 329).
func (s *Store) DeleteExpiredLog() { s.clean.manual.Store(manualCleaningRounds) }

// diskUse is how full the disks of log and queues are.
type diskUse struct {
	log, queues float64
	free        uint64 // bytes, of the one that has less
}

// most is the share used of the fuller one.
func (u diskUse) most() float64 { return max(u.log, u.queues) }

// short tells whether less is free than diskMinFreeBytes.
func (u diskUse) short(cfg *Config) bool {
	return cfg.DiskMinFreeBytes > 0 && u.free < uint64(cfg.DiskMinFreeBytes)
}

// checkDisk looks at the disks and refuses writes, or lets them again.
func (s *Store) checkDisk() (diskUse, error) {
	var u diskUse
	var err error
	var free uint64
	s.markLate()
	cfg := s.Config()
	if u.log, u.free, err = s.o.FS.Usage(cfg.CommitLogDir()); err != nil {
		return u, err
	}
	if u.queues, free, err = s.o.FS.Usage(s.path("consumequeue")); err != nil {
		return u, err
	}
	u.free = min(u.free, free)
	full := false
	switch {
	case 100*u.most() > float64(cfg.DiskSpaceWarningLevelRatio):
		full = true
		reason := fmt.Sprintf("%.1f percent of the disk are used, diskSpaceWarningLevelRatio is %d", 100*u.most(), cfg.DiskSpaceWarningLevelRatio)
		s.clean.diskFullReason.Store(&reason)
	case u.short(cfg):
		full = true
		reason := fmt.Sprintf("%d bytes of the disk are free, diskMinFreeBytes is %d", u.free, cfg.DiskMinFreeBytes)
		s.clean.diskFullReason.Store(&reason)
	}
	if s.clean.diskFull.Swap(full) != full {
		if full {
			s.o.Log.Error("the disk is nearly full, writes are refused", "log", u.log, "queues", u.queues, "free", u.free, "reason", *s.clean.diskFullReason.Load())
		} else {
			s.o.Log.Info("the disk has room again, writes are taken", "log", u.log, "queues", u.queues, "free", u.free)
		}
	}
	return u, nil
}

// cleanFiles is one run of cleaning.
func (s *Store) cleanFiles(stop <-chan struct{}) {
	if err := s.deleteExpiredLog(stop); err != nil {
		s.o.Log.Error("deleting expired log files failed", "error", err)
	}
	if err := s.deleteExpiredDerived(stop); err != nil {
		s.o.Log.Error("deleting expired queue and index files failed", "error", err)
	}
}

// deleteExpiredLog deletes files of the log when it is time, the disk is full, or someone asked.
func (s *Store) deleteExpiredLog(stop <-chan struct{}) error {
	cfg := s.Config()
	use, err := s.checkDisk()
	if err != nil {
		return err
	}
	ratio := float64(min(max(cfg.DiskMaxUsedSpaceRatio, 10), 95)) / 100
	now := s.o.Clock()
	hour := isHour(cfg.DeleteWhen, now)
	space := use.most() > ratio || use.short(cfg)
	manual := s.clean.manual.Load() > 0
	if manual {
		s.clean.manual.Add(-1)
	}
	if !hour && !space && !manual {
		return nil
	}
	forced := cfg.CleanFileForciblyEnable && (100*use.most() > float64(cfg.DiskSpaceCleanForciblyRatio) || use.short(cfg))
	starts := s.log.FileStarts()
	reserved := cfg.ReservedTime()
	deleted := 0
	expired := 0 // how many files
	for ; expired+1 < len(starts) && expired < deleteFilesBatch; expired++ {
		if !forced && now.Before(starts[expired].Modified.Add(reserved)) || starts[expired+1].Offset > s.dispatched.Load() {
			break
		}
	}
	held := expired > 0 && s.o.Release != nil
	release := int64(math.MaxInt64)
	if held {
		release = s.o.Release(starts[expired].Offset)
	}
	for i := range expired {
		next := starts[i+1].Offset
		if next > release {
			break
		}
		if deleted > 0 && !pause(stop, cfg.DeleteCommitLogFilesInterval) {
			break
		}
		n, err := s.log.DeleteBefore(next, 1)
		if deleted += n; err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	if deleted > 0 {
		s.o.Log.Info("log files were deleted", "files", deleted, "hour", hour, "space", space, "manual", manual, "forced", forced, "minPhyOffset", s.log.MinOffset())
	} else if held {
		s.o.Log.Info("log files are kept until the messages that wait in them have been stored again", "from", starts[0].Offset, "to", starts[expired].Offset)
	} else if space {
		s.o.Log.Warn("the disk is filling up, but there is no log file to delete", "log", use.log, "queues", use.queues)
	}
	return nil
}

// isHour tells whether it is one of the hours of deleteWhen, such as `04;16`, local time (UtilAll#isItTimeToDo).
func isHour(when string, now time.Time) bool {
	for hour := range strings.SplitSeq(when, ";") {
		if n, err := strconv.Atoi(strings.TrimSpace(hour)); err == nil && n == now.Hour() {
			return true
		}
	}
	return false
}

// deleteExpiredDerived lets queues and index follow the log's minimum.
func (s *Store) deleteExpiredDerived(stop <-chan struct{}) error {
	minimum := s.log.MinOffset()
	if minimum <= s.clean.minPhyOffset {
		return nil
	}
	if err := s.dropHint(); err != nil {
		return err
	}
	s.clean.minPhyOffset = minimum
	n, err := s.queues.DeleteExpired(minimum, func() { pause(stop, s.Config().DeleteConsumeQueueFilesInterval) })
	if n > 0 {
		s.o.Log.Info("queue files were deleted", "files", n, "minPhyOffset", minimum)
	}
	if err != nil {
		return err
	}
	return s.index.DeleteExpired(minimum)
}

// pause waits some milliseconds; false when the store is being closed.
func pause(stop <-chan struct{}, ms int) bool {
	select {
	case <-stop:
		return false
	default:
	}
	if ms <= 0 {
		return true
	}
	timer := time.NewTimer(compat.Millis(ms))
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}
