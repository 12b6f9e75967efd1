package store

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

func zero(mem *vfs.Mem, name string, at, size int64) error {
	f, err := mem.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Zero(at, size)
}

// TestDamagedQueueFiles: a queue whose files can't be right is made again from the log, whole, and the others stay as they
// are. It says so.
func TestDamagedQueueFiles(t *testing.T) {
	t.Parallel()
	disk, cfg, _ := killedStore(t, 200)
	s := openStore(t, disk, cfg, Options{})
	for i := range 60 {
		put(t, s, newMessage("Other", 0, i))
	}
	closeStore(t, s)
	const dir = "/store/consumequeue/T/0"
	entries, err := disk.List(dir)
	if err != nil || len(entries) < 4 {
		t.Fatal(entries, err)
	}
	file := func(i int) string { return path.Join(dir, entries[i].Name()) }
	for name, damage := range map[string]func(mem *vfs.Mem) error{
		"one in the middle is missing": func(mem *vfs.Mem) error { return mem.Remove(file(1)) },
		"one is short":                 func(mem *vfs.Mem) error { return truncate(mem, file(2), 500) },
		"the first is short":           func(mem *vfs.Mem) error { return truncate(mem, file(0), 20) },
		"a hole in the last":           func(mem *vfs.Mem) error { return zero(mem, file(len(entries)-1), 200, 300) },
		"a hole at the last's head":    func(mem *vfs.Mem) error { return zero(mem, file(len(entries)-1), 0, 300) },
		"the last is long":             func(mem *vfs.Mem) error { return truncate(mem, file(len(entries)-1), 1020) },
	} {
		for _, crashed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crashed %v", name, crashed), func(t *testing.T) {
				mem := copyOf(disk)
				if err := damage(mem); err != nil {
					t.Fatal(err)
				}
				if crashed {
					makeAbort(t, mem)
				}
				var log errorLog
				s := openStore(t, mem, cfg, Options{Log: log.logger()})
				if got := readAll(t, s, "T", 0); len(got) != 200 {
					t.Errorf("%d messages", len(got))
				}
				if got := readAll(t, s, "Other", 0); len(got) != 60 {
					t.Errorf("%d messages of the other queue", len(got))
				}
				if p := put(t, s, newMessage("T", 0, 200))[0]; p.QueueOffset != 200 {
					t.Errorf("the next message has queue offset %d", p.QueueOffset)
				}
				if !strings.Contains(log.String(), "A CONSUME QUEUE IS DAMAGED") || !strings.Contains(log.String(), dir) {
					t.Errorf("errors:\n%s", log.String())
				}
				killed := copyOf(mem) // before anything is flushed
				closeStore(t, s)
				for _, again := range []*vfs.Mem{mem, killed} {
					s := openStore(t, again, cfg, Options{})
					if got := readAll(t, s, "T", 0); len(got) != 201 {
						t.Errorf("%d messages at the next start", len(got))
					}
					closeStore(t, s)
				}
			})
		}
	}
	// Without any file of the configured size it is the configuration that is wrong.
	wrong := cfg
	wrong.MappedFileSizeConsumeQueue = 2000
	if _, err := tryOpen(copyOf(disk), wrong, Options{}); err == nil || !strings.Contains(err.Error(), "has 1000 bytes, mappedFileSizeConsumeQueue says 2000") {
		t.Errorf("another file size: %v", err)
	}
}
