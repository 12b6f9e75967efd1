package index

import (
	"encoding/binary"
	"fmt"
	"io"

	"rocketd/store/vfs"
)

const (
	pageSlots = 1 << 10 // slots that are kept, and written, together
	// tailSize is how large the tail grows before it is written.
	tailSize = 64 << 10
	// writePages is how many changed slot pages that are neighbours are written at once.
	writePages = 16
)

// file is one index file. Its fields are guarded by Index.mu, but for name and path.
type file struct {
	name   string
	path   string
	header header
	writer *writer // nil: not written since it was opened or finished
	broken bool    // a query has found entries that can't be right
}

// writer is what is in memory of a file that is being written.
type writer struct {
	file    vfs.File
	tail    []byte // entries from number written on
	written int32  // entries before it are in the file
	pages   []*slotPage
	fresh   bool  // the file was made by us: slots that are not in pages are 0
	dirty   bool  // something is not written
	synced  bool  // what is written is durable
	last    int32 // the header's count at the last thorough flush
}

// slotPage is some neighbouring slots.
type slotPage struct {
	dirty bool
	slots [pageSlots]int32
}

// entryAt is the place of entry k in a file.
func (x *Index) entryAt(k int32) int64 {
	return headerSize + int64(x.slotNum)*slotSize + int64(k)*entrySize
}

func (x *Index) fileSize() int64 { return x.entryAt(x.indexNum) }

// readFull reads len(b) bytes at off; what is beyond the file's end is zeros (the official broker extends short
// index files).
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if err == io.EOF {
		clear(b[n:])
		err = nil
	}
	return err
}

// page returns the page of a slot, reading it when it is not in memory.
func (x *Index) page(f *file, slot int32) (*slotPage, error) {
	w := f.writer
	n := slot / pageSlots
	if p := w.pages[n]; p != nil {
		return p, nil
	}
	p := new(slotPage)
	if !w.fresh {
		buf := make([]byte, pageSlots*slotSize)
		if err := readFull(w.file, buf, headerSize+int64(n)*pageSlots*slotSize); err != nil {
			return nil, fmt.Errorf("index: reading %s: %w", f.path, err)
		}
		for i := range p.slots {
			p.slots[i] = int32(binary.BigEndian.Uint32(buf[i*slotSize:]))
		}
	}
	w.pages[n] = p
	return p, nil
}

// put adds an entry to a file that is not full. Index.mu is held.
func (x *Index) put(f *file, hash int32, phyOffset, storeTimestamp int64) error {
	slot := hash % x.slotNum
	p, err := x.page(f, slot)
	if err != nil {
		x.damageLocked(err)
		return err
	}
	at, h := slot%pageSlots, &f.header
	previous := p.slots[at]
	if previous <= 0 || previous > h.count {
		previous = 0
		h.slots++
	}
	w := f.writer
	w.tail = entry{hash, phyOffset, secondsSince(h.beginTimestamp, storeTimestamp), previous}.append(w.tail)
	p.slots[at] = h.count
	p.dirty, w.dirty, w.synced = true, true, false
	if h.count <= 1 {
		h.beginPhyOffset, h.beginTimestamp = phyOffset, storeTimestamp
	}
	h.count++
	h.endPhyOffset, h.endTimestamp = phyOffset, storeTimestamp
	if len(w.tail) >= tailSize && len(w.tail)%tailSize < entrySize {
		return x.writeTail(f)
	}
	return nil
}

// writeTail writes the new entries of a file. Index.mu is held.
func (x *Index) writeTail(f *file) error {
	w := f.writer
	if len(w.tail) == 0 {
		return nil
	}
	if _, err := w.file.WriteAt(w.tail, x.entryAt(w.written)); err != nil {
		x.failing.Store(true)
		return fmt.Errorf("index: writing %s: %w", f.path, err)
	}
	w.written += int32(len(w.tail) / entrySize)
	w.tail = w.tail[:0]
	if cap(w.tail) > 2*tailSize {
		w.tail = nil
	}
	return nil
}

// write writes what is only in memory of f: the entries, then the slots, then the header. Index.mu is not held;
// it is taken for moments, so that dispatch hardly waits.
func (x *Index) write(f *file) error {
	x.mu.Lock()
	w := f.writer
	err := x.writeTail(f)
	header := f.header.append(nil)
	// A put between an earlier write and its sync has left both set.
	w.dirty, w.synced = err != nil, false
	x.mu.Unlock()
	if err != nil {
		return err
	}
	if err = x.writeSlots(f); err == nil {
		if _, err = w.file.WriteAt(header, 0); err != nil {
			err = fmt.Errorf("index: writing %s: %w", f.path, err)
		}
	}
	if err != nil {
		x.failing.Store(true)
		x.mu.Lock()
		w.dirty = true
		x.mu.Unlock()
	}
	return err
}

// writeSlots writes the changed pages of slots.
func (x *Index) writeSlots(f *file) error {
	w := f.writer
	if x.scratch == nil {
		x.scratch = make([]byte, 0, writePages*pageSlots*slotSize)
	}
	for n := 0; n < len(w.pages); {
		buf, first := x.scratch[:0], n
		x.mu.Lock()
		for ; n < len(w.pages) && n-first < writePages; n++ {
			p := w.pages[n]
			if p == nil || !p.dirty {
				break
			}
			p.dirty = false
			for _, s := range p.slots[:min(pageSlots, int(x.slotNum)-n*pageSlots)] {
				buf = binary.BigEndian.AppendUint32(buf, uint32(s))
			}
		}
		x.mu.Unlock()
		if n == first {
			n++
			continue
		}
		if _, err := w.file.WriteAt(buf, headerSize+int64(first)*pageSlots*slotSize); err != nil {
			x.mu.Lock()
			for _, p := range w.pages[first:n] {
				p.dirty = true
			}
			x.mu.Unlock()
			return fmt.Errorf("index: writing %s: %w", f.path, err)
		}
	}
	return nil
}
