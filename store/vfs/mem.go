package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Mem is a file system in memory that keeps what was synced apart from what was only written, so that a
// test can cut the power: see Crash. A file's bytes become durable by its Sync, its name by SyncDir of the
// directory that holds it; so a directory itself, too.
type Mem struct {
	clock     func() time.Time
	capacity  atomic.Int64 // bytes, 0: no limit
	allocated atomic.Int64 // bytes of the pages that were ever written to

	mu struct {
		sync.Mutex // also guards the entries of all directories; taken before a node's mutex
		root       *memNode
		locks      map[string]bool
	}
}

// NewMem returns an empty file system. Modification times come from clock; nil is time.Now.
func NewMem(clock func() time.Time) *Mem {
	if clock == nil {
		clock = time.Now
	}
	m := &Mem{clock: clock}
	m.mu.root = m.newDir()
	m.mu.locks = map[string]bool{}
	return m
}

// SetCapacity makes the disk as large as that many bytes; writes that need more fail with ENOSPC, perhaps
// after a part. 0 is no limit.
func (m *Mem) SetCapacity(bytes int64) { m.capacity.Store(bytes) }

// Crash returns the disk as it may be found after the power was cut now: everything that was synced, and of
// the rest each sector, size and directory operation with a chance of percent. m itself is not changed.
func (m *Mem) Crash(percent int, rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(m.clock)
	c.capacity.Store(m.capacity.Load())
	c.mu.root = m.mu.root.crashed(c, percent, rng)
	return c
}

// memNode is a file or a directory.
type memNode struct {
	fs  *Mem
	dir bool

	// A directory's entries; guarded by Mem.mu.
	entries map[string]*memNode
	durable map[string]*memNode // as of the last SyncDir
	pending []dirOp             // since then

	file memData
}

// dirOp is one change of a directory: a name gets a node, or loses it (node nil); a rename does both at once.
type dirOp struct {
	name, newname string // newname is set by a rename
	node          *memNode
}

func (o dirOp) apply(entries map[string]*memNode) {
	switch {
	case o.newname != "":
		delete(entries, o.name)
		entries[o.newname] = o.node
	case o.node != nil:
		entries[o.name] = o.node
	default:
		delete(entries, o.name)
	}
}

func (m *Mem) newDir() *memNode {
	n := &memNode{fs: m, dir: true, entries: map[string]*memNode{}, durable: map[string]*memNode{}}
	n.file.modified = m.clock()
	return n
}

func (n *memNode) changed(o dirOp) {
	o.apply(n.entries)
	n.pending = append(n.pending, o)
}

// crashed is what is left of n on the disk c.
func (n *memNode) crashed(c *Mem, percent int, rng *rand.Rand) *memNode {
	if !n.dir {
		return &memNode{fs: c, file: n.file.crashed(c, percent, rng)}
	}
	left := make(map[string]*memNode, len(n.durable))
	for name, child := range n.durable {
		left[name] = child
	}
	for _, o := range n.pending {
		if rng.Intn(100) < percent {
			o.apply(left)
		}
	}
	d := c.newDir()
	for _, name := range sortedNames(left) {
		child := left[name].crashed(c, percent, rng)
		d.entries[name], d.durable[name] = child, child
	}
	return d
}

