package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The topic that fills the log, and the size of its messages.
const (
	coldTopic  = "cold"
	coldQueues = 4
	coldBody   = 16 << 10
)

// fill makes the log as large as the settings say, with messages that nobody has read.
func (in *instance) fill(ctx context.Context, s settings) error {
	if in.filled {
		return nil
	}
	in.filled = true
	if err := in.createTopic(coldTopic, coldQueues); err != nil {
		return err
	}
	r, err := in.send(ctx, sendLoad{topic: coldTopic, queues: coldQueues, connections: 16, inFlight: 16, body: coldBody, duration: 5 * time.Minute, most: s.log / coldBody})
	if err == nil && r.messages < s.log/coldBody {
		err = fmt.Errorf("only %d messages were sent in %s", r.messages, r.took)
	}
	if err != nil {
		return err
	}
	return in.awaitDispatch(coldTopic, coldQueues)
}

// measureRestart kills the broker with a long log and takes the time until the next one answers a send.
func (in *instance) measureRestart(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.fill(ctx, s); err != nil {
		return err
	}
	b := in.Brokers[0]
	if err := b.Kill(); err != nil {
		return err
	}
	took, err := in.startBroker(ctx)
	if err != nil {
		return err
	}
	note("restart after kill -9: to first answered send", ms(took))
	return nil
}

// startBroker starts the stopped broker and returns the time until it has answered a send.
func (in *instance) startBroker(ctx context.Context) (time.Duration, error) {
	b := in.Brokers[0]
	started := make(chan error, 1)
	begin := time.Now()
	go func() { started <- b.Start() }()
	if err := await(ctx, b.Addr, sendRequest("BenchmarkTest", 0, 128)); err != nil {
		return 0, fmt.Errorf("broker: %w", err)
	}
	return time.Since(begin), <-started
}

// cool stops the broker, takes its log out of memory and starts it again: what a broker has mapped stays.
func (in *instance) cool(ctx context.Context) error {
	b := in.Brokers[0]
	if err := b.Stop(); err != nil {
		return err
	}
	syscall.Sync()
	names, err := filepath.Glob(filepath.Join(b.StoreDir, "commitlog", "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err = in.startBroker(ctx)
	return err
}
