package store

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// disk is a file system of which the test says how full it is.
type disk struct {
	vfs.FS
	used atomic.Int64 // per mille
	free atomic.Int64 // bytes; 0: plenty
}

func (d *disk) Usage(string) (float64, uint64, error) {
	if free := d.free.Load(); free > 0 {
		return float64(d.used.Load()) / 1000, uint64(free), nil
	}
	return float64(d.used.Load()) / 1000, 1 << 40, nil
}

// openAged opens a store with several files of each kind, written an hour apart each.
func openAged(t *testing.T, c *clock) (*Store, *disk) {
	t.Helper()
	d := &disk{FS: vfs.NewMem(c.Now)}
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	cfg.MappedFileSizeConsumeQueue = 400
	cfg.MaxIndexNum = 100
	cfg.DeleteWhen = "25"
	cfg.DeleteCommitLogFilesInterval, cfg.DeleteConsumeQueueFilesInterval = 0, 0
	s := openStore(t, d, cfg, Options{Clock: c.Now})
	for files := 1; files < 15; {
		put(t, s, newMessage("T", 0, files), newMessage("T", 1, files), newMessage("T", 0, files), newMessage("T", 1, files))
		if n := len(s.log.FileStarts()); n != files {
			files = n
			c.Advance(time.Hour)
		}
	}
	put(t, s, newMessage("T", 0, 0), newMessage("T", 1, 0))
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	return s, d
}

// firstFiles is the first file of log, queue and index.
func firstFiles(t *testing.T, s *Store) (log, queue, index string) {
	t.Helper()
	first := func(dir string) string {
		entries, err := s.o.FS.List(dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(err)
		}
		return entries[0].Name()
	}
	return first("/store/commitlog"), first("/store/consumequeue/T/0"), first("/store/index")
}

func TestCleaning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(s *Store, d *disk, c *clock)
		want    int // files of the log that go in one run
	}{
		"too young": {func(s *Store, d *disk, c *clock) { s.DeleteExpiredLog() }, 0},
		"no reason": {func(s *Store, d *disk, c *clock) { c.Advance(100 * time.Hour) }, 0},
		"kept longer than any Duration": {func(s *Store, d *disk, c *clock) {
			c.Advance(100 * time.Hour)
			set(s, func(f *Config) { f.FileReservedTime = 3_000_000 })
			s.DeleteExpiredLog()
		}, 0},
		"by request":  {func(s *Store, d *disk, c *clock) { c.Advance(65 * time.Hour); s.DeleteExpiredLog() }, 8},
		"ten at most": {func(s *Store, d *disk, c *clock) { c.Advance(100 * time.Hour); s.DeleteExpiredLog() }, 10},
		"hour": {func(s *Store, d *disk, c *clock) {
			c.Advance(65 * time.Hour)
			set(s, func(f *Config) { f.DeleteWhen = "03;" + c.Now().Format("15") })
		}, 8},
		"space":         {func(s *Store, d *disk, c *clock) { c.Advance(65 * time.Hour); d.used.Store(760) }, 8},
		"space, young":  {func(s *Store, d *disk, c *clock) { d.used.Store(840) }, 0},
		"space, forced": {func(s *Store, d *disk, c *clock) { d.used.Store(860) }, 10},
		"space, forced by a lower ratio": {func(s *Store, d *disk, c *clock) {
			d.used.Store(840)
			set(s, func(f *Config) { f.DiskSpaceCleanForciblyRatio = 80 })
		}, 10},
		"space, not forced by a higher ratio": {func(s *Store, d *disk, c *clock) {
			d.used.Store(860)
			set(s, func(f *Config) { f.DiskSpaceCleanForciblyRatio = 95 })
		}, 0},
		"bytes, forced": {func(s *Store, d *disk, c *clock) {
			d.free.Store(999)
			set(s, func(f *Config) { f.DiskMinFreeBytes = 1000 })
		}, 10},
		"bytes, enough": {func(s *Store, d *disk, c *clock) {
			d.free.Store(1000)
			set(s, func(f *Config) { f.DiskMinFreeBytes = 1000 })
		}, 0},
		"force forbidden": {func(s *Store, d *disk, c *clock) {
			d.used.Store(990)
			set(s, func(f *Config) { f.CleanFileForciblyEnable = false })
		}, 0},
		"ratio clamped": {func(s *Store, d *disk, c *clock) {
			c.Advance(65 * time.Hour)
			d.used.Store(960)
			set(s, func(f *Config) { f.DiskMaxUsedSpaceRatio = 99; f.CleanFileForciblyEnable = false })
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			s, d := openAged(t, clk)
			defer func() { closeStore(t, s) }()
			c.prepare(s, d, clk)
			before := len(s.log.FileStarts())
			s.cleanFiles(nil)
			if got := before - len(s.log.FileStarts()); got != c.want {
				t.Fatalf("%d files went, want %d", got, c.want)
			}
			expectClean(t, s)
		})
	}
}

