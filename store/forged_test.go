package store

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/vfs"
)

// TestForgedRecord: an offset inside a body, where a client has put what looks like the start of a huge record. Its
// size may not become an allocation.
func TestForgedRecord(t *testing.T) {
	cfg := DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog = 256 << 20
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	const size = 64 << 20
	bait := newMessage("T", 0, 0)
	bait.Body = make([]byte, 256)
	at := put(t, s, bait)[0].PhyOffset
	record, err := s.Record(at)
	if err != nil {
		t.Fatal(err)
	}
	forged := at + int64(len(record)) // where the next message goes; its body begins 88 bytes on
	forged += 88
	bait = newMessage("T", 0, 1)
	bait.Body = make([]byte, 256)
	binary.BigEndian.PutUint32(bait.Body[0:], size)
	binary.BigEndian.PutUint32(bait.Body[4:], message.MagicCode)
	binary.BigEndian.PutUint64(bait.Body[28:], uint64(forged))
	put(t, s, bait)
	filler := make([]byte, 1<<20)
	for n := range size>>20 + 1 {
		m := newMessage("T", 0, n+2)
		m.Body = filler
		put(t, s, m)
	}
	if b, err := s.log.Read(nil, forged, 8); err != nil || binary.BigEndian.Uint32(b) != size {
		t.Fatalf("the bait is not at %d: %x, %v", forged, b, err)
	}
	waitFor(t, "dispatch, which allocates too", func() bool { return s.DispatchBehind() == 0 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.Record(forged); !errors.Is(err, commitlog.ErrNotFound) {
		t.Errorf("a forged record: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for a forged size", n)
	}
}
