package delay

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

const (
	// runCount and runBytes bound what one turn of a level stores with one call, so that a burst (a restart
	// after hours) neither holds the append lock for long nor fills memory.
	runCount = 256
	runBytes = 1 << 20
	// retryAfter is the pause after a failed write or read, panicAfter that after a panic; both as in 4.9.8.
	retryAfter = 100 * time.Millisecond
	panicAfter = 10 * time.Second
	// longestWait is when a level looks at the clock again although its head is not due: a clock that was
	// moved shows within this time.
	longestWait = time.Second
	// again and forever are results of turn that are no times.
	again   time.Duration = 0
	forever time.Duration = -1
)

// level is one delay level.
type level struct {
	d       *Delay
	n       int   // 1 to Levels.Max
	queueId int32 // n-1
	log     *slog.Logger

	offset  atomic.Int64  // the place; written by the level's goroutine
	idle    atomic.Bool   // the goroutine waits for a message
	arrived chan struct{} // capacity 1

	// The goroutine's own.
	run1   bool // after a failure: one at a time, so that nothing behind a message that can't be stored is stored twice
	failed int  // failures in a row
	batch  []*delivery
	puts   []*store.Put
}

// delivery is one copy to be stored; reused.
type delivery struct {
	put    store.Put
	msg    message.Message
	offset int64 // of the waiting message in the level's queue
}

func newLevel(d *Delay, n int) *level {
	return &level{d: d, n: n, queueId: int32(n - 1), log: d.o.Log.With("delayLevel", n), arrived: make(chan struct{}, 1)}
}

// wake ends the wait for a message.
func (l *level) wake() {
	if !l.idle.Load() {
		return // it will find the message
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// correct moves the place into the queue, as ScheduleMessageService#correctDelayOffset of 4.9.8.
func (l *level) correct() {
	at := l.offset.Load()
	first, end := l.d.o.Store.MinOffset(message.TopicSchedule, l.queueId), l.d.o.Store.MaxOffset(message.TopicSchedule, l.queueId)
	if to := max(min(at, end), first); to != at {
		l.log.Error("delay offset outside its queue", "offset", at, "minOffset", first, "maxOffset", end, "corrected", to)
		l.offset.Store(to)
	}
}

func (l *level) run() {
	defer l.d.running.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-l.d.stop:
			return
		default:
		}
		wait := l.guardedTurn()
		if wait == again {
			continue
		}
		var due <-chan time.Time
		if wait == forever {
			// Say that we wait, then look once more: the dispatcher publishes the message, then looks at idle.
			l.idle.Store(true)
			if l.d.o.Store.MaxOffset(message.TopicSchedule, l.queueId) > l.offset.Load() {
				l.idle.Store(false)
				continue
			}
		} else {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-l.d.stop:
			return
		case <-l.arrived:
		case <-due:
		}
		l.idle.Store(false)
	}
}

