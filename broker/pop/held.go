package pop

import (
	"container/list"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
)

// Reason says why a held request goes on.
type Reason uint8

// The reasons.
const (
	Arrived  Reason = iota // there is something to look at
	TimedOut               // its time is over
	Stopped                // the broker stops
)

// Filter chooses arrivals (as longpoll.Filter).
type Filter interface {
	MatchQueue(tagsCode int64) bool
	MatchProperties(properties string) bool
}

// Waiter goes on with a request, once, on a goroutine of the holder.
type Waiter interface{ Wake(why Reason) }

// Held is a request that waits for messages of a topic. Its fields do not change while it is held.
type Held struct {
	Key             // queue id -1: any queue of the topic
	Retry    string // topic whose arrivals count too; "" = none
	Deadline int64  // ms since 1970
	Next     int64  // ms: when there may be something without an arrival; 0 = never
	Filter   Filter // nil takes every message
	Owner    any    // the connection
	Waiter   Waiter

	// Guarded by the holder's lock.
	held   bool
	at     [2]*list.Element // in the lists of Topic and Retry
	heapAt int
	why    Reason
}

func (h *Held) dueAt() int64 {
	if h.Next > 0 {
		return min(h.Next, h.Deadline)
	}
	return h.Deadline
}

func (h *Held) place() *int { return &h.heapAt }

// Outcome is what becomes of a request that is to be held.
type Outcome int

// The outcomes.
const (
	HeldNow  Outcome = iota // its waiter goes on later
	HeldFull                // too many wait already
	HeldLate                // its time is over, or the holder is closed
)

// HolderOptions is what a Holder needs.
type HolderOptions struct {
	Clock func() time.Time
	// Limits are the most requests that may wait: in all (maxPopPollingSize) and for one topic, group and queue id
	// (popPollingSize); asked each time.
	Limits  func() (all, each int)
	Workers int
}

// Holder holds requests of POP until a message arrives for one of them. All methods may be called at once.
type Holder struct {
	o     HolderOptions
	count atomic.Int64

	refused atomic.Int64

	mu struct {
		sync.Mutex
		// topics has the requests that an arrival in a topic may concern, by group and in the order of their coming.
		topics map[string]map[string]*list.List
		each   map[Key]int
		owners map[any]map[*Held]struct{}
		due    dueHeap[*Held]
		closed bool
	}

	woken struct {
		sync.Mutex
		ready  sync.Cond
		list   []*Held
		closed bool
	}

	wake    chan struct{}
	stop    chan struct{}
	timing  sync.WaitGroup
	workers sync.WaitGroup
}

// NewHolder makes a holder; Start begins its work.
func NewHolder(o HolderOptions) *Holder {
	h := &Holder{o: o, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	h.mu.topics = make(map[string]map[string]*list.List)
	h.mu.each = make(map[Key]int)
	h.mu.owners = make(map[any]map[*Held]struct{})
	h.woken.ready.L = &h.woken.Mutex
	return h
}

// Start begins the workers and the watch over the deadlines.
func (h *Holder) Start() {
	for range max(1, h.o.Workers) {
		h.workers.Add(1)
		go h.work()
	}
	h.timing.Add(1)
	go h.watch()
}

// Close lets every held request go on with Stopped, waits until the last has, and ends the goroutines. It may be called
// without Start, and twice.
func (h *Holder) Close() {
	h.mu.Lock()
	if h.mu.closed {
		h.mu.Unlock()
		h.workers.Wait()
		return
	}
	h.mu.closed = true
	var all []*Held
	for n, ok := h.mu.due.first(); ok; n, ok = h.mu.due.first() {
		h.takeLocked(n, Stopped)
		all = append(all, n)
	}
	h.mu.Unlock()
	close(h.stop)
	h.timing.Wait()
	h.goOn(all...)
	h.woken.Lock()
	h.woken.closed = true
	h.woken.ready.Broadcast()
	h.woken.Unlock()
	h.workers.Wait()
}

// Len is how many requests wait.
func (h *Holder) Len() int { return int(h.count.Load()) }

// Refused is how many requests were not held since the start because too many were.
func (h *Holder) Refused() int64 { return h.refused.Load() }

// Count is how many requests wait for one topic, group and queue id, as it was asked for.
func (h *Holder) Count(k Key) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.each[k]
}

// Hold takes a request. A message that has arrived since the caller looked is not noticed: the caller looks again
// afterwards and calls Now.
func (h *Holder) Hold(n *Held) Outcome {
	now := h.o.Clock().UnixMilli()
	all, each := h.o.Limits()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.mu.closed || n.Deadline <= now:
		return HeldLate
	case len(h.mu.due) >= all || h.mu.each[n.Key] >= each:
		h.refused.Add(1)
		return HeldFull
	}
	n.held = true
	h.count.Add(1)
	h.mu.each[n.Key]++
	n.at[0] = h.enterLocked(n.Topic, n)
	if n.Retry != "" {
		n.at[1] = h.enterLocked(n.Retry, n)
	}
	if n.Owner != nil {
		if h.mu.owners[n.Owner] == nil {
			h.mu.owners[n.Owner] = make(map[*Held]struct{})
		}
		h.mu.owners[n.Owner][n] = struct{}{}
	}
	if h.mu.due.push(n); n.heapAt == 0 {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
	return HeldNow
}

func (h *Holder) enterLocked(topic string, n *Held) *list.Element {
	groups := h.mu.topics[topic]
	if groups == nil {
		groups = make(map[string]*list.List)
		h.mu.topics[topic] = groups
	}
	l := groups[n.Group]
	if l == nil {
		l = list.New()
		groups[n.Group] = l
	}
	return l.PushBack(n)
}

