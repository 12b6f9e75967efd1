// Package locks is the table of queue locks: which client of a consumer group may consume a queue in order.
// A lock lives 60 s from its last refresh. The rules are those of RebalanceLockManager of 4.9.8.
package locks

import (
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
		groups map[string]map[Queue]holder
		count  int       // entries, dead ones too
		swept  time.Time // when dead entries were last removed
	}
}

// holder is who has a lock and when it was last refreshed.
type holder struct {
	clientId string
	since    time.Time
}

// New makes an empty table, without a file, that tells the time by clock.
func New(clock func() time.Time) *Table {
	t := &Table{clock: clock}
	t.mu.groups = make(map[string]map[Queue]holder)
	t.mu.swept = clock()
	return t
}

// Lock tries to lock queues for a client of a group, refreshes those that it holds already, and returns the
// ones that are the client's now, each once, in the order asked.
func (t *Table) Lock(group, clientId string, queues []Queue) []Queue {
	now := t.clock()
	held := make([]Queue, 0, len(queues))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(now)
	g := t.mu.groups[group]
	if g == nil {
		if len(queues) == 0 || len(group) > maxName {
			return held
		}
		g = make(map[Queue]holder)
		t.mu.groups[group] = g
	}
	seen := make(map[Queue]struct{}, len(queues))
	changed := false
	for _, q := range queues {
		if _, twice := seen[q]; twice {
			continue
		}
		seen[q] = struct{}{}
		h, taken := g[q]
		if taken && h.clientId != clientId && now.Sub(h.since) <= Lifetime {
			continue
		}
		if !taken && !t.roomLocked(clientId, q) {
			continue
		}
		changed = changed || h.clientId != clientId
		g[q] = holder{clientId, now}
		held = append(held, q)
	}
	if changed {
		t.changed()
	}
	if len(g) == 0 {
		delete(t.mu.groups, group)
	}
	return held
}

// maxName is the most bytes of each name. Clients allow 255 characters and less; the official broker has no bound.
const maxName = 1024

// roomLocked makes room for one more lock; false: there is none, which is counted.
func (t *Table) roomLocked(clientId string, q Queue) bool {
	limit := 0
	if t.limit != nil {
		limit = t.limit()
	}
	if limit > 0 && t.mu.count >= limit || max(len(clientId), len(q.Topic), len(q.BrokerName)) > maxName {
		t.refused.Add(1)
		return false
	}
	t.mu.count++
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
		if h, ok := g[q]; ok && h.clientId == clientId {
			delete(g, q)
			t.mu.count--
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
	h, ok := t.mu.groups[group][q]
	return ok && h.clientId == clientId && t.clock().Sub(h.since) <= Lifetime
}

// sweepLocked drops expired entries, at most once a lifetime: 4.9.8 keeps them for ever, and nobody can tell
// an expired lock from none.
func (t *Table) sweepLocked(now time.Time) {
	if now.Sub(t.mu.swept) < Lifetime {
		return
	}
	t.mu.swept = now
	for name, g := range t.mu.groups {
		for q, h := range g {
			if now.Sub(h.since) > Lifetime {
				delete(g, q)
				t.mu.count--
			}
		}
		if len(g) == 0 {
			delete(t.mu.groups, name)
		}
	}
}
