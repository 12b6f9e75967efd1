package vfs

import (
	"io"
	"io/fs"
	"sync/atomic"
	"time"
)

// Kind says what an operation does.
type Kind int

// The operations that Fault counts and may fail.
const (
	OpCreate Kind = iota
	OpOpen
	OpOpenRead
	OpRename
	OpRemove
	OpRemoveAll
	OpMkdirAll
	OpList
	OpStat
	OpSyncDir
	OpUsage
	OpLock
	OpChtimes
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpZero
	OpFileStat
	OpMap
	OpClose
)

var kindNames = [...]string{"create", "open", "openRead", "rename", "remove", "removeAll", "mkdirAll", "list", "stat", "syncDir",
	"usage", "lock", "chtimes", "read", "write", "sync", "truncate", "zero", "fileStat", "map", "close"}

// String is the operation's name.
func (k Kind) String() string { return kindNames[k] }

// Op is one operation about to be done.
type Op struct {
	Index  int // how many operations the Fault has seen before
	Kind   Kind
	Name   string // of the file or directory
	Offset int64  // of OpRead, OpWrite and OpZero
	Size   int64  // of OpRead, OpWrite, OpZero, OpTruncate and OpMap
}

// ShortWrite is an error that lets a write go through for its first N bytes.
type ShortWrite struct {
	N   int
	Err error
}

// Error implements error.
func (e *ShortWrite) Error() string { return "short write: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Fault is a file system that asks before each operation whether it shall fail. An operation that fails has
// no effect, but for a ShortWrite, and for Close, which closes.
type Fault struct {
	fs     FS
	inject atomic.Pointer[func(Op) error]
	n      atomic.Int64
}

// NewFault wraps a file system. inject returns the error of an operation, or nil to let it be done; it must
// be safe to call at once from several goroutines. A nil inject lets all be done.
func NewFault(fs FS, inject func(Op) error) *Fault {
	f := &Fault{fs: fs}
	f.SetInject(inject)
	return f
}

// SetInject changes what fails from now on.
func (f *Fault) SetInject(inject func(Op) error) {
	if inject == nil {
		inject = func(Op) error { return nil }
	}
	f.inject.Store(&inject)
}

// Count is the number of operations so far.
func (f *Fault) Count() int { return int(f.n.Load()) }

// FailAt fails the one operation of an index; FailFrom that and every later one, as a dead disk does.
func FailAt(index int, err error) func(Op) error {
	return func(o Op) error {
		if o.Index == index {
			return err
		}
		return nil
	}
}

// FailFrom fails every operation from an index on.
func FailFrom(index int, err error) func(Op) error {
	return func(o Op) error {
		if o.Index >= index {
			return err
		}
		return nil
	}
}

func (f *Fault) ask(kind Kind, name string, offset, size int64) error {
	o := Op{Index: int(f.n.Add(1)) - 1, Kind: kind, Name: name, Offset: offset, Size: size}
	if err := (*f.inject.Load())(o); err != nil {
		if _, ok := err.(*ShortWrite); ok {
			return err
		}
		return &fs.PathError{Op: kind.String(), Path: name, Err: err}
	}
	return nil
}

func (f *Fault) opened(kind Kind, name string, open func(string) (File, error)) (File, error) {
	if err := f.ask(kind, name, 0, 0); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f, name: name}, nil
}

// Create implements FS.
func (f *Fault) Create(name string) (File, error) { return f.opened(OpCreate, name, f.fs.Create) }

// Open implements FS.
func (f *Fault) Open(name string) (File, error) { return f.opened(OpOpen, name, f.fs.Open) }

// OpenRead implements FS.
func (f *Fault) OpenRead(name string) (File, error) { return f.opened(OpOpenRead, name, f.fs.OpenRead) }

// Rename implements FS; the operation's name is the new one.
func (f *Fault) Rename(oldname, newname string) error {
	if err := f.ask(OpRename, newname, 0, 0); err != nil {
		return err
	}
	return f.fs.Rename(oldname, newname)
}

