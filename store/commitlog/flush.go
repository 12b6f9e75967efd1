package commitlog

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
)

// pageSize is the unit of flushCommitLogLeastPages.
const pageSize = 4096

// flusher makes the log durable. With SyncFlush its goroutine syncs as soon as there is something and one sync
// serves all who came before it (group commit); else at intervals. With nothing to do it sleeps.
type flusher struct {
	wake chan struct{} // there is something to do
	idle atomic.Bool   // the goroutine sleeps without a timer, or is about to: it must be woken
	stop chan struct{}
	done sync.WaitGroup

	pace atomic.Pointer[pace] // swapped by SetFlush; the goroutine reads it before each wait and flush

	sync sync.Mutex // one sync of the log at a time

	mu struct {
		sync.Mutex
		waiters []waiter // in the order in which they came
		spare   []waiter // empty; room for those that are being answered
		watch   *time.Timer
		watchAt time.Time // when it fires; zero: it does not run
		closed  bool
	}
}

// pace is when the goroutine flushes.
type pace struct {
	interval, thorough time.Duration
	least              int64 // bytes
}

// SetFlush changes the flush settings of Options, with the same units; what waits for the old interval still does.
func (l *Log) SetFlush(interval, leastPages, thoroughInterval int) {
	l.flush.pace.Store(&pace{
		interval: compat.Millis(orDefault(interval, defaultInterval)),
		thorough: compat.Millis(orDefault(thoroughInterval, defaultThorough)),
		least:    min(int64(leastPages), math.MaxInt64/pageSize) * pageSize,
	})
}

// waiter is one WaitFlushed that has not been answered.
type waiter struct {
	end      int64
	deadline time.Time
	done     func(error)
}

func (f *flusher) init() {
	f.wake = make(chan struct{}, 1)
	f.stop = make(chan struct{})
}

// close ends the goroutine and the watch for deadlines. Waiters stay.
func (f *flusher) close() {
	close(f.stop)
	f.done.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	if f.mu.watch != nil {
		f.mu.watch.Stop()
	}
}

func (f *flusher) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// appended is what follows an append that has moved the end of the log.
func (l *Log) appended() {
	if l.flush.idle.Load() {
		l.flush.wakeUp()
	}
	if !l.o.SyncFlush {
		l.confirmed()
	}
}

// flushLoop is the goroutine of Start that flushes.
func (l *Log) flushLoop() {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	ticking := false       // the timer runs; only without SyncFlush
	var thorough time.Time // of the last flush of everything, as FlushRealTimeService of 4.9.8 counts it
	var failed bool        // the last flush failed; there will be no other
	for {
		l.flush.idle.Store(!ticking)
		if dirty := l.written.Load() > l.flushed.Load() && !failed; dirty && !ticking {
			l.flush.idle.Store(false) // and no wake-up was lost: see appended
			if l.o.SyncFlush {
				l.flush.wakeUp()
			} else {
				timer.Reset(l.flush.pace.Load().interval)
				ticking = true
			}
		}
		fired := false
		select {
		case <-l.flush.stop:
			return
		case <-l.flush.wake:
		case <-timer.C:
			ticking, fired = false, true
		}
		switch {
		case l.o.SyncFlush || l.waiting():
			failed = l.Flush() != nil
		case fired:
			now := time.Now()
			pace := l.flush.pace.Load()
			least := pace.least
			if now.Sub(thorough) >= pace.thorough {
				thorough, least = now, 0
			}
			if dirty := l.written.Load() - l.flushed.Load(); dirty > 0 && dirty >= least {
				failed = l.Flush() != nil
			}
		}
	}
}

// Flush makes everything appended so far durable and answers who waited for it. A sync that fails is final: the
// kernel may have dropped what it could not write, so no later sync can be believed.
func (l *Log) Flush() error {
	l.flush.sync.Lock()
	grown, err := l.flushLocked()
	l.flush.sync.Unlock()
	if err != nil {
		l.failWaiters(err)
		return err
	}
	if grown && l.o.SyncFlush {
		l.confirmed()
	}
	l.answerFlushed()
	return nil
}

