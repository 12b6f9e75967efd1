package consumequeue

import (
	"fmt"
	"sort"
)

// Suspect is a queue that may have lost its first or its last file, or all of them: a record of it that is missing would lie in the
// log from From up to To.
type Suspect struct {
	Name
	From, To int64
}

// Suspects are the queues that look like that after Recover, with a log from logStart to logEnd: one that ends with a full file, one
// whose first file is not the first and begins with a record that the log has, and a folder without files. Mostly they are whole.
func (t *Table) Suspects(logStart, logEnd int64) (all []Suspect) {
	t.lost.mu.Lock()
	for name := range t.lost.empty {
		all = append(all, Suspect{name, logStart, logEnd})
	}
	t.lost.mu.Unlock()
	for _, q := range t.All() {
		s := Suspect{Name: Name{q.topic, q.queueId}}
		q.mu.Lock()
		if q.first < q.end && q.written%t.perFile == 0 {
			s.From, s.To = max(q.maxPhy, logStart), logEnd
		}
		if q.first > 0 && q.first < q.end {
			if e, err := q.atFile(q.first); err == nil && e.valid() && !e.IsBlank() && e.PhyOffset > logStart {
				if s.To == 0 {
					s.To = e.PhyOffset
				}
				s.From = logStart
			}
		}
		q.mu.Unlock()
		if s.From < s.To {
			all = append(all, s)
		}
	}
	return all
}

// Lacks tells whether a queue that is there, or has an empty folder, has no place for a record of a queue offset, nor an entry of it at
// another place.
func (t *Table) Lacks(topic string, queueId int32, queueOffset, phyOffset int64) bool {
	if q := t.Find(topic, queueId); q != nil {
		first, end := q.min.Load(), q.max.Load()
		return (queueOffset < first || queueOffset >= end) && !q.leadsTo(phyOffset, first, end)
	}
	t.lost.mu.Lock()
	defer t.lost.mu.Unlock()
	_, empty := t.lost.empty[Name{topic, queueId}]
	return empty
}

// leadsTo tells whether one of the entries from first to end is of the record at a log offset.
func (q *Queue) leadsTo(phyOffset, first, end int64) bool {
	i := sort.Search(int(end-first), func(i int) bool {
		_, e, ok := q.nextRight(first+int64(i), end)
		return !ok || e.PhyOffset >= phyOffset
	})
	e, ok := q.at(first + int64(i))
	return ok && e.valid() && e.PhyOffset == phyOffset
}

// Lose gives a queue up: see Lost.
func (t *Table) Lose(topic string, queueId int32, cause error) error {
	cause = fmt.Errorf("consumequeue: %s/%s/%d: %w", t.root, topic, queueId, cause)
	if q := t.Find(topic, queueId); q != nil {
		return t.remove(q, cause)
	}
	t.lost.mu.Lock()
	delete(t.lost.empty, Name{topic, queueId})
	t.lost.mu.Unlock()
	t.noteLost(Name{topic, queueId}, cause)
	return nil
}
