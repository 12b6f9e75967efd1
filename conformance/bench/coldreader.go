package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Rates of the loads. The cold reader's leaves some of the processors, which it shares with all others: what it does to
// the others by waiting for the disk is to be seen, not that two cores are soon used up.
const (
	hotRate  = 500      // messages a second that the hot reader waits for
	coldRate = 64 * mib // bytes a second
)

// hot is what hot senders and readers see: sends one at a time, and a consumer that waits for each message.
type hot struct{ send, endToEnd float64 } // p99, ms

// measureColdReader sees what a consumer that reads a log from the disk does to those that send and read at its end.
func (in *instance) measureColdReader(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.fill(ctx, s); err != nil {
		return err
	}
	if err := in.cool(ctx); err != nil {
		return err
	}
	for _, topic := range []string{"hotsend", "hotread"} {
		if err := in.createTopic(topic, 4); err != nil {
			return err
		}
	}
	if _, err := in.hot(ctx, s.warm/4, nil); err != nil { // the restart has made the official server slow again
		return err
	}
	alone, err := in.hot(ctx, s.phase, nil)
	if err != nil {
		return err
	}
	// Both end with the reader: what comes after it would be alone again.
	enough := make(chan struct{})
	type read struct {
		bytes int64
		took  time.Duration
		err   error
	}
	done := make(chan read, 1)
	go func() {
		defer close(enough)
		begin := time.Now()
		n, err := in.readCold(ctx, s.phase)
		done <- read{n, time.Since(begin), err}
	}()
	beside, err := in.hot(ctx, s.phase, enough)
	cold := <-done
	if err := errors.Join(err, cold.err); err != nil {
		return err
	}
	note("cold reader: p99 of hot sends, alone", alone.send)
	note("cold reader: p99 of hot sends, beside it", beside.send)
	note("cold reader: p99 of hot sends, beside/alone", beside.send/alone.send)
	note("cold reader: p99 end to end, alone", alone.endToEnd)
	note("cold reader: p99 end to end, beside it", beside.endToEnd)
	note("cold reader: p99 end to end, beside/alone", beside.endToEnd/alone.endToEnd)
	note("cold reader: its own throughput", float64(cold.bytes)/mib/cold.took.Seconds())
	return nil
}

// hot loads the end of the log until the time is over or enough is closed.
func (in *instance) hot(ctx context.Context, duration time.Duration, enough <-chan struct{}) (hot, error) {
	sendCtx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-enough:
			stop()
		case <-sendCtx.Done():
		}
	}()
	var (
		wg         sync.WaitGroup
		sent, read outcome
		errs       [2]error
	)
	wg.Go(func() {
		sent, errs[0] = in.send(sendCtx, sendLoad{topic: "hotsend", queues: 4, connections: 2, inFlight: 1, body: 128, duration: duration, most: 200_000})
	})
	wg.Go(func() {
		read, errs[1] = in.endToEnd(ctx, steadyLoad{topic: "hotread", queues: 4, rate: hotRate, duration: duration, enough: enough})
	})
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return hot{}, err
	}
	return hot{sent.latency(99), read.latency(99)}, nil
}

// readCold reads the filled topic from its beginning, its queues at once and not faster than coldRate, until its end or the time is over. It returns the
// bytes of the answers.
func (in *instance) readCold(ctx context.Context, duration time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	begin := time.Now()
	var (
		wg    sync.WaitGroup
		bytes [coldQueues]int64
		errs  [coldQueues]error
	)
	for q := range coldQueues {
		wg.Go(func() {
			p, err := newPuller(in.addr(), coldTopic, q, false)
			if err != nil {
				errs[q] = err
				return
			}
			defer p.conn.Close()
			for ctx.Err() == nil {
				r, err := p.next()
				if err != nil || r.code == pullNotFound {
					errs[q] = err
					return
				}
				bytes[q] += int64(len(r.body))
				time.Sleep(time.Until(begin.Add(time.Duration(bytes[q]) * time.Second * coldQueues / coldRate)))
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, n := range bytes {
		total += n
	}
	if err := errors.Join(errs[:]...); err != nil {
		return total, fmt.Errorf("reading cold data: %w", err)
	}
	return total, nil
}