// Remove implements FS.
func (f *Fault) Remove(name string) error {
	if err := f.ask(OpRemove, name, 0, 0); err != nil {
		return err
	}
	return f.fs.Remove(name)
}

// RemoveAll implements FS.
func (f *Fault) RemoveAll(name string) error {
	if err := f.ask(OpRemoveAll, name, 0, 0); err != nil {
		return err
	}
	return f.fs.RemoveAll(name)
}

// MkdirAll implements FS.
func (f *Fault) MkdirAll(name string) error {
	if err := f.ask(OpMkdirAll, name, 0, 0); err != nil {
		return err
	}
	return f.fs.MkdirAll(name)
}

// List implements FS.
func (f *Fault) List(dir string) ([]fs.DirEntry, error) {
	if err := f.ask(OpList, dir, 0, 0); err != nil {
		return nil, err
	}
	return f.fs.List(dir)
}

// Stat implements FS.
func (f *Fault) Stat(name string) (fs.FileInfo, error) {
	if err := f.ask(OpStat, name, 0, 0); err != nil {
		return nil, err
	}
	return f.fs.Stat(name)
}

// SyncDir implements FS.
func (f *Fault) SyncDir(dir string) error {
	if err := f.ask(OpSyncDir, dir, 0, 0); err != nil {
		return err
	}
	return f.fs.SyncDir(dir)
}

// Capacity implements FS; it fails with OpUsage.
func (f *Fault) Capacity(dir string) (uint64, error) {
	if err := f.ask(OpUsage, dir, 0, 0); err != nil {
		return 0, err
	}
	return f.fs.Capacity(dir)
}

// Usage implements FS.
func (f *Fault) Usage(dir string) (used float64, free uint64, err error) {
	if err := f.ask(OpUsage, dir, 0, 0); err != nil {
		return 0, 0, err
	}
	return f.fs.Usage(dir)
}

// Lock implements FS.
func (f *Fault) Lock(name string, content []byte) (io.Closer, error) {
	if err := f.ask(OpLock, name, 0, 0); err != nil {
		return nil, err
	}
	return f.fs.Lock(name, content)
}

// Chtimes implements FS.
func (f *Fault) Chtimes(name string, mtime time.Time) error {
	if err := f.ask(OpChtimes, name, 0, 0); err != nil {
		return err
	}
	return f.fs.Chtimes(name, mtime)
}

type faultFile struct {
	File
	fs   *Fault
	name string
}

func (f *faultFile) ReadAt(b []byte, offset int64) (int, error) {
	if err := f.fs.ask(OpRead, f.name, offset, int64(len(b))); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, offset)
}

func (f *faultFile) WriteAt(b []byte, offset int64) (int, error) {
	err := f.fs.ask(OpWrite, f.name, offset, int64(len(b)))
	if err == nil {
		return f.File.WriteAt(b, offset)
	}
	short, ok := err.(*ShortWrite)
	if !ok {
		return 0, err
	}
	n, werr := f.File.WriteAt(b[:min(short.N, len(b))], offset)
	if werr != nil {
		return n, werr
	}
	return n, &fs.PathError{Op: "write", Path: f.name, Err: short}
}

func (f *faultFile) Sync() error {
	if err := f.fs.ask(OpSync, f.name, 0, 0); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.fs.ask(OpTruncate, f.name, 0, size); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Zero(offset, size int64) error {
	if err := f.fs.ask(OpZero, f.name, offset, size); err != nil {
		return err
	}
	return f.File.Zero(offset, size)
}

func (f *faultFile) Stat() (fs.FileInfo, error) {
	if err := f.fs.ask(OpFileStat, f.name, 0, 0); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *faultFile) Map(size int64) (Mapping, error) {
	if err := f.fs.ask(OpMap, f.name, 0, size); err != nil {
		return nil, err
	}
	return f.File.Map(size)
}

func (f *faultFile) Close() error {
	err := f.fs.ask(OpClose, f.name, 0, 0)
	if cerr := f.File.Close(); err == nil {
		err = cerr
	}
	return err
}
