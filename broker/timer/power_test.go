package timer

import (
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

// machine is a store and its timer on a disk that may lose power.
type machine struct {
	t     *testing.T
	store *store.Store
	timer *Timer

	mu   sync.Mutex
	made *Timer // for arrivals
}

func boot(t *testing.T, disk *vfs.Mem) *machine {
	t.Helper()
	m := &machine{t: t}
	cfg := store.DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 1<<20, 100, 400
	cfg.FlushIntervalCommitLog, cfg.FlushCommitLogThoroughInterval = 3_600_000, 3_600_000 // only who waits for it has it flushed
	cfg.FlushIntervalConsumeQueue = 3
	s, err := store.Open(cfg, store.Options{FS: disk, Arrive: func(a store.Arrival) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if a.Topic == message.TopicTimer && m.made != nil {
			m.made.Arrived()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := vfs.Files{FS: disk}
	if err := files.MkdirAll("/store/config"); err != nil {
		t.Fatal(err)
	}
	if err := files.SyncDir("/store"); err != nil {
		t.Fatal(err)
	}
	m.store = s
	s.Start()
	if m.timer, err = Open(Options{Store: s, Clock: time.Now, Files: files, Path: "/store/config/rocketd-timer.json",
		SavePeriod: 5 * time.Millisecond, Log: discard}); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.made = m.timer
	m.mu.Unlock()
	m.timer.Start()
	return m
}

func (m *machine) close() {
	m.t.Helper()
	if err := m.timer.Close(); err != nil {
		m.t.Error(err)
	}
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}

// send puts a message off and waits until it is durable.
func (m *machine) send(name string, due time.Time) {
	m.t.Helper()
	p := &store.Put{Message: &message.Message{Topic: message.TopicTimer, Body: []byte(name), Properties: text(due.UnixMilli(), "T", 0, name)}}
	m.store.Put([]*store.Put{p})
	if p.Err != nil {
		m.t.Fatal(p.Err)
	}
	done := make(chan error, 1)
	m.store.WaitFlushed(p.End, time.Minute, func(err error) { done <- err })
	if err := <-done; err != nil {
		m.t.Fatal(err)
	}
}

// delivered are the names in the topic's queue.
func (m *machine) delivered() map[string]int {
	n := map[string]int{}
	for offset := range m.store.MaxOffset("T", 0) {
		e, ok := m.store.Entry("T", 0, offset)
		if !ok {
			continue
		}
		r, err := m.store.Message(e.PhyOffset)
		if err != nil {
			m.t.Fatal(err)
		}
		n[string(r.Body)]++
	}
	return n
}

// TestPowerCuts: whatever a power failure leaves of what was not synced, each message whose send was durable is delivered.
func TestPowerCuts(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	disk := vfs.NewMem(time.Now)
	sent := map[string]bool{}
	for round := range 25 {
		m := boot(t, disk)
		for i := range 6 {
			name := fmt.Sprintf("%d-%d", round, i)
			m.send(name, time.Now().Add(time.Duration(rng.Intn(25)-2)*time.Millisecond))
			sent[name] = true
		}
		<-time.After(time.Duration(rng.Intn(30)) * time.Millisecond) // somewhere between a delivery and its places
		dark := disk.Crash(rng.Intn(101), rng)
		m.close()
		disk = dark
	}
	m := boot(t, disk)
	defer m.close()
	deadline, look := time.After(20*time.Second), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		got, missing := m.delivered(), ""
		for name := range sent {
			if got[name] == 0 {
				missing = name
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("%s is lost; %d of %d delivered", missing, len(got), len(sent))
		}
	}
}
