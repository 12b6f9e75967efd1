package vfs

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func dataSync(fd int) error { return unix.Fdatasync(fd) }

func lockFirstByte(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1})
}

func firstByteLocked(fd int) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}

// SyncAll makes everything durable that the file system of dir holds: one call in place of one for each of very
// many files.
func (osFS) SyncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	return nil
}

// BootID names the time since the system was started: what a process wrote in it is there still, whatever became of the
// process.
func (osFS) BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// punch gives the blocks of a range back; what is left of them reads as zeros.
func punch(fd int, offset, size int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, size)
}

// readAhead has the range read, and nothing beside it by later reads of the descriptor.
func readAhead(fd int, offset, size int64) error {
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM); err != nil {
		return err
	}
	return unix.Fadvise(fd, offset, size, unix.FADV_WILLNEED)
}
