package transaction

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"strings"
	"testing"
	"time"

	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/powertest"
	"rocketd/store/vfs"
)

// machine is a store and its checks on a disk that may lose power.
type machine struct {
	*powertest.Machine
	t      *testing.T
	checks *Checks
	places map[string]int64 // as told to the table of offsets
	now    time.Time
	asked  map[string][]int64 // of a round: the half messages that were asked about
}

// boot starts on a disk, with the places that the file of offsets has.
func boot(t *testing.T, disk *vfs.Mem, saved map[string]int64, now time.Time) *machine {
	t.Helper()
	m := &machine{Machine: powertest.Boot(t, disk, store.Options{}), t: t, places: maps.Clone(saved), now: now, asked: map[string][]int64{}}
	m.checks = New(Options{
		Store: m.Store, Clock: func() time.Time { return m.now }, Log: slog.New(slog.DiscardHandler),
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
	m.Send(msg, durable)
	m.Dispatched()
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
	m.Dispatched()
}

// TestDeathsAndPowerCuts: the process dies, or the power fails, again and again; the file of offsets is older each time. A half message
// that was durable is asked about in each round, once, until an op for the newest copy is durable, and then never again.
func TestDeathsAndPowerCuts(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	disk, saved, now := vfs.NewMem(time.Now), map[string]int64{}, time.UnixMilli(1_800_000_000_000)
	open, ended := map[string]bool{}, map[string]bool{} // durable; what is in neither may be either
	checks := 0
	var deaths powertest.Deaths
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
		dark, killed := deaths.Strike(m.Machine, rng)
		if killed {
			maps.Copy(ended, ending)
		}
		m.checks.Close()
		m.Close()
		disk = dark
	}
	if deaths.Kills < 10 || deaths.Cuts < 10 || checks < 100 {
		t.Errorf("%d kills, %d power cuts and %d checks prove little", deaths.Kills, deaths.Cuts, checks)
	}
}