func set(s *Store, change func(*Config)) {
	cfg := *s.Config()
	change(&cfg)
	s.SetConfig(&cfg)
}

// expectClean checks that queues and index follow the log's minimum.
func expectClean(t *testing.T, s *Store) {
	t.Helper()
	minimum := s.MinPhyOffset()
	for _, queueId := range []int32{0, 1} {
		lo := s.MinOffset("T", queueId)
		if e, ok := s.Entry("T", queueId, lo); !ok || e.PhyOffset < minimum {
			t.Errorf("queue %d begins with %+v, the log with %d", queueId, e, minimum)
		}
		if lo > 0 {
			if got := s.Get("T", queueId, 0, 32, nil); got.Status != OffsetTooSmall || got.NextBeginOffset != lo {
				t.Errorf("Get(0) = %+v", got)
			}
		}
		readAll(t, s, "T", queueId)
	}
	_, queue, _ := firstFiles(t, s)
	if first := s.MinOffset("T", 0) / 20 * 400; !strings.HasSuffix(queue, strconv.FormatInt(first, 10)) {
		t.Errorf("first queue file %s, the first entry is in that of %d", queue, first)
	}
	if oldest := s.Query("T", "shared", 64, 0, math.MaxInt64).Records; len(oldest) == 0 || oldest[0].PhyOffset() < minimum {
		t.Error("index")
	}
}

func TestCleaningNeverTakesTheLast(t *testing.T) {
	c := newClock()
	s, d := openAged(t, c)
	d.used.Store(990)
	for range 5 {
		s.cleanFiles(nil)
	}
	if got := len(s.log.FileStarts()); got != 1 {
		t.Errorf("%d files are left", got)
	}
	expectClean(t, s)
	next := s.MaxOffset("T", 0)
	d.used.Store(100)
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	if p := put(t, s, newMessage("T", 0, 1000))[0]; p.QueueOffset != next {
		t.Error(p.QueueOffset)
	}
	closeStore(t, s)
	s = openStore(t, d, *s.Config(), Options{Clock: c.Now})
	defer closeStore(t, s)
	expectClean(t, s)
	if got := s.MaxOffset("T", 0); got != next+1 {
		t.Error(got)
	}
}

func TestCleanExpiredQueues(t *testing.T) {
	c := newClock()
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	s := openStore(t, vfs.NewMem(c.Now), cfg, Options{Clock: c.Now})
	defer func() { closeStore(t, s) }()
	put(t, s, newMessage("Old", 0, 0), newMessage("SCHEDULE_TOPIC_XXXX", 2, 0))
	for n := 0; len(s.log.FileStarts()) < 3; n++ {
		put(t, s, newMessage("New", 0, n))
	}
	if err := s.CleanExpired(); err != nil || len(s.Queues("Old")) != 1 {
		t.Fatal("a queue went whose messages are there", err)
	}
	if _, err := s.log.DeleteBefore(8<<10, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.CleanExpired(); err != nil {
		t.Fatal(err)
	}
	if got := s.Topics(); len(got) != 2 || got[0] != "New" || got[1] != "SCHEDULE_TOPIC_XXXX" {
		t.Error(got)
	}
}

func TestDiskFullRefusesAndRecovers(t *testing.T) {
	d := &disk{FS: vfs.NewMem(nil)}
	s := openStore(t, d, smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	d.used.Store(901)
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "90.1 percent") {
		t.Error(err)
	}
	p := &Put{Message: newMessage("T", 0, 0)}
	if s.Put([]*Put{p}); !errors.Is(p.Err, ErrDiskFull) {
		t.Error(p.Err)
	}
	d.used.Store(900)
	if _, err := s.checkDisk(); err != nil || s.Writable() != nil {
		t.Error(err, s.Writable())
	}
	put(t, s, newMessage("T", 0, 1))
	// The limit in percent, set on the running store.
	d.used.Store(950)
	set(s, func(f *Config) { f.DiskSpaceWarningLevelRatio = 94 })
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "diskSpaceWarningLevelRatio is 94") {
		t.Error(err)
	}
	set(s, func(f *Config) { f.DiskSpaceWarningLevelRatio = 95 })
	if _, err := s.checkDisk(); err != nil || s.Writable() != nil {
		t.Error(err, s.Writable())
	}
	d.used.Store(900)
	// The limit in bytes, set on the running store.
	d.free.Store(4999)
	set(s, func(f *Config) { f.DiskMinFreeBytes = 5000 })
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "4999 bytes of the disk are free, diskMinFreeBytes is 5000") {
		t.Error(err)
	}
	d.free.Store(5000)
	if _, err := s.checkDisk(); err != nil || s.Writable() != nil {
		t.Error(err, s.Writable())
	}
	put(t, s, newMessage("T", 0, 2))
}

