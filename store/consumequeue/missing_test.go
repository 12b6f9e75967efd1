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

// A file that is missing in the middle of a queue is noticed wherever it is, after a stop in order and after a crash, with
// a hint of the ends and without: the queue is given up, to be made again from the log.
func TestFileMissingInTheMiddle(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		for _, start := range []int64{10, 20, 30} { // of files 0 to 40
			mem := vfs.NewMem(nil)
			table := open(t, mem, false)
			add(t, table, 0, 0, 45)
			add(t, table, 1, 0, 45)
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
			if err := mem.Remove(fmt.Sprintf("/q/T/1/%020d", start*EntrySize)); err != nil {
				t.Fatal(err)
			}
			table, err := tryOpen(mem, crashed)
			if err == nil && crashed {
				err = table.Truncate(1<<40, nil) // all of it was durable
			}
			if err != nil {
				t.Fatal(err)
			}
			if lost := table.Lost(); len(lost) != 1 || !lost[Name{"T", 1}] {
				t.Errorf("crashed %v, file %d: lost %v", crashed, start, lost)
			}
			expect(t, table, 0, 0, 45)
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHintedFileMissingInTheMiddle(t *testing.T) {
	o := Options{FS: vfs.OS, Dir: t.TempDir(), FileSize: perFile * EntrySize, Log: slog.New(slog.DiscardHandler)}
	table, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	add(t, table, 0, 0, 45)
	add(t, table, 1, 0, 45)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(2 * endsMargin)
	o.Ends, o.EndsTime = table.AppendEnds(nil), at
	table = openAgain(t, o)
	if table.Hinted() != 2 || len(table.Lost()) != 0 {
		t.Errorf("%d queues by the hint, lost %v", table.Hinted(), table.Lost())
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(o.Dir, "T", "1")
	if err := firstError(os.Remove(filepath.Join(dir, fmt.Sprintf("%020d", 20*EntrySize))), os.Chtimes(dir, at.Add(time.Second), at.Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	table = openAgain(t, o)
	defer table.Close()
	if table.Hinted() != 1 || !table.Lost()[Name{"T", 1}] {
		t.Errorf("%d queues by the hint, lost %v", table.Hinted(), table.Lost())
	}
}
