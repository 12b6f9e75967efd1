package store

import (
	"math/rand"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// recoverOnly opens a store, which recovers, and goes no further.
func recoverOnly(t *testing.T, mem *vfs.Mem, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg, Options{FS: vfs.NewFault(mem, nil), Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRecoveryTakesTheCheckpointBack: what recovery makes again waits in memory for a while. A kill in that while must not
// leave a checkpoint, or a store that looks closed, by which the next start, or the official broker, leaves it out.
func TestRecoveryTakesTheCheckpointBack(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, mem *vfs.Mem) error
	}{
		{"queues are gone after a clean stop", func(_ *testing.T, mem *vfs.Mem) error { return mem.RemoveAll("/store/consumequeue") }},
		{"queues and index are gone after a kill", func(t *testing.T, mem *vfs.Mem) error {
			if err := mem.RemoveAll("/store/consumequeue"); err != nil {
				return err
			}
			makeAbort(t, mem)
			return mem.RemoveAll("/store/index")
		}},
		{"the official broker was killed", func(t *testing.T, mem *vfs.Mem) error {
			// Its checkpoint says three seconds before the end, and nothing of ours.
			makeAbort(t, mem)
			c, err := readCheckpoint(mem, "/store/checkpoint")
			c.dispatched, c.lastRecord = -1, -1
			if err == nil {
				err = writeCheckpoint(mem, "/store/checkpoint", "/store", c)
			}
			return err
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			now := newClock()
			mem := vfs.NewMem(now.Now)
			cfg := smallConfig("/store")
			cfg.MappedFileSizeConsumeQueue = 60_000
			s := openStore(t, mem, cfg, Options{Clock: now.Now})
			const busy, quiet = 900, 9
			for n := range busy {
				if put(t, s, newMessage("Busy", 0, n)); n%100 == 50 {
					put(t, s, newMessage("Quiet", 0, n/100))
				}
				now.Advance(100 * time.Millisecond)
			}
			first := s.TimeOf("Busy", 0, 0)
			closeStore(t, s)
			if err := c.prepare(t, mem); err != nil {
				t.Fatal(err)
			}

			s = recoverOnly(t, mem, cfg)
			from := s.firstStored(s.recoveredFrom)
			file, err := readCheckpoint(mem, "/store/checkpoint")
			if err != nil {
				t.Fatal(err)
			}
			for name, timestamp := range map[string]int64{"physic": file.physicMsgTimestamp, "logics": file.logicsMsgTimestamp, "index": file.indexMsgTimestamp} {
				if timestamp >= from || timestamp < first-1 {
					t.Errorf("the checkpoint's %s timestamp is %d; recovery began at %d", name, timestamp, from)
				}
			}
			if file.dispatched > s.recoveredFrom {
				t.Errorf("the checkpoint says that everything before %d is durable; recovery began at %d", file.dispatched, s.recoveredFrom)
			}
			if _, err := mem.Stat("/store/abort"); err != nil {
				t.Error(err)
			}

			mem = mem.Crash(100, rand.New(rand.NewSource(1)))
			s = openStore(t, mem, cfg, Options{Clock: now.Now})
			defer closeStore(t, s)
			if a, b := len(readAll(t, s, "Busy", 0)), len(readAll(t, s, "Quiet", 0)); a != busy || b != quiet {
				t.Errorf("%d and %d messages, want %d and %d", a, b, busy, quiet)
			}
			// The flusher makes it durable at once, and says so.
			waitFor(t, "the checkpoint", func() bool {
				file, err := readCheckpoint(mem, "/store/checkpoint")
				return err == nil && file.dispatched == s.MaxPhyOffset() && file.logicsMsgTimestamp == s.TimeOf("Busy", 0, busy-1)
			})
		})
	}
}

func makeAbort(t *testing.T, mem *vfs.Mem) {
	t.Helper()
	f, err := mem.Create("/store/abort")
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointOfTheIndex: with messageIndexSafe the official broker makes keys again from the checkpoint's index
// timestamp on, and only those of files that end later are gone: it must be the end of a file.
func TestCheckpointOfTheIndex(t *testing.T) {
	for _, safe := range []bool{false, true} {
		now := newClock()
		mem := vfs.NewMem(now.Now)
		cfg := smallConfig("/store")
		cfg.MessageIndexSafe = safe
		s := openStore(t, mem, cfg, Options{Clock: now.Now})
		for n := range 200 { // three keys each, 399 entries a file: the second file begins with the 134th message
			put(t, s, newMessage("T", 0, n))
			now.Advance(time.Second)
		}
		want := s.TimeOf("T", 0, 199)
		if safe {
			want = s.TimeOf("T", 0, 132)
		}
		closeStore(t, s)
		if c, err := readCheckpoint(mem, "/store/checkpoint"); err != nil || c.indexMsgTimestamp != want {
			t.Errorf("safe %v: index timestamp %d, want %d (%v)", safe, c.indexMsgTimestamp, want, err)
		}
	}
}
