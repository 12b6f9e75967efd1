package clients

import (
	"slices"
	"testing"

	"rocketd/compat/logtest"
)

// TestLogIsToldWithoutLocks: a log that is slow keeps nobody from the tables.
func TestLogIsToldWithoutLocks(t *testing.T) {
	l := logtest.NewFree(t)
	now := newClock()
	consumers, producers := NewConsumers(now.time, l.Log(), unlimited()), NewProducers(now.time, l.Log(), unlimited())
	l.Locks = []logtest.Lock{&consumers.mu, &producers.mu}
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
	slices.Sort(l.Said)
	want := []string{
		"consumer group has no members left", "consumer joined", "consumer left",
		"members of one consumer group subscribe different topics, and take them from each other with every heartbeat",
		"producer joined", "producer left", "subscriptions changed",
	}
	if got := slices.Compact(l.Said); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
	if len(consumers.mu.groups)+len(producers.mu.groups) != 0 {
		t.Error("members are left")
	}
}
