package inspect

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// FuzzDamage writes bytes anywhere into a file of an official store. Whatever they are, Verify and Info don't panic, what
// Verify finds Repair mends, and a second Repair has nothing to do.
func FuzzDamage(f *testing.F) {
	source := unpack(f, "clean")
	names := slices.Sorted(maps.Keys(tree(f, source, "/store")))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "/config/") || strings.HasSuffix(name, "/lock") })
	at := func(name string) uint8 { return uint8(slices.Index(names, name)) }
	f.Add(at(log0), uint32(235), []byte{0, 0, 0, 1})
	f.Add(at(log0), uint32(1410+20), be64(3))
	f.Add(at(log1), uint32(75049-65536), make([]byte, 100))
	f.Add(at(queue0), uint32(20), be64(75289))
	f.Add(at(index0), uint32(2060), be32(-1))
	f.Add(at("/store/checkpoint"), uint32(0), be64(-1))
	f.Fuzz(func(t *testing.T, file uint8, offset uint32, data []byte) {
		name := names[int(file)%len(names)]
		mem := source.Crash(100, rand.New(rand.NewSource(1)))
		size := int64(len(read(t, source, name)))
		if size == 0 || len(data) == 0 {
			return
		}
		patch(t, mem, name, int64(offset)%size, data)
		truncate(t, mem, name, size)
		if _, err := open(t, mem).Info(); err != nil {
			t.Fatal(err)
		}
		verifyStore(t, mem)
		mended := fuzzRepair(t, mem)
		for _, finding := range mended.Left.Findings {
			if finding.Kind != QueueOffsets {
				t.Error(finding)
			}
		}
		if again := fuzzRepair(t, mem); mended.Left.Clean() && len(again.Steps) > 0 {
			t.Errorf("the second repair took %v", again.Steps)
		}
	})
}

func fuzzRepair(t *testing.T, mem *vfs.Mem) *RepairReport {
	t.Helper()
	r, err := Repair(Options{FS: mem, Root: "/store"}, RepairOptions{Fill: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
