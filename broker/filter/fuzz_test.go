package filter

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"rocketd/compat"
)

// Whatever consumerFilter.json says: no panic, and what was read is written so that it reads the same.
func FuzzFile(f *testing.F) {
	official, err := os.ReadFile("testdata/consumerFilter.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(official)
	f.Add([]byte(`{"filterDataByTopic":{"t":{"groupFilterData":{"g":{"bloomFilterData":{"bitNum":112,"bitPos":[1,2,111]},"bornTime":5,"deadTime":0,` +
		`"expression":"a = 1","expressionType":"SQL92","clientVersion":-1}}}}}`))
	f.Add([]byte(`{"filterDataByTopic":{"t":{"groupFilterData":{"g":{"bloomFilterData":{"bitNum":112,"bitPos":[1,2,112]}}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(text []byte) *Table {
			bloom, err := NewBloom(20, 32)
			if err != nil {
				t.Fatal(err)
			}
			table := &Table{o: TableOptions{Bloom: bloom, Compiled: new(Compiled), Files: compat.OSFiles, Log: slog.New(slog.DiscardHandler),
				Clock: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}
			table.mu.topics, table.mu.groups = map[string]map[string]*Consumer{}, map[string]map[string]*Consumer{}
			if err := table.decode(text); err != nil {
				t.Skip(err)
			}
			return table
		}
		table := read(text)
		for topic := range table.mu.topics {
			table.Bits(nil, topic, "a\x011")
		}
		first, err := table.encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := read(first).encode()
		if err != nil || string(second) != string(first) {
			t.Errorf("%v\n%s\nthen\n%s", err, first, second)
		}
	})
}
