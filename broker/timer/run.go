package timer

import (
	"fmt"
	"runtime/debug"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
)

const (
	// runCount and runBytes bound what is stored with one call, so that a storm (100,000 due at once) neither holds the append
	// lock for long nor fills memory; readCount is how many entries are read at once.
	runCount  = 256
	runBytes  = 1 << 20
	readCount = 2048
	// retryAfter is the pause after a failed write or read, panicAfter that after a panic.
	retryAfter = 100 * time.Millisecond
	panicAfter = 10 * time.Second
	// dispatchPause is how long dispatch is waited for at a time when it has not caught up after so many yields.
	dispatchPause  = 200 * time.Microsecond
	dispatchYields = 100
	// longestWait is when the clock is looked at again although nothing is due: one that was moved shows within this time.
	longestWait = time.Second
	// again and forever are results of turn that are no times.
	again   time.Duration = 0
	forever time.Duration = -1
)

func (t *Timer) run() {
	defer t.running.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if t.stopped() {
			return
		}
		wait := t.guardedTurn()
		if wait == again {
			continue
		}
		if wait == forever || wait > longestWait {
			wait = longestWait
		}
		// Say that we wait, then look once more: the dispatcher publishes the message, then looks at idle.
		t.idle.Store(true)
		if _, end := t.bounds(); end > t.read && t.failed == 0 {
			t.idle.Store(false)
			continue
		}
		timer.Reset(wait)
		select {
		case <-t.stop:
			return
		case <-t.arrived:
		case <-timer.C:
		}
		t.idle.Store(false)
	}
}

