package consumequeue

import (
	"fmt"
	"log/slog"
	"testing"

	"rocketd/store/vfs"
)

// benchTable is a table on the real file system, with files of the official size.
func benchTable(b *testing.B) *Table {
	b.Helper()
	table, err := Open(Options{FS: vfs.OS, Dir: b.TempDir(), FileSize: 6_000_000, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { table.Close() })
	return table
}

func BenchmarkAppend(b *testing.B) {
	for _, queues := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d queues", queues), func(b *testing.B) {
			table := benchTable(b)
			topics := make([]string, queues)
			for i := range topics {
				topics[i] = fmt.Sprintf("Topic%d", i)
			}
			b.ReportAllocs()
			n := int64(0)
			for b.Loop() {
				k := int64(queues)
				if err := table.Append(topics[n%k], 0, n/k, Entry{PhyOffset: n * 100, Size: 100}); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	table := benchTable(b)
	const entries = 100_000
	for n := range int64(entries) {
		if err := table.Append("T", 0, n, entry(n)); err != nil {
			b.Fatal(err)
		}
	}
	q := table.Find("T", 0)
	for _, where := range []struct {
		name  string
		first int64
	}{{"file", 0}, {"tail", entries - 64}} {
		b.Run(where.name, func(b *testing.B) {
			buf := make([]byte, 0, 32*EntrySize)
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				got, err := q.Read(buf, where.first+n%32, 32)
				if err != nil || len(got) != 32*EntrySize {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

func BenchmarkRecover(b *testing.B) {
	dir := b.TempDir()
	open := func() *Table {
		table, err := Open(Options{FS: vfs.OS, Dir: dir, FileSize: 6_000_000, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return table
	}
	table := open()
	for i := range 1000 {
		if err := table.Append(fmt.Sprintf("Topic%d", i), 0, 0, entry(1)); err != nil {
			b.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		table := open()
		if err := table.Recover(); err != nil {
			b.Fatal(err)
		}
		table.CorrectMin(1)
		table.files.close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/queue")
}
