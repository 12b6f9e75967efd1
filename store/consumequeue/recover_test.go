package consumequeue

import (
	"math/rand"
	"path"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

func TestTruncateAndCorrectMin(t *testing.T) {
	for _, c := range []struct {
		phy, max int64
	}{{9999, 35}, {3500, 35}, {3450, 35}, {3400, 34}, {3001, 31}, {3000, 30}, {2900, 29}, {2000, 20}, {150, 2}, {1, 1}, {0, 0}} {
		mem := vfs.NewMem(nil)
		table := open(t, mem, false)
		add(t, table, 0, 0, 35)
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		table = open(t, mem, true)
		if err := table.Truncate(c.phy, nil); err != nil {
			t.Fatal(err)
		}
		expect(t, table, 0, 0, c.max)
		table.Close()
		table = open(t, mem, false)
		expect(t, table, 0, 0, c.max)
		add(t, table, 0, c.max, 40)
		table.CorrectMin(1234)
		expect(t, table, 0, 13, 40)
		table.CorrectMin(1 << 40)
		expect(t, table, 0, 40, 40)
	}
}

func TestTruncateVerifies(t *testing.T) {
	// Entries of a lost end of the log stand behind the true end, and would count.
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 15)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	table = open(t, mem, true)
	asked := 0
	err := table.Truncate(5000, func(q *Queue, offset int64, e Entry) bool {
		asked++
		return e == entry(offset) && offset < 12
	})
	if err != nil || asked != 4 {
		t.Fatal(err, asked)
	}
	expect(t, table, 0, 0, 12)
}

func TestLoadRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, mem *vfs.Mem)
		want  string
	}{
		"another size": {func(t *testing.T, mem *vfs.Mem) {
			for _, name := range []string{"000", "200", "400"} {
				truncate(t, mem, "/q/T/0/00000000000000000"+name, 100)
			}
		}, "has 100 bytes"},
		"no offset": {func(t *testing.T, mem *vfs.Mem) { create(t, mem, "/q/T/0/99999999999999999999") }, "99 is not"},
		"other place": {func(t *testing.T, mem *vfs.Mem) {
			mem.Rename("/q/T/0/00000000000000000400", "/q/T/0/00000000000000000410")
		}, "no multiple"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem(nil)
			table := open(t, mem, false)
			add(t, table, 0, 0, 25)
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, mem)
			if _, err := tryOpen(mem, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestForeignFiles: what is no file of a queue does not keep it from being loaded.
func TestForeignFiles(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 25)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/q/T/0/.DS_Store", "/q/T/0/00000000000000000000~", "/q/T/0/x", "/q/T/07/00000000000000000000", "/q/x"} {
		if err := mem.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		create(t, mem, name)
	}
	table = open(t, mem, false)
	expect(t, table, 0, 0, 25)
	add(t, table, 0, 25, 60)
	expect(t, table, 0, 0, 60)
	if q := table.Find("T", 7); q != nil {
		t.Error("folder 07 is taken for queue 7")
	}
}

// TestLost: a queue whose files can't be right is removed and named.
func TestLost(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, mem *vfs.Mem){
		"another size": func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, "/q/T/0/00000000000000000200", 100) },
		"missing":      func(t *testing.T, mem *vfs.Mem) { mem.Remove("/q/T/0/00000000000000000200") },
	} {
		mem := vfs.NewMem(nil)
		table := open(t, mem, false)
		add(t, table, 0, 0, 25)
		if lost := table.Lost(); len(lost) > 0 {
			t.Errorf("lost without damage: %v", lost)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		spoil(t, mem)
		table = open(t, mem, false)
		if lost := table.Lost(); len(lost) != 1 || !lost[Name{"T", 0}] {
			t.Errorf("%s: lost %v", name, lost)
		}
		if _, err := mem.Stat("/q/T/0"); err == nil || table.Find("T", 0) != nil {
			t.Errorf("%s: the queue is still there", name)
		}
	}
}

