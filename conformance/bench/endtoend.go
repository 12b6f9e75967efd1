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
func (in *instance) endToEnd(ctx context.Context, topic string, queues, rate int, duration time.Duration) (outcome, error) {
	epoch := time.Now()
	var received atomic.Int64
	type reader struct {
		*puller
		histo *hdrhistogram.Histogram
	}
	readers := make([]reader, queues)
	for q := range readers {
		p, err := newPuller(in.addr(), topic, q, true)
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
							_ = r.histo.RecordValue(int64(now) - int64(binary.BigEndian.Uint64(body)))
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
		sent, err := in.steady(ctx, topic, queues, rate, duration, epoch)
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

// steady sends at a rate, without waiting for answers, and returns how many it sent. Bodies begin with the time of
// writing since the epoch.
func (in *instance) steady(ctx context.Context, topic string, queues, rate int, duration time.Duration, epoch time.Time) (int64, error) {
	var templates []*template
	for q := range queues {
		t, err := newTemplate(sendRequest(topic, q, 128))
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
	answered := make(chan error, 1)
	total := int64(rate) * int64(duration) / int64(time.Second)
	go func() {
		answers := newResponses(conn)
		for range total {
			r, err := answers.read()
			if err == nil && r.code != 0 {
				err = fmt.Errorf("send answered with %.300q", r.header)
			}
			if err != nil {
				answered <- err
				return
			}
		}
		answered <- nil
	}()
	begin := time.Now()
	for i := range total {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			return i, ctx.Err()
		}
		t := templates[int(i)%queues]
		t.setKeys(int(i))
		binary.BigEndian.PutUint64(t.bytes[len(t.bytes)-128:], uint64(time.Since(epoch)))
		if _, err := conn.Write(t.bytes); err != nil {
			return i, err
		}
	}
	return total, <-answered
}
