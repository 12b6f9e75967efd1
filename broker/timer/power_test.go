package timer

import (
	"fmt"
	"math/rand"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/powertest"
	"rocketd/store/vfs"
)

// machine is a store and its timer on a disk that may lose power.
type machine struct {
	*powertest.Machine
	t     *testing.T
	timer *Timer
}

func boot(t *testing.T, disk *vfs.Mem) *machine {
	t.Helper()
	m := &machine{t: t}
	var made atomic.Pointer[Timer] // for arrivals
	m.Machine = powertest.Boot(t, disk, store.Options{Arrive: func(a store.Arrival) {
		if t := made.Load(); t != nil && a.Topic == message.TopicTimer {
			t.Arrived()
		}
	}})
	files := vfs.Files{FS: disk}
	if err := files.MkdirAll("/store/config"); err != nil {
		t.Fatal(err)
	}
	if err := files.SyncDir("/store"); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.timer, err = Open(Options{Store: m.Store, Clock: time.Now, Files: files, Path: "/store/config/rocketd-timer.json",
		SavePeriod: 5 * time.Millisecond, Log: discard}); err != nil {
		t.Fatal(err)
	}
	made.Store(m.timer)
	m.timer.Start()
	return m
}

func (m *machine) close() {
	m.t.Helper()
	if err := m.timer.Close(); err != nil {
		m.t.Error(err)
	}
	m.Close()
}

// send puts a message off and waits until it is durable.
func (m *machine) send(name string, due time.Time) {
	m.t.Helper()
	m.Send(message.Message{Topic: message.TopicTimer, Body: []byte(name), Properties: text(due.UnixMilli(), "T", 0, name)}, true)
}

// delivered are the names in the topic's queue.
func (m *machine) delivered() map[string]int {
	n := map[string]int{}
	for offset := range m.MaxOffset("T", 0) {
		e, ok := m.Entry("T", 0, offset)
		if !ok {
			continue
		}
		r, err := m.Message(e.PhyOffset)
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
	var deaths powertest.Deaths
	for round := range 25 {
		m := boot(t, disk)
		for i := range 6 {
			name := fmt.Sprintf("%d-%d", round, i)
			m.send(name, time.Now().Add(time.Duration(rng.Intn(25)-2)*time.Millisecond))
			sent[name] = true
		}
		<-time.After(time.Duration(rng.Intn(30)) * time.Millisecond) // somewhere between a delivery and its places
		dark := deaths.Cut(m.Machine, rng)
		m.close()
		disk = dark
	}
	m := boot(t, disk)
	defer m.close()
	powertest.Until(t, "all have been delivered", func() bool {
		got := m.delivered()
		for name := range sent {
			if got[name] == 0 {
				return false
			}
		}
		return true
	})
}
