package store

import (
	"bytes"
	"log/slog"
	"math/rand"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestKeylessLogIsNotIndexedAgain: after a crash a store whose index has nothing, because no message that the checkpoint
// covers has a key, reads no more of the log than what came after the checkpoint; keys that came then are found.
func TestKeylessLogIsNotIndexedAgain(t *testing.T) {
	t.Parallel()
	keyless := func(n int) *message.Message {
		m := newMessage("T", 0, n)
		m.Properties = "TAGS\x01a\x02"
		return m
	}
	for _, keyed := range []bool{false, true} {
		mem := vfs.NewMem(nil)
		cfg := smallConfig("/store")
		s := openStore(t, mem, cfg, Options{})
		for n := range 20 {
			put(t, s, keyless(n))
		}
		if err := s.saveCheckpoint(); err != nil {
			t.Fatal(err)
		}
		if keyed {
			put(t, s, newMessage("T", 0, 20))
		} else {
			put(t, s, keyless(20))
		}
		disk := mem.Crash(100, rand.New(rand.NewSource(1)))
		_ = s.Close()
		var log bytes.Buffer
		s = openStore(t, disk, cfg, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if strings.Contains(log.String(), "the index is incomplete") {
			t.Errorf("keyed=%v: indexed again:\n%s", keyed, log.String())
		}
		if found := s.Query("T", "key-20", 10, 0, 1<<60); (len(found.Records) > 0) != keyed {
			t.Errorf("keyed=%v: found %+v", keyed, found)
		}
		closeStore(t, s)
	}
}
