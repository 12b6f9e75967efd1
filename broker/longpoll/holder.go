// Package longpoll holds pulls that found nothing until a message arrives, the time is over, the client is
// gone, or the broker stops.
//
// A held pull is one small struct in two lists: that of its queue, which arrivals and the scan look through,
// and that of its owner, the connection that closes. Whoever takes it out of its queue's list (its "claim",
// under the lock of the list's shard) decides what becomes of it; so it goes on once.
//
//	Hold ──► queue list ──claim──► wake list ──► workers ──► Waiter.Wake(why)
//	           ▲   ▲   ▲                                       │
//	      Arrive  scan  Close                         pull again, suspend off
package longpoll

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Reason says why a held pull goes on.
type Reason uint8

// The reasons.
const (
	Arrived  Reason = iota // a message that the pull's filter takes can be read
	Grown                  // its queue has grown past its offset; nobody looked at the filter
	TimedOut               // its hold time is over
	Stopped                // the broker stops
)

// Filter chooses arrivals. Its methods must be cheap and may run at once.
type Filter interface {
	// MatchQueue decides by the tagsCode of the consume-queue entry.
	MatchQueue(tagsCode int64) bool
	// MatchProperties decides by the properties text; called only for what MatchQueue let pass.
	MatchProperties(properties string) bool
}

// Waiter goes on with a pull. Wake is called exactly once for each held pull whose owner has not gone, on
// a goroutine of the holder. It may read the store; while it does, one worker less is there for others.
type Waiter interface{ Wake(why Reason) }

// Pull is one pull to be held. Its fields do not change while it is held.
type Pull struct {
	Topic    string
	QueueId  int32
	Offset   int64  // the queue offset it asks for: a message at or behind it lets it go on
	Deadline int64  // ms since 1970; the scan lets it go on from then
	Filter   Filter // nil takes every message
	Owner    any    // who asks (comparable): the connection; nil = nobody who could go
	Waiter   Waiter

	sum        uint64 // hash of topic and queue
	next, prev *Pull  // queue list, a ring; next also links the wake list
	held       bool   // in its queue's list; guarded by the shard's lock
	owned      bool   // in its owner's list; guarded by owners
	why        Reason
	ownerNext  *Pull // owner list, a ring
	ownerPrev  *Pull
}

// Options is what a Holder needs.
type Options struct {
	// Clock gives the time that deadlines are compared with.
	Clock func() time.Time
	// MaxOffset is the end of a queue. An arrival must be visible in it before Arrive is called for it.
	MaxOffset func(topic string, queueId int32) int64
	// ScanPeriod is the time between two scans; asked before each, so it may change.
	ScanPeriod func() time.Duration
	// Workers is the number of goroutines on which pulls go on.
	Workers int
	// Limit is the number of pulls that may be held, asked each time; 0 or nil = no bound.
	Limit func() int64
}

const (
	shardCount  = 64
	waitingSize = 1 << 14
)

// Holder holds pulls. All methods may be called at once.
type Holder struct {
	o    Options
	seed maphash.Seed

	// waiting counts held pulls by the hash of their queue, so that an arrival in a queue that nobody
	// waits on costs one load.
	waiting [waitingSize]atomic.Int32
	shards  [shardCount]shard
	count   atomic.Int64
	refused atomic.Int64
	stopped atomic.Bool

	owners struct {
		sync.Mutex
		first map[any]*Pull
	}

	// woken is the list of claimed pulls that wait for a worker.
	woken struct {
		sync.Mutex
		ready      sync.Cond
		head, tail *Pull
		closed     bool
	}

	scanStop chan struct{}
	scanning sync.WaitGroup
	workers  sync.WaitGroup
}

// shard is the queues of one part of the hash space: of each the first pull of its ring.
type shard struct {
	sync.Mutex
	queues map[queueKey]*Pull
	_      [40]byte // a cache line each
}

type queueKey struct {
	topic   string
	queueId int32
}

// New makes a holder; Start begins its work.
func New(o Options) *Holder {
	h := &Holder{o: o, seed: maphash.MakeSeed(), scanStop: make(chan struct{})}
	for i := range h.shards {
		h.shards[i].queues = map[queueKey]*Pull{}
	}
	h.owners.first = map[any]*Pull{}
	h.woken.ready.L = &h.woken.Mutex
	return h
}

// Start begins the workers and the scan.
func (h *Holder) Start() {
	for range max(1, h.o.Workers) {
		h.workers.Add(1)
		go h.work()
	}
	h.scanning.Add(1)
	go h.scanLoop()
}

// Close lets every held pull go on with Stopped, waits until the last has, and ends the goroutines. From
// then on Hold refuses. It may be called without Start, and more than once.
func (h *Holder) Close() {
	if !h.stopped.CompareAndSwap(false, true) {
		h.workers.Wait()
		return
	}
	close(h.scanStop)
	h.scanning.Wait()
	var all chain
	for i := range h.shards {
		s := &h.shards[i]
		s.Lock()
		for _, first := range s.queues {
			for p := first; ; {
				next := p.next
				h.leave(p)
				all.add(p, Stopped)
				if p = next; p == first {
					break
				}
			}
		}
		clear(s.queues)
		s.Unlock()
	}
	h.wake(all)
	h.woken.Lock()
	h.woken.closed = true
	h.woken.ready.Broadcast()
	h.woken.Unlock()
	h.workers.Wait()
}

// Held is the number of pulls held now.
func (h *Holder) Held() int64 { return h.count.Load() }

// Refused is the number of pulls that were not held since the start because there were too many.
func (h *Holder) Refused() int64 { return h.refused.Load() }

