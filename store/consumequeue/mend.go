package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
)

const (
	// MaxStretch is how many entries are mended at a time.
	MaxStretch = 1 << 17
	// mendedBehind is how many right entries in a row end a stretch: damage comes in pages.
	mendedBehind = 64
)

// Stretch is neighbouring entries of a queue some of which are wrong: what is to be made again from the log.
type Stretch struct {
	Queue *Queue
	First int64   // queue offset of the first one
	Wrong []bool  // by place
	Left  int     // wrong ones that Found has not got
	Found []Entry // by place; zero: not found yet
	// The records of the wrong ones lie in the log from From up to To.
	From, To int64
	epoch    uint32
}

// StretchAt looks how far the damage at a queue offset goes, in both directions. right tells whether an entry that looks
// like one leads to its record. The records are looked for between logStart and logEnd, or nearer. nil: there is no
// damage (any more).
func (q *Queue) StretchAt(offset, logStart, logEnd int64, right func(queueOffset int64, e Entry) bool) (*Stretch, error) {
	q.mu.Lock()
	epoch, dead, first, end := q.epoch, q.dead, max(q.first, q.min.Load()), q.written
	q.mu.Unlock()
	if dead || offset < first || offset >= end {
		return nil, nil
	}
	isRight := func(at int64, e Entry) bool { return e.IsBlank() || e.valid() && right(at, e) }
	s := &Stretch{Queue: q, First: offset, From: logStart, To: logEnd, epoch: epoch}
	for ; s.First > first && offset-s.First < MaxStretch/2; s.First-- {
		e, err := q.inFile(s.First - 1)
		if err != nil {
			return nil, err
		}
		if isRight(s.First-1, e) {
			break
		}
	}
	for at, since := s.First, 0; at < end && since < mendedBehind && len(s.Wrong) < MaxStretch; at++ {
		e, err := q.inFile(at)
		if err != nil {
			return nil, err
		}
		wrong := !isRight(at, e)
		s.Wrong = append(s.Wrong, wrong)
		if since++; wrong {
			since = 0
			s.Left++
		}
	}
	for n := len(s.Wrong); n > 0 && !s.Wrong[n-1]; n-- {
		s.Wrong = s.Wrong[:n-1]
	}
	if s.Left == 0 {
		return nil, nil
	}
	s.Found = make([]Entry, len(s.Wrong))
	for at := s.First - 1; at >= first; at-- { // a blank one tells nothing
		e, err := q.inFile(at)
		if err != nil || !isRight(at, e) {
			return s, err
		}
		if !e.IsBlank() {
			s.From = max(s.From, e.PhyOffset+int64(e.Size))
			break
		}
	}
	for at := s.First + int64(len(s.Wrong)); at < end; at++ {
		e, err := q.inFile(at)
		if err != nil || !isRight(at, e) {
			return s, err
		}
		if !e.IsBlank() {
			s.To = min(s.To, e.PhyOffset)
			break
		}
	}
	return s, nil
}

// inFile is atFile; a file that has gone is made anew.
func (q *Queue) inFile(at int64) (Entry, error) {
	e, err := q.atFile(at)
	if !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	q.mu.Lock()
	if start := at - at%q.table.perFile; !q.dead && start >= q.first && start < q.end {
		err = q.table.createFile(q, start)
	}
	q.mu.Unlock()
	if err != nil {
		return Entry{}, err
	}
	return q.atFile(at)
}

// Offer gives the stretch the entry of a record at a queue offset. It tells whether nothing is wanted any more.
func (s *Stretch) Offer(queueOffset int64, e Entry) (whole bool) {
	i := queueOffset - s.First
	if i >= 0 && i < int64(len(s.Wrong)) && s.Wrong[i] {
		if s.Found[i] == (Entry{}) {
			s.Left--
		}
		s.Found[i] = e // of several the newest owns the offset
	}
	return s.Left == 0
}

// Write puts what was found in the places of the wrong entries, durably. Of the others keep tells which stay as they are:
// they may be right, but their records can't be read. The rest get blank entries: the log has no record for them. lost is
// how many those are; mended how many are right again. Entries that were cut off or have expired meanwhile are left out.
func (s *Stretch) Write(keep func(e Entry) bool) (mended, lost int, err error) {
	q := s.Queue
	q.mu.Lock()
	from, to := max(s.First, q.first), min(s.First+int64(len(s.Wrong)), q.written)
	if q.dead || q.epoch != s.epoch {
		q.mu.Unlock()
		return 0, 0, nil
	}
	for at := from; at < to && err == nil; at++ {
		i := at - s.First
		if !s.Wrong[i] {
			continue
		}
		e := s.Found[i]
		if e == (Entry{}) {
			var old Entry
			if old, err = q.atFile(at); err != nil {
				break
			}
			if lost++; old.valid() && keep(old) {
				continue
			}
			e = blank
		} else {
			mended++
		}
		err = q.overwriteLocked(at, e)
	}
	q.mu.Unlock()
	if err != nil {
		return mended, lost, err
	}
	return mended, lost, q.syncFiles(from, to)
}

// atFile reads the entry at a place that is in a file.
func (q *Queue) atFile(at int64) (Entry, error) {
	var buf [EntrySize]byte
	b, err := q.readFile(buf[:0], at, EntrySize)
	if err != nil {
		return Entry{}, err
	}
	return Decode(b), nil
}

// overwriteLocked writes an entry over the one at a place that is in a file.
func (q *Queue) overwriteLocked(at int64, e Entry) error {
	start := at - at%q.table.perFile
	h, err := q.table.files.acquire(q, start)
	if err != nil {
		return err
	}
	defer q.table.files.release(h)
	var buf [EntrySize]byte
	if _, err := h.file.WriteAt(e.append(buf[:0]), (at-start)*EntrySize); err != nil {
		return fmt.Errorf("consumequeue: writing %s: %w", q.table.path(q, start), err)
	}
	return nil
}
