package timer

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/doubletest"
	"rocketd/store/vfs"
)

// model is what must be true of a timer, whatever happens to it.
type model struct {
	t      *rapid.T
	s      *queue
	files  vfs.Files
	now    time.Time
	timer  *Timer
	limit  int
	sent   map[string]time.Time
	out    map[string]bool // recalled before it was due
	killed bool
	seen   int
	asked  int // recalls
}

func (m *model) open() {
	t, err := Open(Options{Store: m.s, Clock: func() time.Time { return m.now }, Files: m.files, Path: "/config/rocketd-timer.json",
		SavePeriod: 10 * time.Millisecond, Pending: m.limit, Log: discard})
	if err != nil {
		m.t.Fatal(err)
	}
	m.timer = t
}

// turns lets the timer do what there is to do now.
func (m *model) turns() {
	for range 1000 {
		if m.timer.turn() != again {
			m.look()
			m.standing()
			return
		}
	}
	m.t.Fatal("it never rests")
}

// standing checks the number of messages that are said to wait, by what has to be delivered still. Recalls that wait are in it.
func (m *model) standing() {
	got, n := m.timer.Standing(), m.counts()
	least := 0
	for name := range m.sent {
		if n[name] == 0 && !m.out[name] {
			least++
		}
	}
	if got.Waiting+got.Unread < int64(least) || got.Waiting < 0 || got.Waiting+got.Unread > int64(least+len(m.out)+m.asked) && !m.killed {
		m.t.Fatalf("%+v, %d messages wait, %d were recalled", got, least, len(m.out))
	}
	if least == 0 && len(m.out) == 0 && got.NextDue != 0 && !m.killed {
		m.t.Fatalf("%+v, nothing waits", got)
	}
}

// look checks what was delivered since the last look.
func (m *model) look() {
	for _, c := range m.s.Delivered[m.seen:] {
		name := string(c.Body)
		switch due := m.sent[name]; {
		case m.now.Before(due):
			m.t.Fatalf("%s was delivered at %v, it is due at %v", name, m.now, due)
		case m.out[name]:
			m.t.Fatalf("%s was recalled", name)
		}
	}
	m.seen = len(m.s.Delivered)
}

func (m *model) counts() map[string]int {
	n := map[string]int{}
	for _, c := range m.s.Delivered {
		n[string(c.Body)]++
	}
	return n
}

// TestModel: nothing comes early, is lost, or comes although it was recalled; without kills nothing comes twice; whatever the
// times, with restarts, a clock that moves, files of the log that go, and little memory.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, s: newStore(), files: vfs.Files{FS: vfs.NewMem(time.Now)}, now: time.UnixMilli(1_800_000_000_000),
			sent: map[string]time.Time{}, out: map[string]bool{}, limit: rapid.IntRange(4, 40).Draw(t, "limit")}
		if err := m.files.MkdirAll("/config"); err != nil {
			t.Fatal(err)
		}
		m.open()
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				name := fmt.Sprint(len(m.sent))
				m.sent[name] = m.now.Add(time.Duration(rapid.IntRange(-3, 40).Draw(t, "after")) * time.Millisecond)
				m.s.wait(m.sent[name], name)
			},
			"recall": func(t *rapid.T) {
				name := fmt.Sprint(rapid.IntRange(0, max(0, len(m.sent)-1)).Draw(t, "which"))
				if due, ok := m.sent[name]; ok && due.After(m.now) && m.counts()[name] == 0 {
					m.s.recall(due, name)
					m.out[name] = true
					m.asked++
				}
			},
			"pass": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 15).Draw(t, "ms")) * time.Millisecond)
				m.turns()
			},
			"look": func(t *rapid.T) { m.turns() },
			"back": func(t *rapid.T) {
				m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond)
				m.turns()
			},
			"fail": func(t *rapid.T) {
				after := rapid.IntRange(0, 3).Draw(t, "after")
				m.s.Fail = func(*message.Message) error {
					if after--; after < 0 {
						return commitlog.ErrFull
					}
					return nil
				}
				m.timer.turn()
				m.s.Fail = nil
				m.look()
			},
			"restart": func(t *rapid.T) {
				if err := m.timer.Close(); err != nil {
					t.Fatal(err)
				}
				m.open()
			},
			"kill": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
					return
				}
				m.killed = true
				m.timer.file.mu.Lock()
				m.timer.file.mu.closed = true
				m.timer.file.mu.Unlock()
				if err := m.timer.file.saver.Close(); err != nil {
					t.Fatal(err)
				}
				m.open()
			},
			"release": func(t *rapid.T) {
				end := rapid.Int64Range(0, m.s.End/doubletest.RecordSize).Draw(t, "end") * doubletest.RecordSize
				if m.timer.Release(end) >= end {
					m.s.MinPhy = max(m.s.MinPhy, end)
					for q := m.s.Queues[ofTimers]; m.s.First[ofTimers] < int64(len(q)) && q[m.s.First[ofTimers]].PhyOffset < m.s.MinPhy; {
						m.s.First[ofTimers]++
					}
				}
			},
		})
		m.now = m.now.Add(time.Hour)
		m.turns()
		n := m.counts()
		for name := range m.sent {
			switch {
			case m.out[name]:
			case n[name] == 0:
				t.Errorf("%s is lost", name)
			case n[name] > 1 && !m.killed:
				t.Errorf("%s came %d times", name, n[name])
			}
		}
		if err := m.timer.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