func (h *Holder) full() bool {
	if h.o.Limit == nil {
		return false
	}
	limit := h.o.Limit()
	return limit > 0 && h.count.Load() >= limit
}

// Hold takes a pull that found nothing. When false, it was not taken (the holder has stopped or is full) and
// the caller answers now. A message that arrived between the caller's look and this call lets the pull
// go on at once.
func (h *Holder) Hold(p *Pull) bool {
	if h.full() {
		h.refused.Add(1)
		return false
	}
	p.sum = h.hash(p.Topic, p.QueueId)
	h.own(p)
	s := h.shard(p.sum)
	s.Lock()
	if h.stopped.Load() {
		s.Unlock()
		h.disown(p)
		return false
	}
	h.count.Add(1)
	h.waiting[p.sum%waitingSize].Add(1)
	p.held = true
	key := queueKey{p.Topic, p.QueueId}
	if first := s.queues[key]; first != nil {
		p.next, p.prev = first, first.prev
		first.prev.next, first.prev = p, p
	} else {
		p.next, p.prev = p, p
		s.queues[key] = p
	}
	s.Unlock()
	// The dispatcher publishes the queue's end, then looks for waiters; here it is the other way round. So
	// one of the two sees the other.
	if h.o.MaxOffset(p.Topic, p.QueueId) > p.Offset && h.claim(p) {
		var c chain
		c.add(p, Grown)
		h.wake(c)
	}
	return true
}

// Arrive tells that the message at queueOffset can be read. It does not block and allocates nothing.
func (h *Holder) Arrive(topic string, queueId int32, queueOffset, tagsCode int64, properties string) {
	sum := h.hash(topic, queueId)
	if h.waiting[sum%waitingSize].Load() == 0 {
		return
	}
	s := h.shard(sum)
	var c chain
	s.Lock()
	first := s.queues[queueKey{topic, queueId}]
	if first != nil {
		last := first.prev
		for p := first; ; {
			next, end := p.next, p == last
			if p.Offset <= queueOffset &&
				(p.Filter == nil || p.Filter.MatchQueue(tagsCode) && p.Filter.MatchProperties(properties)) {
				h.remove(s, p)
				c.add(p, Arrived)
			}
			if end {
				break
			}
			p = next
		}
	}
	s.Unlock()
	if c.head != nil {
		h.wake(c)
	}
}

// OwnerGone drops the pulls of an owner: nobody is there to be answered.
func (h *Holder) OwnerGone(owner any) {
	h.owners.Lock()
	first := h.owners.first[owner]
	if first == nil {
		h.owners.Unlock()
		return
	}
	delete(h.owners.first, owner)
	var all []*Pull
	for p := first; ; {
		next := p.ownerNext
		p.owned, p.ownerNext, p.ownerPrev = false, nil, nil
		all = append(all, p)
		if p = next; p == first {
			break
		}
	}
	h.owners.Unlock()
	for _, p := range all {
		h.claim(p)
	}
}

// Drop takes a pull back, whoever asks; nothing is called for it. False when it was not held any more.
func (h *Holder) Drop(p *Pull) bool {
	if !h.claim(p) {
		return false
	}
	h.disown(p)
	return true
}

func (h *Holder) hash(topic string, queueId int32) uint64 {
	return (maphash.String(h.seed, topic) ^ uint64(uint32(queueId))) * 0x9E3779B97F4A7C15 >> 16
}

func (h *Holder) shard(sum uint64) *shard { return &h.shards[sum>>20%shardCount] }

// claim takes p out of its queue's list; false when somebody else has.
func (h *Holder) claim(p *Pull) bool {
	s := h.shard(p.sum)
	s.Lock()
	defer s.Unlock()
	if !p.held {
		return false
	}
	h.remove(s, p)
	return true
}

// remove takes p out of its ring. The shard is locked.
func (h *Holder) remove(s *shard, p *Pull) {
	key := queueKey{p.Topic, p.QueueId}
	if p.next == p {
		delete(s.queues, key)
	} else {
		p.prev.next, p.next.prev = p.next, p.prev
		if s.queues[key] == p {
			s.queues[key] = p.next
		}
	}
	h.leave(p)
}

// leave does the accounts of a pull that is held no longer. The shard is locked.
func (h *Holder) leave(p *Pull) {
	p.held, p.next, p.prev = false, nil, nil
	h.waiting[p.sum%waitingSize].Add(-1)
	h.count.Add(-1)
}

// own enters p in its owner's list.
func (h *Holder) own(p *Pull) {
	if p.Owner == nil {
		return
	}
	h.owners.Lock()
	defer h.owners.Unlock()
	p.owned = true
	if first := h.owners.first[p.Owner]; first != nil {
		p.ownerNext, p.ownerPrev = first, first.ownerPrev
		first.ownerPrev.ownerNext, first.ownerPrev = p, p
		return
	}
	p.ownerNext, p.ownerPrev = p, p
	h.owners.first[p.Owner] = p
}

// disown takes p out of its owner's list, if it is there.
func (h *Holder) disown(p *Pull) {
	if p.Owner == nil {
		return
	}
	h.owners.Lock()
	defer h.owners.Unlock()
	if !p.owned {
		return
	}
	if p.ownerNext == p {
		delete(h.owners.first, p.Owner)
	} else {
		p.ownerPrev.ownerNext, p.ownerNext.ownerPrev = p.ownerNext, p.ownerPrev
		if h.owners.first[p.Owner] == p {
			h.owners.first[p.Owner] = p.ownerNext
		}
	}
	p.owned, p.ownerNext, p.ownerPrev = false, nil, nil
}
