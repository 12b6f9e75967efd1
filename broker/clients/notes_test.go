package clients

import (
	"context"
	"log/slog"
	"slices"
	"testing"
)

// freeLog notes what the log is told, and fails when a table is locked meanwhile.
type freeLog struct {
	slog.Handler
	tb   testing.TB
	free []func() bool
	said []string
}

func (l *freeLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *freeLog) Handle(_ context.Context, r slog.Record) error {
	l.said = append(l.said, r.Message)
	for _, free := range l.free {
		if !free() {
			l.tb.Errorf("a table is locked while the log is told: %s", r.Message)
		}
	}
	return nil
}

// TestLogIsToldWithoutLocks: a log that is slow keeps nobody from the tables.
func TestLogIsToldWithoutLocks(t *testing.T) {
	l := &freeLog{Handler: slog.DiscardHandler, tb: t}
	now := newClock()
	consumers, producers := NewConsumers(now.time, slog.New(l), unlimited()), NewProducers(now.time, slog.New(l), unlimited())
	l.free = []func() bool{
		func() bool { return consumers.mu.TryLock() && unlocked(consumers.mu.Unlock) },
		func() bool { return producers.mu.TryLock() && unlocked(producers.mu.Unlock) },
	}
	a, b, c := client("a"), client("b"), client("c")
	for _, one := range []Client{a, b, c} {
		consumers.Register(one, group("G", 1, "T"))
		producers.Register(one, "P")
	}
	consumers.Register(a, group("G", 2, "U"))
	consumers.Register(b, group("G", 3, "V"))
	consumers.Unregister(a.Conn, "G")
	producers.Unregister(a.Conn, "P")
	consumers.OnClose(b.Conn)
	producers.OnClose(b.Conn)
	now.now = now.now.Add(2 * Expiry)
	consumers.Scan()
	producers.Scan()
	slices.Sort(l.said)
	want := []string{
		"consumer group has no members left", "consumer joined", "consumer left",
		"members of one consumer group subscribe different topics, and take them from each other with every heartbeat",
		"producer joined", "producer left", "subscriptions changed",
	}
	if got := slices.Compact(l.said); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
	if len(consumers.mu.groups)+len(producers.mu.groups) != 0 {
		t.Error("members are left")
	}
}

func unlocked(unlock func()) bool {
	unlock()
	return true
}
