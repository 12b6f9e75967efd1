// Package logtest has logs for tests.
package logtest

import (
	"context"
	"log/slog"
	"testing"
)

// Lock is a lock that can be tried: a sync.Mutex, or a sync.RWMutex.
type Lock interface {
	TryLock() bool
	Unlock()
}

// Free is a log that has to be told with no lock held, since a log may be slow: it fails the test when one of its locks is held, by
// whomever. Its users tell it from one goroutine.
type Free struct {
	Said  []string // what it was told, oldest first
	Locks []Lock
	tb    testing.TB
}

// NewFree makes one of these locks.
func NewFree(tb testing.TB, locks ...Lock) *Free { return &Free{tb: tb, Locks: locks} }

// Log is the log itself.
func (f *Free) Log() *slog.Logger { return slog.New(f) }

// Enabled takes every level.
func (f *Free) Enabled(context.Context, slog.Level) bool { return true }

// Handle notes a message and tries the locks.
func (f *Free) Handle(_ context.Context, r slog.Record) error {
	f.tb.Helper()
	f.Said = append(f.Said, r.Message)
	for _, lock := range f.Locks {
		if !lock.TryLock() {
			f.tb.Errorf("a table is locked while the log is told: %s", r.Message)
			continue
		}
		lock.Unlock()
	}
	return nil
}

// WithAttrs and WithGroup make no difference.
func (f *Free) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup is as WithAttrs.
func (f *Free) WithGroup(string) slog.Handler { return f }
