package transaction

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand"
	"strings"
	"testing"
	"time"

	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

// machine is a store and its checks on a disk that may lose power.
type machine struct {
	t      *testing.T
	store  *store.Store
	checks *Checks
	places map[string]int64 // as told to the table of offsets
	now    time.Time
	asked  map[string][]int64 // of a round: the half messages that were asked about
}

// boot starts on a disk, with the places that the file of offsets has.
func boot(t *testing.T, disk *vfs.Mem, saved map[string]int64, now time.Time) *machine {
	t.Helper()
	cfg := store.DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 1<<20, 100, 400
	cfg.FlushIntervalCommitLog, cfg.FlushCommitLogThoroughInterval = 3_600_000, 3_600_000 // only who waits for it has it flushed
	s, err := store.Open(cfg, store.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	m := &machine{t: t, store: s, places: maps.Clone(saved), now: now, asked: map[string][]int64{}}
	m.checks = New(Options{
		Store: s, Clock: func() time.Time { return m.now }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: func() Settings {
			return Settings{Interval: time.Minute, TimeOut: 6 * time.Second, CheckMax: 1 << 20, Reserved: 1 << 62}
		},
		Master:   func() bool { return true },
		Place:    func(topic string) (int64, bool) { o, ok := m.places[topic]; return o, ok },
		SetPlace: func(topic string, o int64) { m.places[topic] = o },
		Topic:    func(string) {},
		Ask: func(_ string, h *header.CheckTransactionStateRequest, body []byte) bool {
			asked, _, err := message.Parse(body)
			if err != nil {
				t.Error(err)
			}
			m.asked[string(asked.Body)] = append(m.asked[string(asked.Body)], h.TranStateTableOffset)
			return false
		},
	})
	return m
}

// put stores a message, and waits until it is in its queue and, if it has to be, durable.
func (m *machine) put(msg message.Message, durable bool) {
	m.t.Helper()
	p := &store.Put{Message: &msg}
	m.store.Put([]*store.Put{p})
	if p.Err != nil {
		m.t.Fatal(p.Err)
	}
	if durable {
		done := make(chan error, 1)
		m.store.WaitFlushed(p.End, time.Minute, func(err error) { done <- err })
		if err := <-done; err != nil {
			m.t.Fatal(err)
		}
	}
	m.dispatched()
}

// dispatched waits until everything is in its queue.
func (m *machine) dispatched() {
	m.t.Helper()
	look := time.NewTicker(100 * time.Microsecond)
	defer look.Stop()
	for deadline := time.Now().Add(20 * time.Second); m.store.DispatchedOffset() < m.store.MaxPhyOffset(); <-look.C {
		if time.Now().After(deadline) {
			m.t.Fatal("dispatch does not catch up")
		}
	}
}

func (m *machine) half(name string) {
	text := "TRAN_MSG=true\x02PGROUP=G\x02REAL_TOPIC=T\x02REAL_QID=0\x02UNIQ_KEY=" + name
	m.put(message.Message{Topic: message.TopicTransHalf, Body: []byte(name), Properties: strings.ReplaceAll(text, "=", "\x01"),
		BornTimestamp: m.now.UnixMilli(), BornHost: host, StoreHost: host}, true)
}

// round goes over the half messages a minute later.
func (m *machine) round() {
	m.now = m.now.Add(time.Minute)
	clear(m.asked)
	m.checks.round()
	m.dispatched()
}

// TestDeathsAndPowerCuts: the process dies, or the power fails, again and again; the file of offsets is older each time. A half message
// that was durable is asked about in each round, once, until an op for the newest copy is durable, and then never again.
func TestDeathsAndPowerCuts(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	disk, saved, now := vfs.NewMem(time.Now), map[string]int64{}, time.UnixMilli(1_800_000_000_000)
	open, ended := map[string]bool{}, map[string]bool{} // durable; what is in neither may be either
	deaths, cuts, checks := 0, 0, 0
	for turn := range 60 {
		m := boot(t, disk, saved, now)
		ending := map[string]bool{} // with an op that is not durable
		for round := range 1 + rng.Intn(3) {
			m.half(fmt.Sprintf("%d-%d", turn, round))
			open[fmt.Sprintf("%d-%d", turn, round)] = true
			m.round()
			for name, offsets := range m.asked {
				checks++
				if len(offsets) != 1 || ended[name] || ending[name] {
					t.Fatalf("turn %d: %s was asked about at %v; it has ended: %t", turn, name, offsets, ended[name] || ending[name])
				}
			}
			for name := range open {
				if len(m.asked[name]) == 0 {
					t.Fatalf("turn %d: nobody asks about %s", turn, name)
				}
			}
			for name, offsets := range m.asked {
				if rng.Intn(4) > 0 {
					continue
				}
				durable := rng.Intn(2) == 0
				m.put(OpMessage(0, offsets[0], host, m.now), durable)
				delete(open, name)
				if ending[name] = true; durable { // and with it what lies before
					maps.Copy(ended, ending)
				}
			}
			if rng.Intn(2) == 0 {
				saved = maps.Clone(m.places)
			}
		}
		now = m.now
		var dark *vfs.Mem
		if rng.Intn(2) == 0 {
			deaths++
			dark = disk.Kill()
			maps.Copy(ended, ending)
		} else {
			cuts++
			dark = disk.Crash(rng.Intn(101), rng)
		}
		m.checks.Close()
		if err := m.store.Close(); err != nil {
			t.Fatal(err)
		}
		disk = dark
	}
	if deaths < 10 || cuts < 10 || checks < 100 {
		t.Errorf("%d deaths, %d power cuts and %d checks prove little", deaths, cuts, checks)
	}
}
