package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
	"rocketd/store/index"
)

// recover makes log, queues and index agree:
//
//  1. Without a commit-log file the queues and the index are destroyed: as the official broker does, but loudly.
//  2. Each queue's end is found. One that ends before what we remember (hint.go) is damaged; when we remember nothing, one that
//     lacks the entry of a record (cut.go).
//  3. Where to begin, always at a place where a record is known to begin:
//     After a clean stop behind the newest record that the queues know, if it is there; else at the third last file.
//     (The official broker scans the last three files, and cuts the log at a bad record in one of them; we don't look.)
//     After a crash where our last checkpoint says that everything before is durable; without one, at the newest file
//     whose first record is 3 s older than the official checkpoint. Not later than the newest record that the queues
//     know: queues that were removed are rebuilt.
//     If the checkpoint says that queues and index have more than what is before, it is taken back first.
//     Queues whose newest entry is of no record in the log may be those of another one: these are made again in step 6.
//  4. After a crash queues and index lose what they have from that offset on.
//  5. Each record found is dispatched. The first invalid one ends the log.
//  6. Entries behind that end are dropped; queues that were damaged, and an index that lacks, are made from the whole log,
//     a missing index file from what lies between its neighbours.
//  7. Queue offsets go on from the ends of the queues, their minimums follow the log's.
func (s *Store) recover(crashed bool, h hint) error {
	began := s.o.Clock()
	defer s.queues.Summarise()
	if len(s.log.FileStarts()) == 0 {
		if err := s.destroyDerived(); err != nil {
			return err
		}
		h = nil
	}
	if err := s.queues.Recover(); err != nil {
		return err
	}
	if err := s.loseShort(h); err != nil {
		return err
	}
	from, own, trusted := s.recoverFrom(crashed)
	if h == nil && trusted {
		lost, err := s.loseCut(from)
		if err != nil {
			return err
		}
		if lost {
			from, own, trusted = s.recoverFrom(crashed)
		}
	}
	s.recoveredFrom = from
	if err := s.lowerCheckpoint(from); err != nil {
		return err
	}
	durable := int64(math.MaxInt64)
	if crashed {
		durable = from
	}
	if err := s.queues.RemoveHoles(durable); err != nil {
		return err
	}
	if !trusted {
		if err := s.removeForeign(from, crashed); err != nil {
			return err
		}
	}
	if crashed || !trusted {
		if err := s.cutDerived(from); err != nil {
			return err
		}
	}
	if err := s.findLost(); err != nil {
		return err
	}
	reindexFrom, err := s.indexStart(from, crashed, own)
	var borders []index.Border
	if err == nil && s.Config().MessageIndexEnable {
		borders, err = s.index.Borders()
	}
	if errors.Is(err, syscall.ENOSPC) {
		// It can't be mended where it is, but made again from the log: that also gives room to the rest.
		s.o.Log.Error("the disk is full: the index is removed and made again from the log, as far as there is room; make room", "error", err)
		reindexFrom, err = max(0, s.log.MinOffset()), s.index.DestroyAll()
	}
	if err == nil && reindexFrom < from {
		err = s.lowerCheckpoint(reindexFrom)
	}
	if err != nil {
		return err
	}
	s.o.Log.Info("recovering", "clean", !crashed, "from", from, "minPhyOffset", s.log.MinOffset())
	records := 0
	err = s.log.Recover(from, s.Config().CheckCRCOnRecover, func(phyOffset int64, r message.Record) error {
		records++
		return s.dispatchRecord(phyOffset, r, reindexFrom == from)
	})
	if err != nil {
		return err
	}
	end := s.log.MaxOffset()
	if q, _, newest := s.queues.Newest(); q != nil && newest.PhyOffset+int64(newest.Size) > end {
		s.o.Log.Warn("the queues know records behind the end of the log", "maxPhyOffset", end, "newest", newest.PhyOffset)
		if err := s.queues.Truncate(end, nil); err != nil {
			return err
		}
	}
	if err := s.rebuildLost(end); err != nil {
		return err
	}
	if err := s.reindex(reindexFrom, from, end); err != nil {
		return err
	}
	if err := s.fillGaps(borders); err != nil {
		return err
	}
	s.queues.ResetOffsets()
	s.queues.CorrectMin(s.log.MinOffset())
	s.dispatched.Store(end)
	if s.lastRecord.Load() >= end {
		s.lastRecord.Store(-1)
	}
	s.clean.minPhyOffset = s.log.MinOffset()
	s.live = true
	s.o.Log.Info("recovered", "maxPhyOffset", end, "records", records, "took", s.o.Clock().Sub(began))
	return nil
}

