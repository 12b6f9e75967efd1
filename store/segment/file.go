// Package segment keeps files of a fixed size that together are one long run of bytes: each is named by the
// offset of its first byte in 20 digits and has its full size, sparse, from the start, as the official
// broker demands.
//
//	00000000000000000000      00000000001073741824      00000000002147483648
//	+------------------------+-------------------------+-------------------------+
//	| size bytes             | size bytes              | written | zeros         |
//	+------------------------+-------------------------+-------------------------+
//	^ offset 0               ^ offset size             ^ offset 2*size
//
// Offsets in this package count from the beginning of that run, never from a file's.
package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"rocketd/store/vfs"
)

// ErrFault is wrapped by the error of a mapped read that faulted: the disk could not be read, or someone has
// cut the file.
var ErrFault = errors.New("segment: fault in a mapped read")

// Name is the name of the file that begins at an offset.
func Name(start int64) string { return fmt.Sprintf("%020d", start) }

// ParseName returns the offset that a file's name states and whether it is such a name.
func ParseName(name string) (start int64, ok bool) {
	if len(name) != 20 {
		return 0, false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return 0, false
		}
	}
	start, err := strconv.ParseInt(name, 10, 64)
	return start, err == nil
}

// File is one file. It is closed when its queue has dropped it and nobody reads it.
type File struct {
	fs    vfs.FS
	path  string
	start int64
	size  int64
	file  vfs.File

	refs atomic.Int32 // one for the queue, one for each View; at 0 the file is closed

	mapped struct {
		sync.RWMutex // readers hold it while they copy
		m            vfs.Mapping
	}
}

// Create makes the file of an offset with its full size, durably. What has that name already was left by a
// creation that did not succeed, or lies behind the end of the data: it is emptied.
func Create(fsys vfs.FS, dir string, start, size int64) (*File, error) {
	name := path.Join(dir, Name(start))
	file, err := vfs.CreateSized(fsys, name, size)
	if errors.Is(err, fs.ErrExist) {
		if file, err = fsys.Open(name); err == nil {
			err = file.Truncate(0)
		}
		if err == nil {
			err = file.Truncate(size)
		}
	}
	if err == nil {
		err = file.Sync() // the size
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		if file != nil {
			file.Close()
			fsys.Remove(name) // as well as it can be done: an empty last file is no obstacle
		}
		return nil, err
	}
	return newFile(fsys, name, start, size, file), nil
}

func newFile(fsys vfs.FS, name string, start, size int64, file vfs.File) *File {
	f := &File{fs: fsys, path: name, start: start, size: size, file: file}
	f.refs.Store(1)
	return f
}

// Path is the file's name with its folder.
func (f *File) Path() string { return f.path }

// Start is the offset of the file's first byte, End that behind its last.
func (f *File) Start() int64 { return f.start }

// End is the offset behind the file's last byte.
func (f *File) End() int64 { return f.start + f.size }

// Stat tells size and last modification.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// WriteAt writes b at an offset of this file.
func (f *File) WriteAt(b []byte, offset int64) (int, error) {
	return f.file.WriteAt(b, offset-f.start)
}

// Zero makes the bytes between two offsets of this file zeros.
func (f *File) Zero(from, to int64) error { return f.file.Zero(from-f.start, to-from) }

// Sync makes what was written durable.
func (f *File) Sync() error { return f.file.Sync() }

// ReadAt fills b from an offset of this file by a read of the file; it may wait for the disk, as a system
// call, which leaves the processor to other goroutines.
func (f *File) ReadAt(b []byte, offset int64) error {
	n, err := f.file.ReadAt(b, offset-f.start)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		err = fmt.Errorf("file ends at %d: %w", offset-f.start+int64(n), io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read %s at %d: %w", f.path, offset-f.start, err)
}

// ReadAhead has the bytes from offset on brought into memory soon, as far as the file goes: see vfs.Ahead.
func (f *File) ReadAhead(offset, size int64) {
	if a, ok := f.file.(vfs.Ahead); ok {
		a.ReadAhead(offset-f.start, min(size, f.start+f.size-offset))
	}
}

// CopyAt is ReadAt through the mapping, for bytes that are surely in memory: it makes no system call, but
// where the page is missing it holds up the processor. Without a mapping (the system may refuse it) it reads.
func (f *File) CopyAt(b []byte, offset int64) error {
	f.mapped.RLock()
	if f.mapped.m == nil {
		f.mapped.RUnlock()
		if f.mapFile() != nil {
			return f.ReadAt(b, offset)
		}
		f.mapped.RLock()
		if f.mapped.m == nil { // unmapped again already
			f.mapped.RUnlock()
			return f.ReadAt(b, offset)
		}
	}
	defer f.mapped.RUnlock()
	if err := copyMapped(b, f.mapped.m, offset-f.start); err != nil {
		return fmt.Errorf("%w: %s at %d: %v", ErrFault, f.path, offset-f.start, err)
	}
	return nil
}

// copyMapped turns the fault of a mapping into an error. Nothing but the copy happens in it, so that no other
// panic can be mistaken for one.
func copyMapped(b []byte, m vfs.Mapping, at int64) (err any) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { err = recover() }()
	copy(b, m.Bytes()[at:at+int64(len(b))])
	return nil
}

func (f *File) mapFile() error {
	f.mapped.Lock()
	defer f.mapped.Unlock()
	if f.mapped.m != nil {
		return nil
	}
	m, err := f.file.Map(f.size)
	if err == nil {
		f.mapped.m = m
	}
	return err
}

// Unmap ends the mapping, which the next CopyAt makes again. It waits for copies that are going on.
func (f *File) Unmap() error {
	f.mapped.Lock()
	defer f.mapped.Unlock()
	if f.mapped.m == nil {
		return nil
	}
	m := f.mapped.m
	f.mapped.m = nil
	return m.Unmap()
}

// Remove takes the file's name away; readers go on. The file is not to be used by its owner any more but for Drop.
func (f *File) Remove() error { return f.fs.Remove(f.path) }

// Drop gives up the owner's hold: the file is unmapped and closed when its last reader is done.
func (f *File) Drop() error { return f.release() }

// hold tells whether the file could be held: it is not closed.
func (f *File) hold() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (f *File) release() error {
	if f.refs.Add(-1) > 0 {
		return nil
	}
	return errors.Join(f.Unmap(), f.file.Close())
}
