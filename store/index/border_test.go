package index

import (
	"fmt"
	"math"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// What is inserted at a border stands between its neighbours, is found, and stays over the next starts though its file is
// not full.
func TestInsertAtBorder(t *testing.T) {
	mem := vfs.NewMem(nil)
	x := open(t, mem, 7, 10) // 9 entries a file
	now := testStart
	x.clock = func() time.Time { now = now.Add(time.Second); return now } // room for names between
	put := func(x *Index, phyOffset int64) {
		t.Helper()
		if err := x.Put("T", fmt.Sprint("key", phyOffset), "", phyOffset, storeTime(phyOffset)); err != nil {
			t.Fatal(err)
		}
	}
	for n := int64(1); n <= 9; n++ {
		put(x, n*100)
	}
	for n := int64(20); n <= 30; n++ { // 29 is the last of the second file
		put(x, n*100)
	}
	if _, err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, mem, 7, 10)
	borders, err := x.Borders()
	if err != nil || len(borders) != 3 || borders[0].From != -1 || borders[0].To != 100 || borders[1].From != 900 || borders[1].FromEntries != 1 ||
		borders[1].To != 2000 || borders[1].ToEntries != 1 || borders[2].From != 2800 || borders[2].To != 2900 {
		t.Fatalf("%+v %v", borders, err)
	}
	if end, entries, err := x.End(); end != 3000 || entries != 1 || err != nil {
		t.Errorf("%d %d %v", end, entries, err)
	}
	err = x.Insert(borders[1], "/scratch", func(made *Index) error {
		for n := int64(10); n < 15; n++ {
			put(made, n*100)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := func(want ...int64) {
		t.Helper()
		for _, phyOffset := range want {
			got, err := x.Query("T", fmt.Sprint("key", phyOffset), 8, 0, math.MaxInt64)
			if err != nil || len(got.PhyOffsets) == 0 || got.PhyOffsets[0] != phyOffset {
				t.Errorf("key%d: %v %v", phyOffset, got.PhyOffsets, err)
			}
		}
	}
	found(100, 900, 1000, 1400, 2000, 3000)
	for _, crashed := range []bool{false, true, false} {
		x = open(t, mem, 7, 10)
		from := int64(0)
		if crashed {
			from, err = x.Recover(4000, math.MaxInt64, func(int64) int64 { return 0 })
		} else {
			from, err = x.Mend(4000, func(int64) int64 { return 0 })
		}
		if err != nil || from != 4000 || len(x.files) != 4 {
			t.Errorf("crashed %v: from %d, %d files, %v", crashed, from, len(x.files), err)
		}
		found(100, 900, 1000, 1400, 2000, 3000)
	}
}
