package topics

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
)

// freeLog fails when the table is locked while the log is told.
type freeLog struct {
	slog.Handler
	tb   testing.TB
	free func() bool
	said int
}

func (l *freeLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *freeLog) Handle(_ context.Context, r slog.Record) error {
	if l.said++; !l.free() {
		l.tb.Errorf("the table is locked while the log is told: %s", r.Message)
	}
	return nil
}

// TestLogIsToldWithoutLock: a log that is slow keeps nobody from the table.
func TestLogIsToldWithoutLock(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	l := &freeLog{Handler: slog.DiscardHandler, tb: t, free: func() bool {
		free := table.mu.TryLock()
		if free {
			table.mu.Unlock()
		}
		return free
	}}
	table.o.Log = slog.New(l)
	table.CreateBySend("A", AutoCreate, 4, 0)
	table.CreateBySend("B", "none", 4, 0)
	table.CreateBySendBack("C", 1, PermRead, 0)
	table.CreateBySendBack("not legal", 1, PermRead, 0)
	if l.said != 4 {
		t.Errorf("told %d times", l.said)
	}
}
