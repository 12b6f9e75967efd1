package topics

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"rocketd/compat"
)

// BenchmarkEncode is the text of a file with 25,000 topics.
func BenchmarkEncode(b *testing.B) {
	table, err := Open(Options{Path: filepath.Join(b.TempDir(), "topics.json"), Files: compat.OSFiles, Clock: time.Now,
		Log: slog.New(slog.DiscardHandler), AutoCreate: func() bool { return true }})
	if err != nil {
		b.Fatal(err)
	}
	defer table.Close()
	for i := range 25_000 {
		table.CreateBySend(fmt.Sprintf("Topic-%d", i), "TBW102", 4, 0)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := table.encode(); err != nil {
			b.Fatal(err)
		}
	}
}