// guardedTurn is turn; a panic ends neither the timer nor the broker.
func (t *Timer) guardedTurn() (wait time.Duration) {
	defer func() {
		if reason := recover(); reason != nil {
			t.o.Log.Error("timer panic", "front", t.front.out, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			t.started = false // keys may be missing
			wait = panicAfter
		}
	}()
	return t.turn()
}

// turn reads a part of what is new, delivers a part of what is due, stores a part of what must leave old files again, and
// returns how long to wait before the next turn.
func (t *Timer) turn() time.Duration {
	if !t.started {
		if err := t.fill(); err != nil {
			return t.retry("queue of timer messages can't be read", err)
		}
		t.started = true
	}
	more, err := t.readNew()
	if err != nil {
		return t.retry("queue of timer messages can't be read", err)
	}
	if more { // it stops
		return again
	}
	wait := t.deliver()
	if wait != again && !more && !t.pending.whole() && len(t.pending.keys) <= t.o.Pending/8 {
		// In time, before they have all gone.
		if err := t.fill(); err != nil {
			return t.retry("queue of timer messages can't be read", err)
		}
		if first, ok := t.pending.first(); ok {
			wait = t.countdown(first.out)
		}
	}
	if wait != again && !more {
		var rolled bool
		if rolled, err = t.roll(); err != nil {
			return t.retry("timer message can't be stored again", err)
		}
		more = rolled
	}
	t.stands()
	if next := t.save(); wait == forever || next < wait {
		wait = next
	}
	if more {
		return again
	}
	return wait
}

// readNew looks at all entries that the queue has now, and not only at some: what is due may be delivered only when no
// recall of it waits to be read, as after a kill, when everything since the places were saved is new. It costs some 100 ns an
// entry. more is true when there may be others.
func (t *Timer) readNew() (more bool, err error) {
	_, end := t.bounds()
	for {
		if more, err = t.readSome(end); err != nil || !more || t.stopped() {
			return more, err
		}
	}
}

func (t *Timer) stopped() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// readSome looks at the next entries before an end of the queue; more is true when there are others.
func (t *Timer) readSome(end int64) (more bool, err error) {
	first, _ := t.bounds()
	if t.read < first {
		t.o.Log.Error("timer messages are gone: their log file was deleted", "readOffset", t.read, "minOffset", first)
		t.read, t.low = first, first
	}
	if t.read > end {
		t.read, t.low = end, min(t.low, end)
	}
	if t.read >= end {
		return false, nil
	}
	n, err := t.each(t.read, min(end, t.read+readCount), func(k key) {
		if !t.front.less(k) {
			t.late[k.offset()] = true
		}
		t.pending.add(k)
		t.total++
	})
	t.standing.entered.Add(n - t.read)
	t.read = n
	return n < end, err
}

// each calls f with the keys of the entries from one offset to another; it returns the offset behind the last that was read.
func (t *Timer) each(from, to int64, f func(k key)) (int64, error) {
	for from < to {
		entries, ok, err := t.o.Store.Entries(message.TopicTimer, queueId, from, int(min(to-from, readCount)))
		if err != nil {
			return from, err
		}
		if !ok || len(entries) == 0 {
			if first := t.o.Store.MinOffset(message.TopicTimer, queueId); first > from { // files went meanwhile
				from = first
				continue
			}
			return from, fmt.Errorf("no entry at offset %d", from)
		}
		for _, e := range entries {
			code, err := t.code(from, e)
			if err != nil {
				return from, err
			}
			if code != 0 {
				f(keyOf(code, from))
			}
			from++
		}
	}
	return from, nil
}

// code is the message.TimerCode of an entry, 0 when it is none of a timer message.
func (t *Timer) code(offset int64, e store.Entry) (int64, error) {
	if e.IsBlank() {
		return 0, nil
	}
	if e.Size <= 0 || e.PhyOffset < 0 { // damaged, until the store has mended it
		var ok bool
		if e, ok = t.o.Store.Entry(message.TopicTimer, queueId, offset); !ok {
			return 0, fmt.Errorf("no entry at offset %d", offset)
		}
	}
	if e.IsExtAddress() {
		e, _ = t.o.Store.Entry(message.TopicTimer, queueId, offset)
	}
	if message.IsTimerCode(e.TagsCode) && !e.IsExtAddress() {
		return e.TagsCode, nil
	}
	m, err := t.o.Store.Message(e.PhyOffset) // an official broker has made the entry
	if err != nil && !store.IsGone(err) {
		return 0, err
	}
	if err != nil {
		return 0, nil
	}
	code := message.TimerCode(m.Properties)
	if code == 0 {
		t.o.Log.Warn("no timer message in their queue", "offset", offset, "phyOffset", e.PhyOffset)
	}
	return code, nil
}

// fill reads the queue from low on and keeps the soonest of what waits.
func (t *Timer) fill() error {
	began := t.o.Clock()
	t.pending.reset()
	first, _ := t.bounds()
	t.low = max(t.low, first)
	lowest, count := t.read, 0
	var known []key
	held := make(map[key]bool, len(t.recalls))
	for _, k := range t.recalls {
		held[k] = true
	}
	_, err := t.each(min(t.low, t.read), t.read, func(k key) {
		if !t.waits(k) {
			return
		}
		lowest = min(lowest, k.offset())
		switch {
		case held[k]:
			return
		case k.recall() && !t.front.less(k) && !t.late[k.offset()]:
			known = append(known, k) // has been looked at
			return
		}
		count++
		t.pending.add(k)
	})
	if err == nil && !t.filled {
		err = t.recallAgain(known)
	}
	if err != nil {
		t.pending.reset()
		t.pending.horizon = key{} // nothing is here
		t.started = false
		return err
	}
	if took := t.o.Clock().Sub(began); count > 0 {
		t.o.Log.Info("timer messages read", "entries", t.read-t.low, "pending", count, "inMemory", len(t.pending.keys), "took", took)
	}
	t.low, t.total, t.filled = lowest, int64(count), true
	return nil
}

// recallAgain reads recalls that were looked at before the start, when not all that is due with them had been.
func (t *Timer) recallAgain(keys []key) error {
	for _, k := range keys {
		if _, err := t.prepare(&delivery{key: k}); err != nil {
			return err
		}
	}
	return nil
}

// countdown is how long until a time; again when it has come.
func (t *Timer) countdown(out int64) time.Duration {
	now := t.o.Clock()
	if now.UnixMilli() < t.cleared { // it was set back
		t.cleared = 0
	}
	if out <= now.UnixMilli() {
		return again
	}
	if out-now.UnixMilli() > longestWait.Milliseconds() {
		return longestWait
	}
	return time.UnixMilli(out).Sub(now)
}

// retry notes a failure: the first of a row, and then one a minute.
func (t *Timer) retry(what string, err error) time.Duration {
	if t.failed%int(time.Minute/retryAfter) == 0 {
		t.o.Log.Error(what, "err", err, "failures", t.failed+1)
	}
	t.failed++
	return retryAfter
}
