package index

import (
	"errors"
	"fmt"
	"io/fs"
)

// Flush writes what is in memory; with sync it makes it durable and returns the store timestamp up to which all
// entries are: what checkpoint.indexMsgTimestamp promises. One goroutine calls it.
func (x *Index) Flush(sync bool) (timestamp int64, err error) {
	x.mu.Lock()
	files := append([]*file(nil), x.files...)
	dirSync := x.dirSync
	x.mu.Unlock()
	for i, f := range files {
		x.mu.Lock()
		w, end := f.writer, f.header.endTimestamp
		var dirty, synced bool
		if w != nil {
			dirty, synced = w.dirty, w.synced && !w.dirty
		}
		full := i < len(files)-1
		x.mu.Unlock()
		if w != nil && dirty {
			if err := x.write(f); err != nil {
				return 0, err
			}
		}
		// A file that is full is finished at once, as the official broker does.
		if w != nil && !synced && (sync || full) {
			if err := x.sync(f, w); err != nil {
				return 0, err
			}
		}
		if w != nil && full {
			x.finish(f)
		}
		if full {
			x.mu.Lock()
			x.fullTimestamp = end
			x.mu.Unlock()
		}
		timestamp = end
	}
	x.failing.Store(false)
	if !sync {
		return 0, nil
	}
	if dirSync {
		x.mu.Lock()
		x.dirSync = false // unless another file is made meanwhile
		x.mu.Unlock()
		if err := x.fs.SyncDir(x.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("index: syncing %s: %w", x.dir, err)
			x.damage(err)
			return 0, err
		}
	}
	x.idle(files)
	return timestamp, x.Damaged()
}

// FullTimestamp is the store timestamp up to which all entries were in full files, and durable, at the last Flush; 0 when
// no file was full. It is what the official broker has as indexMsgTimestamp: after a kill it removes the files that end
// later, and with messageIndexSafe indexes again from there.
func (x *Index) FullTimestamp() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.fullTimestamp
}

func (x *Index) sync(f *file, w *writer) error {
	x.mu.Lock()
	w.synced = true // unless something is put meanwhile
	x.mu.Unlock()
	if err := w.file.Sync(); err != nil {
		err = fmt.Errorf("index: syncing %s: %w", f.path, err)
		x.damage(err)
		return err
	}
	return nil
}

// damage notes a failure that leaves files in doubt.
func (x *Index) damage(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.damageLocked(err)
}

func (x *Index) damageLocked(err error) {
	if x.damaged == nil {
		x.damaged = err
		x.log.Error("the index is damaged; it is mended at the next start", "error", err)
	}
}

// finish closes a file that will not be written any more.
func (x *Index) finish(f *file) {
	x.mu.Lock()
	w := f.writer
	f.writer = nil
	x.mu.Unlock()
	if w != nil {
		w.file.Close()
	}
}

// idle gives back the memory of slots when nothing has been put for one thorough flush.
func (x *Index) idle(files []*file) {
	if len(files) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range files {
		w := f.writer
		if w == nil {
			continue
		}
		if w.last == f.header.count && !w.dirty && len(w.tail) == 0 {
			w.pages, w.fresh = x.newPages(), false
		}
		w.last = f.header.count
	}
}

// DeleteExpired removes the files whose last entry is below minPhyOffset, never the last one.
func (x *Index) DeleteExpired(minPhyOffset int64) error {
	x.mu.Lock()
	var gone []*file
	for len(x.files) > 1 && x.files[0].header.endPhyOffset < minPhyOffset && x.files[0].writer == nil {
		gone = append(gone, x.files[0])
		x.files = x.files[1:]
	}
	x.mu.Unlock()
	for _, f := range gone {
		if err := x.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("index: %w", err)
		}
	}
	if len(gone) > 0 {
		return x.fs.SyncDir(x.dir)
	}
	return nil
}

// DestroyAll removes all files: there is no commit log that they could belong to.
func (x *Index) DestroyAll() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.files) > 0 {
		if err := x.dropLast(); err != nil {
			return err
		}
	}
	return nil
}

// dropLast removes the last file. Index.mu is held.
func (x *Index) dropLast() error {
	f := x.files[len(x.files)-1]
	x.files = x.files[:len(x.files)-1]
	if f.writer != nil {
		f.writer.file.Close()
		f.writer = nil
	}
	if err := x.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// Close writes and syncs everything and closes the files. It returns what Flush does. Files that queries have found to be damaged are
// removed: the next start makes them again.
func (x *Index) Close() (timestamp int64, err error) {
	timestamp, err = x.Flush(true)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		if f.writer != nil {
			f.writer.file.Close()
			f.writer = nil
		}
	}
	if err == nil {
		err = x.removeBroken()
	}
	return timestamp, err
}
