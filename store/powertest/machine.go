// Package powertest is set-up of tests in which a store, and what lives on it, dies again and again: its process is killed, or its
// machine loses power, with some of what was not synced.
package powertest

import (
	"math/rand"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

// patience is how long a machine is waited for; loaded ones take their time.
const patience = 20 * time.Second

// Machine is a store that runs on a disk in memory. Nothing of its log is flushed but what somebody waits for.
type Machine struct {
	*store.Store
	tb   testing.TB
	disk *vfs.Mem
}

// Boot starts a store on a disk, as its last death has left it. o is for what is not the disk.
func Boot(tb testing.TB, disk *vfs.Mem, o store.Options) *Machine {
	tb.Helper()
	cfg := store.DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 1<<20, 100, 400
	cfg.FlushIntervalCommitLog, cfg.FlushCommitLogThoroughInterval = 3_600_000, 3_600_000
	cfg.FlushIntervalConsumeQueue = 3 // so that a death meets queues that have been written, and some that have not
	o.FS = disk
	s, err := store.Open(cfg, o)
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	return &Machine{s, tb, disk}
}

// Send stores a message and returns what became of it; durable: when it is.
func (m *Machine) Send(msg message.Message, durable bool) *store.Put {
	m.tb.Helper()
	p := &store.Put{Message: &msg}
	m.Put([]*store.Put{p})
	if p.Err != nil {
		m.tb.Fatal(p.Err)
	}
	if durable {
		m.flush(p.End)
	}
	return p
}

// Flush waits until everything is durable.
func (m *Machine) Flush() {
	m.tb.Helper()
	m.flush(m.MaxPhyOffset())
}

func (m *Machine) flush(end int64) {
	m.tb.Helper()
	done := make(chan error, 1)
	m.WaitFlushed(end, time.Minute, func(err error) { done <- err })
	if err := <-done; err != nil {
		m.tb.Fatal(err)
	}
}

// Dispatched waits until everything is in its queue.
func (m *Machine) Dispatched() {
	m.tb.Helper()
	Until(m.tb, "everything is in its queue", func() bool { return m.DispatchedOffset() >= m.MaxPhyOffset() })
}

// Until waits for a condition.
func Until(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	look := time.NewTicker(100 * time.Microsecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-look.C {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain until %s", what)
		}
	}
}

// Deaths counts how machines have died.
type Deaths struct{ Kills, Cuts int }

// Kill ends the process of a machine and returns the disk that the next start finds: all that was written is on it. What lives on the
// store, and the store itself, are to be closed afterwards; that changes nothing any more.
func (d *Deaths) Kill(m *Machine) *vfs.Mem {
	d.Kills++
	return m.disk.Kill()
}

// Cut cuts a machine's power, as Kill ends its process: of what was not synced some is left.
func (d *Deaths) Cut(m *Machine, rng *rand.Rand) *vfs.Mem {
	d.Cuts++
	return m.disk.Crash(rng.Intn(101), rng)
}

// Strike is Kill or Cut, as chance has it; killed says which.
func (d *Deaths) Strike(m *Machine, rng *rand.Rand) (dark *vfs.Mem, killed bool) {
	if rng.Intn(2) == 0 {
		return d.Kill(m), true
	}
	return d.Cut(m, rng), false
}

// Close ends the store of a machine.
func (m *Machine) Close() {
	m.tb.Helper()
	if err := m.Store.Close(); err != nil {
		m.tb.Error(err)
	}
}