func sortedNames(entries map[string]*memNode) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func split(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// findLocked returns the node of a path, nil when there is none.
func (m *Mem) findLocked(name string) *memNode {
	n := m.mu.root
	for _, part := range split(name) {
		if n = n.entries[part]; n == nil {
			return nil
		}
	}
	return n
}

// parentLocked returns the directory that holds name, and name's last part.
func (m *Mem) parentLocked(op, name string) (*memNode, string, error) {
	dir := m.findLocked(path.Dir(path.Clean("/" + name)))
	if dir == nil || !dir.dir {
		return nil, "", pathError(op, name, fs.ErrNotExist)
	}
	return dir, path.Base(path.Clean("/" + name)), nil
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parentLocked("create", name)
	if err != nil {
		return nil, err
	}
	if dir.entries[base] != nil {
		return nil, pathError("create", name, fs.ErrExist)
	}
	n := &memNode{fs: m}
	n.file.modified = m.clock()
	dir.changed(dirOp{name: base, node: n})
	return &memFile{node: n, name: name}, nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenRead implements FS.
func (m *Mem) OpenRead(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, readOnly bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(name)
	switch {
	case n == nil:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n.dir:
		return nil, pathError("open", name, syscall.EISDIR)
	}
	return &memFile{node: n, name: name, readOnly: readOnly}, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.parentLocked("rename", oldname)
	if err != nil {
		return err
	}
	to, newBase, err := m.parentLocked("rename", newname)
	if err != nil {
		return err
	}
	n := from.entries[oldBase]
	if n == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	if from == to {
		from.changed(dirOp{name: oldBase, newname: newBase, node: n})
		return nil
	}
	from.changed(dirOp{name: oldBase})
	to.changed(dirOp{name: newBase, node: n})
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removeLocked("remove", name, false)
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.findLocked(name) == nil {
		return nil
	}
	return m.removeLocked("removeAll", name, true)
}

func (m *Mem) removeLocked(op, name string, all bool) error {
	dir, base, err := m.parentLocked(op, name)
	if err != nil {
		return err
	}
	n := dir.entries[base]
	switch {
	case n == nil:
		return pathError(op, name, fs.ErrNotExist)
	case len(n.entries) > 0 && !all:
		return pathError(op, name, syscall.ENOTEMPTY)
	}
	dir.changed(dirOp{name: base})
	n.freeLocked()
	return nil
}

// freeLocked gives the room of a removed node back.
func (n *memNode) freeLocked() {
	for _, child := range n.entries {
		child.freeLocked()
	}
	n.file.free(n.fs)
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.root
	for _, part := range split(name) {
		child := n.entries[part]
		if child == nil {
			child = m.newDir()
			n.changed(dirOp{name: part, node: child})
		}
		if !child.dir {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = child
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(dir)
	if n == nil || !n.dir {
		return nil, pathError("list", dir, fs.ErrNotExist)
	}
	var list []fs.DirEntry
	for _, name := range sortedNames(n.entries) {
		list = append(list, fs.FileInfoToDirEntry(n.entries[name].info(name)))
	}
	return list, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(name)
	if n == nil {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return n.info(path.Base(path.Clean("/" + name))), nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(dir)
	if n == nil || !n.dir {
		return pathError("syncDir", dir, fs.ErrNotExist)
	}
	for _, o := range n.pending {
		o.apply(n.durable)
	}
	n.pending = nil
	return nil
}

// Usage implements FS.
func (m *Mem) Usage(dir string) (used float64, free uint64, err error) {
	if _, err := m.Stat(dir); err != nil {
		return 0, 0, err
	}
	capacity, allocated := m.capacity.Load(), m.allocated.Load()
	if capacity == 0 {
		return 0, 1 << 40, nil
	}
	return float64(allocated) / float64(capacity), uint64(max(0, capacity-allocated)), nil
}

// Capacity implements FS.
func (m *Mem) Capacity(dir string) (uint64, error) {
	if _, err := m.Stat(dir); err != nil {
		return 0, err
	}
	if capacity := m.capacity.Load(); capacity > 0 {
		return uint64(capacity), nil
	}
	return 1 << 40, nil
}

// Lock implements FS.
func (m *Mem) Lock(name string, content []byte) (io.Closer, error) {
	m.mu.Lock()
	held := m.mu.locks[name]
	m.mu.locks[name] = true
	m.mu.Unlock()
	if held {
		return nil, fmt.Errorf("%w: %s", ErrLocked, name)
	}
	l := &memLock{fs: m, name: name}
	if err := (Files{m}).WriteFile(name, content); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Locked tells whether Lock holds the file; see the function of that name.
func (m *Mem) Locked(name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.locks[name], nil
}

type memLock struct {
	fs   *Mem
	name string
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.mu.locks, l.name)
	return nil
}

// Chtimes implements FS.
func (m *Mem) Chtimes(name string, mtime time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.findLocked(name)
	if n == nil {
		return pathError("chtimes", name, fs.ErrNotExist)
	}
	n.file.mu.Lock()
	defer n.file.mu.Unlock()
	n.file.modified = mtime
	return nil
}
