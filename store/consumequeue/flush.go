package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

const (
	pageSize = 4 << 10
	// manyDirty is how many queues with few new entries are written at every flush. Of more than that only
	// the larger tails are, until the thorough flush: it would be a file opened for each message.
	manyDirty  = 4096
	smallTail  = 512
	emptyAgain = 64 // a tail of at most this capacity is kept by a queue that is written
)

func (t *Table) addDirty(q *Queue) {
	t.flush.Lock()
	t.flush.dirty = append(t.flush.dirty, q)
	t.flush.Unlock()
}

// addDirs notes that files of q were made or removed, so that its folders must be synced.
func (t *Table) addDirs(q *Queue) {
	t.flush.Lock()
	defer t.flush.Unlock()
	dir := t.dir(q)
	t.flush.dirs[dir] = struct{}{}
	t.flush.dirs[path.Dir(dir)] = struct{}{}
	t.flush.dirs[t.root] = struct{}{}
}

// damage notes a failure that leaves files in doubt.
func (t *Table) damage(err error) {
	t.log.Error("consume queues are damaged; they are rebuilt at the next start", "error", err)
	t.flush.Lock()
	defer t.flush.Unlock()
	if t.flush.damaged == nil {
		t.flush.damaged = err
	}
}

// Damaged returns the failure after which the files can no longer be believed, nil when there was none. A
// checkpoint must not be written any more then, nor the abort file removed.
func (t *Table) Damaged() error {
	t.flush.Lock()
	defer t.flush.Unlock()
	return t.flush.damaged
}

// Failing tells whether writing files fails at the moment: new entries stay in memory until a Flush succeeds.
func (t *Table) Failing() bool { return t.failing.Load() }

// Flush writes the tails, and makes durable the queues that have at least leastPages pages which are not; with
// leastPages 0 all of them, with their folders. The first error is returned; the rest is tried all the same.
// One goroutine calls it.
func (t *Table) Flush(leastPages int) error {
	t.flush.Lock()
	dirty := t.flush.dirty
	t.flush.dirty = nil
	t.flush.Unlock()

	var first error
	keep := dirty[:0]
	for _, q := range dirty {
		more, err := q.flush(leastPages, len(dirty) > manyDirty)
		if more {
			keep = append(keep, q)
		}
		if err != nil && first == nil {
			first = err
		}
	}
	clear(dirty[len(keep):])
	if first == nil {
		t.failing.Store(false)
	}
	t.flush.Lock()
	t.flush.dirty = append(keep, t.flush.dirty...)
	dirs := t.flush.dirs // with those of the files made just now
	if leastPages == 0 && len(dirs) > 0 {
		t.flush.dirs = make(map[string]struct{})
	}
	t.flush.Unlock()
	if leastPages == 0 {
		for dir := range dirs {
			if err := t.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("consumequeue: syncing %s: %w", dir, err)
				t.damage(err)
				if first == nil {
					first = err
				}
			}
		}
	}
	return first
}

// flush is Table.Flush for one queue. more: there is something left to do later.
func (q *Queue) flush(leastPages int, crowded bool) (more bool, err error) {
	q.mu.Lock()
	if q.dead {
		q.mu.Unlock()
		return false, nil
	}
	if len(q.tail) > 0 && (leastPages == 0 || !crowded || len(q.tail) >= smallTail) {
		if err = q.writeLocked(); err == nil && !q.hot && cap(q.tail) > emptyAgain {
			q.tail = nil
		}
		q.hot = false
	}
	from, to, epoch := q.synced, q.written, q.epoch
	if to == from || (to-from)*EntrySize < int64(leastPages)*pageSize {
		more = len(q.tail) > 0 || to > from
		q.dirty = more
		q.mu.Unlock()
		return more, err
	}
	q.mu.Unlock()
	e := q.syncFiles(from, to)
	if err == nil {
		err = e
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e == nil && q.epoch == epoch {
		q.synced = to
	}
	more = len(q.tail) > 0 || q.written > q.synced
	q.dirty = more
	return more, err
}

// syncFiles makes the files of the entries [from, to) durable.
func (q *Queue) syncFiles(from, to int64) error {
	for start := from - from%q.table.perFile; start < to; start += q.table.perFile {
		h, err := q.table.files.acquire(q, start)
		if errors.Is(err, fs.ErrNotExist) {
			continue // expired or destroyed meanwhile
		}
		if err != nil {
			return err
		}
		err = h.file.Sync()
		q.table.files.release(h)
		if err != nil {
			// The pages may be gone from memory: what the file holds is not known any more.
			err = fmt.Errorf("consumequeue: syncing %s: %w", q.table.path(q, start), err)
			q.table.damage(err)
			return err
		}
	}
	return nil
}

// Close writes and syncs everything and closes the files.
func (t *Table) Close() error {
	err := t.Flush(0)
	if err == nil {
		err = t.Damaged()
	}
	t.files.close()
	return err
}
