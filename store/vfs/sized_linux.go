package vfs

import (
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// createWhole makes the file without a name, gives it its size, and then its name. errNotWhole when the file system, or
// a system without /proc, can't: CreateSized then meets the real obstacle, if there is one.
func (osFS) createWhole(name string, size int64) (File, error) {
	fd, err := unix.Open(path.Dir(name), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, errNotWhole
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	switch err {
	case nil:
		return osFile{f}, nil
	case unix.EEXIST:
		f.Close()
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	default:
		f.Close()
		return nil, errNotWhole
	}
}
