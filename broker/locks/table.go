// Package locks is the table of queue locks: which client of a consumer group may consume a queue in order.
// A lock lives 60 s from its last refresh. The rules are those of RebalanceLockManager of 4.9.8.
package locks

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// Lifetime is how long a lock is held without being refreshed.
const Lifetime = 60 * time.Second

// Queue names one message queue.
type Queue = body.MessageQueue

// Table holds the locks of all groups. It is safe for concurrent use.
type Table struct {
	clock func() time.Time
	saver *compat.Saver // nil: without a file
	limit func() int    // maxQueueLocks, as it is now; nil or 0 = no bound

	refused atomic.Int64

	mu struct {
		sync.Mutex
		groups map[string]map[Queue]*holder
		old    list.List // every *holder, dead ones too, the one first that has not been refreshed for longest
	}
}

// holder is who has a lock and when it was last refreshed.
type holder struct {
	group    string
	queue    Queue
	clientId string
	since    time.Time
	at       *list.Element // in old
}

// New makes an empty table, without a file, that tells the time by clock.
func New(clock func() time.Time) *Table {
	t := &Table{clock: clock}
	t.mu.groups = make(map[string]map[Queue]*holder)
	return t
}

// Lock tries to lock queues for a client of a group, refreshes those that it holds already, and returns the
// ones that are the client's now, each once, in the order asked.
func (t *Table) Lock(group, clientId string, queues []Queue) []Queue {
	now := t.clock()
	held := make([]Queue, 0, len(queues))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(now, sweepRun+len(queues))
	if t.mu.groups[group] == nil && len(group) > maxName {
		return held
	}
	seen := make(map[Queue]struct{}, len(queues))
	changed := false
	for _, q := range queues {
		if _, twice := seen[q]; twice {
			continue
		}
		seen[q] = struct{}{}
		h := t.mu.groups[group][q]
		if h != nil && h.clientId != clientId && !h.dead(now) {
			continue
		}
		if h == nil {
			if !t.roomLocked(now, clientId, q) {
				continue
			}
			h = t.addLocked(group, q)
		}
		changed = changed || h.clientId != clientId
		h.clientId, h.since = clientId, now
		t.mu.old.MoveToBack(h.at)
		held = append(held, q)
	}
	if changed {
		t.changed()
	}
	return held
}

// maxName is the most bytes of each name. Clients allow 255 characters and less; the official broker has no bound.
const maxName = 1024

// roomLocked makes room for one more lock; false: there is none, which is counted.
func (t *Table) roomLocked(now time.Time, clientId string, q Queue) bool {
	limit := 0
	if t.limit != nil {
		limit = t.limit()
	}
	if limit > 0 && t.mu.old.Len() >= limit {
		t.sweepLocked(now, 1)
	}
	if limit > 0 && t.mu.old.Len() >= limit || max(len(clientId), len(q.Topic), len(q.BrokerName)) > maxName {
		t.refused.Add(1)
		return false
	}
	return true
}

// Refused is how many locks were not given since the start because there were too many, or names too long.
func (t *Table) Refused() int64 { return t.refused.Load() }

// Unlock releases those of the queues that the client holds.
func (t *Table) Unlock(group, clientId string, queues []Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, changed := t.mu.groups[group], false
	for _, q := range queues {
		if h := g[q]; h != nil && h.clientId == clientId {
			delete(g, q)
			t.mu.old.Remove(h.at)
			changed = true
		}
	}
	if changed {
		t.changed()
	}
	if len(g) == 0 {
		delete(t.mu.groups, group)
	}
}

// Locked tells whether the client holds a live lock of the queue.
func (t *Table) Locked(group, clientId string, q Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.mu.groups[group][q]
	return h != nil && h.clientId == clientId && !h.dead(t.clock())
}

// dead tells whether a lock is nobody's any more.
func (h *holder) dead(now time.Time) bool { return now.Sub(h.since) > Lifetime }

// addLocked enters a lock that nobody has.
func (t *Table) addLocked(group string, q Queue) *holder {
	g := t.mu.groups[group]
	if g == nil {
		g = make(map[Queue]*holder)
		t.mu.groups[group] = g
	}
	h := &holder{group: group, queue: q}
	h.at = t.mu.old.PushBack(h)
	g[q] = h
	return h
}

// sweepRun is how many dead entries a Lock removes beside as many as it may add: more than that nobody has to wait for.
const sweepRun = 256

// sweepLocked drops up to n expired entries: 4.9.8 keeps them for ever, and nobody can tell an expired lock from none. The
// others are not looked at. A group that becomes empty goes.
func (t *Table) sweepLocked(now time.Time, n int) {
	for ; n > 0; n-- {
		e := t.mu.old.Front()
		if e == nil || !e.Value.(*holder).dead(now) {
			return
		}
		h := t.mu.old.Remove(e).(*holder)
		g := t.mu.groups[h.group]
		if delete(g, h.queue); len(g) == 0 {
			delete(t.mu.groups, h.group)
		}
	}
}
