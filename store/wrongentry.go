package store

import (
	"sync"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
)

// wrongEntries is when entries that lead to no message were logged last: a consumer may come upon thousands.
type wrongEntries struct {
	mu      sync.Mutex
	told    time.Time
	skipped int // not logged since
}

// tellEntry logs that an entry of a queue leads to no message and can't be made again, at most once a second. Consumers pass
// over it.
func (s *Store) tellEntry(q *consumequeue.Queue, e consumequeue.Entry) {
	w, now := &s.wrong, s.o.Clock()
	w.mu.Lock()
	if now.Sub(w.told) < time.Second {
		w.skipped++
		w.mu.Unlock()
		return
	}
	skipped := w.skipped
	w.told, w.skipped = now, 0
	w.mu.Unlock()
	s.o.Log.Error("THE LOG IS DAMAGED: a message can't be read, consumers pass over it", "topic", q.Topic(), "queueId", q.QueueId(),
		"phyOffset", e.PhyOffset, "size", e.Size, "notLogged", skipped)
}

// odd looks at an entry that is not as most are. pass: it is to be passed over. One that is damaged becomes the end of the Get;
// when it is the one before that is damaged, that one does.
func (g *get) odd(at int64, e consumequeue.Entry) (pass bool) {
	s, log := g.s, g.s.log
	switch {
	case e.IsBlank():
		return true
	case e.PhyOffset < 0 || e.Size <= 0 || int(e.Size) > g.cfg.MappedFileSizeCommitLog || e.PhyOffset+int64(e.Size) > log.MaxOffset():
	case e.PhyOffset >= g.end: // its message was stored after the Get began
		return false
	default:
		// Expired, when all before it are. Else it, or the one before, is out of order.
		before, ok, beforeAt := consumequeue.Entry{}, false, at
		for !ok && beforeAt > g.queue.Min() {
			beforeAt--
			before, ok = g.queue.Entry(beforeAt)
		}
		if !ok || before.PhyOffset+int64(before.Size) <= e.PhyOffset {
			return false
		}
		if s.isRight(g.queue, at, e) {
			if beforeAt < g.first || s.isRight(g.queue, beforeAt, before) || !s.damaged(g.queue, beforeAt, before) {
				return false
			}
			g.damage = beforeAt
			return false
		}
	}
	if !s.damaged(g.queue, at, e) {
		s.tellEntry(g.queue, e)
		return true
	}
	g.damage = at
	return false
}

// breakAt ends the Get before an entry whose record turned out to be none; false when the entry has to be passed over.
func (g *get) breakAt(at int64, e consumequeue.Entry) bool {
	if !g.s.damaged(g.queue, at, e) {
		return false
	}
	g.damage = at
	return true
}

// isElsewhere tells whether a record whose own queue offset is another stands rightly at an offset of the queue of the Get.
func (g *get) isElsewhere(r message.Record, at int64, e consumequeue.Entry) bool {
	_, err := message.Check(r, false)
	return err == nil && (isOf(r, g.queue, at) || g.s.isShifted(r, g.queue, at, e))
}

// isShifted tells whether a record of a queue stands at another place than its own, but between its neighbours: an official broker
// puts what comes behind a gap right at the end.
func (s *Store) isShifted(r message.Record, q *consumequeue.Queue, at int64, e consumequeue.Entry) bool {
	if r.Topic() != q.Topic() || r.QueueId() != q.QueueId() {
		return false
	}
	if before, ok := q.Entry(at - 1); ok && before.Size > 0 && before.PhyOffset+int64(before.Size) > e.PhyOffset {
		return false
	}
	behind, ok := q.Entry(at + 1)
	return !ok || behind.Size <= 0 || behind.PhyOffset >= e.PhyOffset+int64(e.Size)
}

// isRight tells whether an entry leads to a record that stands there rightly.
func (s *Store) isRight(q *consumequeue.Queue, at int64, e consumequeue.Entry) bool {
	r, err := s.rawRecord(nil, e.PhyOffset, e.Size)
	return err == nil && (isOf(r, q, at) || s.isShifted(r, q, at, e))
}
