package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// repeatWindow is how long after the first signal another counts as the same: GNU timeout sends its signal to the
// child and to its group, people press Ctrl-C twice.
const repeatWindow = 2 * time.Second

// signals is what this process makes of signals while it serves:
//
//	SIGTERM, SIGINT           an orderly stop, during which only SIGINT later than repeatWindow does something: it
//	                          gives up
//	SIGHUP                    the configuration files are read again. When there are none, or the signal is that the
//	                          terminal was closed, an orderly stop (the JVM stops too); under nohup it never stops.
//	SIGQUIT                   the stacks of all goroutines go to standard error, as the JVM's thread dump
//	SIGPIPE                   ignored: a log that nobody reads any more is no reason to stop
type signals struct {
	stop   chan os.Signal // gets the signal that asks for the stop
	reload chan struct{}  // gets what asks for reading the files again
	come   chan os.Signal
	files  atomic.Bool // there are files to read again; set by who receives from reload

	hungUp func() bool   // the terminal that there was at the start is gone
	nohup  bool          // SIGHUP was ignored at the start: whoever started us wants no stop by it
	done   chan struct{} // closed when the goroutine has ended

	clock func() time.Time
}

// catchSignals begins to catch signals; give ends the process when an orderly stop is given up.
func catchSignals(log *slog.Logger, stderr io.Writer, give func()) *signals {
	s := newSignals()
	if had := hasTerminal(); had {
		s.hungUp = func() bool { return !hasTerminal() }
	}
	s.nohup = signal.Ignored(syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(s.come, syscall.SIGTERM, os.Interrupt, syscall.SIGQUIT, syscall.SIGHUP)
	go s.run(log, stderr, give)
	return s
}

func newSignals() *signals {
	return &signals{
		stop: make(chan os.Signal, 1), reload: make(chan struct{}, 1), come: make(chan os.Signal, 16), done: make(chan struct{}),
		clock: time.Now, hungUp: func() bool { return false },
	}
}

// hasTerminal tells whether the process has a controlling terminal. It loses it when that is closed.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

func (s *signals) run(log *slog.Logger, stderr io.Writer, give func()) {
	defer close(s.done)
	var first time.Time // when the stop was asked for
	for sig := range s.come {
		switch {
		case sig == syscall.SIGQUIT:
			fmt.Fprintf(stderr, "rocketd: stacks of all goroutines, asked for by %v; going on\n%s\n", sig, stacks())
		case first.IsZero() && sig == syscall.SIGHUP && s.files.Load() && !s.hungUp():
			select {
			case s.reload <- struct{}{}:
			default: // one is due already
			}
		case sig == syscall.SIGHUP && s.nohup:
		case first.IsZero():
			first = s.clock()
			s.stop <- sig
		case s.clock().Sub(first) < repeatWindow: // the same
		case sig == os.Interrupt:
			fmt.Fprintf(stderr, "rocketd: second %v, giving up the orderly stop\n", sig)
			give()
		default:
			log.Info("the orderly stop is under way", "signal", sig.String(), "since", s.clock().Sub(first).Round(time.Millisecond))
		}
	}
}

// release gives the signals back.
func (s *signals) release() {
	signal.Stop(s.come)
	close(s.come)
	<-s.done
	signal.Reset(syscall.SIGPIPE)
}

// stacks is the text of all goroutines' stacks.
func stacks() []byte {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size || size >= 64<<20 {
			return b[:n]
		}
	}
}
