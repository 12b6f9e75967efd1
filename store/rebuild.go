package store

import (
	"errors"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// findLost looks which queues were removed because they are damaged. They are made again when the log's end is known; until
// then nothing is put into them.
func (s *Store) findLost() error {
	if s.lost = s.queues.Lost(); len(s.lost) == 0 {
		s.lost = nil
		return nil
	}
	return s.lowerCheckpoint(max(0, s.log.MinOffset()))
}

// rebuildLost makes the lost queues again from the whole log, up to end.
func (s *Store) rebuildLost(end int64) error {
	if s.lost == nil {
		return nil
	}
	lost := s.lost
	s.lost = nil
	from, entries := max(0, s.log.MinOffset()), 0
	progress := &progress{s: s, from: from, to: end, next: s.o.Clock().Add(progressInterval)}
	for from < end {
		next, err := s.log.Scan(from, func(phyOffset int64, r message.Record) error {
			progress.at(phyOffset)
			var a Arrival
			s.parse(r, &a)
			if !message.Queued(a.sysFlag) {
				return nil
			}
			entry := consumequeue.Entry{PhyOffset: phyOffset, Size: int32(r.Size()), TagsCode: a.TagsCode}
			if lost[consumequeue.Name{Topic: a.Topic, QueueId: a.QueueId}] {
				entries++
				s.enqueue(&a, entry)
			}
			if cfg := s.Config(); cfg.EnableMultiDispatch {
				s.enqueueFurther(cfg, a.Properties, a.QueueId, entry, func(n consumequeue.Name) bool {
					if lost[n] {
						entries++
					}
					return lost[n]
				})
			}
			return nil
		})
		if errors.Is(err, commitlog.ErrDamaged) {
			s.o.Log.Error("the log is damaged; the rest of the file is in no queue that is made again", "error", err)
			next, err = s.log.NextFile(next), nil
		}
		if err != nil {
			return err
		}
		from = next
	}
	s.o.Log.Warn("damaged queues were made again", "queues", len(lost), "entries", entries)
	return nil
}
