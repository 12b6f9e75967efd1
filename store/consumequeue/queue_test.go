package consumequeue

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"

	"rocketd/store/vfs"
)

// perFile is the entries of a file in these tests.
const perFile = 10

func open(t *testing.T, fsys vfs.FS, crashed bool) *Table {
	t.Helper()
	table, err := tryOpen(fsys, crashed)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func tryOpen(fsys vfs.FS, crashed bool) (*Table, error) {
	table, err := Open(Options{FS: fsys, Dir: "/q", FileSize: perFile * EntrySize, MaxOpen: 2, Crashed: crashed, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = table.Recover()
	}
	return table, err
}

// entry is the entry of a queue's n-th message: records of 100 bytes, one behind the other.
func entry(n int64) Entry { return Entry{PhyOffset: n * 100, Size: 100, TagsCode: -n} }

func add(t *testing.T, table *Table, queueId int32, from, to int64) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := table.Append("T", queueId, n, entry(n)); err != nil {
			t.Fatalf("append %d: %v", n, err)
		}
	}
}

// expect checks the bounds of a queue and each entry of it.
func expect(t *testing.T, table *Table, queueId int32, min, max int64) {
	t.Helper()
	q := table.Find("T", queueId)
	if q == nil {
		t.Fatalf("no queue %d", queueId)
	}
	if q.Min() != min || q.Max() != max {
		t.Fatalf("queue %d is [%d, %d), want [%d, %d)", queueId, q.Min(), q.Max(), min, max)
	}
	for n := min; n < max; n++ {
		if e, ok := q.Entry(n); !ok || e != entry(n) {
			t.Fatalf("entry %d: %+v %v", n, e, ok)
		}
	}
	if _, ok := q.Entry(max); ok {
		t.Fatalf("there is an entry at the end %d", max)
	}
}

func TestEntryBytes(t *testing.T) {
	// By hand from the layout in entry.go.
	e := Entry{PhyOffset: 0x0102030405060708, Size: 0x11121314, TagsCode: 2598919}
	b := e.append(nil)
	if got := hex.EncodeToString(b); got != "0102030405060708"+"11121314"+"000000000027a807" {
		t.Errorf("bytes %s", got)
	}
	if Decode(b) != e {
		t.Errorf("decoded %+v", Decode(b))
	}
	if got := hex.EncodeToString(blank.append(nil)); got != "0000000000000000"+"7fffffff"+"0000000000000000" {
		t.Errorf("blank %s", got)
	}
	for code, ext := range map[int64]bool{-1 << 62: true, -1<<62 + 1: false, -1796020240441: false, -2147483648: false, math.MinInt64: true, math.MinInt64 + 1<<40: true, 5: false} {
		if (Entry{TagsCode: code}).IsExtAddress() != ext {
			t.Errorf("tagsCode %d", code)
		}
	}
}

func TestAppendAndReadAcrossFiles(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 7)
	expect(t, table, 0, 0, 7)
	if err := table.Flush(1 << 20); err != nil {
		t.Fatal(err)
	}
	add(t, table, 0, 7, 35)
	expect(t, table, 0, 0, 35)
	q := table.Find("T", 0)
	// Partly in the file, partly in the tail; never beyond a file.
	for _, c := range []struct{ offset, n, want int64 }{{5, 10, 5}, {0, 3, 3}, {30, 100, 5}, {34, 1, 1}, {35, 1, 0}, {40, 1, 0}, {-1, 1, 0}} {
		b, err := q.Read(nil, c.offset, int(c.n))
		if err != nil || int64(len(b)) != c.want*EntrySize {
			t.Errorf("Read(%d, %d) = %d entries, %v", c.offset, c.n, len(b)/EntrySize, err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00000000000000000000", "00000000000000000200", "00000000000000000400", "00000000000000000600"} {
		if info, err := mem.Stat("/q/T/0/" + name); err != nil || info.Size() != perFile*EntrySize {
			t.Errorf("%s: %v", name, err)
		}
	}
	table = open(t, mem, false)
	expect(t, table, 0, 0, 35)
	if q, offset, e := table.Newest(); q == nil || offset != 34 || e != entry(34) || table.Find("T", 0).MaxPhyOffset() != 3500 {
		t.Error(offset, e)
	}
	add(t, table, 0, 30, 36) // the first five are there already
	expect(t, table, 0, 0, 36)
}

func TestFirstOffsetBehindZero(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 3, 24, 27)
	expect(t, table, 3, 24, 27)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := mem.OpenRead("/q/T/3/00000000000000000400")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5*EntrySize)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("00000000000000007fffffff0000000000000000", 4) + hex.EncodeToString(entry(24).append(nil))
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("file begins with %s, want %s", got, want)
	}
	table = open(t, mem, false)
	table.CorrectMin(0)
	expect(t, table, 3, 24, 27)
}

func TestOffsetsGoBack(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 25)
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	// A message further on in the log owns queue offset 12 now.
	for n := int64(12); n < 14; n++ {
		if err := table.Append("T", 0, n, entry(100+n)); err != nil {
			t.Fatal(err)
		}
	}
	q := table.Find("T", 0)
	if q.Max() != 14 {
		t.Fatal(q.Max())
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	table = open(t, mem, false)
	q = table.Find("T", 0)
	if e, _ := q.Entry(13); q.Max() != 14 || e != entry(113) {
		t.Fatal(q.Max(), e)
	}
	if e, _ := q.Entry(11); e != entry(11) {
		t.Fatal(e)
	}
	if _, err := mem.Stat("/q/T/0/00000000000000000400"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file behind the end is still there")
	}
	// The topic was deleted and made again: from 0 on.
	if err := table.Append("T", 0, 0, entry(200)); err != nil {
		t.Fatal(err)
	}
	if q.Min() != 0 || q.Max() != 1 {
		t.Fatal(q.Min(), q.Max())
	}
}