func (l *Log) flushLocked() (grown bool, err error) {
	if err := l.stopError(); err != nil {
		return false, err
	}
	stamp := l.writtenTime.Load() // before written: it is of a record that is before written
	from, to := l.flushed.Load(), l.written.Load()
	for at := from; at < to; {
		v, ok := l.files.View(at)
		if !ok { // deleted meanwhile
			first := l.MinOffset()
			if first <= at {
				return false, l.stop(fmt.Errorf("no file for offset %d, which is not durable", at))
			}
			at = first
			continue
		}
		err := v.Sync()
		at = v.End()
		v.Release()
		if err != nil {
			return false, l.stop(err)
		}
	}
	l.flushed.Store(to)
	l.flushedTime.Store(stamp)
	return to > from, nil
}

// WaitFlushed calls done, once, when everything before end is durable, or with an error when timeout
// passes first (ErrTimeout), flushing has failed or the log is closed. Never waits itself. done is called on the
// goroutine that flushes, or of the timer; here when the answer is known already. It must not block.
func (l *Log) WaitFlushed(end int64, timeout time.Duration, done func(error)) {
	if l.flushed.Load() >= end {
		done(nil)
		return
	}
	err := l.stopError()
	l.flush.mu.Lock()
	if l.flush.mu.closed {
		err = ErrClosed
	}
	if err != nil {
		l.flush.mu.Unlock()
		done(err)
		return
	}
	deadline := time.Now().Add(timeout)
	l.flush.mu.waiters = append(l.flush.mu.waiters, waiter{end, deadline, done})
	l.watchLocked(deadline)
	l.flush.mu.Unlock()
	switch err := l.stopError(); { // again: who flushed, or failed, meanwhile may not have seen the waiter
	case err != nil:
		l.failWaiters(err)
	case l.flushed.Load() >= end:
		l.answerFlushed()
	case !l.o.SyncFlush || l.flush.idle.Load():
		l.flush.wakeUp()
	}
}

// waiting tells whether someone waits for a flush.
func (l *Log) waiting() bool {
	l.flush.mu.Lock()
	defer l.flush.mu.Unlock()
	return len(l.flush.mu.waiters) > 0
}

// answer removes the waiters that choose selects and calls them with err.
func (l *Log) answer(err error, choose func(waiter) bool) {
	f := &l.flush.mu
	f.Lock()
	chosen := f.spare
	f.spare = nil
	f.waiters = slices.DeleteFunc(f.waiters, func(w waiter) bool {
		if choose(w) {
			chosen = append(chosen, w)
			return true
		}
		return false
	})
	f.Unlock()
	for _, w := range chosen {
		w.done(err)
	}
	clear(chosen)
	f.Lock()
	f.spare = chosen[:0]
	f.Unlock()
}

func (l *Log) answerFlushed() {
	flushed := l.flushed.Load()
	l.answer(nil, func(w waiter) bool { return w.end <= flushed })
}

func (l *Log) failWaiters(err error) {
	l.answer(err, func(waiter) bool { return true })
}

// watchLocked makes sure that deadlines are looked at by then: the flusher itself may hang in a sync. Mostly all
// waiters have one timeout, so the timer set for the first serves those that come after it.
func (l *Log) watchLocked(deadline time.Time) {
	f := &l.flush.mu
	if f.closed || !f.watchAt.IsZero() && !deadline.Before(f.watchAt) {
		return
	}
	f.watchAt = deadline
	if f.watch == nil {
		f.watch = time.AfterFunc(time.Until(deadline), l.expire)
		return
	}
	f.watch.Reset(time.Until(deadline))
}

// expire answers the waiters whose time is over; it runs on the timer's goroutine.
func (l *Log) expire() {
	now := time.Now()
	l.answer(ErrTimeout, func(w waiter) bool { return !w.deadline.After(now) })
	l.flush.mu.Lock()
	defer l.flush.mu.Unlock()
	l.flush.mu.watchAt = time.Time{}
	if len(l.flush.mu.waiters) > 0 {
		l.watchLocked(earliest(l.flush.mu.waiters))
	}
}

func earliest(waiters []waiter) time.Time {
	first := waiters[0].deadline
	for _, w := range waiters[1:] {
		if w.deadline.Before(first) {
			first = w.deadline
		}
	}
	return first
}
