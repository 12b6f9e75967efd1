package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// history is what a client has seen: what it sent in order, and which of that was acknowledged or refused.
type history struct {
	mu       sync.Mutex
	acked    map[string]*Put // by body
	refused  map[string]bool
	inflight map[string]bool
}

func newHistory() *history {
	return &history{acked: map[string]*Put{}, refused: map[string]bool{}, inflight: map[string]bool{}}
}

// body of a message up to the filling.
func label(m *message.Message) string {
	for i, c := range m.Body {
		if c == '.' {
			return string(m.Body[:i])
		}
	}
	return string(m.Body)
}

// work appends some twenty runs over several files, as a client that waits for each, and notes how they ended. With
// durable a message counts as acknowledged when it was synced in time, else when it was appended.
func work(l *Log, h *history, durable bool) {
	for i := range 20 {
		run := []*Put{
			put(msg(int32(i%2), fmt.Sprintf("s%d", i), 9000)),
			put(msg(0, fmt.Sprintf("a%d", i), 100), msg(0, fmt.Sprintf("b%d", i), 3000)),
		}
		h.mu.Lock()
		for _, p := range run {
			for j := range p.count() {
				h.inflight[label(p.at(j))] = true
			}
		}
		h.mu.Unlock()
		l.Append(run)
		for _, p := range run {
			err := p.Err
			if err == nil && durable {
				err = wait(l, p.End, time.Minute)
			}
			h.mu.Lock()
			for j := range p.count() {
				k := label(p.at(j))
				switch {
				case err == nil:
					h.acked[k] = p
				case p.Err != nil:
					h.refused[k] = true // never to be seen; a failed sync leaves it open
				}
				if err == nil || p.Err != nil {
					delete(h.inflight, k)
				}
			}
			h.mu.Unlock()
		}
	}
}

// snapshot copies what the client knows now.
func (h *history) snapshot() *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := newHistory()
	for k, p := range h.acked {
		c.acked[k] = p
	}
	for k := range h.refused {
		c.refused[k] = true
	}
	return c
}

