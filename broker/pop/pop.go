// Package pop is what a broker keeps of POP consumption (5.x): which messages groups have taken and not yet
// acknowledged, so that these come again; which requests for messages wait; and how the clients of a group share the
// queues. The rules are those of 5.3.3, the form on disk is our own.
//
// A pop takes messages of a queue: the group's offset moves past them, and a checkpoint says that they are under way. A
// message that is not acknowledged in time is copied to the retry topic of group and topic, or to the dead letters.
//
//	pop ──► checkpoint ──ack──► gone            memory: a map to find it, a heap by the time it is due
//	            │                               disk:   a record for each pop and each run of acks, in LogTopic
//	            └─due──► copy + ack record
//
// The records are messages in a system topic that nobody may read or send to, in the commit log beside what they speak
// of: whoever opens the store, an official broker too, keeps them and shows them to no client. At a start the records
// are read again from a place on that is kept as the offset of ReviveGroup; it moves only when everything before it is in
// the durable file of offsets or no longer needed. A checkpoint that would hold it back for long is recorded anew.
//
// Locks: a Queue's, then the gate, then that of the queues, then that of the table. A Queue's is held while messages are read; nobody waits
// for anything under the others but one append to the log.
package pop

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
)

// Limit is the most checkpoints that may be open at a time, some 200 bytes each. At the limit pops find nothing.
const Limit = 1_000_000

// ErrFull says that as many checkpoints are open as may be.
var ErrFull = errors.New("pop: too many messages are popped and not acknowledged")

// Store is what the checkpoints need of a store.Store.
type Store interface {
	MinOffset(topic string, queueId int32) int64
	MaxOffset(topic string, queueId int32) int64
	MaxPhyOffset() int64
	Entry(topic string, queueId int32, offset int64) (store.Entry, bool)
	Message(phyOffset int64) (message.Message, error)
	Get(topic string, queueId int32, offset int64, max int, filter store.Filter) store.GetResult
	MendNow() error
	Put(run []*store.Put)
	WaitFlushed(end int64, timeout time.Duration, done func(error))
}

// Options is what Checkpoints need.
type Options struct {
	Store Store
	Clock func() time.Time
	Log   *slog.Logger
	// Host is what records and copies bear as their hosts.
	Host func() netip.AddrPort
	// Place and SetPlace read and write the offset of ReviveGroup in LogTopic.
	Place    func() (offset int64, ok bool)
	SetPlace func(offset int64)
	// Advance tells, while the log is read at a start, that a group stands at an offset at least.
	Advance func(k Key, offset int64)
	// Copy makes a message that was popped and not acknowledged the one that the group gets next, or the dead letter: its
	// topic, which it may have to create, queue and properties. An error: it is tried again later.
	Copy func(k Key, popTime int64, m *message.Message) error
	// Copied is told of a copy that was stored; popped is the message's own topic.
	Copied func(k Key, p *store.Put)
	// Save has the consumer offsets saved and waits for it. Not called under a lock.
	Save func() error
	// SavePeriod is the time between two moves of the place.
	SavePeriod time.Duration
	// Limit and QueueLimit replace the constants in tests; 0 = these.
	Limit, QueueLimit int
}

// Queue is one queue of a topic as one group pops it. Take locks it for a pop: one takes messages at a time.
type Queue struct {
	sync.Mutex
	Key
	held atomic.Int32 // by so many users; grows only under the lock of the queues
	used atomic.Bool  // since forgetIdle has looked at it
	// Guarded by the table's lock.
	inflight int // messages popped and not acknowledged
	open     int // checkpoints, those that are just being recorded too
	order    *order
	recorded int64 // the last record that tells where the group stands is before this one; 0: there is none
}

// Checkpoints are the messages under way. All methods may be called at once.
type Checkpoints struct {
	o Options

	queues struct {
		sync.RWMutex
		m    map[Key]*Queue
		list []*Queue // the same, in no order
		hand int      // where in the list forgetIdle goes on
	}
	refused atomic.Int64 // by QueueLimit

	// gate is held for reading from a record's append until the table agrees with it, and for writing by who needs the
	// log and the table to agree.
	gate sync.RWMutex

	mu struct {
		sync.Mutex
		open     map[spot]*checkpoint
		due      dueHeap[*checkpoint]
		segments segments
		total    int // checkpoints that have a record that is needed
		end      int64
		dirty    bool // orders have changed since they were saved
	}

	safe int64 // the place that is durable in the file of offsets; replay's, then keepPlace's

	wake chan struct{} // something is due earlier than thought
	stop chan struct{}
	wg   sync.WaitGroup
	once sync.Once
}

