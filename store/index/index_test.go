package index

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand"
	"slices"
	"syscall"
	"testing"
	"time"

	"rocketd/compat"
	"rocketd/store/vfs"
)

var testStart = time.Date(2026, 11, 29, 18, 19, 41, 282e6, time.Local)

func open(t testing.TB, fsys vfs.FS, slots, entries int) *Index {
	t.Helper()
	x, err := Open(Options{FS: fsys, Dir: "/index", MaxHashSlotNum: slots, MaxIndexNum: entries,
		Clock: func() time.Time { return testStart }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// storeTime is the store timestamp of the message at an offset: one a second.
func storeTime(phyOffset int64) int64 { return 1795976475252 + phyOffset*10 }

// key is the key of the n-th message; there are seven.
func key(n int64) string { return fmt.Sprintf("key-%d", n%7) }

func put(t testing.TB, x *Index, from, to int64) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := x.Put("T", fmt.Sprintf("uniq-%d", n), key(n)+"  both", n*100, storeTime(n*100)); err != nil {
			t.Fatal(err)
		}
	}
}

// expect checks that every message in [from, to) is found by each of its keys, and none behind.
func expect(t *testing.T, x *Index, from, to int64) {
	t.Helper()
	query := func(key string) []int64 {
		r, err := x.Query("T", key, math.MaxInt32, 0, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		return r.PhyOffsets
	}
	var all []int64
	for n := from; n < to; n++ {
		all = append(all, n*100)
		if got := query(fmt.Sprintf("uniq-%d", n)); !slices.Equal(got, []int64{n * 100}) {
			t.Fatalf("uniq-%d: %v", n, got)
		}
	}
	got := query("both")
	slices.Sort(got)
	if !slices.Equal(got, all) {
		t.Fatalf("all: %v, want %v", got, all)
	}
	if got := query(fmt.Sprintf("uniq-%d", to)); len(got) != 0 {
		t.Fatalf("a message behind the end is found: %v", got)
	}
}

func TestKeyHash(t *testing.T) {
	// From Java: "T#k".hashCode() = 84*961 + 35*31 + 107; "polygenelubricants" is the known string with Integer.MIN_VALUE.
	if got := keyHash("T", "k"); got != 84*961+35*31+107 {
		t.Error(got)
	}
	if h, ok := hashASCII(0, "polygenelubricants"); !ok || h != math.MinInt32 || max(-h, 0) != 0 {
		t.Error(h, ok)
	}
	rng := rand.New(rand.NewSource(1))
	for range 1000 {
		topic, key := randomText(rng), randomText(rng)
		want := compat.HashCode(topic + "#" + key)
		if want < 0 {
			want = max(-want, 0)
		}
		if got := keyHash(topic, key); got != want {
			t.Fatalf("%q %q: %d, want %d", topic, key, got, want)
		}
	}
}

func randomText(rng *rand.Rand) string {
	letters := []rune("abcXYZ09_%-é世🚀")
	if rng.Intn(2) == 0 {
		letters = letters[:11]
	}
	b := make([]rune, rng.Intn(20))
	for i := range b {
		b[i] = letters[rng.Intn(len(letters))]
	}
	return string(b)
}

func TestFileBytes(t *testing.T) {
	// Two keys that share the only slot; by hand from the layout in format.go.
	mem := vfs.NewMem(nil)
	x := open(t, mem, 1, 10)
	if err := x.Put("T", "k", "", 0x10, 5000); err != nil {
		t.Fatal(err)
	}
	if err := x.Put("T", "k", "", 0x20, 7999); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := mem.OpenRead("/index/20261129181941282")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 40+4+10*20)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	want := "0000000000001388" + "0000000000001f3f" + "0000000000000010" + "0000000000000020" + "00000001" + "00000003" +
		"00000002" +
		"0000000000000000000000000000000000000000" +
		"00013ffc" + "0000000000000010" + "00000000" + "00000000" +
		"00013ffc" + "0000000000000020" + "00000002" + "00000001"
	if got := hex.EncodeToString(b[:40+4+60]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !allZero(b[40+4+60:]) {
		t.Error("something behind the last entry")
	}
}

func allZero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

func TestPutQueryRollReopen(t *testing.T) {
	mem := vfs.NewMem(nil)
	x := open(t, mem, 5, 50) // 49 entries a file, 3 a message
	put(t, x, 0, 100)
	expect(t, x, 0, 100)
	if _, err := x.Flush(false); err != nil {
		t.Fatal(err)
	}
	expect(t, x, 0, 100)
	put(t, x, 90, 120) // ten of them again
	if end, err := x.Flush(true); err != nil || end != storeTime(119*100) {
		t.Fatal(end, err)
	}
	put(t, x, 120, 130)
	if end, err := x.Close(); err != nil || end != storeTime(129*100) {
		t.Fatal(end, err)
	}
	files, _ := mem.List("/index")
	if len(files) != (130*3+48)/49 {
		t.Errorf("%d files", len(files))
	}
	x = open(t, mem, 5, 50)
	expect(t, x, 0, 130)
	put(t, x, 130, 140)
	expect(t, x, 0, 140)
	// Files whose last entry is below 6400 go.
	if err := x.DeleteExpired(6400); err != nil {
		t.Fatal(err)
	}
	if left, _ := mem.List("/index"); len(left) >= len(files) || len(left) < 2 {
		t.Error(len(left))
	}
	if r, _ := x.Query("T", "uniq-70", 1, 0, math.MaxInt64); len(r.PhyOffsets) != 1 {
		t.Error("a file that is needed has gone")
	}
	if _, err := x.Flush(true); err != nil {
		t.Fatal(err)
	}
	if err := x.DeleteExpired(math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if left, _ := mem.List("/index"); len(left) != 1 {
		t.Error("the last file must stay", len(left))
	}
}

func TestQueryRules(t *testing.T) {
	x := open(t, vfs.NewMem(nil), 100, 1000)
	put(t, x, 0, 70)
	second := func(n int64) int64 { return storeTime(n * 100) } // message n was stored n seconds later
	for _, c := range []struct {
		name       string
		max        int
		begin, end int64
		want       []int64 // messages, newest first
	}{
		{"newest first", 3, 0, math.MaxInt64, []int64{69, 62, 55}},
		{"to a time", 2, 0, second(60), []int64{55, 48}},
		{"within a second", 9, second(48), second(55), []int64{55, 48}},
		{"before the file", 9, 0, second(0) - 1, nil},
		{"behind the file", 9, second(70), second(80), nil},
	} {
		r, err := x.Query("T", "key-6", c.max, c.begin, c.end)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, o := range r.PhyOffsets {
			got = append(got, o/100)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if r.LastUpdatePhyOffset != 6900 || r.LastUpdateTimestamp != second(69) {
			t.Errorf("%s: last update %+v", c.name, r)
		}
	}
}

func TestQueryIsBounded(t *testing.T) {
	x := open(t, vfs.NewMem(nil), 1, maxWalk+2000)
	for n := range int64(maxWalk + 1000) {
		if err := x.Put("T", "k", "", n+1, storeTime(n)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := x.Query("T", "k", 10, 1, storeTime(0))
	if err != nil || len(r.PhyOffsets) != 0 {
		t.Error(r, err)
	}
}

// TestRecover crashes at random and recovers, as the store does: from a point that was durable.
func TestRecover(t *testing.T) {
	for seed := range int64(30) {
		rng := rand.New(rand.NewSource(seed))
		mem := vfs.NewMem(nil)
		if err := vfs.MkdirAllSync(mem, "/index"); err != nil {
			t.Fatal(err)
		}
		x := open(t, mem, 3, 40)
		end, durable, indexed := int64(0), int64(0), int64(0)
		for range 5 {
			for range 1 + rng.Intn(5) {
				n := int64(rng.Intn(15))
				put(t, x, end, end+n)
				end += n
				var err error
				switch rng.Intn(3) {
				case 0:
					_, err = x.Flush(false)
				case 1:
					indexed, err = x.Flush(true)
					durable = end
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			mem = mem.Crash(rng.Intn(101), rng)
			x = open(t, mem, 3, 40)
			from, err := x.Recover(durable*100, indexed, storeTime)
			if err != nil || from != durable*100 {
				t.Fatalf("seed %d: recovered from %d, durable was %d: %v", seed, from, durable*100, err)
			}
			expect(t, x, 0, durable)
			put(t, x, durable, end)
			expect(t, x, 0, end)
		}
	}
}

// TestPutDuringFlush: what is put between a flush's write and its sync is made durable by the next one, though it is
// written by one that does not sync.
func TestPutDuringFlush(t *testing.T) {
	mem := vfs.NewMem(nil)
	if err := vfs.MkdirAllSync(mem, "/index"); err != nil {
		t.Fatal(err)
	}
	var during func()
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if o.Kind == vfs.OpSync && during != nil {
			f := during
			during = nil
			f()
		}
		return nil
	})
	x := open(t, fsys, 3, 40)
	put(t, x, 0, 1)
	if _, err := x.Flush(false); err != nil {
		t.Fatal(err)
	}
	f := x.files[0]
	x.mu.Lock()
	f.writer.synced = false
	x.mu.Unlock()
	if err := x.write(f); err != nil {
		t.Fatal(err)
	}
	put(t, x, 1, 2) // between write and sync
	if err := x.sync(f, f.writer); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Flush(false); err != nil {
		t.Fatal(err)
	}
	during = func() { put(t, x, 2, 3) } // and during the sync itself
	end, err := x.Flush(true)
	if err != nil || end != storeTime(100) {
		t.Fatal(end, err)
	}
	crashed := open(t, mem.Crash(0, rand.New(rand.NewSource(1))), 3, 40)
	if from, err := crashed.Recover(200, end, storeTime); err != nil || from != 200 {
		t.Fatalf("recovered from %d: %v", from, err)
	}
	expect(t, crashed, 0, 2)
	if _, err := x.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, mem, 3, 40), 0, 3)
}

// TestRecoverDamaged loses one entry that should have been durable, each in turn: what it hides is indexed again.
func TestRecoverDamaged(t *testing.T) {
	mem := vfs.NewMem(nil)
	x := open(t, mem, 3, 40)
	put(t, x, 0, 50)
	if _, err := x.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := mem.List("/index")
	for n := range int32(3*50 - 1) {
		disk := mem.Crash(100, rand.New(rand.NewSource(1)))
		f, err := disk.Open("/index/" + files[n/39].Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, entrySize), x.entryAt(1+n%39)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		x := open(t, disk, 3, 40)
		from, err := x.Recover(50*100, 0, storeTime)
		if err != nil {
			t.Fatal(err)
		}
		if from > 50*100 || from%100 != 0 {
			t.Fatalf("entry %d lost: again from %d", n, from)
		}
		put(t, x, from/100, 50)
		if err := findAll(x, 50); err != nil {
			t.Fatalf("entry %d lost, again from %d: %v", n, from, err)
		}
	}
}

// findAll is expect, but a message of which keys are in two files may be found twice by one of them.
func findAll(x *Index, to int64) error {
	for n := range to {
		for _, key := range []string{fmt.Sprintf("uniq-%d", n), key(n), "both"} {
			r, err := x.Query("T", key, math.MaxInt32, 0, math.MaxInt64)
			if err != nil {
				return err
			}
			slices.Sort(r.PhyOffsets)
			if found := slices.Compact(slices.Clone(r.PhyOffsets)); !slices.Contains(found, n*100) || len(r.PhyOffsets) > len(found)+1 {
				return fmt.Errorf("message %d by %s: %v", n, key, r.PhyOffsets)
			}
		}
	}
	return nil
}

func TestDiskFullAndBack(t *testing.T) {
	mem := vfs.NewMem(nil)
	full := false
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if full && o.Kind == vfs.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	x := open(t, fsys, 7, 100_000)
	put(t, x, 0, 1)
	full = true
	var failed error
	for n := range int64(5000) {
		if err := x.Put("T", "u", "", 100+n, storeTime(n)); err != nil {
			failed = err
		}
	}
	if !errors.Is(failed, syscall.ENOSPC) || !x.Failing() || x.Damaged() != nil {
		t.Fatal(failed)
	}
	if _, err := x.Flush(false); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	full = false
	if _, err := x.Close(); err != nil || x.Failing() {
		t.Fatal(err)
	}
	x = open(t, mem, 7, 100_000)
	if r, err := x.Query("T", "u", 1<<20, 0, math.MaxInt64); err != nil || len(r.PhyOffsets) != 5000 {
		t.Fatal(len(r.PhyOffsets), err)
	}
}

func TestNamesStayInOrder(t *testing.T) {
	mem := vfs.NewMem(nil)
	at := testStart
	x, err := Open(Options{FS: mem, Dir: "/index", MaxHashSlotNum: 1, MaxIndexNum: 2, Clock: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, x, 0, 2)
	at = at.Add(-time.Hour)
	put(t, x, 2, 3)
	x.Close()
	expect(t, open(t, mem, 1, 2), 0, 3)
	files, _ := mem.List("/index")
	if len(files) != 9 || files[8].Name() != "20261129181941290" {
		t.Error(files)
	}
}

func BenchmarkPut(b *testing.B) {
	x, err := Open(Options{FS: vfs.OS, Dir: b.TempDir(), MaxHashSlotNum: 5_000_000, MaxIndexNum: 20_000_000, Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = fmt.Sprintf("7F0000010E2C18B4AAC2%08X%04X", i*77, i)
	}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		if err := x.Put("BenchmarkTopic", keys[n%4096], "", n*300+1, 1795976475252+n/100); err != nil {
			b.Fatal(err)
		}
		if n++; n%500_000 == 0 {
			if _, err := x.Flush(false); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	x.Close()
}

func BenchmarkQuery(b *testing.B) {
	x, err := Open(Options{FS: vfs.OS, Dir: b.TempDir(), MaxHashSlotNum: 5_000_000, MaxIndexNum: 20_000_000, Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	put(b, x, 0, 100_000)
	if _, err := x.Flush(false); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if r, err := x.Query("T", fmt.Sprintf("uniq-%d", n%100_000), 32, 0, math.MaxInt64); err != nil || len(r.PhyOffsets) == 0 {
			b.Fatal(r, err)
		}
	}
}
