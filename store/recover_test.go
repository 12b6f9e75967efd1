package store

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/store/vfs"
)

func TestCheckpoint(t *testing.T) {
	want := checkpoint{physicMsgTimestamp: 0x0102, logicsMsgTimestamp: 0x0304, indexMsgTimestamp: 0x0506, dispatched: 0x0708, lastRecord: 0x0600}
	b := want.encode()
	if got := hex.EncodeToString(b[:64]); got != "000000000000010200000000000003040000000000000506"+strings.Repeat("0", 80) {
		t.Errorf("official part %s", got)
	}
	if got := decodeCheckpoint(b); got != want {
		t.Errorf("%+v", got)
	}
	b[7]++ // the official broker has written another time
	if got := decodeCheckpoint(b); got.dispatched != -1 || got.lastRecord != -1 || got.physicMsgTimestamp != 0x0103 {
		t.Errorf("%+v", got)
	}
	mem := vfs.NewMem(nil)
	if c, err := readCheckpoint(mem, "/checkpoint"); err != nil || c != noCheckpoint || c.minTimestamp(true) != 0 {
		t.Errorf("%+v %v", c, err)
	}
	if err := writeCheckpoint(mem, "/checkpoint", "/", want); err != nil {
		t.Fatal(err)
	}
	if c, err := readCheckpoint(mem, "/checkpoint"); err != nil || c != want {
		t.Errorf("%+v %v", c, err)
	}
	c := checkpoint{physicMsgTimestamp: 9000, logicsMsgTimestamp: 8000, indexMsgTimestamp: 4000}
	if c.minTimestamp(false) != 5000 || c.minTimestamp(true) != 4000 {
		t.Error("margins")
	}
}

