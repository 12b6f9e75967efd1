//go:build !race

package store

import (
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

func TestGetAllocations(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	var run []*message.Message
	for n := range 40 {
		run = append(run, newMessage("T", 0, n))
	}
	put(t, s, run...)
	if got := testing.AllocsPerRun(100, func() { s.Get("T", 0, 0, 32, nil) }); got > 1 { // the body
		t.Errorf("%v allocations", got)
	}
	if got := testing.AllocsPerRun(100, func() { s.Get("T", 0, 40, 32, nil) }); got > 0 {
		t.Errorf("%v allocations for a Get at the end", got)
	}
	r := message.Record(message.AppendRecord(nil, run[0]))
	phy, offset := s.log.MaxOffset(), int64(40)
	if got := testing.AllocsPerRun(100, func() {
		r.Stamp(offset, phy, 1)
		_ = s.dispatchRecord(phy, r, true)
		offset, phy = offset+1, phy+int64(r.Size())
	}); got > 0 {
		t.Errorf("%v allocations for a dispatch", got)
	}
	s.dispatched.Store(s.log.MaxOffset())
}

// With consumequeue_ext reading allocates no more than without.
func TestUnitAllocations(t *testing.T) {
	for _, cfg := range []Config{smallConfig("/store"), extendedConfig(smallConfig("/store"))} {
		s := openStore(t, vfs.NewMem(nil), cfg, Options{FilterBitMap: func(dst []byte, _, _ string) []byte { return append(dst, 1, 2) }})
		var run []*message.Message
		for n := range 40 {
			run = append(run, newMessage("T", 0, n))
		}
		put(t, s, run...)
		if err := s.saveCheckpoint(); err != nil {
			t.Fatal(err)
		}
		filter := &bitFilter{bit: 1}
		if got := testing.AllocsPerRun(100, func() { s.Get("T", 0, 0, 32, filter) }); got > 1 { // the body
			t.Errorf("ext %v: %v allocations of a Get", cfg.EnableConsumeQueueExt, got)
		}
		if got := testing.AllocsPerRun(100, func() { s.Entry("T", 0, 7) }); got > 1 { // what is read
			t.Errorf("ext %v: %v allocations of an Entry", cfg.EnableConsumeQueueExt, got)
		}
		r := message.Record(message.AppendRecord(nil, run[0]))
		phy, offset := s.log.MaxOffset(), int64(40)
		if got := testing.AllocsPerRun(100, func() {
			r.Stamp(offset, phy, 1795976475252)
			if err := s.dispatchRecord(phy, r, false); err != nil {
				t.Fatal(err)
			}
			phy, offset = phy+int64(r.Size()), offset+1
		}); got > 0 {
			t.Errorf("ext %v: %v allocations of a dispatch", cfg.EnableConsumeQueueExt, got)
		}
		s.dispatched.Store(s.log.MaxOffset())
		_ = s.Close() // the log lacks what was dispatched
	}
}
