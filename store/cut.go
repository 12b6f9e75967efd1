package store

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// cutScan is how much of the log is read to see whether queues lack something at their ends.
const cutScan = 64 << 20

// loseCut gives up queues that have lost entries at an end, when no hint tells: another broker has used the directory since, or
// the system was started again after a crash. Before from every record must have its entry. Those of the last cutScan bytes
// are looked for, and as far as a queue looks as if a file had gone, those of all bytes where that file's records would be. Then
// the hint tells the next start. It returns whether there were any.
func (s *Store) loseCut(from int64) (lost bool, err error) {
	start := max(0, s.log.MinOffset())
	at := s.recordFrom(max(start, from-cutScan), from)
	suspects := s.queues.Suspects(start, from)
	for _, q := range suspects {
		at = min(at, q.From)
	}
	if at >= from {
		return false, nil
	}
	if len(suspects) > 0 {
		s.o.Log.Info("queues that may lack a file are compared with the log", "queues", len(suspects), "from", at, "to", from)
	}
	progress := &progress{s: s, from: at, to: from, next: s.o.Clock().Add(progressInterval)}
	cut := make(map[consumequeue.Name]error)
	for at < from {
		next, err := s.log.Scan(at, func(phyOffset int64, r message.Record) error {
			if phyOffset >= from {
				return errSeen
			}
			progress.at(phyOffset)
			if !message.Queued(r.SysFlag()) || !s.queues.Lacks(r.Topic(), r.QueueId(), r.QueueOffset(), phyOffset) || strings.HasPrefix(r.Topic(), message.LmqTopicPrefix) {
				return nil
			}
			name := consumequeue.Name{Topic: strings.Clone(r.Topic()), QueueId: r.QueueId()}
			cut[name] = fmt.Errorf("it has no entry %d, of the record at %d", r.QueueOffset(), phyOffset)
			return nil
		})
		switch {
		case errors.Is(err, errSeen):
			next = from
		case errors.Is(err, commitlog.ErrDamaged):
			next = s.log.NextFile(next)
		case err != nil:
			return false, err
		case next <= at:
			next = from
		}
		at = next
	}
	for name, cause := range cut {
		if err := s.queues.Lose(name.Topic, name.QueueId, cause); err != nil {
			return false, err
		}
	}
	return len(cut) > 0, nil
}

// recordFrom is where a record begins at or behind a log offset, by the queue that has the newest message of all; end when that
// tells of none.
func (s *Store) recordFrom(at, end int64) int64 {
	q, _, _ := s.queues.Newest()
	if q == nil || at >= end || at <= s.log.MinOffset() {
		return min(at, end)
	}
	first, n := q.Min(), int(q.Max()-q.Min())
	i := sort.Search(n, func(i int) bool {
		e, ok := q.Entry(first + int64(i))
		return ok && e.PhyOffset >= at
	})
	if e, ok := q.Entry(first + int64(i)); ok && e.PhyOffset < end && s.belongs(q, first+int64(i), e) {
		return e.PhyOffset
	}
	return end
}
