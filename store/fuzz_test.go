package store

import (
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// FuzzCheckpoint starts a killed store with any bytes as its checkpoint. It demands that no message is missing or twice.
func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add(noCheckpoint.encode(), true)
	f.Add((&checkpoint{physicMsgTimestamp: 1 << 60, logicsMsgTimestamp: 1 << 60, indexMsgTimestamp: 1 << 60, dispatched: 1 << 60, lastRecord: 1<<60 - 100}).encode(), true)
	f.Add((&checkpoint{physicMsgTimestamp: 1795976475252, dispatched: 200, lastRecord: 100}).encode(), false)
	var official []byte
	var disk *vfs.Mem
	var cfg Config
	f.Fuzz(func(t *testing.T, b []byte, crashed bool) {
		if disk == nil {
			disk, cfg, _ = killedStore(t, 40)
			official, _ = vfs.Files{FS: disk}.ReadFile("/store/checkpoint")
		}
		if len(b) > len(official) {
			b = b[:len(official)]
		}
		mem := disk.Crash(100, rand.New(rand.NewSource(1)))
		replace(t, mem, "/store/checkpoint", b)
		if !crashed {
			if err := mem.Remove("/store/abort"); err != nil {
				t.Fatal(err)
			}
		}
		s := openStore(t, mem, cfg, Options{})
		if p := put(t, s, newMessage("T", 0, 40))[0]; p.QueueOffset != 40 {
			t.Errorf("the next message has queue offset %d", p.QueueOffset)
		}
		if got := readAll(t, s, "T", 0); len(got) != 41 {
			t.Errorf("%d messages of 41", len(got))
		}
		closeStore(t, s)
	})
}

// FuzzMangledStore overwrites a part of one file of an official broker's store that was killed: log, queues, index,
// checkpoint. It demands: no panic, whichever queue is read, by whatever time; the store opens, or says which file hinders it;
// then it takes a message and gives it back, also after another start.
func FuzzMangledStore(f *testing.F) {
	for which := range uint8(60) {
		f.Add(which, uint32(which)*331, []byte("\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"))
	}
	f.Add(uint8(1), uint32(70_000), make([]byte, 4096))
	var disk *vfs.Mem
	var names []string
	f.Fuzz(func(t *testing.T, which uint8, at uint32, damage []byte) {
		if disk == nil {
			disk = unpack(t, "killed")
			names = storeFiles(t, disk, "/store")
		}
		mem := disk.Crash(100, rand.New(rand.NewSource(1)))
		name := names[int(which)%len(names)]
		info, err := mem.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 0 {
			from := int64(at) % info.Size()
			overwrite(t, mem, name, from, damage[:min(int64(len(damage)), info.Size()-from)])
		}
		cfg := smallConfig("/store")
		s, err := tryOpen(mem, cfg, Options{})
		if err != nil {
			if !strings.Contains(err.Error(), "/store/") {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		readQueues(s)
		p := put(t, s, newMessage("Fresh", 0, 1))[0]
		for range 2 {
			m, err := s.Message(p.PhyOffset)
			if err != nil || string(m.Body) != "body-Fresh-0-1" {
				t.Fatalf("%q %v", m.Body, err)
			}
			if got := readAll(t, s, "Fresh", 0); len(got) != 1 {
				t.Errorf("%d messages", len(got))
			}
			closeStore(t, s)
			s = openStore(t, mem, cfg, Options{})
		}
		closeStore(t, s)
	})
}

// readQueues goes through all queues as consumers and administrators do.
func readQueues(s *Store) {
	for _, topic := range s.Topics() {
		for _, queueId := range s.Queues(topic) {
			for offset := s.MinOffset(topic, queueId); offset < s.MaxOffset(topic, queueId); {
				r := s.Get(topic, queueId, offset, 32, byTag{7, ""})
				for _, rec := range [...]int64{offset, offset + 1} {
					_, _ = s.Entry(topic, queueId, rec)
				}
				if r = s.Get(topic, queueId, offset, 32, nil); r.NextBeginOffset <= offset {
					break
				}
				offset = r.NextBeginOffset
			}
			for _, at := range []int64{0, 1795978466781, 1 << 62} {
				_ = s.OffsetByTime(topic, queueId, at)
			}
			_ = s.EarliestTime(topic, queueId)
		}
	}
}

// storeFiles lists the files of log, queues and index, and the checkpoint.
func storeFiles(t *testing.T, fsys vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch name := path.Join(dir, e.Name()); {
		case e.IsDir() && e.Name() != "config":
			names = append(names, storeFiles(t, fsys, name)...)
		case !e.IsDir() && !slices.Contains([]string{"abort", "lock"}, e.Name()):
			names = append(names, name)
		}
	}
	return names
}
