package longpoll

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queues stands for the store: the ends of its queues.
type queues struct{ ends sync.Map }

func (q *queues) end(topic string, queueId int32) *atomic.Int64 {
	v, _ := q.ends.LoadOrStore(queueKey{topic, queueId}, new(atomic.Int64))
	return v.(*atomic.Int64)
}

func (q *queues) max(topic string, queueId int32) int64 { return q.end(topic, queueId).Load() }

// wakes is a Waiter that counts and remembers.
type wakes struct {
	n   atomic.Int32
	why atomic.Int32
	f   func(Reason)
}

func (w *wakes) Wake(why Reason) {
	w.why.Store(int32(why))
	w.n.Add(1)
	if w.f != nil {
		w.f(why)
	}
}

type tag int64

func (t tag) MatchQueue(tagsCode int64) bool         { return int64(t) == tagsCode }
func (t tag) MatchProperties(properties string) bool { return !strings.Contains(properties, "refuse") }

func newHolder(q *queues, limit int64) *Holder {
	h := New(Options{Clock: time.Now, MaxOffset: q.max, Workers: 2, Limit: func() int64 { return limit },
		ScanPeriod: func() time.Duration { return 5 * time.Second }})
	h.Start()
	return h
}

func TestArrive(t *testing.T) {
	type arrival struct {
		topic      string
		queueId    int32
		offset     int64
		tagsCode   int64
		properties string
	}
	cases := []struct {
		name   string
		offset int64
		filter Filter
		a      arrival
		woken  bool
	}{
		{"the message asked for", 5, nil, arrival{"T", 1, 5, 0, ""}, true},
		{"a later one", 5, nil, arrival{"T", 1, 7, 0, ""}, true},
		{"an earlier one", 5, nil, arrival{"T", 1, 4, 0, ""}, false},
		{"another queue", 5, nil, arrival{"T", 2, 5, 0, ""}, false},
		{"another topic", 5, nil, arrival{"U", 1, 5, 0, ""}, false},
		{"its tag", 5, tag(9), arrival{"T", 1, 5, 9, ""}, true},
		{"another tag", 5, tag(9), arrival{"T", 1, 5, 8, ""}, false},
		{"its tag, refused by properties", 5, tag(9), arrival{"T", 1, 5, 9, "refuse"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &queues{}
				h := newHolder(q, 0)
				defer h.Close()
				w := &wakes{}
				if !h.Hold(&Pull{Topic: "T", QueueId: 1, Offset: c.offset, Deadline: 1 << 60, Filter: c.filter, Owner: 1, Waiter: w}) {
					t.Fatal("not held")
				}
				h.Arrive(c.a.topic, c.a.queueId, c.a.offset, c.a.tagsCode, c.a.properties)
				synctest.Wait()
				if got := w.n.Load() == 1; got != c.woken {
					t.Fatalf("woken %v, want %v", got, c.woken)
				}
				if c.woken && Reason(w.why.Load()) != Arrived {
					t.Errorf("reason %d", w.why.Load())
				}
				if held := h.Held(); held != int64(1-w.n.Load()) {
					t.Errorf("%d held", held)
				}
			})
		})
	}
}

func TestScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queues{}
		h := newHolder(q, 0)
		defer h.Close()
		late, filtered, patient := &wakes{}, &wakes{}, &wakes{}
		now := time.Now().UnixMilli()
		h.Hold(&Pull{Topic: "T", Deadline: now + 15_000, Waiter: late})
		h.Hold(&Pull{Topic: "T", QueueId: 1, Deadline: now + 60_000, Filter: tag(1), Waiter: filtered})
		h.Hold(&Pull{Topic: "T", QueueId: 2, Deadline: now + 60_000, Waiter: patient})
		// A message that the filter refuses: the scan lets the pull go on all the same.
		q.end("T", 1).Store(1)
		h.Arrive("T", 1, 0, 2, "")
		synctest.Wait()
		if filtered.n.Load() != 0 {
			t.Fatal("woken by a message that its filter refuses")
		}
		pass(5*time.Second + time.Millisecond)
		synctest.Wait()
		if filtered.n.Load() != 1 || Reason(filtered.why.Load()) != Grown {
			t.Fatalf("first scan: %d wakes, reason %d; want 1, Grown", filtered.n.Load(), filtered.why.Load())
		}
		if late.n.Load() != 0 {
			t.Fatal("woken before its time was over")
		}
		pass(10 * time.Second) // the third scan, at 15 s, is the first at or behind the deadline
		synctest.Wait()
		if late.n.Load() != 1 || Reason(late.why.Load()) != TimedOut {
			t.Fatalf("third scan: %d wakes, reason %d; want 1, TimedOut", late.n.Load(), late.why.Load())
		}
		if patient.n.Load() != 0 || h.Held() != 1 {
			t.Fatalf("the third pull: %d wakes, %d held", patient.n.Load(), h.Held())
		}
	})
}

func TestOwnerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(&queues{}, 0)
		defer h.Close()
		gone, stays := &wakes{}, &wakes{}
		for i := range int32(5) {
			h.Hold(&Pull{Topic: "T", QueueId: i, Deadline: 1 << 60, Owner: "gone", Waiter: gone})
			h.Hold(&Pull{Topic: "T", QueueId: i, Deadline: 1 << 60, Owner: "stays", Waiter: stays})
		}
		h.Arrive("T", 3, 0, 0, "")
		synctest.Wait()
		h.OwnerGone("gone")
		h.OwnerGone("gone")
		h.OwnerGone("never there")
		if h.Held() != 4 {
			t.Fatalf("%d held, want the 4 of the other owner", h.Held())
		}
		for i := range int32(5) {
			h.Arrive("T", i, 1, 0, "")
		}
		synctest.Wait()
		if gone.n.Load() != 1 || stays.n.Load() != 5 {
			t.Fatalf("wakes: %d of the owner that went, %d of the other; want 1, 5", gone.n.Load(), stays.n.Load())
		}
		if len(h.owners.first) != 0 {
			t.Fatalf("%d owners remembered", len(h.owners.first))
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(&queues{}, 0)
		var ws [40]wakes
		for i := range ws {
			h.Hold(&Pull{Topic: fmt.Sprint("T", i%7), QueueId: int32(i % 3), Deadline: 1 << 60, Owner: i % 5, Waiter: &ws[i]})
		}
		h.Close()
		for i := range ws {
			if ws[i].n.Load() != 1 || Reason(ws[i].why.Load()) != Stopped {
				t.Fatalf("pull %d: %d wakes, reason %d; want 1, Stopped", i, ws[i].n.Load(), ws[i].why.Load())
			}
		}
		if h.Hold(&Pull{Topic: "T", Owner: 1, Waiter: &wakes{}}) {
			t.Error("held after Close")
		}
		if h.Held() != 0 || len(h.owners.first) != 0 {
			t.Errorf("left: %d pulls, %d owners", h.Held(), len(h.owners.first))
		}
		h.Close()
	})
}

func TestLimitAndDrop(t *testing.T) {
	h := newHolder(&queues{}, 2)
	defer h.Close()
	p := &Pull{Topic: "T", Deadline: 1 << 60, Owner: 1, Waiter: &wakes{}}
	h.Hold(p)
	h.Hold(&Pull{Topic: "T", Deadline: 1 << 60, Owner: 1, Waiter: &wakes{}})
	if h.Hold(&Pull{Topic: "T", Deadline: 1 << 60, Owner: 1, Waiter: &wakes{}}) {
		t.Fatal("held beyond the limit")
	}
	if !h.Drop(p) || h.Drop(p) {
		t.Fatal("Drop must take the pull once")
	}
	if !h.Hold(&Pull{Topic: "T", Deadline: 1 << 60, Owner: 1, Waiter: &wakes{}}) {
		t.Fatal("not held after Drop made room")
	}
}

