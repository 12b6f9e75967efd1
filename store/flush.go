package store

import (
	"fmt"
	"time"

	"rocketd/compat"
)

// checkpointBytes is how much log there may be behind the checkpoint: recovery after a crash dispatches that again.
const checkpointBytes = 128 << 20

// flushLoop is the flusher of queues and index: it writes what is in memory, syncs what is worth it, and from time
// to time everything, with the checkpoint.
func (s *Store) flushLoop(stop <-chan struct{}) {
	thorough, tried := s.o.Clock(), s.dispatched.Load()
	failing := false
	for {
		cfg := s.Config()
		timer := time.NewTimer(compat.Millis(max(1, cfg.FlushIntervalConsumeQueue)))
		select {
		case <-timer.C:
		case <-stop:
			timer.Stop()
			return
		}
		now := s.o.Clock()
		var err error
		if now.Sub(thorough) >= compat.Millis(cfg.FlushConsumeQueueThoroughInterval) ||
			s.dispatched.Load()-tried > checkpointBytes {
			thorough, tried = now, s.dispatched.Load()
			err = s.saveCheckpoint()
		} else {
			err = s.flushDerived(max(1, cfg.FlushConsumeQueueLeastPages))
		}
		switch {
		case err != nil && !failing:
			s.o.Log.Error("flushing queues and index failed; it is tried again", "error", err)
		case err == nil && failing:
			s.o.Log.Info("flushing queues and index works again")
		}
		failing = err != nil
	}
}

// flushDerived writes what queues and index have in memory, and syncs the queues that have so many pages to sync.
func (s *Store) flushDerived(leastPages int) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	err := s.queues.Flush(leastPages)
	if _, e := s.index.Flush(false); err == nil {
		err = e
	}
	return err
}

// saveCheckpoint makes log, queues and index durable as far as they go now, then says so in the checkpoint file. After
// damage there is no further checkpoint: the next start must begin at the last one.
func (s *Store) saveCheckpoint() error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	stored := s.lastStored.Load() // before dispatched, which it then does not exceed
	dispatched, lastRecord := s.dispatchedTo()
	if dispatched > s.log.FlushedOffset() {
		if err := s.log.Flush(); err != nil {
			return err
		}
	}
	if err := s.queues.Flush(0); err != nil {
		return err
	}
	if err := s.queues.Damaged(); err != nil {
		return fmt.Errorf("store: no checkpoint: %w", err)
	}
	indexed, err := s.index.Flush(true)
	if err != nil {
		return err
	}
	if s.Config().MessageIndexSafe {
		// The official broker makes the keys of the newest file again only when it is told that they are not safe.
		indexed = s.index.FullTimestamp()
	} else {
		indexed = max(s.checkpoint.indexMsgTimestamp, indexed)
	}
	next := checkpoint{
		physicMsgTimestamp: max(s.checkpoint.physicMsgTimestamp, s.log.LastFlushedTimestamp()),
		logicsMsgTimestamp: max(s.checkpoint.logicsMsgTimestamp, stored),
		indexMsgTimestamp:  indexed,
		dispatched:         dispatched,
		lastRecord:         lastRecord,
	}
	if next != s.checkpoint {
		if err := writeCheckpoint(s.o.FS, s.path("checkpoint"), s.Config().StorePathRootDir, next); err != nil {
			return err
		}
		s.checkpoint = next
	}
	s.writeHint()
	return nil
}
