package consumequeue

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"

	"rocketd/store/vfs"
)

func openExtended(t testing.TB, fsys vfs.FS, size int) *Table {
	t.Helper()
	table, err := Open(Options{FS: fsys, Dir: "/q", FileSize: perFile * EntrySize, MaxOpen: 2, Log: slog.New(slog.DiscardHandler),
		Ext: "/x", ExtFileSize: size, EnableExt: true})
	if err == nil {
		err = table.Recover()
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Where units go, by hand from ConsumeQueueExt#put of 4.9.8, and their bytes.
func TestUnitPlaces(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := openExtended(t, mem, 128)
	phy := int64(0)
	add := func(bitMap int, want int64) {
		t.Helper()
		u := Unit{TagsCode: 0x0102030405060708, StoreTimestamp: 0x1112131415161718, BitMap: bytes.Repeat([]byte{0xab}, bitMap)}
		if err := table.AppendUnit("T", 1, phy/100, Entry{PhyOffset: phy, Size: 100, TagsCode: 7}, &u); err != nil {
			t.Fatal(err)
		}
		q := table.Find("T", 1)
		e, ok := q.Entry(phy / 100)
		if !ok || e.PhyOffset != phy || want < 0 && e.TagsCode != u.TagsCode || want >= 0 && e.TagsCode != math.MinInt64+want {
			t.Errorf("entry %d is %+v, want a unit at %d", phy/100, e, want)
		}
		var r UnitReader
		if got, ok := r.Read(q, e.TagsCode); ok != (want >= 0) || ok && (got.TagsCode != u.TagsCode || got.StoreTimestamp != u.StoreTimestamp || !bytes.Equal(got.BitMap, u.BitMap)) {
			t.Errorf("unit at %d is %+v %v", want, got, ok)
		}
		phy += 100
	}
	for n := range int64(6) {
		add(0, n*20)
	}
	add(0, 128)     // 8 bytes are left in the first file, of which 4 stay free
	add(8, 148)     // 28 bytes
	add(58, 256)    // 78 bytes, and 80 are left, of which 4 stay free
	add(0, 256+78)  // behind it
	add(104, 384)   // the largest that a file holds
	add(105, -1)    // too large
	add(0, 512)     // the next file: 4 bytes are left
	add(40_000, -1) // larger than any unit
	add(0, 512+20)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.Files{FS: mem}.ReadFile("/x/T/1/00000000000000000000")
	if err != nil || len(f) != 128 {
		t.Fatal(len(f), err)
	}
	if got := hex.EncodeToString(f[100:]); got != "00140102030405060708"+"1112131415161718"+"0000"+"ffff000000000000" {
		t.Errorf("the end of the first file is %s", got)
	}
}

// Units are read while others are added and written.
func TestUnitsConcurrently(t *testing.T) {
	table := openExtended(t, vfs.NewMem(nil), 512)
	const entries = 3000
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var r UnitReader
			for at := int64(0); at < entries; {
				q := table.Find("T", 0)
				if q == nil || q.Max() <= at {
					continue
				}
				e, ok := q.Entry(at)
				u, there := r.Read(q, e.TagsCode)
				if !ok || !there || u.TagsCode != -at || string(u.BitMap) != fmt.Sprint(at) {
					t.Errorf("unit %d: %v %+v %v", at, ok, u, there)
					return
				}
				at++
			}
		})
	}
	for n := range int64(entries) {
		u := Unit{TagsCode: -n, StoreTimestamp: n, BitMap: fmt.Append(nil, n)}
		if err := table.AppendUnit("T", 0, n, entry(n), &u); err != nil {
			t.Fatal(err)
		}
		if n%50 == 0 {
			if err := table.Flush(int(n) % 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	readers.Wait()
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
}