func truncate(t *testing.T, mem *vfs.Mem, name string, size int64) {
	t.Helper()
	f, err := mem.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func create(t *testing.T, mem *vfs.Mem, name string) {
	t.Helper()
	f, err := mem.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestMissingFileAfterCrash(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 35)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	mem.Remove("/q/T/0/00000000000000000200")
	table = open(t, mem, true)
	again := mem.Crash(100, rand.New(rand.NewSource(1)))
	if err := table.Truncate(2001, nil); err != nil || !table.Lost()[Name{"T", 0}] {
		t.Fatalf("a file that was durable is missed: %v, lost %v", err, table.Lost())
	}
	mem = again
	table = open(t, mem, true)
	if err := table.Truncate(2000, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, table, 0, 0, 10)
	add(t, table, 0, 10, 35)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, mem, false), 0, 0, 35)
}

// TestPowerCut cuts the power again and again; entries before what was flushed thoroughly must be there, and after
// truncating there and dispatching again the queue must be whole.
func TestPowerCut(t *testing.T) {
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		mem := vfs.NewMem(nil)
		if err := vfs.MkdirAllSync(mem, "/q"); err != nil {
			t.Fatal(err)
		}
		durable, end := int64(0), int64(0)
		table := open(t, mem, false)
		for range 6 {
			for range 1 + rng.Intn(6) {
				n := int64(rng.Intn(12))
				add(t, table, 0, end, end+n)
				end += n
				switch rng.Intn(3) {
				case 0:
					if err := table.Flush(1 << 20); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := table.Flush(0); err != nil {
						t.Fatal(err)
					}
					durable = end
				}
			}
			mem = mem.Crash(rng.Intn(101), rng)
			// The log has lost its end too, and gets another one.
			end = durable + rng.Int63n(end-durable+1)
			table = open(t, mem, true)
			real := func(_ *Queue, offset int64, e Entry) bool { return offset < end && e == entry(offset) }
			if err := table.Truncate(durable*100, real); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if q := table.Find("T", 0); q != nil && q.Max() != durable && q.Min() != q.Max() || q == nil && durable > 0 {
				t.Fatalf("seed %d: not at %d after the crash, %+v", seed, durable, q)
			}
			add(t, table, 0, durable, end)
			if end > 0 {
				expect(t, table, 0, 0, end)
			}
		}
	}
}

// Cleaning does not take a damaged entry for an expired one: neither the file goes of which it is the last, nor are messages
// before it passed over.
func TestCleaningAmongDamage(t *testing.T) {
	for _, odd := range []Entry{{}, blank, {PhyOffset: -1, Size: -1}} {
		mem := vfs.NewMem(nil)
		table := open(t, mem, false)
		add(t, table, 0, 0, 45)
		if err := table.Flush(0); err != nil {
			t.Fatal(err)
		}
		q := table.Find("T", 0)
		q.mu.Lock()
		for _, at := range []int64{9, 20, 21, 22, 23, 24} {
			if err := q.overwriteLocked(at, odd); err != nil {
				t.Fatal(err)
			}
		}
		q.mu.Unlock()
		for _, c := range []struct{ log, min, files int64 }{{500, 5, 5}, {880, 9, 5}, {900, 9, 5}, {1001, 11, 4}, {1900, 19, 4}, {2000, 20, 3}, {2550, 26, 3}} {
			if _, err := table.DeleteExpired(c.log, nil); err != nil {
				t.Fatal(err)
			}
			want := c.min
			if odd.IsBlank() && want == 20 { // a blank entry is never the first, a damaged one may be mended
				want = 25
			}
			if odd.IsBlank() && want == 9 {
				want = 10
			}
			if got := q.Min(); got != want {
				t.Errorf("%+v, log from %d: minimum %d, want %d", odd, c.log, got, want)
			}
			files, err := mem.List("/q/T/0")
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(files)) != c.files {
				t.Errorf("%+v, log from %d: %d files, want %d", odd, c.log, len(files), c.files)
			}
		}
	}
}
