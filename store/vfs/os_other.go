//go:build !linux

package vfs

import "golang.org/x/sys/unix"

func dataSync(fd int) error { return unix.Fsync(fd) }

// lockFirstByte takes a record lock of the process: what there is without F_OFD_SETLK.
func lockFirstByte(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1})
}

func firstByteLocked(fd int) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1}
	err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}

func punch(fd int, offset, size int64) error { return unix.EOPNOTSUPP }

func readAhead(fd int, offset, size int64) error { return nil }
