package commitlog

import (
	"errors"
	"math/rand"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/store/vfs"
)

func newRand(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }

// wait is WaitFlushed as a call that waits.
func wait(l *Log, end int64, timeout time.Duration) error {
	result := make(chan error, 2)
	l.WaitFlushed(end, timeout, func(err error) { result <- err })
	return <-result
}

func TestSyncFlush(t *testing.T) {
	gate := make(chan struct{})
	fault := vfs.NewFault(vfs.NewMem(nil), nil)
	var confirmed atomic.Int64
	o := options(syncFlush, func(o *Options) {
		o.FS = fault
		o.Confirmed = func() { confirmed.Add(1) }
	})
	l := started(t, o)
	var syncs atomic.Int64
	fault.SetInject(func(o vfs.Op) error {
		if o.Kind == vfs.OpSync && o.Name == "/store/commitlog/00000000000000000000" && o.Offset == 0 {
			syncs.Add(1)
			<-gate
		}
		return nil
	})
	opened := sync.OnceFunc(func() { close(gate) })
	defer opened()
	first := put(msg(0, "first", 0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Append([]*Put{first})
	}()
	gate <- struct{}{} // the sync of the new file
	<-done
	if l.MaxOffset() != first.End || l.ConfirmOffset() != 0 || l.FlushedOffset() != 0 {
		t.Errorf("before the sync: max %d, confirmed %d, flushed %d", l.MaxOffset(), l.ConfirmOffset(), l.FlushedOffset())
	}
	if next, err := l.Scan(0, nil); next != 0 || err != nil {
		t.Errorf("Scan before the sync: %d, %v", next, err)
	}
	// While one sync is going on others come; one more sync serves them all.
	const n = 20
	var answered sync.WaitGroup
	eventually(t, "the flusher syncs", func() bool { return syncs.Load() == 2 })
	for range n {
		p := put(msg(0, "x", 0))
		mustAppend(t, l, p)
		answered.Add(1)
		l.WaitFlushed(p.End, time.Minute, func(err error) {
			if err != nil || l.ConfirmOffset() < p.End {
				t.Errorf("WaitFlushed: %v, confirmed %d of %d", err, l.ConfirmOffset(), p.End)
			}
			answered.Done()
		})
	}
	opened()
	answered.Wait()
	if got := syncs.Load(); got > 4 {
		t.Errorf("%d syncs of the log for %d messages", got-1, n)
	}
	if l.ConfirmOffset() != l.MaxOffset() || l.LastFlushedTimestamp() == 0 {
		t.Errorf("confirmed %d of %d, time %d", l.ConfirmOffset(), l.MaxOffset(), l.LastFlushedTimestamp())
	}
	eventually(t, "Confirmed is called", func() bool { return confirmed.Load() >= 2 })
	if err := wait(l, first.End, 0); err != nil {
		t.Errorf("WaitFlushed of what is durable: %v", err)
	}
}

func TestWaitFlushedTimesOut(t *testing.T) {
	gate := make(chan struct{})
	fault := vfs.NewFault(vfs.NewMem(nil), nil)
	l := started(t, options(syncFlush, func(o *Options) { o.FS = fault }))
	p := put(msg(0, "x", 0))
	mustAppend(t, l, p)
	if err := wait(l, p.End, time.Minute); err != nil {
		t.Fatal(err)
	}
	fault.SetInject(func(o vfs.Op) error { // the disk hangs
		if o.Kind == vfs.OpSync {
			<-gate
		}
		return nil
	})
	mustAppend(t, l, p)
	long := make(chan error, 1)
	l.WaitFlushed(p.End, time.Minute, func(err error) { long <- err })
	if err := wait(l, p.End, time.Millisecond); err != ErrTimeout {
		t.Errorf("WaitFlushed: %v", err)
	}
	if err := wait(l, p.End, 2*time.Millisecond); err != ErrTimeout {
		t.Errorf("WaitFlushed again: %v", err)
	}
	close(gate)
	if err := <-long; err != nil {
		t.Errorf("WaitFlushed with patience: %v", err)
	}
}

func TestAsyncFlush(t *testing.T) {
	l := started(t, options())
	p := put(msg(0, "x", 0))
	mustAppend(t, l, p)
	if l.ConfirmOffset() != p.End {
		t.Error("not visible before it is durable")
	}
	eventually(t, "it becomes durable", func() bool { return l.FlushedOffset() == p.End })
	eventually(t, "the flusher sleeps", l.flush.idle.Load)
	mustAppend(t, l, p)
	eventually(t, "it becomes durable again", func() bool { return l.FlushedOffset() == p.End })
}

// The rules of FlushRealTimeService of 4.9.8: every 500 ms when there are 4 pages, and everything after 10 s.
func TestFlushIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(func(o *Options) {
			o.FlushIntervalCommitLog, o.FlushCommitLogLeastPages, o.FlushCommitLogThoroughInterval = 500, 4, 10_000
		}))
		behind := func() int64 { return l.MaxOffset() - l.FlushedOffset() }
		after := func(d time.Duration, what string, flushed bool) {
			t.Helper()
			<-time.After(d) // of the fake clock
			synctest.Wait()
			if got := behind() == 0; got != flushed {
				t.Errorf("%s: %d bytes behind", what, behind())
			}
		}
		mustAppend(t, l, put(msg(0, "x", 100)))
		after(499*time.Millisecond, "before the interval", false)
		after(time.Millisecond, "the first flush takes everything", true)
		mustAppend(t, l, put(msg(0, "x", 8000)))
		after(9*time.Second, "less than four pages", false)
		after(1500*time.Millisecond, "everything after ten seconds", true)
		mustAppend(t, l, put(msg(0, "x", 4*4096)))
		after(500*time.Millisecond, "four pages", true)
		p := put(msg(0, "x", 0))
		mustAppend(t, l, p)
		after(0, "less than four pages", false)
		if err := wait(l, p.End, time.Minute); err != nil || behind() != 0 {
			t.Errorf("who waits is served at once: %v", err)
		}
	})
}

