package store

import "rocketd/store/consumequeue"

// belongs tells whether an entry of a queue is that of a record in the log.
func (s *Store) belongs(q *consumequeue.Queue, queueOffset int64, e consumequeue.Entry) bool {
	r, err := s.rawRecord(nil, e.PhyOffset, e.Size)
	return err == nil && isOf(r, q, queueOffset)
}

// removeForeign gives up the queues that belong to another log, when the newest entry of all belongs to none of this one: a
// session with a wrong storePathCommitLog, or without the log's disk, has found no log, removed the queues, and made others.
// Those are made again from the log, and the index, which that session has removed and made too. After a crash entries at
// or behind from are dropped in any case.
func (s *Store) removeForeign(from int64, crashed bool) error {
	minimum := s.log.MinOffset()
	removed, err := s.queues.RemoveForeign(func(q *consumequeue.Queue, queueOffset int64, e consumequeue.Entry) bool {
		return crashed && e.PhyOffset >= from || e.PhyOffset < minimum || s.belongs(q, queueOffset, e)
	})
	if err != nil || removed == 0 {
		return err
	}
	return s.index.DestroyAll()
}
