package compat

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Saver owns one configuration file and the goroutine that writes it. Changes made while it writes share the
// next write, so ten thousand changes a second cost a few writes. A write that fails is tried again until it works,
// without a further change: every 250 ms at first, then less often, at least every 4 s.
type Saver struct {
	files  FileSystem
	path   string
	encode func() ([]byte, error)
	log    *slog.Logger
	wake   chan struct{} // holds one token: there is something to do
	ended  chan struct{} // closed when the goroutine has ended

	mu struct {
		sync.Mutex
		changed bool
		closed  bool
		waiting []func(error) // called after the next write
	}
}

// Pauses after failed writes, and how many failures in a row share a line in the log.
const (
	firstPause  = 250 * time.Millisecond
	longestWait = 4 * time.Second
	logEvery    = 15
)

// ErrSaverClosed is what Changed and Flush report after Close.
var ErrSaverClosed = errors.New("configuration file is closed")

// NewSaver makes the owner of the file at path and starts its goroutine. encode returns the text of the table as
// it is; it is called on that goroutine and takes the table's lock itself.
func NewSaver(files FileSystem, path string, encode func() ([]byte, error), log *slog.Logger) *Saver {
	s := &Saver{files: files, path: path, encode: encode, log: log, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.run()
	return s
}

// Changed tells that the table has changed. done, unless nil, is called with the outcome of a write that began
// after this call, once that is durable; on the saver's goroutine, so it may not wait. After a write that failed the
// table counts as changed still. Changed never blocks.
func (s *Saver) Changed(done func(error)) {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		if done != nil {
			done(ErrSaverClosed)
		}
		return
	}
	s.mu.changed = true
	if done != nil {
		s.mu.waiting = append(s.mu.waiting, done)
	}
	s.mu.Unlock()
	s.signal()
}

// Flush waits until what has changed so far is durable. It must not be called from a done func.
func (s *Saver) Flush() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return ErrSaverClosed
	}
	outcome := make(chan error, 1)
	s.mu.waiting = append(s.mu.waiting, func(err error) { outcome <- err })
	s.mu.Unlock()
	s.signal()
	return <-outcome
}

// Close writes what has changed and ends the goroutine. Later changes are refused. A second Close does nothing.
func (s *Saver) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		<-s.ended
		return nil
	}
	outcome := make(chan error, 1)
	s.mu.waiting = append(s.mu.waiting, func(err error) { outcome <- err })
	s.mu.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.ended
	return <-outcome
}

func (s *Saver) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Saver) run() {
	defer close(s.ended)
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	again.Stop()
	failures, pause := 0, firstPause
	for {
		select {
		case <-s.wake:
		case <-again.C:
		}
		s.mu.Lock()
		changed, waiting, closed := s.mu.changed, s.mu.waiting, s.mu.closed
		s.mu.changed, s.mu.waiting = false, nil
		s.mu.Unlock()
		var err error
		if changed {
			if err = s.write(); err != nil {
				if failures%logEvery == 0 {
					s.log.Error("configuration file not written; it is tried again", "path", s.path, "error", err, "failures", failures+1)
				}
				failures++
				again.Reset(pause)
				pause = min(2*pause, longestWait)
				s.mu.Lock()
				s.mu.changed = true
				s.mu.Unlock()
			} else if failures > 0 {
				s.log.Info("configuration file written again", "path", s.path, "failures", failures)
				failures, pause = 0, firstPause
				again.Stop()
			}
		}
		for _, done := range waiting {
			done(err)
		}
		if closed {
			return
		}
	}
}

func (s *Saver) write() error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	return WriteConfigFile(s.files, s.path, data)
}
