package topics

import (
	"path/filepath"
	"testing"

	"rocketd/compat/logtest"
)

// TestLogIsToldWithoutLock: a log that is slow keeps nobody from the table.
func TestLogIsToldWithoutLock(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	l := logtest.NewFree(t, &table.mu)
	table.o.Log = l.Log()
	table.CreateBySend("A", AutoCreate, 4, 0)
	table.CreateBySend("B", "none", 4, 0)
	table.CreateBySendBack("C", 1, PermRead, 0)
	table.CreateBySendBack("not legal", 1, PermRead, 0)
	if len(l.Said) != 4 {
		t.Errorf("told %q", l.Said)
	}
}
