package store

import (
	"sync"
	"time"

	"rocketd/store/consumequeue"
)

// wrongEntries is when damaged entries were logged last: a consumer may come upon thousands.
type wrongEntries struct {
	mu      sync.Mutex
	told    time.Time
	skipped int // not logged since
}

// tellEntry logs that an entry of a queue leads to no message of it, at most once a second; offset -1: it is not known which.
// Consumers pass over it. The start does not look at each entry of each queue, and `rocketd store repair` makes such a queue again.
func (s *Store) tellEntry(q *consumequeue.Queue, offset int64, e consumequeue.Entry) {
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
	args := []any{"topic", q.Topic(), "queueId", q.QueueId(), "phyOffset", e.PhyOffset, "size", e.Size, "notLogged", skipped}
	if offset >= 0 {
		args = append(args, "queueOffset", offset, "file", q.FileName(offset))
	}
	s.o.Log.Error("A CONSUME QUEUE IS DAMAGED: an entry leads to no message; stop the broker and run `rocketd store repair`", args...)
}
