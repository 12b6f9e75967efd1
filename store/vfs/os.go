package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	return osOpen(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return osOpen(name, os.O_RDWR) }

// OpenRead does not wait for the other end of a pipe that stands where a file should.
func (osFS) OpenRead(name string) (File, error) { return osOpen(name, os.O_RDONLY|unix.O_NONBLOCK) }

func osOpen(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                { return os.RemoveAll(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) Chtimes(name string, mtime time.Time) error { return os.Chtimes(name, mtime, mtime) }

// List follows links, as Java does: a file or a topic's folder may have been moved to another disk.
func (osFS) List(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(dir + "/" + e.Name())
			entries[i] = linked{e, info, err}
		}
	}
	return entries, nil
}

// linked is what a link leads to, under the link's name; err: it can't be followed.
type linked struct {
	fs.DirEntry
	info fs.FileInfo
	err  error
}

func (l linked) IsDir() bool { return l.err == nil && l.info.IsDir() }

func (l linked) Type() fs.FileMode {
	if l.err != nil {
		return fs.ModeSymlink
	}
	return l.info.Mode().Type()
}

func (l linked) Info() (fs.FileInfo, error) {
	if l.err != nil {
		return nil, fmt.Errorf("a link that leads nowhere (is a disk not mounted?): %w", l.err)
	}
	return l.info, nil
}

// MkdirAll tries the last folder first, which is what lacks when very many queues are made.
func (osFS) MkdirAll(name string) error {
	if os.Mkdir(name, 0o755) == nil {
		return nil
	}
	return os.MkdirAll(name, 0o755)
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Usage counts like df and like UtilAll#getDiskPartitionSpaceUsedPercent of 4.9.8: what is reserved for root is
// neither used nor free. (Java rounds up to a whole percent; no comparison with a whole percent can tell.)
func (osFS) Usage(dir string) (used float64, free uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	taken := uint64(s.Blocks) - uint64(s.Bfree)
	if all := taken + uint64(s.Bavail); all > 0 {
		used = float64(taken) / float64(all)
	}
	return used, uint64(s.Bavail) * uint64(s.Bsize), nil
}

// Capacity is File#getTotalSpace of Java.
func (osFS) Capacity(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(s.Blocks) * uint64(s.Bsize), nil
}

// Lock excludes Java brokers both ways: their FileChannel.tryLock(0, 1) is a record lock of fcntl, which
// conflicts with one that belongs to an open file description. A record lock proper (F_SETLK) would not do:
// it never conflicts within one process, and closing any descriptor of the file drops it.
func (osFS) Lock(name string, content []byte) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := control(f, lockFirstByte); err != nil {
		f.Close()
		if err == unix.EAGAIN || err == unix.EACCES {
			return nil, fmt.Errorf("%w: %s", ErrLocked, name)
		}
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Locked asks for the holder of the lock that Lock takes; it needs no right to write. See Locked.
func (osFS) Locked(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	held := false
	err = control(f, func(fd int) (err error) {
		held, err = firstByteLocked(fd)
		return err
	})
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return held, nil
}

// control calls op with the descriptor of f, which cannot be closed meanwhile.
func control(f *os.File, op func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) {
		for {
			if result = op(int(fd)); result != unix.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	return result
}

type osFile struct{ *os.File }

func (f osFile) Sync() error {
	if err := control(f.File, dataSync); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func (f osFile) Zero(offset, size int64) error {
	if size <= 0 {
		return nil
	}
	err := control(f.File, func(fd int) error { return punch(fd, offset, size) })
	if err == nil {
		return nil
	}
	if err != unix.EOPNOTSUPP && err != unix.ENOSYS {
		return &fs.PathError{Op: "punch", Path: f.Name(), Err: err}
	}
	buf, zeros := make([]byte, min(size, 1<<20)), make([]byte, min(size, 1<<20))
	for end := offset + size; offset < end; { // a hole stays a hole
		b := buf[:min(end-offset, int64(len(buf)))]
		if _, err := f.ReadAt(b, offset); err != nil {
			return err
		}
		if !bytes.Equal(b, zeros[:len(b)]) {
			if _, err := f.WriteAt(zeros[:len(b)], offset); err != nil {
				return err
			}
		}
		offset += int64(len(b))
	}
	return nil
}

// ReadAhead implements Ahead. It is advice: that it can't be taken is no fault.
func (f osFile) ReadAhead(offset, size int64) {
	_ = control(f.File, func(fd int) error { return readAhead(fd, offset, size) })
}

func (f osFile) Map(size int64) (Mapping, error) {
	var b []byte
	err := control(f.File, func(fd int) (err error) {
		b, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return &osMapping{b}, nil
}

type osMapping struct{ b []byte }

func (m *osMapping) Bytes() []byte { return m.b }
func (m *osMapping) Unmap() error  { return unix.Munmap(m.b) }
