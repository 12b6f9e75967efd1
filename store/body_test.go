package store

import (
	"bytes"
	"sync"
	"testing"

	"rocketd/store/vfs"
)

// TestBodySizes: a body has the room asked for, and only one of a pool's own size goes back.
func TestBodySizes(t *testing.T) {
	for _, test := range []struct{ ask, room int }{
		{0, 0}, {100, 100}, {4 << 10, 4 << 10}, {4<<10 + 1, 8 << 10}, {8 << 10, 8 << 10}, {100_000, 128 << 10}, {256 << 10, 256 << 10},
		{1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1},
	} {
		if b := newBody(test.ask); len(b) != 0 || cap(b) != test.room {
			t.Errorf("asked for %d: length %d, room %d, want %d", test.ask, len(b), cap(b), test.room)
		}
	}
	RecycleBody(nil)
	RecycleBody(make([]byte, 9000)) // must not be handed out as 16 KiB, nor as 8
	for range 10 {
		if b := newBody(16 << 10); len(b) != 0 || cap(b) != 16<<10 {
			t.Fatalf("room %d for 16 KiB", cap(b))
		}
	}
}

// TestRecycledBodiesAreNotShared: readers that give their bodies back never see each other's.
func TestRecycledBodiesAreNotShared(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 1 << 20
	cfg.MaxTransferBytesOnMessageInMemory, cfg.MaxTransferBytesOnMessageInDisk = 64<<10, 64<<10
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	const readers = 4
	topics := [readers]string{"T0", "T1", "T2", "T3"}
	var want [readers][]byte
	for i, topic := range topics {
		for n := range 8 {
			put(t, s, sized(topic, n, 2000+i))
		}
		want[i] = bytes.Clone(s.Get(topic, 0, 0, 32, nil).Body)
		if len(want[i]) != 8*(2000+i) {
			t.Fatalf("%d bytes of %s", len(want[i]), topic)
		}
	}
	var wg sync.WaitGroup
	for i, topic := range topics {
		wg.Go(func() {
			for range 200 {
				body := s.Get(topic, 0, 0, 32, nil).Body
				if !bytes.Equal(body, want[i]) {
					t.Errorf("%s: other bytes than before", topic)
					return
				}
				RecycleBody(body)
			}
		})
	}
	wg.Wait()
}
