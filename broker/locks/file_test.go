package locks

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/compat"
)

// Locks outlive the broker: nobody else gets the queue until its holder has had time to refresh them.
func TestLocksOutliveTheBroker(t *testing.T) {
	var now atomic.Int64 // ms; the writer of the file reads it too
	now.Store(1_700_000_000_000)
	pass := func(d time.Duration) { now.Add(d.Milliseconds()) }
	o := Options{Path: filepath.Join(t.TempDir(), "rocketd-locks.json"), Files: compat.OSFiles, Clock: func() time.Time { return time.UnixMilli(now.Load()) }, Log: slog.New(slog.DiscardHandler)}
	reopen := func(table *Table) *Table {
		t.Helper()
		if table != nil {
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
		}
		table, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	q := func(n int32) Queue { return Queue{Topic: "T", BrokerName: "b", QueueId: n} }
	all := []Queue{q(0), q(1), q(2)}
	table := reopen(nil)
	table.Lock("g", "a", all)
	table.Unlock("g", "a", all[2:])
	pass(time.Hour) // the file may be old: it is written only when a lock changes its holder
	table.Lock("g", "a", all[:2])
	table = reopen(table)
	if got := table.Lock("g", "b", all); !slices.Equal(got, all[2:]) {
		t.Errorf("another client gets %v", got)
	}
	pass(LoadedLifetime)
	if got := table.Lock("g", "a", all); !slices.Equal(got, all[:2]) {
		t.Errorf("the holder keeps %v", got)
	}
	pass(LoadedLifetime + time.Second)
	if got := table.Lock("g", "b", all); !slices.Equal(got, all[2:]) {
		t.Errorf("another client gets %v after the refresh", got)
	}
	table = reopen(table)
	pass(LoadedLifetime + time.Second)
	if got := table.Lock("g", "c", all); !slices.Equal(got, all) {
		t.Errorf("of holders that are gone, a client gets %v", got)
	}
	table.Unlock("g", "c", all)
	table = reopen(table)
	if got := table.Lock("g", "d", all); !slices.Equal(got, all) {
		t.Errorf("after an unlock a client gets %v", got)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(o.Path); err != nil || string(text) == "" {
		t.Error(err)
	}
}
