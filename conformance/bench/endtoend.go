package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// endToEnd sends at a steady rate and measures how long each message takes to a consumer that waits for it with a held
// pull. The time starts with the message's write, not when it was due: the generator's own lateness is not the server's.
func (in *instance) endToEnd(ctx context.Context, load steadyLoad) (outcome, error) {
	queues := load.queues
	epoch := time.Now()
	var received atomic.Int64
	type reader struct {
		*puller
		histo *hdrhistogram.Histogram
	}
	readers := make([]reader, queues)
	for q := range readers {
		p, err := newPuller(in.addr(), load.topic, q, true)
		if err != nil {
			return outcome{}, err
		}
		defer p.conn.Close()
		readers[q] = reader{p, newHistogram()}
	}
	return in.watch(func() (outcome, error) {
		readCtx, stop := context.WithCancel(ctx)
		defer stop()
		errs := make([]error, queues)
		var wg sync.WaitGroup
		for q, r := range readers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for readCtx.Err() == nil {
					answer, err := r.next()
					if err == nil {
						now := time.Since(epoch)
						err = bodies(answer.body, func(body []byte) {
							late := int64(now-load.due) - int64(binary.BigEndian.Uint64(body))
							_ = r.histo.RecordValue(max(0, late)) // the official broker counts in whole milliseconds
							received.Add(1)
						})
					}
					if err != nil {
						if readCtx.Err() == nil {
							errs[q] = err
						}
						return
					}
				}
			}()
		}
		sent, err := in.steady(ctx, load, epoch)
		for end := time.Now().Add(patience); err == nil && received.Load() < sent; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				err = fmt.Errorf("%d of %d messages arrived", received.Load(), sent)
			}
		}
		stop()
		for _, r := range readers {
			_ = r.conn.SetDeadline(time.Now()) // ends the held pulls
		}
		wg.Wait()
		o := outcome{messages: received.Load(), latencies: newHistogram()}
		for _, r := range readers {
			o.latencies.Merge(r.histo)
		}
		return o, errors.Join(append(errs, err)...)
	})
}

// steadyLoad is messages of 128 B sent at a rate.
type steadyLoad struct {
	topic    string
	queues   int
	rate     int // a second
	duration time.Duration
	level    int             // delay level; 0: none
	timer    time.Duration   // until a time of its own; 0: none
	due      time.Duration   // how long a message is held back; what comes after counts
	enough   <-chan struct{} // ends the load early; nil: does not
}

// steady sends at a rate, without waiting for answers, and returns how many it sent. Bodies begin with the time of
// writing since the epoch.
func (in *instance) steady(ctx context.Context, load steadyLoad, epoch time.Time) (int64, error) {
	queues, rate, duration := load.queues, load.rate, load.duration
	var templates []*template
	for q := range queues {
		t, err := newTemplate(timed(delayed(sendRequest(load.topic, q, 128), load.level), load.timer))
		if err != nil {
			return 0, err
		}
		templates = append(templates, t)
	}
	conn, err := net.DialTimeout("tcp", in.addr(), patience)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(duration + patience)); err != nil {
		return 0, err
	}
	failed := make(chan error, 1)
	var answered atomic.Int64
	total := int64(rate) * int64(duration) / int64(time.Second)
	go func() { // ends with the connection
		for answers := newResponses(conn); ; answered.Add(1) {
			r, err := answers.read()
			if err == nil && r.code != 0 {
				err = fmt.Errorf("send answered with %.300q", r.header)
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	sent := int64(0)
	begin := time.Now()
	for enough := false; sent < total && !enough; sent++ {
		due := begin.Add(time.Duration(sent) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			return sent, ctx.Err()
		}
		t := templates[int(sent)%queues]
		t.setKeys(int(sent))
		binary.BigEndian.PutUint64(t.bytes[len(t.bytes)-128:], uint64(time.Since(epoch)))
		if _, err := conn.Write(t.bytes); err != nil {
			return sent, err
		}
		select {
		case <-load.enough:
			enough = true
		default:
		}
	}
	for end := time.Now().Add(patience); answered.Load() < sent; time.Sleep(time.Millisecond) {
		select {
		case err := <-failed:
			return sent, err
		default:
		}
		if time.Now().After(end) {
			return sent, fmt.Errorf("%d of %d sends are answered", answered.Load(), sent)
		}
	}
	return sent, nil
}
