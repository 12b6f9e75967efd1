package consumequeue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// A damage that very many queues have is a few lines of the log and their number, and a phase that lasts says how far it is.
func TestRecoveryLogIsBounded(t *testing.T) {
	const queues = 1000
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	for id := range int32(queues) {
		for n := range int64(3*perFile) + 1 {
			if err := table.Append("T", id, n, entry(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	for _, q := range table.All() {
		if err := mem.Remove(table.path(q, perFile)); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	table = newTable(Options{FS: mem, Dir: table.root, FileSize: perFile * EntrySize, Log: slog.New(slog.NewTextHandler(&log, nil))})
	table.progressEvery = 0
	if err := table.load(nil); err != nil {
		t.Fatal(err)
	}
	if got := len(table.Lost()); got != queues {
		t.Errorf("%d queues are lost, want %d", got, queues)
	}
	table.Summarise()
	text := log.String()
	if got := strings.Count(text, "msg=\"A CONSUME QUEUE IS DAMAGED"); got != examples {
		t.Errorf("%d lines of damaged queues, want %d", got, examples)
	}
	if !strings.Contains(text, "times=1000 shown=5") {
		t.Errorf("the log does not say how many queues are damaged:\n%s", text)
	}
	log.Reset()
	if err := table.phase("testing", 100, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "consume queues: testing") || !strings.Contains(text, "of=100") {
		t.Errorf("a phase says nothing of its progress: %s", text)
	}
	log.Reset()
	for range 2 * examples {
		table.notice(slog.LevelWarn, "later")
	}
	if got := strings.Count(log.String(), "msg=later"); got != 2*examples {
		t.Errorf("%d lines after recovery, want all %d", got, 2*examples)
	}
}
