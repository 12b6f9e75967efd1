package store

import (
	"errors"
	"testing"

	"rocketd/store/commitlog"
	"rocketd/store/vfs"
)

// TestCopyOfALargeMessage: a message that was acknowledged is stored again when it is due, although maxMessageSize has
// been lowered since; a new one of that size is refused.
func TestCopyOfALargeMessage(t *testing.T) {
	cfg := DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog = 1 << 20
	cfg.MaxMessageSize = 64 << 10
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	large := newMessage("T", 0, 0)
	large.Body = make([]byte, 64<<10)
	lowered := cfg
	lowered.MaxMessageSize = 1 << 10
	s.SetConfig(&lowered)
	sent, copied := &Put{Message: large}, &Put{Message: large, Copy: true}
	s.Put([]*Put{sent, copied})
	if !errors.Is(sent.Err, commitlog.ErrTooLarge) {
		t.Errorf("sent: %v", sent.Err)
	}
	if copied.Err != nil {
		t.Errorf("copied: %v", copied.Err)
	}
	if m, err := s.Message(copied.PhyOffset); err != nil || len(m.Body) != 64<<10 {
		t.Errorf("the copy: %d bytes, %v", len(m.Body), err)
	}
	huge := newMessage("T", 0, 1)
	huge.Body = make([]byte, 1<<20)
	p := &Put{Message: huge, Copy: true}
	s.Put([]*Put{p})
	if !errors.Is(p.Err, commitlog.ErrTooLarge) {
		t.Errorf("larger than a file: %v", p.Err)
	}
}
