package main

import (
	"context"
	"time"
)

// timerGroup measures messages with a time of their own, which 4.9 does not have: the official server is 5.3.3.
func timerGroup() group {
	return group{later: true, warm: true, steps: []step{
		{"timer", (*instance).measureTimer},
		{"pending timers", (*instance).measurePendingTimers},
	}}
}

// timerMetrics are its measures.
var timerMetrics = []metric{
	{"timer messages at 10000/s: lateness p50", "ms", none, 2},
	{"timer messages at 10000/s: lateness p99", "ms", ownAtMost(10), 2},
	{"timer messages at 10000/s: server CPU", "µs/message", none, 1},
	{"1,000,000 timer messages sent: server CPU", "µs/message", none, 2},
	{"1,000,000 timer messages waiting: anonymous memory", "MiB", ownAtMost(100), 1},
}

// pendingTimers are how many messages wait, and how long (an hour: nothing falls due meanwhile).
const (
	pendingTimers = 1_000_000
	pendingFor    = time.Hour
)

// measureTimer has 10,000 messages fall due in every second, each a second after it was sent. The official server rounds
// to the second below: what comes early counts as punctual.
func (in *instance) measureTimer(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("timer", 4); err != nil {
		return err
	}
	r, err := in.endToEnd(ctx, steadyLoad{topic: "timer", queues: 4, rate: 10_000, duration: s.phase, timer: time.Second, due: time.Second})
	if err != nil {
		return err
	}
	note("timer messages at 10000/s: lateness p50", r.latency(50))
	note("timer messages at 10000/s: lateness p99", r.latency(99))
	note("timer messages at 10000/s: server CPU", r.cpuPerMessage())
	return nil
}

// measurePendingTimers has many messages wait at once.
func (in *instance) measurePendingTimers(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("pending", 4); err != nil {
		return err
	}
	r, err := in.send(ctx, sendLoad{topic: "pending", queues: 4, connections: 16, inFlight: 32, body: 128, duration: 10 * s.phase, most: pendingTimers, timer: pendingFor})
	if err != nil {
		return err
	}
	note("1,000,000 timer messages sent: server CPU", r.cpuPerMessage())
	select { // the server has read what there is, and rests
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second):
	}
	memory, err := anonymous(in.pid())
	if err != nil {
		return err
	}
	note("1,000,000 timer messages waiting: anonymous memory", float64(memory)/mib)
	return nil
}
