package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// repeatWindow is how long after the first signal another counts as the same: GNU timeout sends its signal to the
// child and to its group, people press Ctrl-C twice.
const repeatWindow = 2 * time.Second

// signals is what this process makes of signals while it serves:
//
//	SIGTERM, SIGINT, SIGHUP   an orderly stop. SIGHUP is the terminal that was closed (the JVM stops too); under
//	                          nohup it stays ignored.
//	                          During the stop only SIGINT later than repeatWindow does something: it gives up.
//	SIGQUIT                   the stacks of all goroutines go to standard error, as the JVM's thread dump
//	SIGPIPE                   ignored: a log that nobody reads any more is no reason to stop
type signals struct {
	stop chan os.Signal // gets the signal that asks for the stop
	come chan os.Signal
	done chan struct{} // closed when the goroutine has ended

	clock func() time.Time
}

// catchSignals begins to catch signals; give ends the process when an orderly stop is given up.
func catchSignals(log *slog.Logger, stderr io.Writer, give func()) *signals {
	s := &signals{stop: make(chan os.Signal, 1), come: make(chan os.Signal, 16), done: make(chan struct{}), clock: time.Now}
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(s.come, syscall.SIGTERM, os.Interrupt, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.come, syscall.SIGHUP)
	}
	go s.run(log, stderr, give)
	return s
}

func (s *signals) run(log *slog.Logger, stderr io.Writer, give func()) {
	defer close(s.done)
	var first time.Time // when the stop was asked for
	for sig := range s.come {
		switch {
		case sig == syscall.SIGQUIT:
			fmt.Fprintf(stderr, "rocketd: stacks of all goroutines, asked for by %v; going on\n%s\n", sig, stacks())
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
