// Package delay delivers delayed messages when they are due. A message with a delay level waits in the topic
// SCHEDULE_TOPIC_XXXX, in queue level-1; the tagsCode of its entry there is the time it is due (ms). When
// that time has come, a copy goes to its real topic. The form on disk is that of ScheduleMessageService of 4.9.8.
//
// All messages of a level have the same delay, so a level's queue is in the order of due times: only its head
// needs a timer. Each level has a goroutine, which owns the level's place in the queue:
//
//	wait for a message ──► wait until the head is due ──► copy what is due, a run at a time ──┐
//	        ▲                                                                                │
//	        └────────────────────────────── queue empty ◄────────────────────────────────────┘
//
// The places are kept in config/delayOffset.json. A copy may be delivered twice after a kill, never lost: a
// place is saved only when the copies before it are durable.
package delay

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
)

// Store is what the levels need of a store.Store.
type Store interface {
	MinOffset(topic string, queueId int32) int64
	MaxOffset(topic string, queueId int32) int64
	Entry(topic string, queueId int32, offset int64) (store.Entry, bool)
	Message(phyOffset int64) (message.Message, error)
	Put(run []*store.Put)
	WaitFlushed(end int64, timeout time.Duration, done func(error))
}

// Options is what a Delay needs.
type Options struct {
	Levels store.DelayLevels
	Store  Store
	Clock  func() time.Time
	Log    *slog.Logger
	Files  compat.FileSystem
	Path   string // delayOffset.json
	// SavePeriod is the time between two writes of the file (flushDelayOffsetInterval).
	SavePeriod time.Duration
	// Delivered is told of every copy that was stored and of its level, on the level's goroutine; it must not block.
	// nil: nobody.
	Delivered func(level int, p *store.Put)
}

// Delay delivers the delayed messages of one store.
type Delay struct {
	o      Options
	levels []*level // by queue id: level 1 first

	// end is the log offset behind the last copy delivered since the start; written by the levels.
	end atomic.Int64

	file file // the saver's

	stop    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// Open loads the places of the levels and puts right those that lie outside their queues.
func Open(o Options) (*Delay, error) {
	d := &Delay{o: o, stop: make(chan struct{})}
	for i := range o.Levels.Max() {
		d.levels = append(d.levels, newLevel(d, i+1))
	}
	if err := d.load(); err != nil {
		return nil, err
	}
	for _, l := range d.levels {
		l.correct()
	}
	return d, nil
}

// Start begins delivering.
func (d *Delay) Start() {
	for _, l := range d.levels {
		d.running.Add(1)
		go l.run()
	}
	d.running.Add(1)
	go d.saveLoop()
}

// Close stops delivering and saves the places; the store must still be open. It may be called more than
// once, and without Start.
func (d *Delay) Close() (err error) {
	d.once.Do(func() {
		close(d.stop)
		d.running.Wait()
		err = d.closeFile()
	})
	return err
}

// Arrived tells that a message can be read in a queue of SCHEDULE_TOPIC_XXXX. It does not block.
func (d *Delay) Arrived(queueId int32) {
	if queueId >= 0 && int(queueId) < len(d.levels) {
		d.levels[queueId].wake()
	}
}

// Offsets are the places by level: the queue offset of the next message to deliver.
func (d *Delay) Offsets() map[int32]int64 {
	m := make(map[int32]int64, len(d.levels))
	for _, l := range d.levels {
		m[int32(l.n)] = l.offset.Load()
	}
	return m
}

// delivered notes a copy that was stored.
func (d *Delay) delivered(level int, p *store.Put) {
	for {
		end := d.end.Load()
		if p.End <= end || d.end.CompareAndSwap(end, p.End) {
			break
		}
	}
	if d.o.Delivered != nil {
		d.o.Delivered(level, p)
	}
}
