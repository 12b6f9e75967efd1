package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopPatience is how long an orderly stop may take; whoever sent the signal mostly sends the next one, the one
// that can't be caught, after ten seconds.
const stopPatience = 8 * time.Second

// serve makes and starts servers in their order, says so, and stops them in the reverse order when SIGTERM or
// SIGINT comes. A second signal ends the process at once.
func (p *process) serve(log *slog.Logger, open func() ([]service, error)) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	servers, err := open()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.start(); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), stop(log, servers))
		}
	}
	took := time.Since(p.started).Round(time.Millisecond)
	for _, s := range servers {
		line := fmt.Sprintf("rocketd %s ready in %v: %s", s.name, took, s.about())
		fmt.Fprintln(p.stdout, line)
		log.Info(line, "version", versionText(), "pid", os.Getpid())
	}
	sig := <-signals
	log.Info("stopping", "signal", sig.String())
	go func() {
		sig := <-signals
		fmt.Fprintf(p.stderr, "rocketd: second %v, giving up the orderly stop\n", sig)
		os.Exit(exitError)
	}()
	begin := time.Now()
	if err := stop(log, servers); err != nil {
		return err
	}
	log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// stop closes servers, the last first.
func stop(log *slog.Logger, servers []service) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	var errs []error
	for i := len(servers) - 1; i >= 0; i-- {
		if err := servers[i].close(ctx); err != nil {
			log.Error("not stopped in order", "what", servers[i].name, "err", err)
			errs = append(errs, fmt.Errorf("%s: %w", servers[i].name, err))
		}
	}
	return errors.Join(errs...)
}
