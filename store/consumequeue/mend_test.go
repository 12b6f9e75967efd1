package consumequeue

import (
	"fmt"
	"testing"

	"rocketd/store/vfs"
)

// belongs tells whether an entry is that of add.
func belongs(at int64, e Entry) bool { return e == entry(at) }

// TestStretch: how far damage goes, where in the log its records are, and what is written.
func TestStretch(t *testing.T) {
	for _, c := range []struct {
		wrong        []int64
		at           int64 // that is reported
		first, last  int64 // of the stretch
		from, to     int64
		found, noted int
	}{
		{[]int64{12}, 12, 12, 12, 1200, 1300, 1, 1},
		{[]int64{12, 13, 14}, 13, 12, 14, 1200, 1500, 3, 3},
		{[]int64{0, 1}, 0, 0, 1, 0, 200, 2, 2},
		{[]int64{11, 17}, 11, 11, 17, 1100, 1800, 2, 2},
		{[]int64{39}, 39, 39, 39, 3900, 4000, 1, 1},
		{[]int64{8, 9, 10, 11}, 9, 8, 11, 800, 1200, 4, 4},
	} {
		t.Run(fmt.Sprint(c.wrong), func(t *testing.T) {
			table := open(t, vfs.NewMem(nil), false)
			add(t, table, 0, 0, 45)
			if err := table.Flush(0); err != nil {
				t.Fatal(err)
			}
			q := table.Find("T", 0)
			q.mu.Lock()
			for _, at := range c.wrong {
				if err := q.overwriteLocked(at, Entry{}); err != nil {
					t.Fatal(err)
				}
			}
			q.mu.Unlock()
			s, err := q.StretchAt(c.at, 0, 4500, belongs)
			if err != nil || s == nil {
				t.Fatal(s, err)
			}
			if s.First != c.first || int64(len(s.Wrong)) != c.last-c.first+1 || s.From != c.from || s.To != c.to || s.Left != c.noted {
				t.Errorf("%+v", s)
			}
			whole := false
			for n := s.From / 100; n < s.To/100; n++ {
				whole = s.Offer(n, entry(n))
			}
			if !whole {
				t.Error("something is still wanted")
			}
			mended, lost, err := s.Write(func(Entry) bool { return true })
			if mended != c.found || lost != 0 || err != nil {
				t.Error(mended, lost, err)
			}
			expect(t, table, 0, 0, 45)
			if s, err := q.StretchAt(c.at, 0, 4500, belongs); s != nil || err != nil {
				t.Errorf("after it: %+v %v", s, err)
			}
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A stretch whose records have gone gets blank entries, but for those that are to stay; a queue that was cut or destroyed
// meanwhile is left alone.
func TestStretchWithoutRecords(t *testing.T) {
	table := open(t, vfs.NewMem(nil), false)
	add(t, table, 0, 0, 45)
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	q := table.Find("T", 0)
	q.mu.Lock()
	for at, e := range map[int64]Entry{5: {}, 6: {PhyOffset: 77, Size: 3}, 7: {PhyOffset: 99, Size: 3}} {
		if err := q.overwriteLocked(at, e); err != nil {
			t.Fatal(err)
		}
	}
	q.mu.Unlock()
	s, err := q.StretchAt(6, 0, 4500, belongs)
	if err != nil || s.Left != 3 {
		t.Fatal(s, err)
	}
	if mended, lost, err := s.Write(func(e Entry) bool { return e.PhyOffset == 77 }); mended != 0 || lost != 3 || err != nil {
		t.Error(mended, lost, err)
	}
	for at, want := range map[int64]Entry{4: entry(4), 5: blank, 6: {PhyOffset: 77, Size: 3}, 7: blank, 8: entry(8)} {
		if e, _ := q.at(at); e != want {
			t.Errorf("entry %d: %+v", at, e)
		}
	}
	s, err = q.StretchAt(6, 0, 4500, belongs)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	q.mu.Lock()
	q.cutLocked(3)
	q.mu.Unlock()
	s.Offer(6, entry(6))
	if mended, _, err := s.Write(func(Entry) bool { return false }); mended != 0 || err != nil {
		t.Error(mended, err)
	}
	expect(t, table, 0, 0, 3)
	if s, err := q.StretchAt(6, 0, 4500, belongs); s != nil || err != nil {
		t.Errorf("behind the end: %+v %v", s, err)
	}
}

// A file that has gone while the queue is in use is made anew, and its entries.
func TestStretchOfMissingFile(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 45)
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	q := table.Find("T", 0)
	table.files.drop(q, 10)
	if err := mem.Remove("/q/T/0/00000000000000000200"); err != nil {
		t.Fatal(err)
	}
	s, err := q.StretchAt(14, 0, 4500, belongs)
	if err != nil || s == nil || s.First != 10 || s.Left != 10 {
		t.Fatalf("%+v %v", s, err)
	}
	for n := range int64(45) {
		s.Offer(n, entry(n))
	}
	if _, _, err := s.Write(func(Entry) bool { return false }); err != nil {
		t.Fatal(err)
	}
	expect(t, table, 0, 0, 45)
}
