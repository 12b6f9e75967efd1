package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// Index files that someone has removed are noticed at the next start and made again: those in the middle as they were, to
// the byte, and nothing else is touched.
func TestRemovedIndexFiles(t *testing.T) {
	t.Parallel()
	const messages = 700
	cfg := smallConfig("/store")
	whole := vfs.NewMem(nil)
	s := openStore(t, whole, cfg, Options{})
	for n := range messages {
		put(t, s, newMessage("T", int32(n%3), n))
	}
	waitFor(t, "dispatch", func() bool { return s.DispatchBehind() == 0 })
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewSource(1))
	killed := whole.Crash(100, rng)
	closeStore(t, s)
	names := slices.Sorted(maps.Keys(filesBelow(t, whole, "/store/index")))
	if len(names) != 6 {
		t.Fatalf("%d index files", len(names))
	}
	for _, c := range []struct {
		name   string
		remove []int
		same   bool // the files are full, so they are as they were
	}{
		{"the first", []int{0}, true},
		{"one in the middle", []int{2}, true},
		{"two in the middle", []int{2, 3}, true},
		{"two apart", []int{1, 3}, true},
		{"all but one", []int{0, 1, 2, 4, 5}, false},
		{"the newest", []int{5}, false},
		{"the two newest", []int{4, 5}, false},
		{"all", []int{0, 1, 2, 3, 4, 5}, false},
	} {
		for _, disk := range []*vfs.Mem{whole.Crash(100, rng), killed.Crash(100, rng)} {
			before := filesBelow(t, disk, "/store/index")
			for _, i := range c.remove {
				if err := disk.Remove(names[i]); err != nil {
					t.Fatal(err)
				}
			}
			for again := range 2 {
				var log errorLog
				s := openStore(t, disk, cfg, Options{Log: log.logger()})
				for n := range messages {
					key := fmt.Sprintf("uniq-T-%d-%d", n%3, n)
					if got := s.Query("T", key, 32, 0, 1<<62); len(got.Records) == 0 || got.Records[len(got.Records)-1].QueueOffset() != int64(n/3) {
						t.Fatalf("%s: %s: %d records", c.name, key, len(got.Records))
					}
				}
				closeStore(t, s)
				if again == 1 && log.String() != "" {
					t.Errorf("%s: at the second start:\n%s", c.name, log.String())
				}
			}
			after := filesBelow(t, disk, "/store/index")
			if c.same && !sameFilesByContent(before, after) {
				t.Errorf("%s: other files than before", c.name)
			}
			if _, err := disk.Stat("/store/index.rebuild"); err == nil {
				t.Errorf("%s: index.rebuild is left", c.name)
			}
		}
	}
}

// sameFilesByContent compares files in the order of their names.
func sameFilesByContent(a, b map[string][]byte) bool {
	x, y := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !bytes.Equal(a[x[i]], b[y[i]]) || path.Dir(x[i]) != path.Dir(y[i]) {
			return false
		}
	}
	return true
}

// A file that can't be made again does not keep the store from starting; the next start tries it again.
func TestIndexGapOnFullDisk(t *testing.T) {
	cfg, mem := smallConfig("/store"), vfs.NewMem(nil)
	s := openStore(t, mem, cfg, Options{})
	for n := range 700 {
		put(t, s, newMessage("T", 0, n))
	}
	closeStore(t, s)
	names := slices.Sorted(maps.Keys(filesBelow(t, mem, "/store/index")))
	if err := mem.Remove(names[1]); err != nil {
		t.Fatal(err)
	}
	fails := true
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if fails && strings.Contains(o.Name, "index.rebuild") && o.Kind == vfs.OpWrite {
			return fmt.Errorf("no room")
		}
		return nil
	})
	for range 2 {
		var log errorLog
		s := openStore(t, fsys, cfg, Options{Log: log.logger()})
		found := len(s.Query("T", "uniq-T-0-200", 32, 0, 1<<62).Records)
		if want := 1; fails && (found != 0 || !strings.Contains(log.String(), "could not be made again")) || !fails && found != want {
			t.Errorf("fails %v: %d found\n%s", fails, found, log.String())
		}
		closeStore(t, s)
		fails = false
	}
}
