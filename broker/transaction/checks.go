// Package transaction keeps watch over half messages: messages of transactions whose producers have not yet said commit
// or rollback. A half message lies in RMQ_SYS_TRANS_HALF_TOPIC; what becomes of it is told by an op message in
// RMQ_SYS_TRANS_OP_HALF_TOPIC, whose body is the half message's queue offset. Who ends a transaction writes the op; this
// package reads the ops and asks the producers about the half messages that have none.
//
//	half   ✓ ✓ ✓ ✓ ✗ ✓ ✗ ✓ ✓ ? ? ? ?          ✓ has an op, ✗ is due for a check, ? is too young
//	       ───────▲───────────▲───
//	              │ place     └ where this round ends
//
// A round goes over the queue from the place on. A half message that is due is stored again at the queue's end, with
// its number of checks, and the check that the producer gets names that copy; so the place moves on, and the form on
// disk is that of the official broker, which can take over at any time. Rounds are transactionCheckInterval apart.
//
// In memory there is a bit for each half message behind the place, eight bytes for each op that can't be passed yet,
// up to a bound, and an entry for each copy, so that an op for an earlier copy counts for the newest. A start finds the copies
// behind the place by what they have from their producer, since a kill takes the place back behind what they are of. The places are
// offsets of the group CID_RMQ_SYS_TRANS; they are told to the table of offsets when what they pass is durable.
package transaction

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store"
)

// Store is what the checks need of a store.Store.
type Store interface {
	MinOffset(topic string, queueId int32) int64
	MaxOffset(topic string, queueId int32) int64
	MaxPhyOffset() int64
	Entry(topic string, queueId int32, offset int64) (store.Entry, bool)
	Record(phyOffset int64) (message.Record, error)
	Put(run []*store.Put)
	WaitFlushed(end int64, timeout time.Duration, done func(error))
}

// Settings are what the configuration in force says.
type Settings struct {
	Interval time.Duration // between two rounds (transactionCheckInterval)
	TimeOut  time.Duration // age at which a half message is asked about first (transactionTimeOut)
	CheckMax int           // checks after which it is given up (transactionCheckMax)
	Reserved time.Duration // age at which it is given up in any case (fileReservedTime)
}

// Options is what Checks need. All functions but Clock run on the goroutine of the checks.
type Options struct {
	Store    Store
	Clock    func() time.Time
	Log      *slog.Logger
	Settings func() Settings
	// Master tells whether the broker may write. A slave checks nothing.
	Master func() bool
	// Place and SetPlace read and write the offset of CID_RMQ_SYS_TRANS in queue 0 of a topic.
	Place    func(topic string) (offset int64, ok bool)
	SetPlace func(topic string, offset int64)
	// Topic makes a topic with one queue for reading and writing when it is not there.
	Topic func(name string)
	// Ask sends CHECK_TRANSACTION_STATE to a member of a producer group. busy says that it should be tried again soon.
	Ask func(group string, h *header.CheckTransactionStateRequest, body []byte) (busy bool)
	// Stored is told of every copy that was stored. nil: nobody.
	Stored func(*store.Put)
	// Read is told at the end of a round how many messages of a topic it has read, and their bytes. nil: nobody.
	Read func(topic string, messages, bytes int64)
}

// Bounds of what the checks hold and do at once.
const (
	runCount  = 256     // half messages that are stored again with one call
	runBytes  = 1 << 20 // and their size
	listBound = 1 << 20 // ops that can't be passed yet; those behind them are read again later
	moveBound = 1 << 20 // copies whose predecessors are known
	// leastInterval keeps a configuration from making the rounds a busy loop.
	leastInterval = 100 * time.Millisecond
	flushTimeout  = 30 * time.Second
	askPause      = 20 * time.Millisecond // when a producer does not read
	askPatience   = 50                    // pauses in one round
)

// Checks goes over the half messages of one store.
type Checks struct {
	o Options

	// The goroutine's own; between Start and Close nobody else looks at it.
	loaded    bool
	half      int64           // queue offset of the next half message to decide on
	resolved  bits            // half messages from half on that have an op
	ops       ops             // the op queue
	listBound int             // of ops.list
	moved     map[int64]int64 // queue offset of a half message that was stored again → of its copy; written through ends
	passed    int64           // half at the end of the round before
	published [2]int64        // the places as the table of offsets has them from us; -1: never told
	batch     []*step
	puts      []*store.Put
	patience  int
	halfRead  tally // of this round
	opsRead   tally

	ends ends // also of those who end transactions

	stop    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// tally counts what was read.
type tally struct{ messages, bytes int64 }

func (t *tally) add(r message.Record) {
	t.messages++
	t.bytes += int64(r.Size())
}

// tell reports what a round has read.
func (c *Checks) tell() {
	for _, t := range []struct {
		topic string
		read  *tally
	}{{message.TopicTransHalf, &c.halfRead}, {message.TopicTransOpHalf, &c.opsRead}} {
		if c.o.Read != nil && t.read.messages > 0 {
			c.o.Read(t.topic, t.read.messages, t.read.bytes)
		}
		*t.read = tally{}
	}
}

// New makes the checks of a store.
func New(o Options) *Checks { return &Checks{o: o, listBound: listBound, stop: make(chan struct{})} }

// Start begins the rounds.
func (c *Checks) Start() {
	c.running.Add(1)
	go c.run()
}

// Close ends them; the store must still be open. It may be called more than once, and without Start.
func (c *Checks) Close() {
	c.once.Do(func() {
		close(c.stop)
		c.running.Wait()
	})
}

func (c *Checks) run() {
	defer c.running.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(max(leastInterval, c.o.Settings().Interval))
		select {
		case <-c.stop:
			return
		case <-timer.C:
		}
		if !c.o.Master() {
			c.loaded = false // another broker goes on meanwhile
			c.ends.forget()
			continue
		}
		c.guardedRound()
	}
}

// guardedRound is round; a panic ends neither the checks nor the broker.
func (c *Checks) guardedRound() {
	defer func() {
		if reason := recover(); reason != nil {
			c.loaded = false
			c.o.Log.Error("transaction check panic", "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		}
	}()
	c.round()
}

func (c *Checks) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// pause waits; false: the broker stops.
func (c *Checks) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.stop:
		return false
	case <-timer.C:
		return true
	}
}

// OpMessage is the op message that resolves the half message at a queue offset, as TransactionalMessageBridge of 4.9.8
// makes it: WAIT is in its text although nobody waits for it.
func OpMessage(queueId int32, halfOffset int64, host netip.AddrPort, now time.Time) message.Message {
	return message.Message{
		Topic: message.TopicTransOpHalf, QueueId: queueId, Body: opBody(halfOffset), Properties: opText,
		BornTimestamp: now.UnixMilli(), BornHost: host, StoreHost: host,
	}
}