func (h *Holder) leaveLocked(topic string, n *Held, e *list.Element) {
	groups := h.mu.topics[topic]
	l := groups[n.Group]
	if l.Remove(e); l.Len() == 0 {
		if delete(groups, n.Group); len(groups) == 0 {
			delete(h.mu.topics, topic)
		}
	}
}

// takeLocked takes a request out of everything.
func (h *Holder) takeLocked(n *Held, why Reason) {
	n.held, n.why = false, why
	h.count.Add(-1)
	if h.mu.each[n.Key]--; h.mu.each[n.Key] == 0 {
		delete(h.mu.each, n.Key)
	}
	h.leaveLocked(n.Topic, n, n.at[0])
	if n.Retry != "" {
		h.leaveLocked(n.Retry, n, n.at[1])
	}
	n.at = [2]*list.Element{}
	h.mu.due.remove(n)
	if n.Owner != nil {
		if owned := h.mu.owners[n.Owner]; len(owned) == 1 {
			delete(h.mu.owners, n.Owner)
		} else {
			delete(owned, n)
		}
	}
}

// Arrive is told of every message that can be read now: of each group that waits for it one request goes on, of those
// for its queue and of those for any queue each.
func (h *Holder) Arrive(topic string, queueId int32, tagsCode int64, properties string) {
	if h.count.Load() == 0 {
		return
	}
	var few [8]*Held
	woken := few[:0]
	h.mu.Lock()
	for _, l := range h.mu.topics[topic] {
		one, any := false, false
		for e := l.Front(); e != nil && !(one && any); {
			n := e.Value.(*Held)
			e = e.Next()
			mine := &one
			if n.QueueId < 0 {
				mine = &any
			}
			retry := n.Topic != topic
			if *mine || !retry && n.QueueId >= 0 && n.QueueId != queueId || !n.takes(tagsCode, properties) {
				continue
			}
			*mine = true
			h.takeLocked(n, Arrived)
			woken = append(woken, n)
		}
	}
	h.mu.Unlock()
	h.goOn(woken...)
}

func (n *Held) takes(tagsCode int64, properties string) bool {
	return n.Filter == nil || n.Filter.MatchQueue(tagsCode) && n.Filter.MatchProperties(properties)
}

// Notify lets one request of a group go on, and one of those for any queue: there are messages that nobody waits for the
// arrival of.
func (h *Holder) Notify(k Key) {
	if h.count.Load() == 0 {
		return
	}
	var woken []*Held
	h.mu.Lock()
	if l := h.mu.topics[k.Topic][k.Group]; l != nil {
		one, any := k.QueueId < 0, false
		for e := l.Front(); e != nil && !(one && any); {
			n := e.Value.(*Held)
			e = e.Next()
			switch {
			case n.QueueId < 0 && !any:
				any = true
			case n.QueueId == k.QueueId && !one:
				one = true
			default:
				continue
			}
			h.takeLocked(n, Arrived)
			woken = append(woken, n)
		}
	}
	h.mu.Unlock()
	h.goOn(woken...)
}

// Now lets a request go on that is held.
func (h *Holder) Now(n *Held) {
	h.mu.Lock()
	held := n.held
	if held {
		h.takeLocked(n, Arrived)
	}
	h.mu.Unlock()
	if held {
		h.goOn(n)
	}
}

// OwnerGone forgets the requests of a connection that has ended.
func (h *Holder) OwnerGone(owner any) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.mu.owners[owner] {
		h.takeLocked(n, Stopped)
	}
}

// watch lets requests go on whose time has come, until Close.
func (h *Holder) watch() {
	defer h.timing.Done()
	for {
		var due []*Held
		now := h.o.Clock().UnixMilli()
		wait := compat.Forever
		h.mu.Lock()
		for n, ok := h.mu.due.first(); ok; n, ok = h.mu.due.first() {
			if n.dueAt() > now {
				wait = compat.Until(n.dueAt(), now)
				break
			}
			why := TimedOut
			if n.Deadline > now {
				why = Arrived
			}
			h.takeLocked(n, why)
			due = append(due, n)
		}
		h.mu.Unlock()
		h.goOn(due...)
		t := time.NewTimer(wait)
		select {
		case <-h.stop:
			t.Stop()
			return
		case <-h.wake:
			t.Stop()
		case <-t.C:
		}
	}
}

// goOn hands requests to the workers.
func (h *Holder) goOn(list ...*Held) {
	if len(list) == 0 {
		return
	}
	h.woken.Lock()
	h.woken.list = append(h.woken.list, list...)
	h.woken.Unlock()
	if len(list) == 1 {
		h.woken.ready.Signal()
		return
	}
	h.woken.ready.Broadcast()
}

// work lets requests go on until Close, and the last has.
func (h *Holder) work() {
	defer h.workers.Done()
	w := &h.woken
	for {
		w.Lock()
		for len(w.list) == 0 {
			if w.closed {
				w.Unlock()
				return
			}
			w.ready.Wait()
		}
		n := w.list[0]
		w.list[0] = nil
		if w.list = w.list[1:]; len(w.list) == 0 {
			w.list = nil
		}
		w.Unlock()
		n.Waiter.Wake(n.why)
	}
}

// Keep makes the texts of a request its own: what is held for long does not keep a whole frame.
func (k Key) Keep() Key {
	return Key{Topic: strings.Clone(k.Topic), Group: strings.Clone(k.Group), QueueId: k.QueueId}
}
