package vfs

import (
	"io"
	"io/fs"
	"math/rand"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"
)

// sector is what a disk writes or loses as a whole; page is what a file takes of the disk at a time.
const (
	sector = 512
	page   = 4096
)

// memData is the content of a file.
type memData struct {
	mu       sync.RWMutex
	data     []byte             // as it reads
	durable  []byte             // as of the last Sync
	dirty    map[int64]struct{} // sectors that differ since then
	pages    map[int64]struct{} // that were ever written
	modified time.Time
}

// crashed is what is left of a file on the disk c.
func (d *memData) crashed(c *Mem, percent int, rng *rand.Rand) memData {
	d.mu.RLock()
	defer d.mu.RUnlock()
	size := len(d.durable)
	if rng.Intn(100) < percent {
		size = len(d.data)
	}
	left := make([]byte, size)
	copy(left, d.durable)
	sectors := make([]int64, 0, len(d.dirty))
	for s := range d.dirty {
		sectors = append(sectors, s)
	}
	slices.Sort(sectors)
	for _, s := range sectors {
		if from := s * sector; rng.Intn(100) < percent && from < int64(min(size, len(d.data))) {
			copy(left[from:], d.data[from:min(from+sector, int64(len(d.data)))])
		}
	}
	pages := make(map[int64]struct{}, len(d.pages))
	for p := range d.pages {
		pages[p] = struct{}{}
	}
	c.allocated.Add(int64(len(pages)) * page)
	return memData{data: left, durable: slices.Clone(left), pages: pages, modified: d.modified}
}

func (d *memData) free(m *Mem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m.allocated.Add(-int64(len(d.pages)) * page)
	d.pages = nil
}

// resizeLocked cuts or extends the data with zeros; what changes is dirty.
func (d *memData) resizeLocked(size int64) {
	old := int64(len(d.data))
	if size <= old {
		d.markLocked(size, old)
		d.data = d.data[:size:size]
		return
	}
	data := make([]byte, size)
	copy(data, d.data)
	d.data = data
	if old < int64(len(d.durable)) {
		d.markLocked(old, min(size, int64(len(d.durable)))) // zeros instead of what the disk has
	}
}

func (d *memData) markLocked(from, to int64) {
	if d.dirty == nil {
		d.dirty = map[int64]struct{}{}
	}
	for s := from / sector; s*sector < to; s++ {
		d.dirty[s] = struct{}{}
	}
}

// allocateLocked takes the pages of a range and returns how many bytes of it there is room for.
func (d *memData) allocateLocked(m *Mem, from, to int64) int64 {
	capacity := m.capacity.Load()
	if d.pages == nil {
		d.pages = map[int64]struct{}{}
	}
	for p := from / page; p*page < to; p++ {
		if _, ok := d.pages[p]; ok {
			continue
		}
		if m.allocated.Add(page) > capacity && capacity > 0 {
			m.allocated.Add(-page)
			return max(0, p*page-from)
		}
		d.pages[p] = struct{}{}
	}
	return to - from
}

// memFile is an open file.
type memFile struct {
	node     *memNode
	name     string
	readOnly bool
}

func (f *memFile) ReadAt(b []byte, offset int64) (int, error) {
	d := &f.node.file
	d.mu.RLock()
	defer d.mu.RUnlock()
	if offset < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	if offset >= int64(len(d.data)) {
		return 0, io.EOF
	}
	n := copy(b, d.data[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, offset int64) (int, error) {
	if f.readOnly {
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	d := &f.node.file
	d.mu.Lock()
	defer d.mu.Unlock()
	if offset < 0 {
		return 0, pathError("write", f.name, syscall.EINVAL)
	}
	n := d.allocateLocked(f.node.fs, offset, offset+int64(len(b)))
	if n > 0 {
		if end := offset + n; end > int64(len(d.data)) {
			d.resizeLocked(end)
		}
		copy(d.data[offset:], b[:n])
		d.markLocked(offset, offset+n)
		d.modified = f.node.fs.clock()
	}
	if int(n) < len(b) {
		return int(n), pathError("write", f.name, syscall.ENOSPC)
	}
	return len(b), nil
}

func (f *memFile) Sync() error {
	d := &f.node.file
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.durable) != len(d.data) {
		durable := make([]byte, len(d.data))
		copy(durable, d.durable)
		d.durable = durable
	}
	for s := range d.dirty {
		if from := s * sector; from < int64(len(d.data)) {
			copy(d.durable[from:], d.data[from:min(from+sector, int64(len(d.data)))])
		}
	}
	clear(d.dirty)
	return nil
}

func (f *memFile) Truncate(size int64) error {
	if f.readOnly || size < 0 {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	d := &f.node.file
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resizeLocked(size)
	d.modified = f.node.fs.clock()
	return nil
}

func (f *memFile) Zero(offset, size int64) error {
	if f.readOnly || offset < 0 || size < 0 {
		return pathError("zero", f.name, syscall.EINVAL)
	}
	d := &f.node.file
	d.mu.Lock()
	defer d.mu.Unlock()
	end := min(offset+size, int64(len(d.data)))
	for offset < end { // only sectors that have something: zeroing a gigabyte of nothing changes nothing
		next := min(offset/sector*sector+sector, end)
		if s := d.data[offset:next]; !allZero(s) {
			clear(s)
			d.markLocked(offset, next)
		}
		offset = next
	}
	d.modified = f.node.fs.clock()
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (f *memFile) Stat() (fs.FileInfo, error) { return f.node.info(path.Base(f.name)), nil }

func (f *memFile) Close() error { return nil }

// Map returns the file's bytes themselves. Writes within the size that the file has now show in it.
func (f *memFile) Map(size int64) (Mapping, error) { return &memMapping{&f.node.file, size}, nil }

type memMapping struct {
	d    *memData
	size int64
}

// Bytes is shorter than the mapping where the file was cut: indexing beyond panics, as reading a real mapping
// faults.
func (m *memMapping) Bytes() []byte {
	m.d.mu.RLock()
	defer m.d.mu.RUnlock()
	return m.d.data[:min(m.size, int64(len(m.d.data)))]
}

func (m *memMapping) Unmap() error { return nil }

func (n *memNode) info(name string) fs.FileInfo {
	n.file.mu.RLock()
	defer n.file.mu.RUnlock()
	return memInfo{name: name, size: int64(len(n.file.data)), dir: n.dir, modified: n.file.modified}
}

// memInfo implements fs.FileInfo.
type memInfo struct {
	name     string
	size     int64
	dir      bool
	modified time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
