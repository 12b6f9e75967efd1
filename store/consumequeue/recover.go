package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sort"
	"sync"
	"sync/atomic"
)

// firstRead is how many entries of a queue's last file are read first: most queues of many are short.
const firstRead = 4 << 10 / EntrySize

// heads are buffers for the first entries of a file.
var heads = sync.Pool{New: func() any { return new([firstRead * EntrySize]byte) }}

// Recover finds the end of every queue:
//
//  1. In the last file the first place without a valid entry (offset >= 0, size > 0) is the end; if the file has
//     none, it is looked for in the file before, of which all entries are expected.
//  2. Behind the end the file is zeroed as far as there is something: a later entry must not look valid again.
//
// Entries before the durable point of the store are without holes; where others have holes (power was cut), Truncate
// drops everything behind that point and the commit log is dispatched again.
func (t *Table) Recover() error {
	all := t.All()
	return t.phase("looking for the ends", len(all), func(i int) error { return all[i].recover() })
}

func (q *Queue) recover() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == q.end || q.known {
		return nil
	}
	start := q.end - q.table.perFile
	buf := heads.Get().(*[firstRead * EntrySize]byte)
	defer heads.Put(buf)
	for {
		head, err := q.readOnce(buf[:min(len(buf), int(q.table.perFile)*EntrySize)], start)
		if err != nil {
			return err
		}
		if start == q.first {
			q.minPhy = Decode(head).PhyOffset // for the rule of CorrectMin; a guess until it has run
		}
		if Decode(head).valid() || start == q.first {
			end, b := start, head
			for len(b) > 0 && Decode(b).valid() {
				end, b = end+1, b[EntrySize:]
			}
			if len(b) > 0 && end > start && q.endInLocked(head, start, end) {
				return nil
			}
			if len(b) == 0 && end-start < q.table.perFile {
				if end, err = q.searchFile(start, end, Entry.valid); err != nil {
					return err
				}
			}
			if err := q.noteHole(start, end); err != nil {
				return err
			}
			return q.endAtLocked(end)
		}
		if err := q.noteHole(start, start); err != nil {
			return err
		}
		start -= q.table.perFile
	}
}

// readOnce reads the beginning of a file without keeping it open: of a hundred thousand queues each is read once.
func (q *Queue) readOnce(b []byte, start int64) ([]byte, error) {
	f, err := q.table.fs.OpenRead(q.table.path(q, start))
	if err != nil {
		return nil, fmt.Errorf("consumequeue: %w", err)
	}
	defer f.Close()
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("consumequeue: reading %s: %w", q.table.path(q, start), err)
	}
	return b, nil
}

// endInLocked is endAtLocked for the common case that the end lies in what has been read of the last file, with
// nothing behind it; else it returns false.
func (q *Queue) endInLocked(head []byte, start, end int64) bool {
	last := Decode(head[(end-1-start)*EntrySize:])
	if start != q.end-q.table.perFile || last.IsBlank() {
		return false
	}
	for _, c := range head[(end-start)*EntrySize:] {
		if c != 0 {
			return false
		}
	}
	q.written, q.synced = end, end
	q.maxPhy = last.PhyOffset + int64(last.Size)
	q.max.Store(end)
	q.min.Store(q.first)
	return true
}

// searchFile returns the first entry of the file that begins with start, at or behind from, for which in is
// false; in must hold for all before that and for none behind it.
func (q *Queue) searchFile(start, from int64, in func(Entry) bool) (int64, error) {
	var failed error
	n := sort.Search(int(start+q.table.perFile-from), func(i int) bool {
		if failed != nil {
			return true
		}
		var buf [EntrySize]byte
		b, err := q.readFile(buf[:0], from+int64(i), EntrySize)
		if err != nil {
			failed = err
			return true
		}
		return !in(Decode(b))
	})
	return from + int64(n), failed
}

// endAtLocked makes end the end of the queue, all of which is in files, and zeroes what is behind it.
func (q *Queue) endAtLocked(end int64) error {
	q.tail = nil
	q.written, q.synced = end, end
	if err := q.zeroLocked(end); err != nil {
		return err
	}
	q.maxPhy = 0
	for last := end - 1; last >= q.first; last-- {
		var buf [EntrySize]byte
		b, err := q.readFile(buf[:0], last, EntrySize)
		if err != nil {
			return err
		}
		if e := Decode(b); !e.IsBlank() {
			q.maxPhy = e.PhyOffset + int64(e.Size)
			break
		}
	}
	if end == q.first {
		q.minPhy = -1
	}
	q.max.Store(end)
	q.min.Store(q.first)
	return nil
}

