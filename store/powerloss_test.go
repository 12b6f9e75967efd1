package store

import (
	"fmt"
	"math/rand"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// With asynchronous flush a power failure costs what was sent in the last flushIntervalCommitLog (500 ms), when that is worth a
// flush (flushCommitLogLeastPages, 4 pages); a trickle less than flushCommitLogThoroughInterval (10 s) and an interval. All
// on a clock of its own; the power fails again and again.
func TestPowerFailureCostsTheInterval(t *testing.T) {
	t.Parallel()
	const interval, thorough = 500 * time.Millisecond, 10 * time.Second
	for _, c := range []struct {
		name  string
		every time.Duration // between two messages
		body  int
		lasts time.Duration
		bound time.Duration
		cut   time.Duration // between two power failures
	}{
		{"busy", 50 * time.Millisecond, 2000, 10 * time.Second, interval, 110 * time.Millisecond},
		{"a trickle", 700 * time.Millisecond, 50, 60 * time.Second, thorough + interval, 900 * time.Millisecond},
		{"single messages", 25 * time.Second, 50, 150 * time.Second, interval, 800 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, cfg := vfs.NewMem(nil), smallConfig("/store")
				cfg.FlushIntervalCommitLog, cfg.FlushCommitLogThoroughInterval = int(interval.Milliseconds()), int(thorough.Milliseconds())
				w := newWitness(cfg)
				s, err := w.open(mem, cfg)
				if err != nil {
					t.Fatal(err)
				}
				send, cut := time.NewTicker(c.every), time.NewTicker(c.cut)
				defer send.Stop()
				defer cut.Stop()
				rng, costly := rand.New(rand.NewSource(1)), 0
				for n, began := 0, time.Now(); time.Since(began) < c.lasts; {
					select {
					case <-send.C:
						w.put(s, padded("A", int32(n%3), n, c.body))
						n++
					case <-cut.C:
						lost, err := w.powerFails(mem, cfg, c.bound, rng)
						if err != nil {
							t.Fatalf("after %s: %v", time.Since(began), err)
						}
						costly += lost
					}
				}
				if costly == 0 {
					t.Error("no power failure has cost anything: the test shows nothing")
				}
				closeStore(t, s)
			})
		})
	}
}

// padded is a message with a body of about a size, which says which message it is.
func padded(topic string, queueId int32, n, size int) *message.Message {
	m := newMessage(topic, queueId, n)
	m.Body = append(m.Body, fmt.Sprintf("-%0*d", max(0, size-len(m.Body)-1), n)...)
	return m
}

// powerFails opens what a power failure leaves now, of what was not synced nothing. What was acknowledged longer than bound ago
// must be there. It returns how many younger ones are lost.
func (w *witness) powerFails(mem *vfs.Mem, cfg Config, bound time.Duration, rng *rand.Rand) (lost int, err error) {
	now := time.Now()
	s, err := tryOpen(mem.Crash(0, rng), cfg, Options{})
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	for body, a := range w.acked {
		r := s.Get(a.topic, a.queueId, a.queueOffset, 1, nil)
		switch kept := r.Status == Found && string(message.Record(r.Body).Body()) == body; {
		case kept:
		case r.Status == Found:
			return 0, fmt.Errorf("%.40s has become %.40s", body, message.Record(r.Body).Body())
		case now.Sub(a.at) > bound:
			return 0, fmt.Errorf("%.40s was acknowledged %s ago and is lost", body, now.Sub(a.at))
		default:
			lost++
		}
	}
	return lost, nil
}
