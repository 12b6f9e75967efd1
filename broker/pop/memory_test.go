package pop

import (
	"runtime"
	"testing"
	"time"

	"rocketd/store"
)

// forgetful takes everything and keeps nothing.
type forgetful struct {
	*fakeStore
	n int64
}

func (s *forgetful) Put(run []*store.Put) {
	for _, p := range run {
		p.Err, p.QueueOffset, p.End = nil, s.n, s.n+1
		s.n++
	}
}

// At the limit a broker needs some 250 MB for what is under way, whatever clients do.
func TestMemoryOfCheckpoints(t *testing.T) {
	const n, most = 100_000, 260
	b := newBed(t, newStore())
	b.open(n)
	defer b.Close()
	b.o.Store = &forgetful{fakeStore: b.store}
	var before, after runtime.MemStats
	q := b.queue(queueT)
	runtime.GC()
	runtime.ReadMemStats(&before)
	at := time.Now().UnixMilli()
	for i := range int64(n) {
		if err := b.Popped(q, i, at, time.Hour.Milliseconds(), []int64{i}, i+1); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; each > most {
		t.Errorf("%d bytes each, want %d at most", each, most)
	}
	runtime.KeepAlive(b)
}
