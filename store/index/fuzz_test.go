package index

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"testing"

	"rocketd/store/vfs"
)

// FuzzFiles overwrites a part of an official index file, the second of two, or cuts it, and opens the index as the store does
// after a clean stop or a kill. It demands: no panic; every query ends; a new record can be indexed and is found.
func FuzzFiles(f *testing.F) {
	z, err := os.Open("testdata/official.gz")
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	r, err := gzip.NewReader(z)
	if err != nil {
		f.Fatal(err)
	}
	official, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), []byte{}, uint16(math.MaxUint16), false)
	f.Add(uint16(0), make([]byte, 40), uint16(math.MaxUint16), false)
	f.Add(uint16(16), []byte("\x7f\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff"), uint16(math.MaxUint16), true)
	f.Add(uint16(36), []byte("\x7f\xff\xff\xff"), uint16(math.MaxUint16), true)
	f.Add(uint16(2040), []byte("\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x07"), uint16(math.MaxUint16), false)
	f.Add(uint16(0), []byte{}, uint16(41), true)
	const end = 1 << 20 // of the commit log
	f.Fuzz(func(t *testing.T, at uint16, damage []byte, size uint16, crashed bool) {
		b := append([]byte(nil), official...)
		if int(at) < len(b) {
			copy(b[at:], damage)
		}
		b = b[:min(len(b), int(size))]
		mem := vfs.NewMem(nil)
		if err := vfs.MkdirAllSync(mem, "/index"); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{"20261129185709223": official, "20261129185742920": b} {
			if err := (vfs.Files{FS: mem}).WriteFile("/index/"+name, content); err != nil {
				t.Fatal(err)
			}
		}
		x := open(t, mem, 500, 400)
		timeOf := func(int64) int64 { return 0 }
		var from int64
		var err error
		if crashed {
			from, err = x.Recover(end, 0, timeOf)
		} else {
			from, err = x.Mend(end, timeOf)
		}
		if err != nil || from > end {
			t.Fatalf("from %d: %v", from, err)
		}
		if err := x.Put("T", "new", "", end, storeTime(5)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			found := false
			got, err := x.Query("T", "new", 64, math.MinInt64, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			for _, phyOffset := range got.PhyOffsets {
				found = found || phyOffset == end
			}
			if !found {
				t.Fatalf("the new record is not found: %v", got)
			}
			if _, err := x.Flush(true); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"a", "b", "c"} {
			if _, err := x.Query("T", key, 64, 0, math.MaxInt64); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