// TestNoLostWake lets messages arrive while pulls for them are being registered: each must go on.
func TestNoLostWake(t *testing.T) {
	q := &queues{}
	h := newHolder(q, 0)
	defer h.Close()
	const pullers, messages = 4, 3000
	var wg sync.WaitGroup
	for g := range int32(pullers) {
		end := q.end("T", g)
		seen := make(chan struct{}, 1)
		wg.Add(2)
		go func() { // the dispatcher: publish, then tell; one message when the last one has been seen
			defer wg.Done()
			for i := range int64(messages) {
				end.Store(i + 1)
				h.Arrive("T", g, i, 0, "")
				<-seen
			}
		}()
		go func() { // the client
			defer wg.Done()
			woken := make(chan struct{}, 1)
			for i := range int64(messages) {
				if q.max("T", g) <= i {
					h.Hold(&Pull{Topic: "T", QueueId: g, Offset: i, Deadline: 1 << 60, Owner: g,
						Waiter: &wakes{f: func(Reason) { woken <- struct{}{} }}})
					select {
					case <-woken:
					case <-time.After(time.Minute):
						t.Errorf("queue %d, offset %d: wake-up lost", g, i)
						return
					}
				}
				seen <- struct{}{}
			}
		}()
	}
	wg.Wait()
	if h.Held() != 0 {
		t.Errorf("%d held", h.Held())
	}
}

// TestManyAtOnce mixes everything that can happen to a pull; each goes on at most once, none is left.
func TestManyAtOnce(t *testing.T) {
	q := &queues{}
	h := newHolder(q, 0)
	const n = 4000
	ws := make([]wakes, n)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for i := g; i < n; i += 4 {
				h.Hold(&Pull{Topic: "T", QueueId: int32(i % 8), Offset: int64(i), Deadline: 1 << 60, Owner: i % 16, Waiter: &ws[i]})
			}
		}()
		go func() {
			defer wg.Done()
			for i := g; i < n; i += 4 {
				h.Arrive("T", int32(i%8), int64(i), 0, "")
				if i%32 == 0 {
					h.OwnerGone(i / 32 % 16)
				}
			}
		}()
	}
	wg.Wait()
	h.Close()
	for i := range ws {
		if ws[i].n.Load() > 1 {
			t.Fatalf("pull %d went on %d times", i, ws[i].n.Load())
		}
	}
	if h.Held() != 0 || len(h.owners.first) != 0 {
		t.Fatalf("left: %d pulls, %d owners", h.Held(), len(h.owners.first))
	}
	for i := range h.waiting {
		if c := h.waiting[i].Load(); c != 0 {
			t.Fatalf("counter %d is %d", i, c)
		}
	}
}

func TestArriveAllocatesNothing(t *testing.T) {
	h := newHolder(&queues{}, 0)
	defer h.Close()
	h.Hold(&Pull{Topic: "waited", Offset: 1 << 40, Deadline: 1 << 60, Waiter: &wakes{}})
	if n := testing.AllocsPerRun(1000, func() {
		h.Arrive("nobody", 0, 0, 0, "")
		h.Arrive("waited", 0, 0, 0, "")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMemory(t *testing.T) {
	h := newHolder(&queues{}, 0)
	h.o.MaxOffset = func(string, int32) int64 { return 0 } // the fake's own map would be counted
	defer h.Close()
	const n = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := &wakes{}
	for i := range n {
		h.Hold(&Pull{Topic: "T", QueueId: int32(i), Offset: 1, Deadline: 1 << 60, Owner: i % 1000, Waiter: w})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := (after.HeapAlloc - before.HeapAlloc) / n; per > 256 {
		t.Errorf("%d bytes for each held pull in a queue of its own, want at most 256", per)
	}
	runtime.KeepAlive(h)
}

func BenchmarkArriveNobody(b *testing.B) {
	h := newHolder(&queues{}, 0)
	defer h.Close()
	for i := range int32(100) {
		h.Hold(&Pull{Topic: "waited", QueueId: i, Offset: 1, Deadline: 1 << 60, Waiter: &wakes{}})
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Arrive("TopicNobodyWaitsOn", 3, 0, 0, "")
	}
}

func BenchmarkHoldAndWake(b *testing.B) {
	q := &queues{}
	h := newHolder(q, 0)
	defer h.Close()
	done := make(chan struct{}, 1)
	w := &wakes{f: func(Reason) { done <- struct{}{} }}
	b.ReportAllocs()
	for b.Loop() {
		h.Hold(&Pull{Topic: "T", Offset: 0, Deadline: 1 << 60, Owner: w, Waiter: w})
		h.Arrive("T", 0, 0, 0, "")
		<-done
	}
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