// check demands of a recovered log: what was acknowledged is there, what was refused is not, each queue's offsets have
// no gap, nothing twice; and that it can be written on.
func (h *history) check(o Options, what string) error {
	o.QueueOffsets = newOffsets()
	l, err := Open(o)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer l.Close()
	found, queues := map[string]int64{}, map[string]int64{}
	err = l.Recover(l.MinOffset(), true, func(at int64, r message.Record) error {
		m := r.Message()
		k, q := label(&m), queueKey(m.Topic, m.QueueId)
		if _, twice := found[k]; twice {
			return fmt.Errorf("%s is there twice", k)
		}
		if m.QueueOffset != queues[q] {
			return fmt.Errorf("%s has queue offset %d, want %d", k, m.QueueOffset, queues[q])
		}
		queues[q]++
		found[k] = at
		o.QueueOffsets.Take(m.Topic, m.QueueId, 1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for k, p := range h.acked {
		at, ok := found[k]
		if !ok {
			return fmt.Errorf("%s: %s was acknowledged and is lost; found to %d", what, k, l.MaxOffset())
		}
		if at < p.PhyOffset || at >= p.End {
			return fmt.Errorf("%s: %s stands at %d, acknowledged at %d", what, k, at, p.PhyOffset)
		}
	}
	for k := range h.refused {
		if at, ok := found[k]; ok {
			return fmt.Errorf("%s: %s was refused and stands at %d", what, k, at)
		}
	}
	l.Start()
	p := put(msg(0, "after", 40000))
	l.Append([]*Put{p})
	if p.Err != nil {
		return fmt.Errorf("%s: append after recovery: %w", what, p.Err)
	}
	if p.QueueOffset != queues["TopicA-0"] {
		return fmt.Errorf("%s: append after recovery got queue offset %d, want %d", what, p.QueueOffset, queues["TopicA-0"])
	}
	if err := wait(l, p.End, time.Minute); err != nil {
		return fmt.Errorf("%s: flush after recovery: %w", what, err)
	}
	n := 0
	if next, err := l.Scan(l.MinOffset(), func(int64, message.Record) error { n++; return nil }); err != nil || next != p.End || n != len(found)+1 {
		return fmt.Errorf("%s: %d records to %d after recovery: %w", what, n, next, err)
	}
	return nil
}

// The power is cut before each sync, and after it, with several lots of what the disk had not synced: everything that
// was acknowledged as durable is there, everything in order.
func TestPowerCutAtEverySync(t *testing.T) {
	m := vfs.NewMem(nil)
	h := newHistory()
	var mu sync.Mutex
	var failed []error
	seed := int64(0)
	cut := func(what string) {
		known := h.snapshot() // before the disk is looked at: what is acknowledged by then must be on it
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 30, 70, 100} {
			seed++
			o := options(func(o *Options) { o.FS = m.Crash(percent, newRand(seed)) })
			if err := known.check(o, fmt.Sprintf("%s, %d%%, seed %d", what, percent, seed)); err != nil {
				failed = append(failed, err)
			}
		}
	}
	n := 0
	fault := vfs.NewFault(m, func(o vfs.Op) error {
		if o.Kind == vfs.OpSync || o.Kind == vfs.OpSyncDir {
			cut(fmt.Sprintf("before operation %d, %s %s", o.Index, o.Kind, o.Name))
			n++
		}
		return nil
	})
	o := options(syncFlush, func(o *Options) { o.FS = fault })
	l, _ := recovered(t, o)
	l.Start()
	work(l, h, true)
	cut("at the end")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cut("after Close")
	for _, err := range failed {
		t.Error(err)
	}
	if n < 30 || len(h.acked) != 60 {
		t.Errorf("%d syncs, %d messages acknowledged", n, len(h.acked))
	}
}

// Each operation fails once, or from there on for ever, with several errors; the client goes on. Then the process
// dies, or the power is cut: nothing acknowledged is lost, nothing refused appears.
func TestEveryOperationFails(t *testing.T) {
	type failure struct {
		name string
		err  error
		from bool // from the operation on
	}
	for _, f := range []failure{
		{"EIO", syscall.EIO, false},
		{"ENOSPC", syscall.ENOSPC, false},
		{"a short write", &vfs.ShortWrite{N: 5000, Err: syscall.ENOSPC}, false},
		{"a write all but the error", &vfs.ShortWrite{N: 1 << 30, Err: syscall.EIO}, false},
		{"a dead disk", syscall.EIO, true},
	} {
		for _, durable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s durable=%v", f.name, durable), func(t *testing.T) {
				t.Parallel()
				for i := 0; ; i++ {
					inject := vfs.FailAt(i, f.err)
					if f.from {
						inject = vfs.FailFrom(i, f.err)
					}
					m := vfs.NewMem(nil)
					fault := vfs.NewFault(m, inject)
					h := newHistory()
					o := options(func(o *Options) { o.FS, o.SyncFlush = fault, durable })
					l, err := Open(o)
					if err == nil {
						err = l.Recover(0, true, nil)
					}
					if err == nil {
						l.Start()
						work(l, h, durable)
					}
					what := fmt.Sprintf("operation %d failed", i)
					ops := fault.Count()
					o.FS = m.Crash(100, newRand(int64(i)))
					if err := h.check(o, what+", the process died"); err != nil {
						t.Error(err)
					}
					if durable {
						for seed := range int64(3) {
							o.FS = m.Crash(50, newRand(seed+int64(i)))
							if err := h.check(o, what+", the power was cut"); err != nil {
								t.Error(err)
							}
						}
					}
					if l != nil {
						l.Close()
						o.FS = m
						if err := h.check(o, what+", closed"); err != nil {
							t.Error(err)
						}
					}
					if i >= ops || t.Failed() {
						if i < 20 {
							t.Errorf("only %d operations", i)
						}
						return
					}
				}
			})
		}
	}
}

