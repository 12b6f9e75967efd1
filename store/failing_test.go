package store

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rocketd/store/commitlog"
	"rocketd/store/vfs"
)

// A sync of the log that fails ends writing, for whatever mode: nothing is acknowledged on hope, also when the disk says
// later that all is well. What was acknowledged before can be read, and is there after the next start, whether the process
// just ends, dies, or the power fails.
func TestFailedFsync(t *testing.T) {
	t.Parallel()
	for _, flush := range []string{AsyncFlush, SyncFlush} {
		mem, cfg, rng := vfs.NewMem(nil), crashConfig(flush), rand.New(rand.NewSource(1))
		w := newWitness(cfg)
		fsys := vfs.NewFault(mem, nil)
		s, err := w.open(fsys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.work(s, 3)
		if err := s.log.Flush(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "dispatch of what is durable", func() bool { return s.DispatchBehind() == 0 })
		before := len(readable(t, s))
		fsys.SetInject(func(o vfs.Op) error {
			if o.Kind == vfs.OpSync && strings.Contains(o.Name, "commitlog") {
				return syscall.EIO
			}
			return nil
		})
		p := &Put{Message: newMessage("A", 0, 7000)}
		w.sent[string(p.Message.Body)] = true
		s.Put([]*Put{p})
		if p.Err != nil {
			t.Fatalf("%s: %v", flush, p.Err)
		}
		done := make(chan error, 1)
		s.WaitFlushed(p.End, time.Minute, func(err error) { done <- err })
		if err := <-done; !errors.Is(err, commitlog.ErrWriteStop) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: the flush that failed: %v", flush, err)
		}
		fsys.SetInject(nil)
		for range 3 {
			p := &Put{Message: newMessage("A", 0, 7001)}
			s.Put([]*Put{p})
			if !errors.Is(p.Err, commitlog.ErrWriteStop) {
				t.Errorf("%s: a send after it: %v", flush, p.Err)
			}
			w.refused[string(p.Message.Body)] = true
		}
		if flush == SyncFlush {
			if got := len(readable(t, s)); got != before {
				t.Errorf("%d messages can be read, %d are durable", got, before)
			}
		}
		for _, power := range []bool{false, true, true, true} {
			disk, h := w.crash(mem, power, rng)
			if err := h.check(disk, cfg); err != nil {
				t.Errorf("%s, power=%v: %v", flush, power, err)
			}
		}
		if err := s.Close(); !errors.Is(err, commitlog.ErrWriteStop) {
			t.Errorf("%s: Close: %v", flush, err)
		}
		if _, err := mem.Stat("/store/abort"); err != nil {
			t.Errorf("%s: the next start is not told: %v", flush, err)
		}
		disk, h := w.crash(mem, false, rng)
		if err := h.check(disk, cfg); err != nil {
			t.Errorf("%s, closed: %v", flush, err)
		}
	}
}

// failures are what file operations may do at their worst.
var failures = []struct {
	name    string
	err     error
	forever bool
}{
	{"EIO", syscall.EIO, false},
	{"ENOSPC", syscall.ENOSPC, false},
	{"a short write", &vfs.ShortWrite{N: 130, Err: syscall.ENOSPC}, false},
	{"a write all but the error", &vfs.ShortWrite{N: 1 << 30, Err: syscall.EIO}, false},
	{"a dead disk", syscall.EIO, true},
}

// The i-th operation on any file of the store fails, for every i; the senders go on. Then the process dies, or the power
// fails, or the store is closed: what was acknowledged is there, what was refused is not.
func TestFailingOperationThenCrash(t *testing.T) {
	for _, f := range failures {
		for _, flush := range []string{AsyncFlush, SyncFlush} {
			t.Run(f.name+" "+flush, func(t *testing.T) {
				t.Parallel()
				for i, more := 0, true; more; i += stride {
					var err error
					if more, err = failThenCrash(i, f.err, f.forever, crashConfig(flush)); err != nil {
						t.Fatalf("operation %d: %v", i, err)
					}
				}
			})
		}
	}
}

// failThenCrash lets the i-th operation fail; more is false when there were not so many.
func failThenCrash(i int, cause error, forever bool, cfg Config) (more bool, err error) {
	mem, rng := vfs.NewMem(nil), rand.New(rand.NewSource(int64(i)))
	w := newWitness(cfg)
	var mu sync.Mutex
	var failed vfs.Op
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if o.Index != i && !(forever && o.Index > i) || o.Kind == vfs.OpClose {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if o.Index == i {
			failed = o
		}
		return cause
	})
	defer func() {
		more = i < fsys.Count()
		if err != nil {
			err = fmt.Errorf("%v %s failed: %w", failed.Kind, failed.Name, err)
		}
	}()
	s, err := w.open(fsys, cfg)
	if err == nil {
		defer s.Close() // where it is not closed below
		w.send(s, 5, 0)
	}
	for _, power := range []bool{false, true} {
		disk, h := w.crash(mem, power, rng)
		if err := h.check(disk, cfg); err != nil {
			return false, fmt.Errorf("then power=%v: %w", power, err)
		}
	}
	if s != nil {
		_ = s.Close()
	}
	disk, h := w.crash(mem, false, rng)
	if err := h.check(disk, cfg); err != nil {
		return false, fmt.Errorf("then closed: %w", err)
	}
	return false, nil
}
