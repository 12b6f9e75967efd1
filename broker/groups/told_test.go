package groups

import (
	"path/filepath"
	"testing"

	"rocketd/compat/logtest"
)

// TestLogIsToldWithoutLock: a log that is slow keeps nobody from the table.
func TestLogIsToldWithoutLock(t *testing.T) {
	auto := true
	table := open(t, filepath.Join(t.TempDir(), "subscriptionGroup.json"), &auto)
	l := logtest.NewFree(t, &table.mu)
	table.o.Log = l.Log()
	table.Find("G")
	if len(l.Said) != 1 {
		t.Errorf("told %q", l.Said)
	}
}
