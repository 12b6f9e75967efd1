package store

import (
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// These tests are the table of promises: what each flushDiskType keeps when the process dies, which leaves the page cache, and
// when the power fails, which leaves what was synced and any part of the rest.

// witness is what the clients of a store know: who sends and who reads.
type witness struct {
	async bool
	store atomic.Pointer[Store] // set once it is open

	mu      sync.Mutex
	sent    map[string]bool
	refused map[string]bool
	acked   map[string]acknowledgement
	seen    map[string]place // what could be read, and where
}

type acknowledgement struct {
	place
	end int64 // of the record in the log
	at  time.Time
}

func newWitness(cfg Config) *witness {
	return &witness{async: cfg.FlushDiskType == AsyncFlush, sent: map[string]bool{}, refused: map[string]bool{},
		acked: map[string]acknowledgement{}, seen: map[string]place{}}
}

// open opens a store whose arrivals the witness sees.
func (w *witness) open(fsys vfs.FS, cfg Config) (*Store, error) {
	s, err := tryOpen(fsys, cfg, Options{Arrive: w.arrive})
	if err == nil {
		w.store.Store(s)
	}
	return s, err
}

// arrive is the store's Arrive: a consumer reads the message now.
func (w *witness) arrive(a Arrival) {
	for range 20 { // who sends gets ahead
		runtime.Gosched()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen["body"+strings.TrimPrefix(scanProperties(a.Properties).uniqKey, "uniq")] = place{strings.Clone(a.Topic), a.QueueId, a.QueueOffset}
}

// put sends a run and waits for what the answer has to wait for.
func (w *witness) put(s *Store, messages ...*message.Message) {
	run := make([]*Put, len(messages))
	w.mu.Lock()
	for i, m := range messages {
		run[i] = &Put{Message: m}
		w.sent[string(m.Body)] = true
	}
	w.mu.Unlock()
	s.Put(run)
	for _, p := range run {
		durable := true
		if p.Err == nil && !w.async {
			done := make(chan error, 1)
			s.WaitFlushed(p.End, time.Minute, func(err error) { done <- err })
			durable = <-done == nil
		}
		w.mu.Lock()
		m := p.Message
		if p.Err != nil {
			w.refused[string(m.Body)] = true
		} else if durable {
			w.acked[string(m.Body)] = acknowledgement{place{m.Topic, m.QueueId, p.QueueOffset}, p.End, time.Now()}
		}
		w.mu.Unlock()
	}
}

// work sends for some rounds from two senders at once, with flushes of all kinds between.
func (w *witness) work(s *Store, rounds int) {
	var senders sync.WaitGroup
	for from := range 2 {
		senders.Go(func() { w.send(s, rounds, 10_000*from) })
	}
	senders.Wait()
}

func (w *witness) send(s *Store, rounds, from int) {
	for n := range rounds {
		w.put(s, newMessage("A", 0, from+n), newMessage("A", 1, from+n), newMessage("B", 0, from+n))
		w.put(s, newMessage("A", 0, from+1000+n))
		switch n % 5 {
		case 1:
			_ = s.flushDerived(0)
		case 2:
			_ = s.log.Flush()
		case 4:
			_ = s.saveCheckpoint()
		}
	}
}

// crash takes the disk as a crash would leave it now, a death of the process or a failure of the power, and what the store must still have on it: everything that was
// acknowledged or read. When the power fails under asynchronous flush, only what was flushed. What is owed is noted before the
// disk is looked at, so all of that has happened when the crash comes.
func (w *witness) crash(mem *vfs.Mem, power bool, rng *rand.Rand) (*vfs.Mem, *history) {
	h, durable := newHistory(), int64(0)
	if s := w.store.Load(); s != nil {
		durable = s.log.FlushedOffset()
	}
	w.mu.Lock()
	for body, a := range w.acked {
		if !power || !w.async || a.end <= durable {
			h.acked[body] = a.place
		}
	}
	if !power || !w.async {
		for body, p := range w.seen {
			h.acked[body] = p
		}
	}
	for body := range w.refused {
		h.refused[body] = true
	}
	w.mu.Unlock()
	disk := afterCrash(mem, power, rng)
	w.mu.Lock()
	defer w.mu.Unlock()
	for body := range w.sent {
		h.sent[body] = true
	}
	return disk, h
}

// afterCrash is a disk after a death, which leaves the page cache, or after a power failure, which leaves of what was not
// synced any part.
func afterCrash(mem *vfs.Mem, power bool, rng *rand.Rand) *vfs.Mem {
	switch {
	case !power:
		return mem.Kill()
	case rng.Intn(2) == 0:
		return mem.Crash(0, rng)
	default:
		return mem.Crash(rng.Intn(101), rng)
	}
}

// crashed is a disk after a crash, and what it is judged by.
type crashed struct {
	disk *vfs.Mem
	h    *history
	op   vfs.Op
}

// changes tells whether an operation changes what a dying process leaves; with sync, or what a power failure leaves.
func changes(k vfs.Kind, sync bool) bool {
	switch k {
	case vfs.OpCreate, vfs.OpRename, vfs.OpRemove, vfs.OpRemoveAll, vfs.OpMkdirAll, vfs.OpWrite, vfs.OpTruncate, vfs.OpZero:
		return true
	case vfs.OpSync, vfs.OpSyncDir:
		return sync
	}
	return false
}

// A crash comes before each operation that changes the disk, from the first start to the end of Close. Acknowledged
// messages are kept and what a consumer has read stays as it was: always when the process dies; when the power fails too
// with synchronous flush; with asynchronous flush as far as the log was flushed. And whatever the crash: no gaps, nothing
// twice, nothing that was not sent, and the store works on.
func TestPromises(t *testing.T) {
	for _, c := range []struct {
		flush string
		power bool
	}{{AsyncFlush, false}, {AsyncFlush, true}, {SyncFlush, false}, {SyncFlush, true}} {
		t.Run(fmt.Sprintf("%s power=%v", c.flush, c.power), func(t *testing.T) {
			t.Parallel()
			mem, cfg, rng := vfs.NewMem(nil), crashConfig(c.flush), rand.New(rand.NewSource(1))
			w := newWitness(cfg)
			var mu sync.Mutex
			var crashes []crashed
			fsys := vfs.NewFault(mem, func(o vfs.Op) error {
				if changes(o.Kind, c.power) {
					mu.Lock()
					defer mu.Unlock()
					disk, h := w.crash(mem, c.power, rng)
					crashes = append(crashes, crashed{disk, h, o})
				}
				return nil
			})
			s, err := w.open(fsys, cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.work(s, 10)
			closeStore(t, s)
			owed := 0
			for i, crash := range crashes {
				owed = max(owed, len(crash.h.acked))
				if i%stride != 0 {
					continue
				}
				if err := crash.h.check(crash.disk, cfg); err != nil {
					t.Fatalf("crash %d, before %v %s: %v", i, crash.op.Kind, crash.op.Name, err)
				}
			}
			if len(crashes) < 100 || owed < 50 {
				t.Errorf("%d crashes, %d messages owed", len(crashes), owed)
			}
		})
	}
}

// The process dies, is started again, and then the power fails: what the second start has shown is still there, in either
// mode, though the first may have died before it was synced.
func TestDeathThenPowerFailure(t *testing.T) {
	t.Parallel()
	for _, flush := range []string{AsyncFlush, SyncFlush} {
		mem, cfg, rng := vfs.NewMem(nil), crashConfig(flush), rand.New(rand.NewSource(1))
		w := newWitness(cfg)
		var mu sync.Mutex
		var disks []*vfs.Mem
		var ops []vfs.Op
		fsys := vfs.NewFault(mem, func(o vfs.Op) error {
			if changes(o.Kind, false) {
				mu.Lock()
				defer mu.Unlock()
				disks, ops = append(disks, mem.Kill()), append(ops, o)
			}
			return nil
		})
		s, err := w.open(fsys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.work(s, 10)
		closeStore(t, s)
		shown := 0
		for i, disk := range disks {
			if i%stride != 0 && i != len(disks)-1 {
				continue
			}
			s := openStore(t, disk, cfg, Options{})
			before := readable(t, s)
			if i%2 == 0 { // else the flusher may or may not come to it
				if err := s.saveCheckpoint(); err != nil {
					t.Fatal(err)
				}
			}
			dark := disk.Crash(0, rng)
			closeStore(t, s)
			s = openStore(t, dark, cfg, Options{})
			h := newHistory()
			for body, p := range before {
				h.sent[body], h.acked[body] = true, p
			}
			err := h.judge(s) // by key too
			closeStore(t, s)
			if err != nil {
				t.Fatalf("%s: death %d, before %v %s: %v", flush, i, ops[i].Kind, ops[i].Name, err)
			}
			shown = max(shown, len(before))
		}
		if shown < 40 {
			t.Errorf("%s: %d messages", flush, shown)
		}
	}
}

// readable are the bodies of all messages of a store, and where they are.
func readable(t *testing.T, s *Store) map[string]place {
	t.Helper()
	all := map[string]place{}
	for _, topic := range s.Topics() {
		for _, queueId := range s.Queues(topic) {
			for _, r := range readAll(t, s, topic, queueId) {
				all[string(r.Body())] = place{topic, queueId, r.QueueOffset()}
			}
		}
	}
	return all
}

// With synchronous flush nobody sees a message, by whatever way, while the disk has not taken it; with asynchronous flush
// everybody does at once.
func TestVisibleWhenDurable(t *testing.T) {
	for _, flush := range []string{AsyncFlush, SyncFlush} {
		t.Run(flush, func(t *testing.T) {
			mem, cfg := vfs.NewMem(nil), crashConfig(flush)
			w := newWitness(cfg)
			fsys := vfs.NewFault(mem, nil)
			s, err := w.open(fsys, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { closeStore(t, s) }()
			w.put(s, newMessage("A", 0, 0))
			waitDispatched(t, s, s.log.MaxOffset())
			gate, syncing := make(chan struct{}), make(chan struct{}, 10)
			fsys.SetInject(func(o vfs.Op) error {
				if o.Kind == vfs.OpSync && strings.Contains(o.Name, "commitlog") {
					syncing <- struct{}{}
					<-gate
				}
				return nil
			})
			p := &Put{Message: newMessage("A", 0, 1)}
			s.Put([]*Put{p})
			if p.Err != nil {
				t.Fatal(p.Err)
			}
			answered := make(chan error, 1)
			s.WaitFlushed(p.End, time.Minute, func(err error) { answered <- err })
			waitFor(t, "the disk syncs", func() bool { return len(syncing) > 0 })
			want := int64(1)
			if flush == AsyncFlush {
				want = 2
				waitDispatched(t, s, p.End)
			}
			if got := visible(t, s, w); got != want {
				t.Errorf("while the disk syncs %d messages are visible, want %d", got, want)
			}
			select {
			case err := <-answered:
				t.Errorf("answered before it is durable: %v", err)
			default:
			}
			close(gate)
			if err := <-answered; err != nil {
				t.Error(err)
			}
			waitDispatched(t, s, p.End)
			if got := visible(t, s, w); got != 2 {
				t.Errorf("at the end %d messages are visible", got)
			}
		})
	}
}

// visible is how many messages of A 0 can be seen; all ways to look must agree.
func visible(t *testing.T, s *Store, w *witness) int64 {
	t.Helper()
	n := s.MaxOffset("A", 0)
	r := s.Get("A", 0, 0, 32, nil)
	_, entry := s.Entry("A", 0, n)
	byKey := s.Query("A", "shared", 64, 0, time.Now().Add(time.Hour).UnixMilli())
	var arrived int
	waitFor(t, "consumers are told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		arrived = len(w.seen)
		return int64(arrived) >= n
	})
	byId := int64(0)
	for at := int64(0); ; byId++ {
		record, err := s.Record(at)
		if err != nil {
			break
		}
		at += int64(record.Size())
	}
	if int64(r.Count) != n || r.MaxOffset != n || entry || int64(len(byKey.Records)) != n || int64(arrived) != n || byId != n {
		t.Errorf("end %d: %d pulled of %d, an entry at the end %v, %d by key, %d arrived, %d by id", n, r.Count, r.MaxOffset, entry,
			len(byKey.Records), arrived, byId)
	}
	return n
}