// Newest is the entry of the newest message of all queues: the one furthest on in the commit log, with its queue and queue
// offset. q is nil when there is none.
func (t *Table) Newest() (q *Queue, queueOffset int64, e Entry) {
	var newest *Queue
	end := int64(0)
	for _, q := range t.All() {
		if phy := q.MaxPhyOffset(); phy > end {
			newest, end = q, phy
		}
	}
	if newest == nil {
		return nil, 0, Entry{}
	}
	for offset := newest.Max() - 1; offset >= newest.Min(); offset-- {
		if e, ok := newest.at(offset); ok && !e.IsBlank() {
			return newest, offset, e
		}
	}
	return nil, 0, Entry{}
}

// Truncate drops the entries of records at or behind a commit-log offset from all queues, which must have been
// recovered and not been appended to. verify, if not nil, tells whether an entry is that of a record in the log; the
// last entry of a queue is asked for until one is (entries of an older, lost end of the log can stand behind a hole).
func (t *Table) Truncate(phyOffset int64, verify func(q *Queue, queueOffset int64, e Entry) bool) error {
	if err := t.removeOrphans(phyOffset); err != nil {
		return err
	}
	all := t.All()
	var queues, entries atomic.Int64
	err := t.phase("dropping what will be dispatched again", len(all), func(i int) error {
		dropped, err := all[i].truncate(phyOffset, verify)
		if dropped > 0 {
			queues.Add(1)
			entries.Add(dropped)
		}
		return err
	})
	if n := queues.Load(); n > 0 {
		t.log.Info("consume queues: entries were dropped", "queues", n, "entries", entries.Load(), "from", phyOffset)
	}
	return err
}

// removeOrphans removes the files behind a missing one, none of whose entries may be before phyOffset.
func (t *Table) removeOrphans(phyOffset int64) error {
	t.flush.Lock()
	orphans := t.orphans
	t.orphans = make(map[*Queue][]int64)
	t.flush.Unlock()
	for q, starts := range orphans {
		for _, start := range starts {
			var buf [EntrySize]byte
			b, err := q.readFile(buf[:0], start, EntrySize)
			if err != nil {
				return err
			}
			if e := Decode(b); e.valid() && !e.IsBlank() && e.PhyOffset < phyOffset {
				cause := fmt.Errorf("consumequeue: %s is missing, and %s was written before the last checkpoint", t.path(q, q.end), t.path(q, start))
				if err := t.remove(q, cause); err != nil {
					return err
				}
				break
			}
			t.notice(slog.LevelWarn, "a consume-queue file behind a missing one is removed", "file", t.path(q, start))
			t.files.drop(q, start)
			if err := t.fs.Remove(t.path(q, start)); err != nil {
				return fmt.Errorf("consumequeue: %w", err)
			}
			t.addDirs(q)
		}
	}
	return nil
}

// truncate is Truncate for one queue. dropped: that many entries.
func (q *Queue) truncate(phyOffset int64, verify func(q *Queue, queueOffset int64, e Entry) bool) (dropped int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == q.end {
		return 0, nil
	}
	if q.known {
		verify = nil // nothing has touched its files since its end was known
	}
	end := q.written
	if q.maxPhy > phyOffset {
		before := func(e Entry) bool { return e.valid() && (e.PhyOffset < phyOffset || e.IsBlank()) }
		start := end - 1 - (end-1)%q.table.perFile
		for ; start > q.first; start -= q.table.perFile {
			var buf [EntrySize]byte
			b, err := q.readFile(buf[:0], start, EntrySize)
			if err != nil {
				return 0, err
			}
			if before(Decode(b)) {
				break
			}
		}
		if end, err = q.searchFile(start, start, before); err != nil {
			return 0, err
		}
		end = min(end, q.written)
	}
	for verify != nil && end > q.first {
		var buf [EntrySize]byte
		b, err := q.readFile(buf[:0], end-1, EntrySize)
		if err != nil {
			return 0, err
		}
		if e := Decode(b); e.IsBlank() || e.valid() && e.PhyOffset < phyOffset && verify(q, end-1, e) {
			break
		}
		end--
	}
	if end == q.written {
		return 0, nil
	}
	dropped = q.written - end
	q.table.log.Debug("entries are dropped", "topic", q.topic, "queueId", q.queueId, "max", end, "dropped", dropped)
	return dropped, q.endAtLocked(end)
}