// spot finds a checkpoint.
type spot struct {
	queue          *Queue
	start, popTime int64
}

// New makes the table; Start reads the log.
func New(o Options) *Checkpoints {
	if o.Limit == 0 {
		o.Limit = Limit
	}
	if o.QueueLimit == 0 {
		o.QueueLimit = QueueLimit
	}
	c := &Checkpoints{o: o, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.queues.m = make(map[Key]*Queue)
	c.mu.open = make(map[spot]*checkpoint)
	c.mu.segments.lists = make(map[int64]*checkpoint)
	return c
}

// Start reads the log and begins to let messages come again. The store has started.
func (c *Checkpoints) Start() {
	c.replay()
	c.wg.Add(2)
	go c.revive()
	go c.keepPlace()
}

// Close ends the goroutines and moves the place. The store is still open. It may be called without Start, and twice.
func (c *Checkpoints) Close() {
	c.once.Do(func() {
		close(c.stop)
		c.wg.Wait()
	})
}

// Take returns one queue of a group, made at need and locked, which is not forgotten before its Release. Its key is copied.
func (c *Checkpoints) Take(k Key) *Queue {
	q := c.hold(k)
	if q == nil {
		c.queues.Lock()
		q = c.makeLocked(k)
		q.hold()
		c.queues.Unlock()
	}
	q.Lock()
	return q
}

// TakeKnown is Take for a queue that is known; nil: it is not.
func (c *Checkpoints) TakeKnown(k Key) *Queue {
	q := c.hold(k)
	if q != nil {
		q.Lock()
	}
	return q
}

// Release unlocks a queue that was taken.
func (q *Queue) Release() {
	q.Unlock()
	q.held.Add(-1)
}

// hold keeps a known queue from being forgotten; nil: it is not known.
func (c *Checkpoints) hold(k Key) *Queue {
	c.queues.RLock()
	defer c.queues.RUnlock()
	q := c.queues.m[k]
	if q != nil {
		q.hold()
	}
	return q
}

func (q *Queue) hold() {
	q.held.Add(1)
	if !q.used.Load() { // spares the other cores the write
		q.used.Store(true)
	}
}

func (c *Checkpoints) makeLocked(k Key) *Queue {
	q := c.queues.m[k]
	if q == nil {
		q = &Queue{Key: k.Keep()}
		c.queues.m[q.Key] = q
		c.queues.list = append(c.queues.list, q)
	}
	return q
}

// queue returns a queue, made at need, while nothing is forgotten yet: at a start.
func (c *Checkpoints) queue(k Key) *Queue {
	c.queues.Lock()
	defer c.queues.Unlock()
	return c.makeLocked(k)
}

// Known returns a queue that the group has popped, else nil: what a request names is not kept for its sake. The queue may be
// forgotten meanwhile; then nothing of it is under way.
func (c *Checkpoints) Known(k Key) *Queue {
	c.queues.RLock()
	defer c.queues.RUnlock()
	return c.queues.m[k]
}

// Inflight is how many messages of a queue a group has popped and not acknowledged, those of orderly pops aside.
func (c *Checkpoints) Inflight(q *Queue) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return q.inflight
}

// Open is how many checkpoints there are.
func (c *Checkpoints) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.total
}

// End is the log offset behind the newest record of this run: when the file of offsets passes the messages of a pop, the
// pop's record has to be durable.
func (c *Checkpoints) End() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.end
}

// record makes the message that holds a record. It counts as a copy: maxMessageSize is for those of clients, and a small one would
// keep every pop and acknowledgement from being recorded.
func (c *Checkpoints) record(body []byte) *store.Put {
	host := c.o.Host()
	return &store.Put{Copy: true, Message: &message.Message{
		Topic: LogTopic, Body: body, BornTimestamp: c.o.Clock().UnixMilli(), BornHost: host, StoreHost: host,
	}}
}

// put stores a run; the first error counts.
func (c *Checkpoints) put(run ...*store.Put) error {
	c.o.Store.Put(run)
	for _, p := range run {
		if p.Err != nil {
			return p.Err
		}
	}
	return nil
}

func (c *Checkpoints) now() int64 { return c.o.Clock().UnixMilli() }