// recoverFrom is step 3. own: our checkpoint, or a clean stop, vouches for the index too. trusted: the newest entry of the
// queues is that of a record in the log.
func (s *Store) recoverFrom(crashed bool) (from int64, own, trusted bool) {
	starts := s.log.FileStarts()
	if len(starts) == 0 {
		return 0, true, true
	}
	minimum := starts[0].Offset
	known, sure := minimum, true
	if q, queueOffset, e := s.queues.Newest(); q != nil && e.PhyOffset+int64(e.Size) > minimum {
		known = e.PhyOffset + int64(e.Size)
		if sure = s.belongs(q, queueOffset, e); sure {
			s.lastRecord.Store(e.PhyOffset)
		} else {
			s.o.Log.Warn("the newest entry of the queues is of no record in the log", "phyOffset", e.PhyOffset, "size", e.Size)
		}
	}
	switch {
	case !crashed && sure:
		return known, true, true
	case !crashed:
		return min(s.fileStart(known), starts[max(0, len(starts)-3)].Offset), true, false
	}
	from, own = s.durable(starts)
	switch {
	case known >= from:
	case sure:
		from = known
	default:
		from = s.fileStart(known)
	}
	return from, own, sure
}

// lowerCheckpoint makes the checkpoint file say no more than that queues and index hold what is before a record: what
// comes behind is made again and stays in memory for a while. Who starts after a kill in that while, the official broker
// too, would else take it for durable and leave it out. The abort file makes that start look.
func (s *Store) lowerCheckpoint(from int64) error {
	stored := s.firstStored(from)
	if stored == 0 {
		return nil // there is nothing to be made again
	}
	s.remade = true
	c := s.checkpoint
	c.physicMsgTimestamp = min(c.physicMsgTimestamp, stored-1)
	c.logicsMsgTimestamp = min(c.logicsMsgTimestamp, stored-1)
	c.indexMsgTimestamp = min(c.indexMsgTimestamp, stored-1)
	if c.dispatched > from {
		c.dispatched, c.lastRecord = noCheckpoint.dispatched, noCheckpoint.lastRecord
	}
	if c == s.checkpoint {
		return nil
	}
	if err := s.writeAbort(); err != nil {
		return err
	}
	err := writeCheckpoint(s.o.FS, s.path("checkpoint"), s.Config().StorePathRootDir, c)
	if errors.Is(err, syscall.ENOSPC) {
		// A file system that copies what it writes. Without the file a start takes nothing for durable.
		s.o.Log.Error("the disk is full: the checkpoint is removed, a start after a kill takes longer until there is a new one; make room", "error", err)
		c.dispatched, c.lastRecord = noCheckpoint.dispatched, noCheckpoint.lastRecord
		err = s.removeCheckpoint()
	}
	if err != nil {
		return err
	}
	s.checkpoint = c
	return nil
}