// TestNoSpaceAndBack fills the disk to the last byte: what was acknowledged stays, and writing goes on by itself when
// there is space again.
func TestNoSpaceAndBack(t *testing.T) {
	mem := vfs.NewMem(nil)
	cfg := smallConfig("/store")
	s := openStore(t, mem, cfg, Options{})
	mem.SetCapacity(200 << 10)
	var good int
	var refusal error
	for n := 0; n < 5000 && refusal == nil; n++ {
		p := &Put{Message: newMessage("T", 0, n)}
		if s.Put([]*Put{p}); p.Err == nil {
			good++
		} else {
			refusal = p.Err
		}
	}
	if !errors.Is(refusal, syscall.ENOSPC) && !errors.Is(refusal, ErrFiles) {
		t.Fatalf("after %d messages: %v", good, refusal)
	}
	waitDispatched(t, s, s.MaxPhyOffset())
	_ = s.saveCheckpoint() // fails, as the disk is full
	if got := readAll(t, s, "T", 0); len(got) != good {
		t.Errorf("%d messages, %d were acknowledged", len(got), good)
	}
	mem.SetCapacity(0)
	if err := s.saveCheckpoint(); err != nil || s.Writable() != nil {
		t.Fatal(err, s.Writable())
	}
	put(t, s, newMessage("T", 0, 9999))
	closeStore(t, s)
	s = openStore(t, mem, cfg, Options{})
	defer closeStore(t, s)
	if got := readAll(t, s, "T", 0); len(got) != good+1 {
		t.Errorf("%d messages, want %d", len(got), good+1)
	}
}

// TestRelease: files go as far as who needs what is in them says, and no further.
func TestRelease(t *testing.T) {
	c := newClock()
	s, _ := openAged(t, c)
	defer closeStore(t, s)
	starts := s.log.FileStarts()
	var asked []int64
	free := int64(0)
	s.o.Release = func(end int64) int64 { asked = append(asked, end); return free }
	c.Advance(65 * time.Hour)
	for i, want := range []struct{ free, first int64 }{
		{0, starts[0].Offset},
		{starts[2].Offset, starts[2].Offset},
		{starts[3].Offset + 1, starts[3].Offset},
		{math.MaxInt64, starts[8].Offset},
	} {
		free = want.free
		s.DeleteExpiredLog()
		if err := s.deleteExpiredLog(nil); err != nil {
			t.Fatal(err)
		}
		if first := s.log.MinOffset(); first != want.first {
			t.Errorf("run %d: the log begins at %d, want %d", i, first, want.first)
		}
	}
	for _, end := range asked {
		if end != starts[8].Offset {
			t.Errorf("asked for %d, want %d", end, starts[8].Offset)
		}
	}
	if len(asked) != 4 {
		t.Errorf("asked %d times", len(asked))
	}
}

// TestPutAgain: what keeps files from going is stored on a disk that is nearly full, other messages are not.
func TestPutAgain(t *testing.T) {
	c := newClock()
	s, d := openAged(t, c)
	defer closeStore(t, s)
	d.used.Store(950)
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	p, again := &Put{Message: newMessage("T", 0, 1)}, &Put{Message: newMessage("T", 0, 2)}
	s.Put([]*Put{p})
	s.PutAgain([]*Put{again})
	if !errors.Is(p.Err, ErrDiskFull) || again.Err != nil {
		t.Errorf("errors %v and %v", p.Err, again.Err)
	}
}
