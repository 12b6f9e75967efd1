package consumequeue

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// holeAhead is how far behind a queue's end an entry is looked for: some damaged pages.
const holeAhead = 64 << 10

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
	empty map[Name]struct{} // folders without files
	holes map[*Queue]int64  // by the commit-log offset of the first entry behind a hole
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
	t.noteLost(Name{q.topic, q.queueId}, cause)
	q.mu.Lock()
	if q.first == q.end {
		q.end += t.perFile // so that its folder goes
	}
	q.mu.Unlock()
	t.flush.Lock()
	delete(t.orphans, q)
	t.flush.Unlock()
	if err := t.Destroy(q); err != nil {
		return fmt.Errorf("%w, when it was to be made again: %w", err, cause)
	}
	return nil
}

// noteLost notes a queue that has to be made again from the log.
func (t *Table) noteLost(name Name, cause error) {
	t.notice(slog.LevelError, "A CONSUME QUEUE IS DAMAGED: it is made again from the commit log", "topic", name.Topic, "queueId", name.QueueId, "error", cause)
	t.lost.mu.Lock()
	defer t.lost.mu.Unlock()
	if t.lost.names == nil {
		t.lost.names = make(map[Name]error)
	}
	t.lost.names[name] = cause
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

// noteHole looks for an entry behind place end in the file that begins with entry start; end has none. The caller has q.mu.
func (q *Queue) noteHole(start, end int64) error {
	size := min((start+q.table.perFile-end)*EntrySize, holeAhead)
	if size <= 0 {
		return nil
	}
	b, err := q.readFile(nil, end, int(size))
	if err != nil {
		return err
	}
	for ; len(b) >= EntrySize; b = b[EntrySize:] {
		if e := Decode(b); e.valid() && !e.IsBlank() {
			l := &q.table.lost
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.holes == nil {
				l.holes = make(map[*Queue]int64)
			}
			l.holes[q] = e.PhyOffset
			return nil
		}
	}
	return nil
}

// RemoveHoles removes the queues in which Recover has found an entry of a record before a commit-log offset behind a hole: up
// to there nothing may lack, so the hole is a damage. See Lost.
func (t *Table) RemoveHoles(before int64) error {
	t.lost.mu.Lock()
	holes := t.lost.holes
	t.lost.holes = nil
	t.lost.mu.Unlock()
	for q, phyOffset := range holes {
		if phyOffset < before {
			if err := t.remove(q, fmt.Errorf("consumequeue: %s has a hole before the entry of the record at %d", t.dir(q), phyOffset)); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveForeign removes the queues of which the first, the middle or the last entry is of no record of theirs: they were made
// for another log. See Lost. It returns how many.
func (t *Table) RemoveForeign(belongs func(q *Queue, queueOffset int64, e Entry) bool) (removed int, err error) {
	all := t.All()
	foreign := make([]int64, len(all)) // the place behind a wrong entry
	err = t.phase("comparing them with the log", len(all), func(i int) error {
		q := all[i]
		first, end := q.Min(), q.Max()
		for _, offset := range []int64{first, first + (end-first)/2, end - 1} {
			if e, ok := q.at(offset); ok && !e.IsBlank() && !belongs(q, offset, e) {
				foreign[i] = offset + 1
				break
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for i, q := range all {
		if foreign[i] == 0 {
			continue
		}
		if err := t.remove(q, fmt.Errorf("consumequeue: entry %d of %s is of no record of the log: it was made for another one", foreign[i]-1, t.dir(q))); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
