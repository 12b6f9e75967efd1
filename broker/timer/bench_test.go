package timer

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"rocketd/store"
)

// BenchmarkDeliver is what the delivery of a message costs without its store.
func BenchmarkDeliver(b *testing.B) {
	r := newRig(b)
	due := time.Now().Add(time.Hour)
	r.clock = func() time.Time { return due.Add(time.Second) }
	for i := range 20_000 {
		r.wait(due, fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r.path += "x" // with no places yet
		r.timer = r.opened()
		b.StartTimer()
		for len(r.Delivered) < 20_000 {
			r.timer.turn()
		}
		b.StopTimer()
		r.kill()
		r.Delivered = r.Delivered[:0]
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/message")
}

// BenchmarkFill is how long a start takes to find a million that wait, and what memory they take.
func BenchmarkFill(b *testing.B) {
	const n = 1_000_000
	entries := make([]store.Entry, n)
	for i := range entries {
		entries[i] = store.Entry{PhyOffset: int64(i) * 300, Size: 300, TagsCode: 1_800_000_000_000 + int64(i)*7919%3_600_000}
	}
	t := &Timer{o: Options{Store: &entriesStore{queue: newStore(), entries: entries}, Clock: time.Now, Log: discard}, places: places{read: n}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		t.pending = newPending(DefaultPending)
		if err := t.fill(); err != nil || len(t.pending.keys) != n {
			b.Fatal(err, len(t.pending.keys))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/pending")
	runtime.KeepAlive(t)
}

// BenchmarkPending is an add and a pop with a million others.
func BenchmarkPending(b *testing.B) {
	p := newPending(2 * DefaultPending)
	for i := range int64(1_000_000) {
		p.add(key{i * 7919 % 1_000_003, i})
	}
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		i++
		p.add(key{1_000_003 + i*7919%1_000_003, i})
		p.pop()
	}
}

// entriesStore has a queue and nothing else.
type entriesStore struct {
	*queue
	entries []store.Entry
}

func (s *entriesStore) MaxOffset(string, int32) int64 { return int64(len(s.entries)) }

func (s *entriesStore) Entries(_ string, _ int32, offset int64, n int) ([]store.Entry, bool, error) {
	return append([]store.Entry(nil), s.entries[offset:min(offset+int64(n), int64(len(s.entries)))]...), true, nil
}
