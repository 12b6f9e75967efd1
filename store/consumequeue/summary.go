package consumequeue

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// What recovery finds in one queue it mostly finds in very many, so the log gets a few lines of each kind and their
// number, and of a phase that lasts how far it is.
const (
	examples      = 5
	progressEvery = 2 * time.Second
)

// summary counts the lines of a kind while the table is opened and recovered.
type summary struct {
	mu    sync.Mutex
	ended bool
	kinds []*kind // in the order in which they came first
}

// kind is the lines with one text. Guarded by summary.mu.
type kind struct {
	level slog.Level
	text  string
	lines int
}

// notice logs a line; of many with one text while the table is recovered only the first ones. text is a constant.
func (t *Table) notice(level slog.Level, text string, fields ...any) {
	if t.summary.count(level, text) {
		t.log.Log(context.Background(), level, text, fields...)
	}
}

// count counts a line and tells whether it is to be logged.
func (s *summary) count(level slog.Level, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return true
	}
	for _, k := range s.kinds {
		if k.text == text {
			k.lines++
			return k.lines <= examples
		}
	}
	s.kinds = append(s.kinds, &kind{level, text, 1})
	return true
}

// Summarise ends recovery for the log: it says how often what was logged only a few times has happened. From then on
// every line is logged.
func (t *Table) Summarise() {
	s := &t.summary
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, k := range s.kinds {
		if k.lines > examples {
			t.log.Log(context.Background(), k.level, "recovery of the queues: more of the same", "line", k.text, "times", k.lines, "shown", examples)
		}
	}
	s.kinds = nil
}

// phase is inParallel with a line about how far it is, every two seconds.
func (t *Table) phase(what string, n int, f func(i int) error) error {
	var done, next atomic.Int64
	began := time.Now() // of the process, not of the store: it measures work
	next.Store(int64(t.progressEvery))
	return inParallel(n, func(i int) error {
		if d := done.Add(1); d%takenAtOnce == 0 {
			due, spent := next.Load(), time.Since(began)
			if int64(spent) >= due && next.CompareAndSwap(due, int64(spent+t.progressEvery)) {
				t.log.Info("consume queues: "+what, "done", d, "of", n, "percent", 100*d/int64(n), "spent", spent.Round(time.Millisecond))
			}
		}
		return f(i)
	})
}
