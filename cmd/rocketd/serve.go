package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

// stopPatience is how long an orderly stop may take; whoever sent the signal mostly sends the next one, the one
// that can't be caught, after ten seconds.
const stopPatience = 8 * time.Second

// service is a server that this process runs.
type service struct {
	name  string
	start func() error
	close func(context.Context) error
	about func() string // addresses and so on, for the line that says that it is ready

	notes []string // more lines, behind those that say that all are ready

	reload func() error // reads the configuration file again; nil: there is none
}

// serve makes and starts servers in their order, says so, and stops them in the reverse order when a signal asks for
// it (signals.go).
func (p *process) serve(log *slog.Logger, open func() ([]service, error)) error {
	signals := catchSignals(log, p.stderr, func() { os.Exit(exitError) })
	defer signals.release()
	log.Info("rocketd", "version", thisBuild().Version, "pid", os.Getpid(), "uid", os.Getuid())

	servers, err := open()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.reload != nil { // a SIGHUP during the start waits for its end, and is no stop
			signals.files.Store(true)
		}
	}
	for _, s := range servers {
		if err := s.start(); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), stop(log, servers))
		}
	}
	took := time.Since(p.started).Round(time.Millisecond)
	together := sameFile(p.stdout, p.stderr)
	for _, s := range servers {
		line := fmt.Sprintf("rocketd %s ready in %v: %s", s.name, took, s.about())
		fmt.Fprintln(p.stdout, line)
		if !together {
			log.Info(line)
		}
	}
	for _, s := range servers {
		for _, line := range s.notes {
			fmt.Fprintln(p.stdout, line)
			if !together {
				log.Info(line)
			}
		}
	}
	sig := waitForStop(log, signals, servers)
	log.Info("stopping", "signal", sig.String())
	begin := time.Now()
	if err := stop(log, servers); err != nil {
		return err
	}
	log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// waitForStop returns the signal that asks for the stop; until then it reads configuration files again when it is
// asked to. One that can't be taken changes nothing.
func waitForStop(log *slog.Logger, signals *signals, servers []service) os.Signal {
	for {
		select {
		case sig := <-signals.stop:
			return sig
		case <-signals.reload:
		}
		for _, s := range servers {
			if s.reload == nil {
				continue
			}
			if err := s.reload(); err != nil {
				log.Error("configuration file read again and not taken; everything stays as it was", "what", s.name, "err", err)
			} else {
				log.Info("configuration file read again", "what", s.name)
			}
		}
	}
}

// sameFile tells whether what is written to both ends up in one place: a terminal, a journal, 2>&1.
func sameFile(a, b io.Writer) bool {
	f, isFile := a.(*os.File)
	g, isFileToo := b.(*os.File)
	if !isFile || !isFileToo {
		return false
	}
	fi, err := f.Stat()
	gi, errToo := g.Stat()
	return err == nil && errToo == nil && os.SameFile(fi, gi)
}

// stop closes servers, the last first. Each has its own time: a broker that makes files for very many new queues uses up
// its own.
func stop(log *slog.Logger, servers []service) error {
	var errs []error
	for i := len(servers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		err := servers[i].close(ctx)
		cancel()
		if err != nil {
			log.Error("not stopped in order", "what", servers[i].name, "err", err)
			errs = append(errs, fmt.Errorf("%s: %w", servers[i].name, err))
		}
	}
	return errors.Join(errs...)
}