// A sync that fails ends writing, and nothing is acknowledged any more, though the disk may work again.
func TestFailedSyncIsFinal(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup setup
	}{{"sync", syncFlush}, {"async", func(*Options) {}}} {
		fault := vfs.NewFault(vfs.NewMem(nil), nil)
		l := started(t, options(c.setup, func(o *Options) { o.FS = fault }))
		good := put(msg(0, "good", 0))
		mustAppend(t, l, good)
		if err := wait(l, good.End, time.Minute); err != nil {
			t.Fatal(err)
		}
		fault.SetInject(func(o vfs.Op) error {
			if o.Kind == vfs.OpSync {
				return syscall.EIO
			}
			return nil
		})
		lost := put(msg(0, "lost", 0))
		mustAppend(t, l, lost)
		if err := wait(l, lost.End, time.Minute); !errors.Is(err, ErrWriteStop) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: WaitFlushed: %v", c.name, err)
		}
		fault.SetInject(nil)
		p := put(msg(0, "x", 0))
		if l.Append([]*Put{p}); !errors.Is(p.Err, ErrWriteStop) {
			t.Errorf("%s: Append: %v", c.name, p.Err)
		}
		if err := wait(l, lost.End, time.Minute); !errors.Is(err, ErrWriteStop) {
			t.Errorf("%s: WaitFlushed again: %v", c.name, err)
		}
		if err := l.Flush(); !errors.Is(err, ErrWriteStop) {
			t.Errorf("%s: Flush: %v", c.name, err)
		}
		if l.FlushedOffset() != good.End {
			t.Errorf("%s: flushed %d, want %d", c.name, l.FlushedOffset(), good.End)
		}
		if err := l.Close(); !errors.Is(err, ErrWriteStop) {
			t.Errorf("%s: Close: %v", c.name, err)
		}
	}
}

// The lock is held while a write goes on, and that can be seen.
func TestLockedSince(t *testing.T) {
	gate := make(chan struct{})
	fault := vfs.NewFault(vfs.NewMem(nil), nil)
	clock := int64(1795978468297)
	l := started(t, options(fixedClock(&clock), func(o *Options) { o.FS = fault }))
	if !l.LockedSince().IsZero() {
		t.Error("locked")
	}
	fault.SetInject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite {
			<-gate
		}
		return nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Append([]*Put{put(msg(0, "x", 0))})
	}()
	eventually(t, "the lock is held", func() bool { return l.LockedSince().UnixMilli() == clock })
	close(gate)
	<-done
	if !l.LockedSince().IsZero() {
		t.Error("still locked")
	}
}