// recovered opens a store that was not closed and tells from where on its log was scanned.
func recovered(t *testing.T, mem *vfs.Mem, cfg Config) (from int64, s *Store) {
	t.Helper()
	probe, err := Open(cfg, Options{FS: vfs.NewFault(mem, nil), Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return probe.recoveredFrom, probe
}

// TestWhereRecoveryBegins: at our checkpoint; when that does not hold, by the official rule.
func TestWhereRecoveryBegins(t *testing.T) {
	c := newClock()
	mem := vfs.NewMem(c.Now)
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	cfg.FlushIntervalConsumeQueue = 60_000
	s := openStore(t, mem, cfg, Options{Clock: c.Now})
	for n := range 100 {
		put(t, s, newMessage("T", 0, n))
		c.Advance(100 * time.Millisecond)
	}
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	durable := s.MaxPhyOffset()
	for n := range 100 {
		put(t, s, newMessage("T", 0, 100+n))
		c.Advance(100 * time.Millisecond)
	}
	if err := s.flushDerived(1000); err != nil { // written, not synced
		t.Fatal(err)
	}
	starts := s.log.FileStarts()
	killed := func() *vfs.Mem { return mem.Crash(100, rand.New(rand.NewSource(1))) }
	crashed, official, future, noQueues := killed(), killed(), killed(), killed()
	closeStore(t, s)

	from, s := recovered(t, crashed, cfg)
	if from != durable {
		t.Errorf("from %d, the checkpoint was at %d", from, durable)
	}
	expectWhole(t, s, 200)

	// As the official broker writes it: without our part.
	write := func(mem *vfs.Mem, physic, logics int64) {
		f, err := mem.Open("/store/checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, checkpointEnd)
		copy(b, (&checkpoint{physicMsgTimestamp: physic, logicsMsgTimestamp: logics}).encode()[:24])
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	third := starts[3].FirstTimestamp
	write(official, third+3000, third+99_999)
	if from, s = recovered(t, official, cfg); from != starts[3].Offset {
		t.Errorf("from %d, the third file begins at %d", from, starts[3].Offset)
	}
	expectWhole(t, s, 200)

	// A checkpoint from the future does not hide what the queues lack.
	write(future, math.MaxInt64, math.MaxInt64)
	if err := truncateQueue(future, "/store/consumequeue/T/0", 3); err != nil {
		t.Fatal(err)
	}
	_, s = recovered(t, future, cfg)
	expectWhole(t, s, 200)

	// Nor does our own, when someone has removed the queues.
	if err := noQueues.RemoveAll("/store/consumequeue"); err != nil {
		t.Fatal(err)
	}
	if from, s = recovered(t, noQueues, cfg); from != 0 {
		t.Errorf("without queues from %d", from)
	}
	expectWhole(t, s, 200)
}

// truncateQueue removes all files of a queue but the first few.
func truncateQueue(mem *vfs.Mem, dir string, keep int) error {
	entries, err := mem.List(dir)
	for i := keep; err == nil && i < len(entries); i++ {
		err = mem.Remove(path.Join(dir, entries[i].Name()))
	}
	return err
}

func expectWhole(t *testing.T, s *Store, n int) {
	t.Helper()
	if got := readAll(t, s, "T", 0); len(got) != n {
		t.Errorf("%d messages, want %d", len(got), n)
	}
	for _, key := range []string{"key-0", "key-99", "key-100", "key-199"} {
		if got := s.Query("T", key, 64, 0, math.MaxInt64).Records; len(got) != 1 {
			t.Errorf("%s: %d records", key, len(got))
		}
	}
	closeStore(t, s)
}

// TestNoCommitLog: queues without a log are removed, and offsets begin at 0 again.
func TestNoCommitLog(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, smallConfig("/store"), Options{})
	put(t, s, newMessage("T", 0, 0), newMessage("T", 0, 1))
	closeStore(t, s)
	if err := mem.RemoveAll("/store/commitlog"); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, mem, smallConfig("/store"), Options{})
	defer closeStore(t, s)
	if len(s.Topics()) != 0 || len(s.Query("T", "key-0", 64, 0, math.MaxInt64).Records) != 0 {
		t.Error("something is left")
	}
	if p := put(t, s, newMessage("T", 0, 2))[0]; p.QueueOffset != 0 {
		t.Error(p.QueueOffset)
	}
	if got := s.Query("T", "key-2", 64, 0, math.MaxInt64).Records; len(got) != 1 {
		t.Error("not indexed")
	}
}

// TestDamageKeepsAbort: after a failed sync of a queue file the next start mends what may be missing.
func TestDamageKeepsAbort(t *testing.T) {
	mem := vfs.NewMem(nil)
	fail := atomic.Bool{}
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if fail.Load() && o.Kind == vfs.OpSync && strings.Contains(o.Name, "consumequeue") {
			return syscall.EIO
		}
		return nil
	})
	s := openStore(t, fsys, smallConfig("/store"), Options{})
	put(t, s, newMessage("T", 0, 0))
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	put(t, s, newMessage("T", 0, 1))
	fail.Store(true)
	if err := s.saveCheckpoint(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fail.Store(false)
	put(t, s, newMessage("T", 0, 2)) // the log is good
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
	if ok, _ := s.exists("/store/abort"); !ok {
		t.Error("the abort file has gone")
	}
	s = openStore(t, mem, smallConfig("/store"), Options{})
	defer closeStore(t, s)
	if got := readAll(t, s, "T", 0); len(got) != 3 {
		t.Error(len(got))
	}
}

// TestDamagedLog: what a damaged place of the log hides from dispatch is passed over, and neither indexing anew nor the
// start fails.
func TestDamagedLog(t *testing.T) {
	mem := vfs.NewMem(nil)
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	s := openStore(t, mem, cfg, Options{})
	var first *Put
	for n := range 100 {
		if p := put(t, s, newMessage("T", 0, n))[0]; n == 10 {
			first = p
		}
	}
	closeStore(t, s)
	f, err := mem.Open("/store/commitlog/00000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 50), first.PhyOffset); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := mem.RemoveAll("/store/index"); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, mem, cfg, Options{})
	for key, want := range map[string]int{"key-9": 1, "key-10": 0, "key-99": 1} {
		if got := s.Query("T", key, 64, 0, math.MaxInt64).Records; len(got) != want {
			t.Errorf("%s: %d", key, len(got))
		}
	}
	// The same met by the dispatcher.
	end := s.MaxPhyOffset()
	s.dispatched.Store(first.PhyOffset)
	p := put(t, s, newMessage("T", 0, 100))[0]
	if p.PhyOffset != end {
		t.Error(p.PhyOffset)
	}
	waitFor(t, "dispatch behind the damage", func() bool { return s.DispatchBehind() == 0 })
	closeStore(t, s)
}

// TestMisleadingQueues: an entry of no record in the log must not make the log end there.
func TestMisleadingQueues(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		for _, wrong := range []Entry{{PhyOffset: 60_000, Size: 200}, {PhyOffset: 100, Size: 200}, {PhyOffset: 1 << 50, Size: 200}} {
			mem := vfs.NewMem(nil)
			cfg := smallConfig("/store")
			s := openStore(t, mem, cfg, Options{})
			for n := range 200 {
				put(t, s, newMessage("T", 0, n))
			}
			if err := s.queues.Append("Wrong", 0, 0, wrong); err != nil {
				t.Fatal(err)
			}
			if err := s.saveCheckpoint(); err != nil {
				t.Fatal(err)
			}
			if disk := mem.Crash(100, rand.New(rand.NewSource(1))); crashed {
				defer closeStore(t, s)
				mem = disk
				// As after an official broker: without our part of the checkpoint.
				if err := mem.Remove("/store/checkpoint"); err != nil {
					t.Fatal(err)
				}
			} else {
				closeStore(t, s)
			}
			s = openStore(t, mem, cfg, Options{})
			expectWhole(t, s, 200)
		}
	}
}

// TestCheckpointOfAnotherLog: our checkpoint is not believed when the log is an older one.
func TestCheckpointOfAnotherLog(t *testing.T) {
	mem := vfs.NewMem(nil)
	cfg := smallConfig("/store")
	s := openStore(t, mem, cfg, Options{})
	for n := range 200 {
		put(t, s, newMessage("T", 0, n))
	}
	closeStore(t, s)
	older := mem.Crash(100, rand.New(rand.NewSource(1)))
	s = openStore(t, mem, cfg, Options{})
	put(t, s, newMessage("T", 0, 200), newMessage("T", 0, 201))
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	newer := mem.Crash(100, rand.New(rand.NewSource(1)))
	closeStore(t, s)
	for _, name := range []string{"/store/checkpoint", "/store/abort"} {
		data, err := vfs.Files{FS: newer}.ReadFile(name)
		if err == nil {
			_ = older.Remove(name)
			err = vfs.Files{FS: older}.WriteFile(name, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s = openStore(t, older, cfg, Options{})
	expectWhole(t, s, 200)
}
