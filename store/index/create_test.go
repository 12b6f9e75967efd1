package index

import (
	"testing"

	"rocketd/store/vfs"
)

// A new file says on disk from its first moment where the one before it ended, as the official broker's does: after a kill
// that one keeps or removes a file by the end in its header.
func TestNewFileHasItsHeader(t *testing.T) {
	mem := vfs.NewMem(nil)
	x := open(t, mem, 10, 7)
	headerOf := func(i int) header {
		h, err := x.readHeader(x.files[i].path)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	put(t, x, 0, 3) // three keys each; six entries fit
	if len(x.files) != 2 {
		t.Fatalf("%d files, want 2", len(x.files))
	}
	if got, want := headerOf(0), (header{count: 1}); got != want {
		t.Errorf("the first file's header is %+v, want %+v", got, want)
	}
	end := header{beginTimestamp: storeTime(100), endTimestamp: storeTime(100), beginPhyOffset: 100, endPhyOffset: 100, count: 1}
	if got := headerOf(1); got != end {
		t.Errorf("the second file's header is %+v, want %+v", got, end)
	}
	if _, err := x.Flush(false); err != nil {
		t.Fatal(err)
	}
	if got, want := headerOf(1), x.files[1].header; got != want || got.count != 4 {
		t.Errorf("after a flush it is %+v, want %+v", got, want)
	}
}

// The official checkpoint speaks of full files only.
func TestFullTimestamp(t *testing.T) {
	mem := vfs.NewMem(nil)
	x := open(t, mem, 10, 7) // two messages a file
	for _, c := range []struct{ until, full int64 }{{1, 0}, {2, 0}, {3, storeTime(100)}, {4, storeTime(100)}, {7, storeTime(500)}} {
		put(t, x, 0, c.until)
		if _, err := x.Flush(false); err != nil {
			t.Fatal(err)
		}
		if got := x.FullTimestamp(); got != c.full {
			t.Errorf("%d messages: %d, want %d", c.until, got, c.full)
		}
	}
	if _, err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, mem, 10, 7)
	if _, err := x.Flush(true); err != nil || x.FullTimestamp() != storeTime(500) {
		t.Errorf("opened again: %d, %v", x.FullTimestamp(), err)
	}
}
