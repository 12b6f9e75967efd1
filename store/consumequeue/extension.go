package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"sync/atomic"

	"rocketd/store/vfs"
)

// extFiles is consumequeue_ext as a whole.
type extFiles struct {
	root  string // "": there can be none
	size  int64  // bytes of a file
	write bool   // new entries get units
	there atomic.Bool
	told  atomic.Int64 // errors that were logged
}

// mostTold is how many errors of units are logged in a session: a wrong size in the configuration is one of every queue.
const mostTold = 20

// tell logs an error of units.
func (t *Table) tell(text string, args ...any) {
	switch n := t.ext.told.Add(1); {
	case n < mostTold:
		t.log.Error(text, args...)
	case n == mostTold:
		t.log.Error(text+"; more of the kind are not logged", args...)
	default:
		t.log.Debug(text, args...)
	}
}

// extension is the units of one queue, from the first one on that is added in this session. Guarded by Queue.mu. Offsets
// count bytes.
type extension struct {
	tail    []byte // units [written, written+len(tail))
	written int64  // what is before is in the files
	synced  int64  // what is before is durable
	end     int64  // of the newest file; where the next one begins
	bypass  bool   // the files can't be used: entries keep their own tagsCode
}

// extDir is the folder of a queue's units.
func (t *Table) extDir(q *Queue) string {
	return path.Join(t.ext.root, q.topic, strconv.Itoa(int(q.queueId)))
}

func (t *Table) extPath(q *Queue, start int64) string {
	return path.Join(t.extDir(q), fmt.Sprintf("%020d", start))
}

// extPlace is the number by which the cache of descriptors knows the file of units that begins at an offset: those of
// entries are not negative.
func extPlace(start int64) int64 { return ^start }

// openExt notes whether there is a folder of units. One that can't be made (the disk is full) is done without.
func (t *Table) openExt() {
	if t.ext.root == "" || t.ext.size <= 0 {
		t.ext.write = false
		return
	}
	if t.ext.write {
		if err := vfs.MkdirAllSync(t.fs, t.ext.root); err != nil {
			t.log.Error("consumequeue_ext can't be made: entries have their tagsCode themselves until the next start", "error", err)
			t.ext.write = false
		}
	}
	_, err := t.fs.Stat(t.ext.root)
	t.ext.there.Store(err == nil)
}

// extendLocked adds the unit of an entry and returns what becomes the entry's tagsCode: the unit's address, or the
// tagsCode itself when the unit has no place. As ConsumeQueueExt#put of 4.9.8.
func (q *Queue) extendLocked(u *Unit) int64 {
	x, size := q.ext, q.table.ext.size
	if x == nil {
		x = q.openExtensionLocked()
		q.ext = x
	}
	need := int64(minUnit + len(u.BitMap))
	end := x.written + int64(len(x.tail))
	if x.bypass || need > maxUnit || need > size-unitFree || end+need > maxUnitOffset {
		return u.TagsCode
	}
	if left := size - end%size; need > left-unitFree {
		n := len(x.tail)
		x.tail = append(x.tail, make([]byte, left)...)
		x.tail[n], x.tail[n+1] = 0xff, 0xff
		end += left
	}
	x.tail = u.append(x.tail)
	return Address(end)
}

// writeExtensionLocked writes the tail of units, before the entries that lead to them. What could not be written stays in
// the tail.
func (q *Queue) writeExtensionLocked() error {
	x := q.ext
	if x == nil {
		return nil
	}
	done := 0
	for done < len(x.tail) {
		n, err := q.writeUnitsLocked(x.tail[done:])
		done += n
		if err != nil {
			x.tail = x.tail[:copy(x.tail, x.tail[done:])]
			return err
		}
	}
	if x.tail = x.tail[:0]; cap(x.tail) > 2*tailSize {
		x.tail = nil
	}
	return nil
}

