// Package timer delivers messages at a time of their own, to the millisecond. Until then a message waits in queue 0 of the
// topic rmq_sys_wheel_timer, as in 5.x: a record like any other, so it is as durable, and an official broker that is started on the
// directory keeps it in a topic that nobody reads. There is no wheel and no second log. The entry of such a record has the
// time it is due as its tagsCode (message.TimerCode), so the queue is the index:
//
//	rmq_sys_wheel_timer, queue 0      offset   0     1     2     3     4     5     6
//	                                  due     20    90    35    50    12    60    90
//	delivered, in the order of        ───────  ✓           ✓           ✓
//	(due, offset): front = (35, 2)         low ─►|                           read ─►|
//
// What is due at or before the front has been delivered, what comes after it waits. One goroutine owns all that:
//
//	read new entries ──► deliver a run of what is due ──► store again what lies in old log files ──► wait ──┐
//	       ▲                                                                                              │
//	       └──────────────────────────────────────────────────────────────────────────────────────────────┘
//
// Nothing is delivered before everything that was in the log when it fell due is in the queue and has been read: a recall may be
// among it.
//
// It keeps the soonest of the waiting entries in memory, 16 bytes each and at most Options.Pending of them; when they have gone
// it finds the next by reading the queue again from low on, before which nothing waits.
//
// An entry that is read when the front has passed its time (a delay of a few ms, or a clock that was set back) is late: it
// is remembered by its offset until it is delivered.
//
// front, low, read and what is late are the places: config/rocketd-timer.json, written when the log is durable up to what they
// count. A copy may be delivered twice after a kill, never lost. Without the file everything that is in the queue still is
// delivered, what is overdue at once.
package timer

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
)

// queueId is the only queue of message.TopicTimer.
const queueId = 0

// DefaultPending is how many waiting messages are kept in memory (16 MiB), lateLimit how many of those that are late the
// places may have.
const (
	DefaultPending = 1 << 20
	lateLimit      = 1 << 16
)

// Store is what a Timer needs of a store.Store.
type Store interface {
	MinOffset(topic string, queueId int32) int64
	MaxOffset(topic string, queueId int32) int64
	MaxPhyOffset() int64
	ConfirmOffset() int64
	DispatchedOffset() int64
	Entry(topic string, queueId int32, offset int64) (store.Entry, bool)
	Entries(topic string, queueId int32, offset int64, n int) ([]store.Entry, bool, error)
	Message(phyOffset int64) (message.Message, error)
	Put(run []*store.Put)
	PutAgain(run []*store.Put)
	WaitFlushed(end int64, timeout time.Duration, done func(error))
}

// Options is what a Timer needs.
type Options struct {
	Store Store
	Clock func() time.Time
	Log   *slog.Logger
	Files compat.FileSystem
	Path  string // of the file of the places
	// SavePeriod is the time between two writes of the file (timerFlushIntervalMs).
	SavePeriod time.Duration
	// Pending is how many waiting messages are kept in memory; 0 is DefaultPending.
	Pending int
	// Delivered is told of every copy that was stored, on the timer's goroutine; it must not block. nil: nobody.
	Delivered func(p *store.Put)
}

// Timer delivers the timer messages of one store.
type Timer struct {
	o    Options
	file file

	wish     atomic.Int64 // log offset below which nothing may wait any more; set by Release
	released atomic.Int64 // log offset below which nothing waits; written when places are durable

	// What Standing tells; written by the goroutine.
	standing struct{ waiting, read, nextDue, entered, delivered atomic.Int64 }

	idle    atomic.Bool
	arrived chan struct{} // capacity 1
	stop    chan struct{}
	running sync.WaitGroup
	once    sync.Once

	// The goroutine's own, and Open's.
	places
	pending pending
	total   int64                   // entries that wait, in memory or not, as far as they have been read
	recalls map[string]key          // recalls that count now, by what they name
	started bool                    // what waits before places.read is known
	filled  bool                    // it was once since the start
	cleared int64                   // ms: no recall of what is due up to then can be unread
	barrier struct{ log, at int64 } // what is before log has to be dispatched so that cleared is at; log 0: none is set
	run1    bool                    // after a failure: one at a time
	failed  int                     // failures in a row
	batch   []*delivery
	puts    []*store.Put
	savedAt time.Time
	lowAt   time.Time // when low was calculated last
	warned  bool
}