// guardedTurn is turn; a panic ends neither the level nor the broker.
func (l *level) guardedTurn() (wait time.Duration) {
	defer func() {
		if reason := recover(); reason != nil {
			l.log.Error("delay level panic", "offset", l.offset.Load(), "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			wait = panicAfter
		}
	}()
	return l.turn()
}

// turn delivers what is due, at most one run, and returns how long to wait before the next turn.
func (l *level) turn() time.Duration {
	next, wait, used, size := l.offset.Load(), again, 0, 0
	for used < l.runSize() && size < runBytes {
		e, ok := l.d.o.Store.Entry(message.TopicSchedule, l.queueId, next)
		if !ok {
			var moved bool
			if next, moved, wait = l.miss(next); moved {
				continue
			}
			break
		}
		// The clock is read after the entry: to an older time a message that has just been stored looks too far ahead.
		if wait = l.countdown(l.d.o.Clock(), e.TagsCode); wait > 0 {
			break
		}
		m, err := l.d.o.Store.Message(e.PhyOffset)
		if err != nil && !store.IsGone(err) { // a message that is gone is passed over, as in 4.9.8
			wait = l.retry("delayed message can't be read", err, next)
			break
		}
		if err == nil && l.prepare(used, m, next) {
			used++
			size += int(e.Size)
		}
		next++
	}
	stored := l.deliver(used)
	if stored < used {
		return retryAfter // the place stands at the message that failed
	}
	// Messages that are gone or discarded count as done, as in 4.9.8.
	l.offset.Store(next)
	return wait
}

func (l *level) runSize() int {
	if l.run1 {
		return 1
	}
	return runCount
}

// miss decides what to do at a place without an entry.
func (l *level) miss(at int64) (to int64, moved bool, wait time.Duration) {
	first, end := l.d.o.Store.MinOffset(message.TopicSchedule, l.queueId), l.d.o.Store.MaxOffset(message.TopicSchedule, l.queueId)
	switch {
	case at < first:
		l.log.Error("delayed messages are gone: their log file was deleted", "offset", at, "minOffset", first)
		return first, true, again
	case at > end:
		l.log.Error("delay offset beyond its queue", "offset", at, "maxOffset", end)
		return end, true, again
	case at == end:
		return at, false, forever
	}
	// Within the queue and yet not readable: perhaps just appended, perhaps a lost file.
	return at, false, retryAfter
}

// storeAhead is how far store times may be ahead of the clock: they do not follow one that steps back by so much.
const storeAhead = 1000

// countdown is how long until an entry is due; again when it is. A due time more than one whole delay ahead
// means that the clock was moved back: the message is due, as in 4.9.8. Not so when its store time was ahead, which 4.9.8 does
// not have: it would be delivered at once.
func (l *level) countdown(now time.Time, deliverTime int64) time.Duration {
	millis := now.UnixMilli()
	if deliverTime <= millis || deliverTime > compat.Later(compat.Later(millis, l.d.o.Levels.Delay(l.n)), storeAhead) {
		return again
	}
	return min(time.UnixMilli(deliverTime).Sub(now), longestWait)
}

// prepare makes delivery number i the copy of a waiting message; false discards it. The copy keeps the
// properties text as it is, DELAY, REAL_TOPIC and REAL_QID included, as 4.9.8 does.
func (l *level) prepare(i int, m message.Message, offset int64) bool {
	topic, queueId, ok := message.RealPlace(m.Properties)
	if !ok {
		l.log.Error("delayed message discarded: it has no topic and queue that can exist", "offset", offset, "phyOffset", m.PhyOffset,
			"properties", fmt.Sprintf("%.400q", m.Properties))
		return false
	}
	if topic == message.TopicTransHalf {
		l.log.Error("delayed half message discarded", "offset", offset, "phyOffset", m.PhyOffset)
		return false
	}
	if i == len(l.batch) {
		l.batch = append(l.batch, new(delivery))
	}
	v := l.batch[i]
	v.offset = offset
	v.msg = m
	v.msg.Topic, v.msg.QueueId = topic, queueId
	v.msg.PreparedTransactionOffset, v.msg.QueueOffset, v.msg.PhyOffset = 0, 0, 0
	v.put = store.Put{Message: &v.msg, Copy: true}
	return true
}

// deliver stores the first n deliveries with one call and moves the place behind those that are stored. It
// returns how many that is.
func (l *level) deliver(n int) int {
	if n == 0 {
		return 0
	}
	l.puts = l.puts[:0]
	for _, v := range l.batch[:n] {
		l.puts = append(l.puts, &v.put)
	}
	l.d.o.Store.Put(l.puts)
	for i, v := range l.batch[:n] {
		if errors.Is(v.put.Err, commitlog.ErrTooLarge) {
			// No later try can end otherwise, and the level's other messages may not wait for it for ever, as they
			// do in 4.9.8. The waiting message stays in the log as long as its file.
			l.log.Error("delayed message that can't be stored put aside", "err", v.put.Err, "offset", v.offset,
				"topic", v.msg.Topic, "bodySize", len(v.msg.Body))
			l.offset.Store(v.offset + 1)
			continue
		}
		if v.put.Err != nil {
			l.offset.Store(v.offset)
			l.retry("delayed message can't be delivered", v.put.Err, v.offset)
			l.run1 = true
			return i
		}
		l.d.delivered(l.n, &v.put)
		l.offset.Store(v.offset + 1)
	}
	l.run1, l.failed = false, 0
	for _, v := range l.batch[:n] {
		v.msg, v.put = message.Message{}, store.Put{} // keep no bodies alive
	}
	clear(l.puts)
	return n
}

// retry notes a failure: the first of a row, and then one a minute.
func (l *level) retry(what string, err error, offset int64) time.Duration {
	if l.failed%int(time.Minute/retryAfter) == 0 {
		l.log.Error(what, "err", err, "offset", offset, "failures", l.failed+1)
	}
	l.failed++
	return retryAfter
}