// writeUnitsLocked writes as much of b at written as the file there holds.
func (q *Queue) writeUnitsLocked(b []byte) (int, error) {
	x, t := q.ext, q.table
	size := t.ext.size
	if x.written >= x.end {
		if err := t.createExt(q, x.end); err != nil {
			return 0, err
		}
		x.end += size
	}
	start := x.written - x.written%size
	if room := start + size - x.written; int64(len(b)) > room {
		b = b[:room]
	}
	h, err := t.files.acquire(q, extPlace(start))
	if err != nil {
		return 0, err
	}
	defer t.files.release(h)
	if _, err := h.file.WriteAt(b, x.written-start); err != nil {
		return 0, fmt.Errorf("consumequeue: writing %s: %w", t.extPath(q, start), err)
	}
	x.written += int64(len(b))
	return len(b), nil
}

// createExt makes the file of units that begins at an offset: full length, sparse.
func (t *Table) createExt(q *Queue, start int64) error {
	t.places.RLock()
	defer t.places.RUnlock()
	if err := t.fs.MkdirAll(t.extDir(q)); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	name := t.extPath(q, start)
	f, err := vfs.CreateSized(t.fs, name, t.ext.size)
	if errors.Is(err, fs.ErrExist) { // left by a creation that failed half way
		if f, err = t.fs.Open(name); err == nil {
			if err = errors.Join(f.Truncate(0), f.Truncate(t.ext.size)); err != nil {
				f.Close()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("consumequeue: making %s: %w", name, err)
	}
	t.files.put(q, extPlace(start), f)
	t.addExtDirs(q)
	return nil
}

// addExtDirs is addDirs for the folders of units.
func (t *Table) addExtDirs(q *Queue) {
	dir := t.extDir(q)
	t.addSyncs(dir, path.Dir(dir), t.ext.root)
}

// syncUnits makes the files of the units between two offsets durable.
func (q *Queue) syncUnits(from, to int64) error {
	size := q.table.ext.size
	for start := from - from%size; start < to; start += size {
		if err := q.syncFile(extPlace(start), q.table.extPath(q, start)); err != nil {
			return err
		}
	}
	return nil
}

// removeExt removes all units of a queue, which must be dead or have nothing that leads to them.
func (t *Table) removeExt(q *Queue) error {
	if !t.ext.there.Load() || q.unfit {
		return nil
	}
	t.files.dropUnits(q)
	q.ext = nil
	dir := t.extDir(q)
	if _, err := t.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t.addExtDirs(q)
	if err := t.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	if left, err := t.fs.List(path.Dir(dir)); err == nil && len(left) == 0 {
		if err := t.fs.Remove(path.Dir(dir)); err != nil {
			return fmt.Errorf("consumequeue: %w", err)
		}
	}
	return nil
}

// deleteUnits removes the files of units before the one to which the queue's first entry leads. As
// ConsumeQueueExt#truncateByMinAddress of 4.9.8: when that entry leads to none, nothing is removed.
func (q *Queue) deleteUnits() error {
	t := q.table
	size := t.ext.size
	e, ok := q.at(q.min.Load())
	if !ok || !e.IsExtAddress() || UnitOffset(e.TagsCode) <= size {
		return nil
	}
	first := UnitOffset(e.TagsCode)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return nil
	}
	starts, err := t.unitFiles(q)
	if err != nil {
		return err
	}
	for _, start := range starts {
		if start+size >= first {
			break
		}
		t.files.drop(q, extPlace(start))
		if err := t.fs.Remove(t.extPath(q, start)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("consumequeue: %w", err)
		}
		t.addExtDirs(q)
	}
	return nil
}

// unitsWritten is how far units are in files, 0 when none were added; unitsSynced notes that those before an offset are
// durable. The caller has q.mu.
func (q *Queue) unitsWritten() int64 {
	if q.ext == nil {
		return 0
	}
	return q.ext.written
}

func (q *Queue) unitsSynced(to int64) {
	if q.ext != nil {
		q.ext.synced = max(q.ext.synced, to)
	}
}