// Open loads the places.
func Open(o Options) (*Timer, error) {
	if o.Pending == 0 {
		o.Pending = DefaultPending
	}
	t := &Timer{o: o, arrived: make(chan struct{}, 1), stop: make(chan struct{}), recalls: map[string]key{}}
	t.pending = newPending(o.Pending)
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	first, end := t.bounds()
	if t.read > end { // a power failure has shortened the queue, or it was removed
		o.Log.Error("places of timer messages are beyond their queue", "readOffset", t.read, "maxOffset", end)
		t.read = end
	}
	t.low = max(min(t.low, t.read), first)
	t.read = max(t.read, first)
	for offset := range t.late {
		if offset >= t.read || offset < t.low {
			delete(t.late, offset)
		}
	}
	t.standing.read.Store(t.read)
	return t, nil
}

// Start begins delivering.
func (t *Timer) Start() {
	t.running.Add(1)
	go t.run()
}

// Close stops delivering and saves the places; the store must still be open. It may be called more than once, and
// without Start.
func (t *Timer) Close() (err error) {
	t.once.Do(func() {
		close(t.stop)
		t.running.Wait()
		err = t.closeFile()
	})
	return err
}

// Arrived tells that a message can be read in the queue of timer messages. It does not block.
func (t *Timer) Arrived() {
	if t.idle.Load() { // else it will find the message
		t.wake()
	}
}

func (t *Timer) wake() {
	select {
	case t.arrived <- struct{}{}:
	default:
	}
}

// Release tells that the log files before an offset, which has been dispatched, are to be deleted, and returns up to where
// that can be done: messages that wait in them have to be stored again first. That is then under way; the caller asks again later.
func (t *Timer) Release(end int64) int64 {
	if t.o.Store.MaxOffset(message.TopicTimer, queueId) == 0 {
		return end // there never was one
	}
	if at := t.released.Load(); at >= end {
		return end
	}
	for {
		was := t.wish.Load()
		if was >= end || t.wish.CompareAndSwap(was, end) {
			break
		}
	}
	t.wake()
	return t.released.Load()
}

// Standing is how far a Timer is.
type Standing struct {
	Waiting   int64 // messages and recalls that wait, in memory or not
	Unread    int64 // entries of the queue that have not been looked at
	NextDue   int64 // ms since 1970: when the soonest is due; 0: nothing waits
	Entered   int64 // entries that have been looked at since the start
	Delivered int64 // copies that have been stored since the start
}

// Standing tells how far the timer is. Any goroutine may ask.
func (t *Timer) Standing() Standing {
	s := &t.standing
	_, end := t.bounds()
	return Standing{Waiting: s.waiting.Load(), Unread: max(0, end-s.read.Load()), NextDue: s.nextDue.Load(), Entered: s.entered.Load(), Delivered: s.delivered.Load()}
}

// stands publishes where the goroutine is.
func (t *Timer) stands() {
	s, due := &t.standing, int64(0)
	if k, ok := t.pending.first(); ok {
		due = k.out
	}
	s.waiting.Store(t.total)
	s.read.Store(t.read)
	s.nextDue.Store(due)
}

// bounds are the first offset of the queue and the one behind its last.
func (t *Timer) bounds() (first, end int64) {
	first = t.o.Store.MinOffset(message.TopicTimer, queueId) // in this order: the minimum never passes the maximum
	return first, t.o.Store.MaxOffset(message.TopicTimer, queueId)
}
