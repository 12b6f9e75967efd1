package vfs

import "golang.org/x/sys/unix"

func dataSync(fd int) error { return unix.Fdatasync(fd) }

func lockFirstByte(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1})
}