func (s *Store) removeCheckpoint() error {
	if err := s.o.FS.Remove(s.path("checkpoint")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.o.FS.SyncDir(s.Config().StorePathRootDir); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// firstStored is the store timestamp of the first record at or behind an offset where one begins, or a file's blank
// one; 0 when there is none.
func (s *Store) firstStored(from int64) int64 {
	if t := s.storeTime(from); t != 0 {
		return t
	}
	for _, f := range s.log.FileStarts() {
		if f.Offset > from {
			return f.FirstTimestamp
		}
	}
	return 0
}

// destroyDerived removes queues and index, which refer to a log that is no longer there.
func (s *Store) destroyDerived() error {
	if n := len(s.queues.All()); n > 0 {
		s.o.Log.Error("THERE IS NO COMMIT LOG FILE: the consume queues are removed, queue offsets begin at 0 again. If storePathCommitLog"+
			" is wrong, or its disk is not mounted, stop and mend that: a start with the right log makes them again",
			"folder", s.Config().CommitLogDir(), "queues", n)
	}
	if err := s.queues.DestroyAll(); err != nil {
		return err
	}
	return s.index.DestroyAll()
}

// durable is the offset from which on the log must be dispatched again after a crash. own: our checkpoint says so,
// and of the index too.
func (s *Store) durable(starts []commitlog.FileStart) (from int64, own bool) {
	if c := s.checkpoint; c.dispatched >= starts[0].Offset &&
		(s.fileStart(c.dispatched) == c.dispatched || s.endsRecord(c.dispatched, c.lastRecord)) {
		return c.dispatched, true
	}
	cfg := s.Config()
	newest := s.checkpoint.minTimestamp(cfg.MessageIndexEnable && cfg.MessageIndexSafe)
	for i := len(starts) - 1; i >= 0; i-- {
		if t := starts[i].FirstTimestamp; t != 0 && t <= newest {
			return starts[i].Offset, false
		}
	}
	return starts[0].Offset, false
}

// endsRecord tells whether the log has a record at an offset that ends at end.
func (s *Store) endsRecord(end, phyOffset int64) bool {
	if phyOffset < 0 || end-phyOffset > math.MaxInt32 {
		return false
	}
	_, err := s.rawRecord(nil, phyOffset, int32(end-phyOffset))
	return err == nil
}

// fileStart is the start of the log file that holds an offset.
func (s *Store) fileStart(phyOffset int64) int64 {
	start := int64(0)
	for _, f := range s.log.FileStarts() {
		if f.Offset <= phyOffset {
			start = f.Offset
		}
	}
	return start
}

// cutDerived drops from queues and index what will be dispatched again.
func (s *Store) cutDerived(from int64) error {
	return s.queues.Truncate(from, func(q *consumequeue.Queue, queueOffset int64, e consumequeue.Entry) bool {
		return e.PhyOffset < s.log.MinOffset() || s.belongs(q, queueOffset, e) // its record may have expired
	})
}

// indexStart is where indexing must begin: from, or earlier when the index lacks something that it should have.
// The official checkpoint says nothing of the file that was being written: then indexing goes on behind its last entry.
func (s *Store) indexStart(from int64, crashed, own bool) (int64, error) {
	if !s.Config().MessageIndexEnable {
		return from, nil
	}
	keyless := own && s.checkpoint.indexMsgTimestamp == 0 // nothing that the checkpoint covers has a key
	if crashed {
		start, err := s.index.Recover(from, s.checkpoint.indexMsgTimestamp, func(phyOffset int64) int64 {
			return s.storeTime(phyOffset)
		})
		if err != nil {
			return 0, err
		}
		// The last file may be empty because it is lost. Then too indexing goes on behind what there is.
		if from = start; !own || !keyless && s.index.Shrunk() && s.index.EndPhyOffset() != s.checkpoint.lastRecord {
			from = min(from, s.index.EndPhyOffset())
		}
	}
	if !crashed {
		start, err := s.index.Mend(s.log.MaxOffset(), s.storeTime)
		if err != nil {
			return 0, err
		}
		from = min(from, start)
	}
	if s.index.Empty() {
		if keyless {
			return from, nil
		}
		return max(0, s.log.MinOffset()), nil
	}
	from, err := s.lackingTail(from)
	if err != nil {
		return 0, err
	}
	return max(from, s.log.MinOffset(), 0), nil
}

// reindex indexes the log from an offset, when that is before the one where dispatch began.
func (s *Store) reindex(from, dispatchedFrom, end int64) error {
	if from == dispatchedFrom || from >= end {
		return nil
	}
	s.o.Log.Warn("the index is incomplete: it is made again from the log", "from", from, "to", end)
	progress := &progress{s: s, from: from, to: end, next: s.o.Clock().Add(progressInterval)}
	for from < end {
		next, err := s.log.Scan(from, func(phyOffset int64, r message.Record) error {
			progress.at(phyOffset)
			s.indexRecord(phyOffset, r)
			return nil
		})
		if errors.Is(err, commitlog.ErrDamaged) {
			s.o.Log.Error("the log is damaged; the rest of the file is not indexed", "error", err)
			next, err = s.log.NextFile(next), nil
		}
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// progress logs how far indexing is, every two seconds.
type progress struct {
	s        *Store
	from, to int64
	records  int
	next     time.Time
}

const progressInterval = 2 * time.Second

func (p *progress) at(phyOffset int64) {
	if p.records++; p.records%4096 != 0 {
		return
	}
	if now := p.s.o.Clock(); now.After(p.next) {
		p.next = now.Add(progressInterval)
		p.s.o.Log.Info("indexing", "phyOffset", phyOffset, "percent", 100*(phyOffset-p.from)/max(1, p.to-p.from), "records", p.records)
	}
}
