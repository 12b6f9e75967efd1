package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pageSize = 4 << 10
	// manyDirty is how many queues with few new entries are written at every flush. Of more than that only
	// the larger tails are, and some of the others, so that the thorough flush has not all of them left: it would be a
	// file opened for each message.
	manyDirty  = 4096
	someOthers = 1024
	// newFilesFor is how long a flush makes the files of new queues, of which there is a crowd. Each is made only once, so
	// it is not put off as the others are: a stop must wait for all that lack, as the official broker begins to dispatch
	// behind the newest entry of any queue (DefaultMessageStore#start of 4.9.8) and would miss the others' messages.
	newFilesFor = 500 * time.Millisecond
	// manySyncs is how many files and folders are synced one by one. More are synced by one call for the whole file
	// system, where there is one.
	manySyncs  = 256
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
	dir := t.dir(q)
	t.addSyncs(dir, path.Dir(dir), t.root)
}

// addSyncs notes folders that must be synced.
func (t *Table) addSyncs(queue, topic, root string) {
	t.flush.Lock()
	defer t.flush.Unlock()
	if t.flush.manyDirs {
		return
	}
	t.flush.dirs[queue] = struct{}{}
	t.flush.dirs[topic] = struct{}{}
	t.flush.dirs[root] = struct{}{}
	if t.syncAll != nil && len(t.flush.dirs) > manySyncs {
		t.flush.manyDirs = true
		clear(t.flush.dirs)
	}
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
	atOnce := leastPages == 0 && (t.flush.manyDirs || t.syncAll != nil && len(dirty) > manySyncs)
	t.flush.Unlock()

	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	note(t.writeTails(dirty, leastPages != 0))
	if first == nil {
		t.failing.Store(false)
	}
	t.flush.Lock()
	dirs := t.flush.dirs // with those of the files made just now
	if leastPages == 0 {
		t.flush.dirs, t.flush.manyDirs = make(map[string]struct{}), false
	}
	t.flush.Unlock()
	var keep []*Queue
	if atOnce {
		var err error
		keep, err = t.syncAtOnce(dirty)
		note(err)
	} else {
		keep = dirty[:0]
		for _, q := range dirty {
			more, err := q.sync(leastPages)
			if more {
				keep = append(keep, q)
			}
			note(err)
		}
		clear(dirty[len(keep):])
	}
	t.flush.Lock()
	t.flush.dirty = append(keep, t.flush.dirty...)
	t.flush.Unlock()
	if leastPages == 0 && !atOnce {
		note(t.syncDirs(dirs))
	}
	return first
}

// writeTails writes the tails of queues, in the order in which they got dirty; if there is a crowd and it is not all to be
// written, of the small ones only some.
func (t *Table) writeTails(dirty []*Queue, some bool) error {
	if len(dirty) <= manyDirty {
		var first error
		for _, q := range dirty {
			if _, err := q.write(false, false); first == nil {
				first = err
			}
		}
		return first
	}
	// A failure must not keep the other tails from being written, as inParallel would have it.
	var (
		others atomic.Int64
		late   atomic.Bool
		mu     sync.Mutex
		first  error
	)
	timer := time.AfterFunc(newFilesFor, func() { late.Store(true) })
	defer timer.Stop()
	_ = inParallel(len(dirty), func(i int) error {
		leave := some && others.Load() >= someOthers
		small, err := dirty[i].write(leave, leave && late.Load())
		if small {
			others.Add(1)
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		}
		return nil
	})
	return first
}

// syncDirs makes made and removed files durable.
func (t *Table) syncDirs(dirs map[string]struct{}) error {
	var first error
	for dir := range dirs {
		if err := t.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("consumequeue: syncing %s: %w", dir, err)
			t.damage(err)
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// syncAtOnce makes everything that is written durable with one call, folders too. It returns the queues for which
// there is something left to do.
func (t *Table) syncAtOnce(dirty []*Queue) (keep []*Queue, err error) {
	type state struct {
		written, units int64
		epoch          uint32
	}
	states := make([]state, len(dirty))
	for i, q := range dirty {
		q.mu.Lock()
		states[i] = state{q.written, q.unitsWritten(), q.epoch}
		q.mu.Unlock()
	}
	if err = t.syncAll(t.root); err != nil {
		err = fmt.Errorf("consumequeue: %w", err)
		t.damage(err)
	}
	for i, q := range dirty {
		q.mu.Lock()
		if err == nil && q.epoch == states[i].epoch {
			q.synced = states[i].written
			q.unitsSynced(states[i].units)
		}
		if q.dirty = !q.dead && (len(q.tail) > 0 || q.written > q.synced); q.dirty {
			keep = append(keep, q)
		}
		q.mu.Unlock()
	}
	return keep, err
}

// write writes the tail, unless it is small and those are left: leaveNew those of queues without a file, leaveSmall the
// others. small: it was, of a queue that had a file, and has been written.
func (q *Queue) write(leaveSmall, leaveNew bool) (small bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	small = len(q.tail) < smallTail
	leave, isNew := leaveSmall, q.first == q.end
	if isNew {
		leave = leaveNew
	}
	if q.dead || len(q.tail) == 0 || leave && small {
		return false, nil
	}
	small = small && !isNew
	err = q.writeLocked()
	if err == nil && !q.hot && cap(q.tail) > emptyAgain {
		q.tail = nil
	}
	q.hot = false
	return small, err
}

// sync makes the queue durable if it has at least leastPages pages that are not. more: there is something left to do.
func (q *Queue) sync(leastPages int) (more bool, err error) {
	q.mu.Lock()
	from, to, epoch := q.synced, q.written, q.epoch
	if !q.dead && to > from && (to-from)*EntrySize >= min(int64(leastPages), math.MaxInt64/pageSize)*pageSize {
		var unitsFrom, unitsTo int64
		if q.ext != nil {
			unitsFrom, unitsTo = q.ext.synced, q.ext.written
		}
		q.mu.Unlock()
		if unitsFrom < unitsTo {
			err = q.syncUnits(unitsFrom, unitsTo)
		}
		if err == nil {
			err = q.syncFiles(from, to)
		}
		q.mu.Lock()
		if err == nil && q.epoch == epoch {
			q.synced = to
			q.unitsSynced(unitsTo)
		}
	}
	defer q.mu.Unlock()
	q.dirty = !q.dead && (len(q.tail) > 0 || q.written > q.synced)
	return q.dirty, err
}

// syncFiles makes the files of the entries [from, to) durable.
func (q *Queue) syncFiles(from, to int64) error {
	for start := from - from%q.table.perFile; start < to; start += q.table.perFile {
		if err := q.syncFile(start, q.table.path(q, start)); err != nil {
			return err
		}
	}
	return nil
}

// syncFile makes the file of a place durable; name is for errors.
func (q *Queue) syncFile(place int64, name string) error {
	h, err := q.table.files.acquire(q, place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // expired or destroyed meanwhile
	}
	if err != nil {
		return err
	}
	err = h.file.Sync()
	q.table.files.release(h)
	if err != nil {
		// The pages may be gone from memory: what the file holds is not known any more.
		err = fmt.Errorf("consumequeue: syncing %s: %w", name, err)
		q.table.damage(err)
	}
	return err
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
