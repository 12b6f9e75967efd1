package consumequeue

import (
	"slices"
	"testing"

	"rocketd/store/vfs"
)

// TestSuspects: which queues look as if a file had gone, and where in a log from 500 on its records would be.
func TestSuspects(t *testing.T) {
	for _, c := range []struct {
		name string
		last int64 // entries
		lose string
		want []Suspect
	}{
		{"whole", 45, "", nil},
		{"ends with a full file", 40, "", []Suspect{{Name{"T", 0}, 4000, 9000}}},
		{"the last file has gone", 45, "/q/T/0/00000000000000000800", []Suspect{{Name{"T", 0}, 4000, 9000}}},
		{"the first file has gone", 45, "/q/T/0/00000000000000000000", []Suspect{{Name{"T", 0}, 500, 1000}}},
		{"no file is left", 5, "/q/T/0/00000000000000000000", []Suspect{{Name{"T", 0}, 500, 9000}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem(nil)
			table := open(t, mem, false)
			add(t, table, 0, 0, c.last)
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
			if c.lose != "" {
				if err := mem.Remove(c.lose); err != nil {
					t.Fatal(err)
				}
			}
			table = open(t, mem, false)
			if got := table.Suspects(500, 9000); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if got, want := table.Lacks("T", 0, c.last-1, 100*(c.last-1)), c.lose != "" && c.name != "the first file has gone"; got != want {
				t.Errorf("lacks its last entry: %v", got)
			}
			if table.Lacks("T", 1, 0, 0) {
				t.Error("a queue that does not exist lacks something")
			}
			for _, s := range c.want {
				if err := table.Lose(s.Topic, s.QueueId, ErrGap); err != nil {
					t.Fatal(err)
				}
				if !table.Lost()[s.Name] || table.Find("T", 0) != nil {
					t.Error("it is not lost")
				}
			}
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