// CorrectMin moves the minimum of every queue to its first entry whose record is in the log, which begins at
// minPhyOffset; to the end, when there is none. As ConsumeQueue#correctMinOffset of 4.9.8, except that blank
// entries are never the first.
func (t *Table) CorrectMin(minPhyOffset int64) {
	all := t.All()
	_ = t.phase("looking for the first messages in the log", len(all), func(i int) error {
		all[i].correctMin(minPhyOffset)
		return nil
	})
}

func (q *Queue) correctMin(minPhyOffset int64) {
	lo, hi := q.min.Load(), q.max.Load()
	if lo == hi {
		return
	}
	q.mu.Lock()
	known := q.minPhy
	q.mu.Unlock()
	if known > 0 && known >= minPhyOffset {
		return // a blank one has 0
	}
	if e, ok := q.at(lo); ok && !e.IsBlank() && e.PhyOffset >= minPhyOffset {
		return
	}
	// A damaged or blank entry counts as the next right one does.
	minimum := lo + int64(sort.Search(int(hi-lo), func(i int) bool {
		_, e, ok := q.nextRight(lo+int64(i), hi)
		return !ok || e.PhyOffset >= minPhyOffset
	}))
	for e, ok := q.at(minimum); minimum < hi && ok && e.IsBlank(); e, ok = q.at(minimum) {
		minimum++
	}
	phy := int64(-1)
	if minimum < hi {
		if e, ok := q.at(minimum); ok {
			phy = e.PhyOffset
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.min.Load() != lo || q.max.Load() < minimum {
		return // cut back meanwhile
	}
	q.min.Store(minimum)
	q.minPhy = phy
}

// DeleteExpired removes the files whose last entry is below minPhyOffset, never the last file of a queue, and
// corrects the minimums. It returns how many files went. wait, if not nil, is called between queues that lost some.
func (t *Table) DeleteExpired(minPhyOffset int64, wait func()) (int, error) {
	var (
		total int
		first error
	)
	for _, q := range t.All() {
		n, err := q.deleteExpired(minPhyOffset)
		if err != nil && first == nil {
			first = err
		}
		q.correctMin(minPhyOffset)
		if t.ext.there.Load() {
			if err := q.deleteUnits(); err != nil && first == nil {
				first = err
			}
		}
		if total += n; n > 0 && wait != nil {
			wait()
		}
	}
	return total, first
}

func (q *Queue) deleteExpired(minPhyOffset int64) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead || q.minPhy > 0 && q.minPhy >= minPhyOffset {
		return 0, nil
	}
	n := 0
	for q.first+q.table.perFile < q.end && q.first+q.table.perFile <= q.written {
		// If the last entry is damaged, its message may lie right before the next one's.
		last, ok, err := q.rightFrom(q.first + q.table.perFile - 1)
		if err != nil {
			return n, err
		}
		if !ok || last.PhyOffset >= minPhyOffset {
			break
		}
		q.table.files.drop(q, q.first)
		if err := q.table.fs.Remove(q.table.path(q, q.first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("consumequeue: %w", err)
		}
		q.table.addDirs(q)
		q.first += q.table.perFile
		q.synced = max(q.synced, q.first)
		if q.min.Load() < q.first {
			q.min.Store(q.first)
			q.minPhy = -1
		}
		n++
	}
	return n, nil
}

// rightFrom is the first right entry at or behind a place, as far as entries are in files; ok is false when there is none. The
// caller has q.mu.
func (q *Queue) rightFrom(at int64) (e Entry, ok bool, err error) {
	for ; at < q.written; at++ {
		e, err := q.atFile(at)
		if err != nil || e.valid() && !e.IsBlank() {
			return e, err == nil, err
		}
	}
	return Entry{}, false, nil
}

// nextRight is the first entry from one place to another that is neither blank nor none; ok is false when there is no such.
func (q *Queue) nextRight(from, to int64) (at int64, e Entry, ok bool) {
	var buf [nextEntries * EntrySize]byte
	for n := 1; from < to; n = nextEntries { // mostly it is the first
		b, err := q.Read(buf[:0], from, n)
		if err != nil || len(b) == 0 {
			return 0, Entry{}, false
		}
		for ; len(b) >= EntrySize && from < to; b, from = b[EntrySize:], from+1 {
			if e := Decode(b); e.valid() && !e.IsBlank() {
				return from, e, true
			}
		}
	}
	return 0, Entry{}, false
}

// nextEntries is how many entries nextRight reads at a time.
const nextEntries = 128

// DestroyAll removes every queue: there is no commit log that they could belong to.
func (t *Table) DestroyAll() error {
	var first error
	for _, q := range t.All() {
		if err := t.Destroy(q); err != nil && first == nil {
			first = err
		}
	}
	return first
}
