// Package vfs is the file system that the store uses: the operating system's, one in memory that can
// lose what was not synced, and one that fails chosen operations. All file access of the store goes
// through it, so power cuts and full disks are unit tests.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// ErrLocked is returned by Lock when another process, or another lock of this one, holds the file.
var ErrLocked = errors.New("vfs: locked by another")

// FS is a file system. Paths are slash-separated and absolute or relative to the process. Errors are
// those of package os (fs.ErrNotExist, syscall.ENOSPC, …). All methods may be called at once.
type FS interface {
	// Create makes a file for reading and writing; an existing one is an error.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens an existing file for reading.
	OpenRead(name string) (File, error)
	Rename(oldname, newname string) error
	Remove(name string) error
	RemoveAll(name string) error
	MkdirAll(name string) error
	// List returns the entries of a directory in name order.
	List(dir string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
	// Usage is the used share (0..1) and the free bytes of the file system that holds dir.
	Usage(dir string) (used float64, free uint64, err error)
	// Capacity is the size in bytes of the file system that holds dir, with what is reserved for root.
	Capacity(dir string) (uint64, error)
	// Lock takes an exclusive record lock on byte 0 of name, creating it with the given content, as the
	// official broker does (F_OFD_SETLK; store-format.md section 1). ErrLocked when another holds it.
	Lock(name string, content []byte) (io.Closer, error)
	// Chtimes sets the modification time.
	Chtimes(name string, mtime time.Time) error
}

// File is an open file. Its methods may be called at once, but for Close.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the written data durable (fdatasync).
	Sync() error
	Truncate(size int64) error
	// Zero makes size bytes from offset on, which lie within the file, read as zeros. Where it can it gives
	// the disk's blocks back, so it needs no room on a full disk. Durable after Sync.
	Zero(offset, size int64) error
	Stat() (fs.FileInfo, error)
	// Map maps the first size bytes read-only. Reading a mapping after Unmap, or where the file was cut
	// from outside, faults.
	Map(size int64) (Mapping, error)
}

// Ahead is what a File has that can read ahead as it is told.
type Ahead interface {
	// ReadAhead asks for bytes to be brought into memory soon, and waits for nothing. From the first call on nothing is
	// read ahead of this file unasked: what the system would read at once, many megabytes where it is set so, keeps a
	// processor for a millisecond.
	ReadAhead(offset, size int64)
}

// Mapping is a read-only view of a file. Bytes must be asked for at each use.
type Mapping interface {
	Bytes() []byte
	Unmap() error
}
