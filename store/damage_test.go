package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"math/rand"
	"path"
	"strings"
	"sync"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// overwrite puts bytes into a file.
func overwrite(t *testing.T, mem *vfs.Mem, name string, at int64, b []byte) {
	t.Helper()
	f, err := mem.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// replace makes b the whole of a file.
func replace(t *testing.T, mem *vfs.Mem, name string, b []byte) {
	t.Helper()
	if err := (vfs.Files{FS: mem}).WriteFile(name, b); err != nil {
		t.Fatal(err)
	}
}

// errorLog keeps what is logged as an error.
type errorLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *errorLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *errorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *errorLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelError}))
}

// killedStore is the disk of a store with n messages in a queue of T, in log files of 8 KiB, all durable and none closed.
func killedStore(t *testing.T, n int) (mem *vfs.Mem, cfg Config, puts []*Put) {
	t.Helper()
	mem = vfs.NewMem(nil)
	cfg = smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	s := openStore(t, mem, cfg, Options{})
	for i := range n {
		puts = append(puts, put(t, s, newMessage("T", 0, i))...)
	}
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	disk := mem.Crash(100, rand.New(rand.NewSource(1)))
	closeStore(t, s)
	return disk, cfg, puts
}

// TestZeroedPages: a hole in a part of the log that recovery reads ends the log, loudly. What lies behind it, in that file
// and in later ones, is no longer there, but it is kept aside, to the byte.
func TestZeroedPages(t *testing.T) {
	mem, cfg, puts := killedStore(t, 200)
	if err := mem.Remove("/store/checkpoint"); err != nil { // so that recovery reads everything
		t.Fatal(err)
	}
	hole := 50
	file := puts[hole].PhyOffset / (8 << 10) * (8 << 10)
	overwrite(t, mem, fmt.Sprintf("/store/commitlog/%020d", file), puts[hole].PhyOffset-file, make([]byte, 300))
	var log errorLog
	s := openStore(t, mem, cfg, Options{Log: log.logger()})
	if got := readAll(t, s, "T", 0); len(got) != hole {
		t.Errorf("%d messages, the hole is at %d", len(got), hole)
	}
	if !strings.Contains(log.String(), "THE LOG HAS RECORDS BEHIND A DAMAGED PLACE") || !strings.Contains(log.String(), fmt.Sprintf("damage=%d", puts[hole].PhyOffset)) {
		t.Errorf("errors:\n%s", log.String())
	}
	aside := fmt.Sprintf("/store/damaged-%020d", puts[hole].PhyOffset)
	kept := map[int64]bool{}
	entries, err := mem.List(aside)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := vfs.Files{FS: mem}.ReadFile(path.Join(aside, e.Name()))
		if err != nil || len(b) != 8<<10 {
			t.Fatal(len(b), err)
		}
		for at := 0; at+message.MinRecordSize < len(b); {
			n, err := message.Check(b[at:], true)
			if err != nil {
				at++
				continue
			}
			kept[message.Record(b[at:]).PhyOffset()] = true
			at += n
		}
	}
	// The hole is wider than its record: the next one is hit too.
	lost := 0
	for _, p := range puts[hole:] {
		if !kept[p.PhyOffset] {
			lost++
		}
	}
	if lost > 2 || len(kept) != 200-hole-lost {
		t.Errorf("%d records are kept aside, %d are lost", len(kept), lost)
	}
	p := put(t, s, newMessage("T", 0, 1000))[0]
	if p.QueueOffset != int64(hole) || p.PhyOffset != puts[hole].PhyOffset {
		t.Errorf("the log goes on at %d, queue offset %d", p.PhyOffset, p.QueueOffset)
	}
	closeStore(t, s)
	s = openStore(t, mem, cfg, Options{})
	defer closeStore(t, s)
	if got := readAll(t, s, "T", 0); len(got) != hole+1 {
		t.Errorf("%d messages at the next start", len(got))
	}
}

// TestOddCheckpoints: whatever the checkpoint file holds, nothing is missing and nothing is twice.
func TestOddCheckpoints(t *testing.T) {
	disk, cfg, _ := killedStore(t, 200)
	random := make([]byte, checkpointSize)
	rand.New(rand.NewSource(2)).Read(random)
	future := checkpoint{physicMsgTimestamp: math.MaxInt64, logicsMsgTimestamp: math.MaxInt64, indexMsgTimestamp: math.MaxInt64,
		dispatched: math.MaxInt64, lastRecord: math.MaxInt64 - 100}
	beyond := checkpoint{physicMsgTimestamp: 1 << 50, logicsMsgTimestamp: 1 << 50, indexMsgTimestamp: 1 << 50, dispatched: 1 << 40, lastRecord: 1<<40 - 200}
	negative := checkpoint{physicMsgTimestamp: -1, logicsMsgTimestamp: math.MinInt64, indexMsgTimestamp: -5, dispatched: -7, lastRecord: -9}
	for name, b := range map[string][]byte{
		"absent": nil, "empty": {}, "short": future.encode()[:20], "zeros": make([]byte, checkpointSize), "random": random,
		"text": []byte("not a checkpoint"), "future": future.encode()[:24], "future, ours": future.encode(), "beyond the log": beyond.encode(), "negative": negative.encode(),
	} {
		for _, clean := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, clean %v", name, clean), func(t *testing.T) {
				mem := disk.Crash(100, rand.New(rand.NewSource(1)))
				if b == nil {
					if err := mem.Remove("/store/checkpoint"); err != nil {
						t.Fatal(err)
					}
				} else {
					replace(t, mem, "/store/checkpoint", b)
				}
				if clean {
					if err := mem.Remove("/store/abort"); err != nil {
						t.Fatal(err)
					}
				}
				s := openStore(t, mem, cfg, Options{})
				if p := put(t, s, newMessage("T", 0, 200))[0]; p.QueueOffset != 200 {
					t.Errorf("the next message has queue offset %d", p.QueueOffset)
				}
				if got := readAll(t, s, "T", 0); len(got) != 201 {
					t.Errorf("%d messages", len(got))
				}
				closeStore(t, s)
				s = openStore(t, mem, cfg, Options{})
				if got := readAll(t, s, "T", 0); len(got) != 201 {
					t.Errorf("%d messages at the next start", len(got))
				}
				closeStore(t, s)
			})
		}
	}
}

