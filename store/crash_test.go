package store

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// history is what a writer was told; a crash is judged by it.
type history struct {
	mu      sync.Mutex
	sent    map[string]bool  // bodies ever given to Put
	acked   map[string]place // bodies that were acknowledged, and where
	refused map[string]bool  // bodies that Put refused
	noIndex bool             // keys may lack
}

type place struct {
	topic       string
	queueId     int32
	queueOffset int64
}

func newHistory() *history {
	return &history{sent: map[string]bool{}, acked: map[string]place{}, refused: map[string]bool{}}
}

func (h *history) clone() *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := newHistory()
	for body := range h.sent {
		c.sent[body] = true
	}
	for body, p := range h.acked {
		c.acked[body] = p
	}
	for body := range h.refused {
		c.refused[body] = true
	}
	return c
}

// crash takes the disk as a crash would leave it, and the history that it must agree with: acknowledged before, sent
// until then.
func (h *history) crash(mem *vfs.Mem, percent int, rng *rand.Rand) (*vfs.Mem, *history) {
	before := h.clone()
	crashed := mem.Crash(percent, rng)
	before.sent = h.clone().sent
	return crashed, before
}

// put stores a run and notes what became of it.
func (h *history) put(s *Store, messages ...*message.Message) {
	run := make([]*Put, len(messages))
	h.mu.Lock()
	for i, m := range messages {
		run[i] = &Put{Message: m}
		h.sent[string(m.Body)] = true
	}
	h.mu.Unlock()
	s.Put(run)
	end := int64(0)
	for _, p := range run {
		if p.Err == nil {
			end = p.End
		}
	}
	flushed := true
	if s.SyncFlush() && end > 0 {
		done := make(chan error, 1)
		s.WaitFlushed(end, time.Minute, func(err error) { done <- err })
		flushed = <-done == nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range run {
		if m := p.Message; p.Err != nil {
			h.refused[string(m.Body)] = true
		} else if flushed {
			h.acked[string(m.Body)] = place{m.Topic, m.QueueId, p.QueueOffset}
		}
	}
}

// work is what a writer does: runs to three queues, with checkpoints between.
func (h *history) work(s *Store, rounds int) {
	for n := range rounds {
		h.put(s, newMessage("A", 0, n), newMessage("A", 1, n), newMessage("B", 0, n))
		h.put(s, newMessage("A", 0, 1000+n))
		switch n % 4 {
		case 1:
			_ = s.flushDerived(0)
		case 3:
			_ = s.saveCheckpoint()
		}
	}
}

// check opens a store after a crash and judges it; then it must take messages, and still have all after a close.
func (h *history) check(fsys vfs.FS, cfg Config) error {
	for again := range 2 {
		s, err := tryOpen(fsys, cfg, Options{})
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if err := h.judge(s); err != nil {
			_ = s.Close()
			return fmt.Errorf("opening %d: %w", again, err)
		}
		h.put(s, newMessage("A", 0, 5000+again), newMessage("C", 3, again))
		if err := s.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

// newMessageLike is the properties that newMessage gave the record whose body this is.
func newMessageLike(r message.Record) string {
	var n int
	body := string(r.Body())
	if _, err := fmt.Sscanf(body[strings.LastIndexByte(body, '-')+1:], "%d", &n); err != nil {
		return ""
	}
	return newMessage(r.Topic(), r.QueueId(), n).Properties
}

// judge compares what can be read with the history.
func (h *history) judge(s *Store) error {
	found := map[string]place{}
	for _, topic := range s.Topics() {
		for _, queueId := range s.Queues(topic) {
			for offset := int64(0); offset < s.MaxOffset(topic, queueId); offset++ {
				r := s.Get(topic, queueId, offset, 1, nil)
				if r.Status != Found {
					return fmt.Errorf("%s %d %d: %+v", topic, queueId, offset, r)
				}
				rec := message.Record(r.Body)
				if _, err := message.Check(rec, true); err != nil || rec.QueueOffset() != offset || rec.Topic() != topic || rec.QueueId() != queueId {
					return fmt.Errorf("%s %d %d is another record: %s %d %d at %d: %v", topic, queueId, offset,
						rec.Topic(), rec.QueueId(), rec.QueueOffset(), rec.PhyOffset(), err)
				}
				if err := unitOf(s, rec); err != nil {
					return err
				}
				body := string(rec.Body())
				if !h.sent[body] || h.refused[body] {
					return fmt.Errorf("%s %d %d is a phantom: %s", topic, queueId, offset, body)
				}
				if other, twice := found[body]; twice {
					return fmt.Errorf("%s is at %+v and at %d", body, other, offset)
				}
				found[body] = place{topic, queueId, offset}
				// No checksum covers the properties of a record: a torn one, which was never acknowledged, may have lost them.
				uniq, _ := rec.Property("UNIQ_KEY")
				if _, acked := h.acked[body]; !acked && rec.Properties() != newMessageLike(rec) {
					continue
				}
				if h.noIndex {
					continue
				}
				if q := s.Query(topic, uniq, 64, 0, math.MaxInt64); len(q.Records) != 1 {
					return fmt.Errorf("%s is indexed %d times", uniq, len(q.Records))
				}
			}
		}
	}
	for body, p := range h.acked {
		if found[body] != p {
			return fmt.Errorf("%s was acknowledged at %+v and is at %+v", body, p, found[body])
		}
	}
	return nil
}

func crashConfig(flush string) Config {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 4 << 10
	cfg.MaxMessageSize = 1 << 10
	cfg.MappedFileSizeConsumeQueue = 200
	cfg.MaxIndexNum = 50
	cfg.FlushDiskType = flush
	cfg.FlushIntervalConsumeQueue = 60_000 // the tests flush
	return cfg
}

// TestPowerCutAtEverySync runs with sync flush and cuts the power before each sync: what was acknowledged is there,
// offsets have no gaps, nothing appears that was not sent.
func TestPowerCutAtEverySync(t *testing.T) { t.Parallel(); cutAtEverySync(t, crashConfig(SyncFlush)) }

func cutAtEverySync(t *testing.T, cfg Config) {
	mem := vfs.NewMem(nil)
	h := newHistory()
	type cut struct {
		mem *vfs.Mem
		h   *history
		op  vfs.Op
	}
	var mu sync.Mutex
	var cuts []cut
	rng := rand.New(rand.NewSource(1))
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if o.Kind == vfs.OpSync || o.Kind == vfs.OpSyncDir {
			mu.Lock()
			defer mu.Unlock()
			disk, then := h.crash(mem, rng.Intn(101), rng)
			cuts = append(cuts, cut{disk, then, o})
		}
		return nil
	})
	s := openStore(t, fsys, cfg, Options{})
	h.work(s, 24)
	closeStore(t, s)
	if len(cuts) < 60 {
		t.Fatalf("only %d syncs", len(cuts))
	}
	for i, c := range cuts {
		if i%stride != 0 {
			continue
		}
		if err := c.h.check(c.mem, cfg); err != nil {
			t.Fatalf("power cut %d, before %v %s: %v", i, c.op.Kind, c.op.Name, err)
		}
	}
}

// TestPowerCutsInARow cuts the power, recovers and works on, again and again.
func TestPowerCutsInARow(t *testing.T) {
	t.Parallel()
	for seed := range int64(15) {
		rng := rand.New(rand.NewSource(seed))
		mem := vfs.NewMem(nil)
		h := newHistory()
		for round := range 6 {
			s := openStore(t, mem, crashConfig(SyncFlush), Options{})
			if err := h.judge(s); err != nil {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
			for range rng.Intn(12) {
				h.put(s, newMessage("A", 0, rng.Int()), newMessage("A", 1, rng.Int()))
				switch rng.Intn(5) {
				case 0:
					_ = s.flushDerived(0)
				case 1:
					_ = s.flushDerived(1000)
				case 2:
					_ = s.saveCheckpoint()
				}
			}
			before := mem.Crash(rng.Intn(101), rng)
			_ = s.Close()
			mem = before
		}
	}
}

// TestKillAtEveryWrite ends the process before each write, with asynchronous flush: what was written is in the page
// cache, so nothing that was acknowledged is lost.
func TestKillAtEveryWrite(t *testing.T) { t.Parallel(); killAtEveryWrite(t, crashConfig(AsyncFlush)) }

func killAtEveryWrite(t *testing.T, cfg Config) {
	mem := vfs.NewMem(nil)
	h := newHistory()
	type kill struct {
		mem *vfs.Mem
		h   *history
		op  vfs.Op
	}
	var mu sync.Mutex
	var kills []kill
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite || o.Kind == vfs.OpTruncate || o.Kind == vfs.OpRemove {
			mu.Lock()
			defer mu.Unlock()
			disk, then := h.crash(mem, 100, rand.New(rand.NewSource(1)))
			kills = append(kills, kill{disk, then, o})
		}
		return nil
	})
	s := openStore(t, fsys, cfg, Options{})
	h.work(s, 16)
	closeStore(t, s)
	for i, k := range kills {
		if i%stride != 0 {
			continue
		}
		if err := k.h.check(k.mem, cfg); err != nil {
			t.Fatalf("kill %d, before %v %s: %v", i, k.op.Kind, k.op.Name, err)
		}
	}
}

// TestEveryOperationFails lets the i-th file operation fail, for every i, once or from then on. The next start finds
// what was acknowledged and nothing that was refused.
func TestEveryOperationFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
			t.Run(fmt.Sprintf("%v forever=%v", cause, forever), func(t *testing.T) {
				t.Parallel()
				for i, more := 0, true; more; i += stride {
					mem := vfs.NewMem(nil)
					h := newHistory()
					more = false
					var mu sync.Mutex
					var failed vfs.Op
					fsys := vfs.NewFault(mem, func(o vfs.Op) error {
						mu.Lock()
						defer mu.Unlock()
						if o.Index == i || forever && o.Index > i && o.Kind != vfs.OpClose {
							if !more {
								more, failed = true, o
							}
							return cause
						}
						return nil
					})
					if s, err := tryOpen(fsys, crashConfig(SyncFlush), Options{}); err == nil {
						h.work(s, 6)
						_ = s.Close()
					} else if !errors.Is(err, cause) {
						t.Fatalf("operation %d: Open: %v", i, err)
					}
					if err := h.check(mem, crashConfig(SyncFlush)); err != nil {
						t.Fatalf("operation %d, %v %s, failed: %v", i, failed.Kind, failed.Name, err)
					}
				}
			})
		}
	}
}
