package inspect

import (
	"fmt"
	"testing"

	"rocketd/store"
	"rocketd/store/vfs"
)

// A store whose index files were made with changing sizes has nothing wrong, and needs no broker.conf to be looked into.
func TestChangedIndexSizes(t *testing.T) {
	for _, sizes := range [][][2]int{{{500, 400}, {300, 200}}, {{300, 200}, {500, 400}}, {{500, 400}, {300, 400}}, {{500, 400}, {500, 100}}, {{500, 400}, {300, 200}, {200, 100}}} {
		for _, more := range []int{20, 300} { // part of a file, several
			t.Run(fmt.Sprint(sizes, more), func(t *testing.T) {
				mem := vfs.NewMem(nil)
				for i, size := range sizes {
					cfg := smallConfig()
					cfg.MaxHashSlotNum, cfg.MaxIndexNum = size[0], size[1]
					s, err := store.Open(cfg, store.Options{FS: mem})
					if err != nil {
						t.Fatal(err)
					}
					s.Start()
					fillStore(t, s, 1000*i, more)
					closeStore(t, s)
				}
				wantClean(t, verifyStore(t, mem))
				last := sizes[len(sizes)-1]
				if d := open(t, mem); d.index.slots != int32(last[0]) || d.index.entries != int32(last[1]) {
					t.Errorf("%d slots, %d entries", d.index.slots, d.index.entries)
				}
			})
		}
	}
}
