package store

import (
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestGarbledIndexFiles: garbage in the middle of an index file, in its entries or its slots, that was there before a start in order
// is noticed, and every key found; so is that which a query comes upon, by the start after the next stop.
func TestGarbledIndexFiles(t *testing.T) {
	t.Parallel()
	const messages = 500
	cfg := smallConfig("/store")
	whole := vfs.NewMem(nil)
	s := openStore(t, whole, cfg, Options{})
	putAll(t, s, messages, func(i int) *message.Message { return newMessage("T", 0, i) })
	closeStore(t, s)
	names := slices.Sorted(maps.Keys(filesBelow(t, whole, "/store/index")))
	if len(names) != 4 {
		t.Fatalf("%d index files", len(names))
	}
	const slots, entries = 40, 40 + 4*500 + 20 // where slots, and entry 1, begin
	garbage := make([]byte, 600)
	rand.New(rand.NewSource(1)).Read(garbage)
	lacks := func(s *Store) (n int) {
		for i := range messages {
			if len(s.Query("T", fmt.Sprintf("key-%d", i), 64, 0, math.MaxInt64).Records) == 0 {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		at   int64
		b    []byte
	}{
		{"entries are zeros", entries + 20*150, make([]byte, 600)},
		{"entries are garbage", entries + 20*150, garbage},
		{"one entry", entries + 20*170, make([]byte, 20)},
		{"slots are zeros", slots + 4*100, make([]byte, 600)},
		{"slots are garbage", slots + 4*100, garbage},
	} {
		for _, file := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s, file %d", c.name, file), func(t *testing.T) {
				var log errorLog
				mem := copyOf(whole)
				overwrite(t, mem, names[file], c.at, c.b)
				s := openStore(t, mem, cfg, Options{Log: log.logger()})
				if n := lacks(s); n != 0 {
					t.Errorf("%d keys are not found", n)
				}
				closeStore(t, s)

				if !strings.HasPrefix(c.name, "entries") {
					return
				}
				log.text.Reset()
				mem = copyOf(whole)
				s = openStore(t, mem, cfg, Options{Log: log.logger()})
				overwrite(t, mem, names[file], c.at, c.b)
				lacks(s)
				if !strings.Contains(log.String(), "AN INDEX FILE IS DAMAGED") || !strings.Contains(log.String(), names[file]) {
					t.Errorf("the log:\n%s", log.String())
				}
				closeStore(t, s)
				s = openStore(t, mem, cfg, Options{})
				if n := lacks(s); n != 0 {
					t.Errorf("%d keys are not found at the next start", n)
				}
				closeStore(t, s)
			})
		}
	}
}
