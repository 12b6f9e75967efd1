package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"rocketd/store/vfs"
)

// zeroStep is how much is read and zeroed at a time behind the end of a queue: a page, as a file of many queues has
// nothing there.
const zeroStep = 4 << 10

// writeLocked writes the tail to the files, making those that lack. What could not be written stays in the tail.
func (q *Queue) writeLocked() error {
	if err := q.writeExtensionLocked(); err != nil {
		q.table.failing.Store(true)
		return err
	}
	for done := 0; ; {
		if done == len(q.tail) {
			q.tail = q.tail[:0]
			if cap(q.tail) > 2*tailSize {
				q.tail = nil
			}
			return nil
		}
		n, err := q.writeFileLocked(q.tail[done:])
		done += n
		if err != nil {
			q.tail = q.tail[:copy(q.tail, q.tail[done:])]
			q.table.failing.Store(true)
			return err
		}
	}
}

// writeFileLocked writes as much of b at written as the file there holds.
func (q *Queue) writeFileLocked(b []byte) (int, error) {
	perFile := q.table.perFile
	if q.written >= q.end {
		if err := q.table.createFile(q, q.end); err != nil {
			return 0, err
		}
		q.end += perFile
	}
	start := q.written - q.written%perFile
	if room := (start + perFile - q.written) * EntrySize; int64(len(b)) > room {
		b = b[:room]
	}
	h, err := q.table.files.acquire(q, start)
	if err != nil {
		return 0, err
	}
	defer q.table.files.release(h)
	if _, err := h.file.WriteAt(b, (q.written-start)*EntrySize); err != nil { // what was written of it is written again
		return 0, fmt.Errorf("consumequeue: writing %s: %w", q.table.path(q, start), err)
	}
	q.written += int64(len(b) / EntrySize)
	return len(b), nil
}

// createFile makes the file of a queue that begins with entry start: full length, sparse.
func (t *Table) createFile(q *Queue, start int64) error {
	t.places.RLock()
	defer t.places.RUnlock()
	dir := t.dir(q)
	if err := t.fs.MkdirAll(dir); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	name := t.path(q, start)
	size := t.perFile * EntrySize
	f, err := vfs.CreateSized(t.fs, name, size)
	if errors.Is(err, fs.ErrExist) { // left by a creation that failed half way
		if f, err = t.fs.Open(name); err == nil {
			if err = f.Truncate(size); err != nil {
				f.Close()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("consumequeue: making %s: %w", name, err)
	}
	t.files.put(q, start, f)
	t.addDirs(q)
	return nil
}

// cutLocked drops the entries from queue offset to on. Files lose what they held of them, to zeros; if that
// fails, the table is damaged: its files must be rebuilt from the log at the next start.
func (q *Queue) cutLocked(to int64) {
	q.epoch++
	q.maxPhy = 0 // unknown: what comes next is newer
	if to < q.first {
		q.removeFilesLocked()
		q.first = to - to%q.table.perFile
		q.end, q.written, q.synced = q.first, q.first, q.first
		q.fillLocked(to)
	}
	if to >= q.written {
		q.tail = q.tail[:(to-q.written)*EntrySize]
	} else {
		q.tail = nil
		old := q.written
		q.written, q.synced = to, min(q.synced, to)
		if err := q.zeroLocked(old); err != nil {
			q.table.damage(err)
		}
	}
	q.max.Store(to)
	if to <= q.min.Load() {
		q.min.Store(to)
		q.minPhy = -1
	}
}

// zeroLocked removes the files behind the one that written is in and zeroes that one from written to entry
// known at least, and on as long as there is something.
func (q *Queue) zeroLocked(known int64) error {
	perFile := q.table.perFile
	start := q.written - q.written%perFile
	for q.end-perFile > start {
		q.table.files.drop(q, q.end-perFile)
		if err := q.table.fs.Remove(q.table.path(q, q.end-perFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("consumequeue: %w", err)
		}
		q.end -= perFile
		q.table.addDirs(q)
	}
	if q.end <= start {
		return nil
	}
	h, err := q.table.files.acquire(q, start)
	if err != nil {
		return err
	}
	defer q.table.files.release(h)
	buf, size := make([]byte, zeroStep), perFile*EntrySize
	for at := (q.written - start) * EntrySize; at < size; {
		b := buf[:min(size-at, zeroStep)]
		n, err := h.file.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return fmt.Errorf("consumequeue: reading %s: %w", q.table.path(q, start), err)
		}
		b = b[:n]
		if n == 0 || allZero(b) {
			if at >= (known-start)*EntrySize {
				return nil
			}
		} else if err := h.file.Zero(at, int64(n)); err != nil { // a full disk may have no room for written zeros
			return fmt.Errorf("consumequeue: zeroing %s: %w", q.table.path(q, start), err)
		}
		at += int64(max(n, EntrySize))
	}
	return nil
}

// allZero tells whether nothing is in b.
func allZero(b []byte) bool {
	for i := range b {
		if b[i] != 0 {
			return false
		}
	}
	return true
}

// removeFilesLocked removes all files of the queue; it is as new after it, but for next.
func (q *Queue) removeFilesLocked() {
	q.epoch++
	if q.first < q.end {
		for start := q.first; start < q.end; start += q.table.perFile {
			q.table.files.drop(q, start)
		}
		if err := q.table.fs.RemoveAll(q.table.dir(q)); err != nil {
			q.table.damage(fmt.Errorf("consumequeue: %w", err))
		}
		q.table.addDirs(q)
	}
	q.tail = nil
	q.first, q.end, q.written, q.synced = 0, 0, 0, 0
	q.maxPhy, q.minPhy = 0, -1
	q.max.Store(0)
	q.min.Store(0)
}