// A disk that is full refuses, tells so, and takes again when there is room.
func TestFullDisk(t *testing.T) {
	m := vfs.NewMem(nil)
	table := newOffsets()
	o := options(syncFlush, func(o *Options) { o.FS, o.QueueOffsets = m, table })
	l := started(t, o)
	m.SetCapacity(100_000)
	stored, refused := 0, 0
	for range 40 {
		p := put(msg(0, fmt.Sprint("m", stored), 7000))
		l.Append([]*Put{p})
		if p.Err == nil {
			stored++
		} else if refused++; !errors.Is(p.Err, ErrFull) || errors.Is(p.Err, ErrWriteStop) {
			t.Fatalf("refused with %v", p.Err)
		}
	}
	if stored < 10 || stored > 14 || refused < 20 || table.of("TopicA", 0) != int64(stored) {
		t.Errorf("%d stored, %d refused, next queue offset %d", stored, refused, table.of("TopicA", 0))
	}
	m.SetCapacity(0)
	for range 20 {
		p := put(msg(0, fmt.Sprint("m", stored), 7000))
		mustAppend(t, l, p)
		if err := wait(l, p.End, time.Minute); err != nil || p.QueueOffset != int64(stored) {
			t.Fatalf("queue offset %d, want %d: %v", p.QueueOffset, stored, err)
		}
		stored++
	}
	if got := scan(t, l, 0); len(got) != stored || label(&got[stored-1]) != fmt.Sprint("m", stored-1) {
		t.Errorf("%d messages, want %d", len(got), stored)
	}
}

// What a failed write has left cannot be cleared: writes stop, until it can.
func TestWritesStopWhileNotCleared(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem(nil), nil)
	l := started(t, options(func(o *Options) { o.FS = fault }))
	mustAppend(t, l, put(msg(0, "first", 0)))
	fault.SetInject(func(o vfs.Op) error {
		switch o.Kind {
		case vfs.OpWrite:
			return &vfs.ShortWrite{N: 50, Err: syscall.EIO}
		case vfs.OpZero:
			return syscall.EIO
		}
		return nil
	})
	p := put(msg(0, "second", 0))
	if l.Append([]*Put{p}); !errors.Is(p.Err, syscall.EIO) || errors.Is(p.Err, ErrWriteStop) {
		t.Errorf("failed write: %v", p.Err)
	}
	if l.Append([]*Put{p}); !errors.Is(p.Err, ErrWriteStop) {
		t.Errorf("next write: %v", p.Err)
	}
	fault.SetInject(nil)
	mustAppend(t, l, p)
	if got := scan(t, l, 0); len(got) != 2 || got[1].QueueOffset != 1 {
		t.Errorf("%v", got)
	}
}

// The kernel may have written a refused record to the disk before it is cleared: when it is refused to the client, its
// clearing is on the disk too.
func TestRefusedRecordIsClearedDurably(t *testing.T) {
	m := vfs.NewMem(nil)
	fault := vfs.NewFault(m, nil)
	o := options(func(o *Options) { o.FS = fault })
	l := started(t, o)
	mustAppend(t, l, put(msg(0, "first", 0)))
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	fault.SetInject(func(o vfs.Op) error {
		switch o.Kind {
		case vfs.OpWrite: // all of it, but for the news
			return &vfs.ShortWrite{N: 1 << 30, Err: syscall.EIO}
		case vfs.OpZero: // written back just before
			f, err := m.Open(o.Name)
			if err != nil {
				return err
			}
			return f.Sync()
		}
		return nil
	})
	p := put(msg(0, "refused", 0))
	if l.Append([]*Put{p}); p.Err == nil {
		t.Fatal("stored")
	}
	o.FS = m.Crash(0, newRand(1))
	l, found := recovered(t, o)
	defer l.Close()
	if len(found) != 1 {
		t.Errorf("%d messages after the power was cut", len(found))
	}
}

// What a killed process had only written is durable once a recovery has shown it as such: in the file in which the scan
// begins and in those before.
func TestRecoveryMakesDurable(t *testing.T) {
	m := vfs.NewMem(nil)
	o := options(syncFlush, func(o *Options) { o.FS = m })
	dead, _ := recovered(t, o) // not started: nothing is flushed
	defer dead.Close()
	for range 20 {
		mustAppend(t, dead, put(msg(0, "x", 5000)))
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Recover(fileSize, true, func(int64, message.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	end := l.FlushedOffset()
	o.FS = m.Crash(0, newRand(1))
	again, found := recovered(t, o)
	defer again.Close()
	if len(found) != 20 || end != l.MaxOffset() || again.MaxOffset() != end {
		t.Errorf("%d messages to %d after the power was cut, durable to %d", len(found), again.MaxOffset(), end)
	}
}
