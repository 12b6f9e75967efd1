package pop

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"net/netip"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/powertest"
	"rocketd/store/vfs"
)

// machine is a store and its checkpoints on a disk that may lose power. A group pops queue 0 of T.
type machine struct {
	*Checkpoints
	*powertest.Machine
	now int64 // ms

	mu      sync.Mutex
	offsets map[Key]int64 // the table of offsets
	file    map[Key]int64 // what its file has
	again   map[int64]int // of the messages of T that were copied, by their queue offsets
}

// placeKey is the offset of ReviveGroup.
var placeKey = Key{LogTopic, ReviveGroup, 0}

// bootPop starts on a disk, with the offsets that their file has.
func bootPop(t *testing.T, disk *vfs.Mem, saved map[Key]int64, now int64) *machine {
	t.Helper()
	m := &machine{Machine: powertest.Boot(t, disk, store.Options{}), now: now, offsets: maps.Clone(saved), file: maps.Clone(saved), again: map[int64]int{}}
	locked := func() func() {
		m.mu.Lock()
		return m.mu.Unlock
	}
	m.Checkpoints = New(Options{
		Store: m.Store, Clock: func() time.Time { defer locked()(); return time.UnixMilli(m.now) }, Log: slog.New(slog.DiscardHandler),
		Host:     func() netip.AddrPort { return host },
		Place:    func() (int64, bool) { defer locked()(); o, ok := m.offsets[placeKey]; return o, ok },
		SetPlace: func(o int64) { defer locked()(); m.offsets[placeKey] = o },
		Advance:  func(k Key, o int64) { defer locked()(); m.offsets[k] = max(m.offsets[k], o) },
		Copy: func(k Key, _ int64, c *message.Message) error {
			defer locked()()
			m.again[c.QueueOffset]++
			c.Topic, c.QueueId = RetryTopic(k.Group, k.Topic), 0
			return nil
		},
		Save:       func() error { defer locked()(); m.file = maps.Clone(m.offsets); return nil },
		SavePeriod: time.Hour, // the test moves the place
	})
	m.Checkpoints.Start()
	return m
}

// guarded is a condition that is looked at under the lock.
func (m *machine) guarded(condition func() bool) func() bool {
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return condition()
	}
}

// TestDeathsAndPowerCuts: the process dies, or the power fails, again and again; the file of offsets is older each time. What was
// popped and not acknowledged comes again when its time is over, what was acknowledged durably never.
func TestDeathsAndPowerCuts(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	disk, saved, now := vfs.NewMem(time.Now), map[Key]int64{}, int64(1_800_000_000_000)
	const span = int64(1000)
	open, gone := map[int64]bool{}, map[int64]bool{} // offsets whose pop, or acknowledgement, is durable
	came := 0
	var deaths powertest.Deaths
	for turn := range 40 {
		m := bootPop(t, disk, saved, now)
		m.mu.Lock()
		start := m.offsets[queueT]
		m.mu.Unlock()
		for offset := range open { // what was popped durably is not popped again itself
			if offset >= start {
				t.Fatalf("turn %d: the group stands at %d, %d was popped", turn, start, offset)
			}
		}
		// What was under way when the last one died comes again, as soon as its time is over; it is taken for consumed then.
		m.mu.Lock()
		m.now += 10 * span
		m.mu.Unlock()
		select {
		case m.wake <- struct{}{}:
		default:
		}
		powertest.Until(t, fmt.Sprintf("turn %d: %v come again", turn, open), m.guarded(func() bool {
			for offset := range m.again {
				if gone[offset] {
					t.Fatalf("turn %d: %d was acknowledged and comes again", turn, offset)
				}
			}
			for offset := range open {
				if m.again[offset] == 0 {
					return false
				}
			}
			return true
		}))
		powertest.Until(t, "they are settled", func() bool { return m.Open() == 0 })
		m.Flush()
		m.mu.Lock()
		for offset := range m.again {
			gone[offset], came = true, came+1
		}
		m.mu.Unlock()
		clear(open)

		// New messages, a pop, and an acknowledgement of some; the last steps are perhaps not durable.
		n := 1 + rng.Intn(5)
		offsets := make([]int64, 0, n)
		for range n {
			p := m.Send(message.Message{Topic: "T", Body: []byte("x"), BornHost: host, StoreHost: host}, false)
			offsets = append(offsets, p.QueueOffset)
		}
		m.Flush()
		powertest.Until(t, "they can be read", func() bool { return m.MaxOffset("T", 0) > offsets[n-1] })
		q, next := m.Take(queueT), offsets[n-1]+1
		err := m.Popped(q, offsets[0], m.now, span, offsets, next)
		q.Release()
		if err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		m.offsets[queueT] = next
		m.mu.Unlock()
		pops, acks := rng.Intn(2) == 0, rng.Intn(2) == 0
		if pops {
			m.Flush()
		}
		var acked []Ack
		for _, o := range offsets {
			if rng.Intn(2) == 0 {
				acked = append(acked, Ack{queueT, offsets[0], m.now, o})
			}
		}
		if err := m.Acked(acked); err != nil {
			t.Fatal(err)
		}
		if acks {
			m.Flush()
		}
		if rng.Intn(3) == 0 {
			m.Flush()
			m.movePlace()
			pops, acks = true, true
		}
		m.mu.Lock()
		saved, now = m.file, m.now
		m.mu.Unlock()
		dark, killed := deaths.Strike(m.Machine, rng)
		pops, acks = pops || killed, acks || killed
		for _, o := range offsets {
			isAcked := false
			for _, a := range acked {
				isAcked = isAcked || a.Offset == o
			}
			switch {
			case !pops && !acks: // nobody knows
			case !isAcked:
				open[o] = true
			case acks:
				gone[o] = true
			}
		}
		m.Checkpoints.Close()
		m.Machine.Close()
		disk = dark
	}
	if deaths.Kills < 8 || deaths.Cuts < 8 || came < 20 {
		t.Errorf("%d kills, %d power cuts and %d that came again prove little", deaths.Kills, deaths.Cuts, came)
	}
}