// TestOddIndexFiles: an index file may be short, empty, garbage or gone; the store starts and takes
// messages, and every key is found again.
func TestOddIndexFiles(t *testing.T) {
	disk, cfg, _ := killedStore(t, 200)
	entries, err := disk.List("/store/index")
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	random := make([]byte, 40+500*4+400*20)
	rand.New(rand.NewSource(3)).Read(random)
	for name, change := range map[string]func(b []byte) []byte{
		"empty": func([]byte) []byte { return []byte{} }, "header only": func(b []byte) []byte { return b[:40] }, "half": func(b []byte) []byte { return b[:len(b)/2] },
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) }, "garbage": func([]byte) []byte { return random }, "garbage, short": func([]byte) []byte { return random[:700] },
		"wrong header": func(b []byte) []byte { return append(bytes.Clone(random[:40]), b[40:]...) }, "too long": func(b []byte) []byte { return append(bytes.Clone(b), 1) },
		"gone": func([]byte) []byte { return nil },
	} {
		for n := range 4 {
			which, clean := n/2*(len(entries)-1), n%2 == 1
			t.Run(fmt.Sprintf("%s, file %d, clean %v", name, which, clean), func(t *testing.T) {
				mem := disk.Crash(100, rand.New(rand.NewSource(1)))
				file := "/store/index/" + entries[which].Name()
				if clean {
					if err := mem.Remove("/store/abort"); err != nil {
						t.Fatal(err)
					}
				}
				b, err := vfs.Files{FS: mem}.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if b = change(b); b != nil {
					replace(t, mem, file, b)
				} else if err := mem.Remove(file); err != nil {
					t.Fatal(err)
				}
				s := openStore(t, mem, cfg, Options{})
				put(t, s, newMessage("T", 0, 200))
				if got := readAll(t, s, "T", 0); len(got) != 201 {
					t.Errorf("%d messages", len(got))
				}
				if got := s.Query("T", "key-200", 64, 0, math.MaxInt64).Records; len(got) != 1 {
					t.Errorf("the new message is found %d times", len(got))
				}
				missing := 0
				for i := range 200 {
					if len(s.Query("T", fmt.Sprintf("key-%d", i), 64, 0, math.MaxInt64).Records) == 0 {
						missing++
					}
				}
				// A whole file that is not there looks like messages without keys: `rocketd store verify` sees it.
				if missing > 0 && name != "gone" && name != "too long" {
					t.Errorf("%d of 200 keys are not found", missing)
				}
				closeStore(t, s)
			})
		}
	}
}

// TestMissingLogFile: the error names the file that is missing.
func TestMissingLogFile(t *testing.T) {
	mem, cfg, _ := killedStore(t, 200)
	if err := mem.Remove("/store/commitlog/00000000000000016384"); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(mem, cfg, Options{}); err == nil || !strings.Contains(err.Error(), "/store/commitlog/00000000000000016384 is missing") {
		t.Errorf("%v", err)
	}
}

// TestOnlyAbort: an abort file in an otherwise empty folder is a new store.
func TestOnlyAbort(t *testing.T) {
	mem := vfs.NewMem(nil)
	if err := mem.MkdirAll("/store"); err != nil {
		t.Fatal(err)
	}
	replace(t, mem, "/store/abort", nil)
	s := openStore(t, mem, smallConfig("/store"), Options{})
	if p := put(t, s, newMessage("T", 0, 0))[0]; p.QueueOffset != 0 || p.PhyOffset != 0 {
		t.Error(p.QueueOffset, p.PhyOffset)
	}
	closeStore(t, s)
	if ok, _ := s.exists("/store/abort"); ok {
		t.Error("the abort file is left")
	}
}

// copyOf is a disk with everything that was written to another.
func copyOf(mem *vfs.Mem) *vfs.Mem { return mem.Crash(100, rand.New(rand.NewSource(1))) }

func truncate(mem *vfs.Mem, name string, size int64) error {
	f, err := mem.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}
