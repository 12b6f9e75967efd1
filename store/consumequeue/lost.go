package consumequeue

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Name names a queue.
type Name struct {
	Topic   string
	QueueId int32
}

// lost is what Open, or Truncate after a crash, has found of queues whose files can't be those of one queue.
type lost struct {
	sized atomic.Bool // some file has the configured size
	mu    sync.Mutex
	names map[Name]error // the queues given up
	odd   map[*Queue]error
}

// oddSize notes a file of another size than the configured one. When no file has that, the configuration is wrong.
func (t *Table) oddSize(q *Queue, err error) {
	t.lost.mu.Lock()
	defer t.lost.mu.Unlock()
	if t.lost.odd == nil {
		t.lost.odd = make(map[*Queue]error)
	}
	t.lost.odd[q] = err
}

// lose gives up a queue at the end of Open.
func (t *Table) lose(q *Queue, err error) {
	t.lost.sized.Store(true)
	t.oddSize(q, err)
}

// removeLost removes the queues that Open has given up, or returns why they make the configuration look wrong.
func (t *Table) removeLost() error {
	for q, err := range t.lost.odd {
		if !t.lost.sized.Load() {
			return err
		}
		if err := t.remove(q, err); err != nil {
			return err
		}
	}
	t.lost.odd = nil
	return nil
}

// remove removes a queue that has to be made again from the log.
func (t *Table) remove(q *Queue, cause error) error {
	t.log.Error("A CONSUME QUEUE IS DAMAGED: it is made again from the commit log", "topic", q.topic, "queueId", q.queueId, "error", cause)
	t.lost.mu.Lock()
	if t.lost.names == nil {
		t.lost.names = make(map[Name]error)
	}
	t.lost.names[Name{q.topic, q.queueId}] = cause
	t.lost.mu.Unlock()
	q.mu.Lock()
	if q.first == q.end {
		q.end += t.perFile // so that its folder goes
	}
	q.mu.Unlock()
	if err := t.Destroy(q); err != nil {
		return fmt.Errorf("%w, when it was to be made again: %w", err, cause)
	}
	return nil
}

// Lost returns the queues that were removed because their files can't be right: one is missing between others, or has not its
// size. Who has opened the table makes them again: the entries of all records in the log, from its start.
func (t *Table) Lost() map[Name]bool {
	t.lost.mu.Lock()
	defer t.lost.mu.Unlock()
	names := make(map[Name]bool, len(t.lost.names))
	for n := range t.lost.names {
		names[n] = true
	}
	return names
}
