package consumequeue

import (
	"fmt"
	"sync"

	"rocketd/store/vfs"
)

// descriptors keeps the files used last open, at most max of them beside those in use at the moment.
type descriptors struct {
	open func(q *Queue, start int64) (vfs.File, error)
	max  int

	mu struct {
		sync.Mutex
		byPlace map[place]*handle
		newest  *handle // ring, newest first
	}
}

// place names a file: the queue and the entry it begins with.
type place struct {
	queue *Queue
	start int64
}

// handle is an open file and who uses it.
type handle struct {
	file vfs.File
	// Guarded by descriptors.mu.
	place        place
	users        int
	gone         bool // no longer in the table: the last user closes it
	newer, older *handle
}

func newDescriptors(max int, open func(q *Queue, start int64) (vfs.File, error)) *descriptors {
	d := &descriptors{open: open, max: max}
	d.mu.byPlace = make(map[place]*handle)
	return d
}

// acquire returns the open file of a place; release must follow.
func (d *descriptors) acquire(q *Queue, start int64) (*handle, error) {
	p := place{q, start}
	d.mu.Lock()
	if h := d.mu.byPlace[p]; h != nil {
		h.users++
		d.touchLocked(h)
		d.mu.Unlock()
		return h, nil
	}
	d.mu.Unlock()
	f, err := d.open(q, start)
	if err != nil {
		return nil, fmt.Errorf("consumequeue: %w", err)
	}
	return d.insert(p, f, 1), nil
}

// put adds a file that has just been made.
func (d *descriptors) put(q *Queue, start int64, f vfs.File) {
	d.insert(place{q, start}, f, 0)
}

// insert adds an open file, unless another goroutine was faster, and closes what is too much.
func (d *descriptors) insert(p place, f vfs.File, users int) *handle {
	d.mu.Lock()
	h := d.mu.byPlace[p]
	spare := f
	if h == nil {
		h, spare = &handle{file: f, place: p}, nil
		d.mu.byPlace[p] = h
		h.newer, h.older = h, h
	}
	h.users += users
	d.touchLocked(h)
	victim := d.evictLocked()
	d.mu.Unlock()
	if spare != nil {
		spare.Close()
	}
	if victim != nil {
		victim.Close()
	}
	return h
}

// touchLocked makes h the newest.
func (d *descriptors) touchLocked(h *handle) {
	if d.mu.newest == h {
		return
	}
	h.newer.older, h.older.newer = h.older, h.newer
	if n := d.mu.newest; n == nil {
		h.newer, h.older = h, h
	} else {
		h.older, h.newer = n, n.newer
		n.newer.older = h
		n.newer = h
	}
	d.mu.newest = h
}

// evictLocked takes the oldest file nobody uses out of the table when there are too many; the caller closes it.
func (d *descriptors) evictLocked() vfs.File {
	if len(d.mu.byPlace) <= d.max {
		return nil
	}
	for h := d.mu.newest.newer; h != d.mu.newest; h = h.newer {
		if h.users == 0 {
			d.removeLocked(h)
			return h.file
		}
	}
	return nil
}

func (d *descriptors) removeLocked(h *handle) {
	delete(d.mu.byPlace, h.place)
	if h.older == h {
		d.mu.newest = nil
	} else {
		h.newer.older, h.older.newer = h.older, h.newer
		if d.mu.newest == h {
			d.mu.newest = h.older
		}
	}
	h.newer, h.older = h, h
	h.gone = true
}

// release ends one use.
func (d *descriptors) release(h *handle) {
	d.mu.Lock()
	h.users--
	last := h.gone && h.users == 0
	d.mu.Unlock()
	if last {
		h.file.Close()
	}
}

// drop closes the file of a place, as soon as nobody uses it.
func (d *descriptors) drop(q *Queue, start int64) {
	d.mu.Lock()
	h := d.mu.byPlace[place{q, start}]
	unused := false
	if h != nil {
		d.removeLocked(h)
		unused = h.users == 0
	}
	d.mu.Unlock()
	if unused {
		h.file.Close()
	}
}

// dropUnits drops the files of units of a queue.
func (d *descriptors) dropUnits(q *Queue) {
	var starts []int64
	d.mu.Lock()
	for p := range d.mu.byPlace {
		if p.queue == q && p.start < 0 {
			starts = append(starts, p.start)
		}
	}
	d.mu.Unlock()
	for _, start := range starts {
		d.drop(q, start)
	}
}

// close closes all files; none may be in use.
func (d *descriptors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.mu.byPlace {
		h.file.Close()
		h.gone = true
	}
	clear(d.mu.byPlace)
	d.mu.newest = nil
}