func TestGapIsFilled(t *testing.T) {
	table := open(t, vfs.NewMem(nil), false)
	add(t, table, 0, 0, 5)
	add(t, table, 0, 23, 25)
	q := table.Find("T", 0)
	if q.Max() != 25 {
		t.Fatal(q.Max())
	}
	if _, ok := q.Entry(7); ok {
		t.Error("a blank entry was given out")
	}
	if e, ok := q.Entry(24); !ok || e != entry(24) {
		t.Error(e, ok)
	}
	for _, wrong := range []int64{-1, 1 << 40} {
		if err := table.Append("T", 0, wrong, entry(1000)); !errors.Is(err, ErrGap) {
			t.Errorf("offset %d: %v", wrong, err)
		}
	}
}

func TestDeleteExpired(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 35)
	add(t, table, 1, 0, 3)
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	// The last entry of the second file has offset 1900.
	if n, err := table.DeleteExpired(1901, nil); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	expect(t, table, 0, 20, 35)
	expect(t, table, 1, 3, 3) // all expired, but the end stays
	if _, err := mem.Stat("/q/T/0/00000000000000000200"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if n, err := table.DeleteExpired(1<<40, nil); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	expect(t, table, 0, 35, 35)
	add(t, table, 0, 35, 36)
	expect(t, table, 0, 35, 36)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	table = open(t, mem, false)
	table.CorrectMin(3500)
	expect(t, table, 0, 35, 36)
}

func TestDestroy(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 15)
	add(t, table, 1, 0, 1)
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	if got := table.Take("T", 0, 3); got != 0 {
		t.Fatal(got)
	}
	q := table.Find("T", 0)
	if err := table.Destroy(q); err != nil {
		t.Fatal(err)
	}
	if table.Find("T", 0) != nil || len(table.Queues("T")) != 1 {
		t.Error("still there")
	}
	if err := q.Append(15, entry(15)); err == nil {
		t.Error("a destroyed queue takes entries")
	}
	if got := table.Take("T", 0, 1); got != 0 {
		t.Error("queue offsets go on after the queue was destroyed", got)
	}
	add(t, table, 0, 0, 2)
	expect(t, table, 0, 0, 2)
	if err := table.Destroy(table.Find("T", 0)); err != nil {
		t.Fatal(err)
	}
	if err := table.Destroy(table.Find("T", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Stat("/q/T"); !errors.Is(err, fs.ErrNotExist) || len(table.Topics()) != 0 {
		t.Error("the topic's folder is left", err)
	}
}

func TestQueueOffsets(t *testing.T) {
	table := open(t, vfs.NewMem(nil), false)
	add(t, table, 7, 0, 5)
	table.ResetOffsets()
	if a, b := table.Take("T", 7, 3), table.Take("T", 7, 1); a != 5 || b != 8 {
		t.Error(a, b)
	}
	table.Untake("T", 7, 1)
	if got := table.Take("T", 7, 1); got != 8 {
		t.Error(got)
	}
	if got := table.Take("T", 1<<30, 1); got != 0 {
		t.Error(got)
	}
	if got := table.Queues("T"); len(got) != 2 || got[1] != 1<<30 {
		t.Error(got)
	}
}

func TestTopicsThatAreNoFolders(t *testing.T) {
	table := open(t, vfs.NewMem(nil), false)
	for _, topic := range []string{"", ".", "..", "../x", "a/b", "a\x00", strings.Repeat("x", 256)} {
		if err := table.Append(topic, 0, 0, entry(0)); !errors.Is(err, ErrTopic) {
			t.Errorf("%q: %v", topic, err)
		}
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
}

func TestWriteFailsAndHeals(t *testing.T) {
	mem := vfs.NewMem(nil)
	full := true
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if full && (o.Kind == vfs.OpWrite || o.Kind == vfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	})
	table := open(t, fsys, false)
	var failed error
	for n := range int64(1000) {
		if err := table.Append("T", 0, n, entry(n)); err != nil {
			failed = err
		}
	}
	if !errors.Is(failed, syscall.ENOSPC) || !table.Failing() {
		t.Fatal(failed)
	}
	expect(t, table, 0, 0, 1000)
	if err := table.Flush(0); !errors.Is(err, syscall.ENOSPC) || table.Damaged() != nil {
		t.Fatal(err, table.Damaged())
	}
	full = false
	if err := table.Flush(0); err != nil || table.Failing() {
		t.Fatal(err)
	}
	expect(t, table, 0, 0, 1000)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, mem, false), 0, 0, 1000)
}

func TestSyncFailureIsDamage(t *testing.T) {
	fail := true
	fsys := vfs.NewFault(vfs.NewMem(nil), func(o vfs.Op) error {
		if fail && o.Kind == vfs.OpSync {
			return syscall.EIO
		}
		return nil
	})
	table := open(t, fsys, false)
	add(t, table, 0, 0, 3)
	if err := table.Flush(0); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fail = false
	if err := table.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("damage is forgotten: %v", err)
	}
}
