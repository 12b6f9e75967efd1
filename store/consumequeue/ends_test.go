package consumequeue

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// hintedTable makes n topics of 4 queues with an entry each, and returns their ends as of a moment later.
func hintedTable(tb testing.TB, n int) (Options, time.Time) {
	tb.Helper()
	o := Options{FS: vfs.OS, Dir: tb.TempDir(), FileSize: 4000 * EntrySize, Log: slog.New(slog.DiscardHandler)}
	table, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	phy := int64(100)
	for i := range n {
		for q := range int32(4) {
			if err := table.Append(fmt.Sprintf("topic%d", i), q, 0, Entry{PhyOffset: phy, Size: 100, TagsCode: 7}); err != nil {
				tb.Fatal(err)
			}
			phy += 100
		}
	}
	if err := table.Close(); err != nil {
		tb.Fatal(err)
	}
	at := time.Now().Add(2 * endsMargin)
	o.Ends, o.EndsTime = table.AppendEnds(nil), at
	return o, at
}

func openAgain(tb testing.TB, o Options) *Table {
	tb.Helper()
	table, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := table.Recover(); err != nil {
		tb.Fatal(err)
	}
	return table
}

// TestEnds: a table made by the hint is that made of the files, and whatever changed behind the hint is looked into.
func TestEnds(t *testing.T) {
	entry := Entry{PhyOffset: 99999, Size: 50, TagsCode: 1}.append(nil)
	for _, test := range []struct {
		name   string
		change func(t *testing.T, o *Options, file string, later time.Time)
		hinted int   // of 12 queues
		max    int64 // of topic1, queue 2
	}{
		{"unchanged", func(*testing.T, *Options, string, time.Time) {}, 12, 1},
		{"no hint", func(t *testing.T, o *Options, _ string, _ time.Time) { o.Ends = nil }, 0, 1},
		{"half a hint", func(t *testing.T, o *Options, _ string, _ time.Time) { o.Ends = o.Ends[:len(o.Ends)/2] }, 0, 1},
		{"garbage", func(t *testing.T, o *Options, _ string, _ time.Time) {
			for i := range o.Ends {
				o.Ends[i] ^= 0x5A
			}
		}, 0, 1},
		{"written since", func(t *testing.T, o *Options, file string, later time.Time) {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt(entry, EntrySize)
				err = firstError(err, f.Close(), os.Chtimes(file, later, later))
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 11, 2},
		{"file removed", func(t *testing.T, o *Options, file string, _ time.Time) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, 11, 0},
		{"queue removed", func(t *testing.T, o *Options, file string, later time.Time) {
			topic := filepath.Dir(filepath.Dir(file))
			if err := firstError(os.RemoveAll(filepath.Dir(file)), os.Chtimes(topic, later, later)); err != nil {
				t.Fatal(err)
			}
		}, 8, 0},
		{"topic removed", func(t *testing.T, o *Options, file string, _ time.Time) {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(file))); err != nil {
				t.Fatal(err)
			}
		}, 8, 0},
		{"queue added", func(t *testing.T, o *Options, file string, later time.Time) {
			topic := filepath.Dir(filepath.Dir(file))
			dir := filepath.Join(topic, "9")
			whole := make([]byte, o.FileSize)
			copy(whole, entry)
			err := firstError(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, filepath.Base(file)), whole, 0o644), os.Chtimes(topic, later, later))
			if err != nil {
				t.Fatal(err)
			}
		}, 8, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, at := hintedTable(t, 3)
			file := filepath.Join(o.Dir, "topic1", "2", fmt.Sprintf("%020d", 0))
			test.change(t, &o, file, at.Add(time.Second))
			table := openAgain(t, o)
			defer table.Close()
			if table.Hinted() != test.hinted {
				t.Errorf("%d queues by the hint, want %d", table.Hinted(), test.hinted)
			}
			if q := table.Find("topic1", 2); q == nil && test.max > 0 || q != nil && q.Max() != test.max {
				t.Errorf("topic1 queue 2 is %+v, want %d entries", q, test.max)
			}
			q := table.Find("topic2", 3)
			if q == nil || q.Min() != 0 || q.Max() != 1 || q.MaxPhyOffset() != 1300 {
				t.Fatalf("topic2 queue 3 is %+v", q)
			}
			if e, ok := q.Entry(0); !ok || e != (Entry{PhyOffset: 1200, Size: 100, TagsCode: 7}) {
				t.Errorf("its entry is %+v", e)
			}
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkOpenMany opens 2,000 topics of 4 queues, with the hint and without.
func BenchmarkOpenMany(b *testing.B) {
	o, _ := hintedTable(b, 2000)
	without := o
	without.Ends = nil
	for _, c := range []struct {
		name string
		o    Options
	}{{"hint", o}, {"files", without}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := openAgain(b, c.o).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
