package store

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"syscall"
	"testing"

	"rocketd/store/vfs"
)

// fullDisk refuses all that a disk without room may: to make something, to write where nothing was written yet and, as on a
// file system that copies what it writes, to write at all.
func fullDisk(mem *vfs.Mem, copies bool) func(vfs.Op) error {
	return func(o vfs.Op) error {
		switch {
		case o.Kind == vfs.OpCreate || o.Kind == vfs.OpMkdirAll || o.Kind == vfs.OpRename:
			if _, err := mem.Stat(o.Name); err == nil && o.Kind != vfs.OpRename {
				return nil // the disk is not asked
			}
			return syscall.ENOSPC
		case o.Kind == vfs.OpWrite && copies:
			return syscall.ENOSPC
		}
		return nil
	}
}

// TestStartOnAFullDisk: a store opens on a disk without room, as it was killed or could not be closed, serves what it has,
// refuses sends with the reason, and takes them when there is room again, without another start.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, flush := range []string{AsyncFlush, SyncFlush} {
		for _, copies := range []bool{false, true} {
			for rounds := 0; rounds < 12; rounds += stride {
				for _, end := range []string{"killed", "closed when full", "closed before"} {
					t.Run(fmt.Sprintf("%s copies=%v rounds=%d %s", flush, copies, rounds, end), func(t *testing.T) {
						startFull(t, flush, copies, rounds, end)
					})
				}
			}
		}
	}
}

func startFull(t *testing.T, flush string, copies bool, rounds int, end string) {
	mem, cfg, h := vfs.NewMem(nil), crashConfig(flush), newHistory()
	before := vfs.NewFault(mem, nil)
	s := openStore(t, before, cfg, Options{})
	h.work(s, rounds)
	disk := mem
	switch end {
	case "closed before":
		closeStore(t, s)
	case "killed":
		disk = mem.Crash(100, rand.New(rand.NewSource(1)))
	}
	// A stop on the full disk: it may fail, and says so.
	before.SetInject(fullDisk(mem, copies))
	_ = s.Close()

	fsys := vfs.NewFault(disk, fullDisk(disk, copies))
	s, err := tryOpen(fsys, cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	h.noIndex = true // no room for one
	if err := h.judge(s); err != nil {
		t.Fatal(err)
	}
	var refusal error
	for n := 0; n < 200 && refusal == nil; n++ {
		p := &Put{Message: newMessage("new", int32(n%3), n)}
		s.Put([]*Put{p})
		if h.sent[string(p.Message.Body)], refusal = true, p.Err; refusal != nil {
			h.refused[string(p.Message.Body)] = true
		}
		_ = s.flushDerived(0)
	}
	if !errors.Is(refusal, syscall.ENOSPC) && !errors.Is(refusal, ErrFiles) && !errors.Is(refusal, ErrDiskFull) {
		t.Fatalf("a send on the full disk: %v", refusal)
	}
	fsys.SetInject(nil)
	mended := func(err error) bool { // an index that could not be made is made at the next start
		return err == nil || s.index.Damaged() != nil && strings.HasPrefix(err.Error(), "index:")
	}
	if _, err := s.checkDisk(); err != nil {
		t.Fatal(err)
	}
	if err := s.saveCheckpoint(); !mended(err) {
		t.Fatal(err)
	}
	if err := s.Writable(); err != nil {
		t.Fatal("with room again: ", err)
	}
	h.put(s, newMessage("new", 0, 9999))
	waitDispatched(t, s, s.MaxPhyOffset())
	if err := h.judge(s); err != nil {
		t.Fatal("with room again: ", err)
	}
	if err := s.Close(); !mended(err) {
		t.Fatal(err)
	}
	h.noIndex = false
	if err := h.check(disk, cfg); err != nil {
		t.Error("the next start: ", err)
	}
}
