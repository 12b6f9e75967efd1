package main

import (
	"context"
	"errors"
	"time"
)

// timerGroup measures messages with a time of their own, which 4.9 does not have: the official server is 5.3.3.
func timerGroup() group {
	return group{later: true, warm: true, steps: []step{
		{"timer", (*instance).measureTimer},
		{"pending timers", (*instance).measurePendingTimers},
		{"timer storm", (*instance).measureTimerStorm},
	}}
}

// timerMetrics are its measures.
var timerMetrics = []metric{
	{"timer messages at 10000/s: lateness p50", "ms", none, 2},
	{"timer messages at 10000/s: lateness p99", "ms", ownAtMost(10), 2},
	{"timer messages at 10000/s: server CPU", "µs/message", none, 1},
	{"1,000,000 timer messages sent: server CPU", "µs/message", none, 2},
	{"1,000,000 timer messages waiting: anonymous memory", "MiB", ownAtMost(100), 1},
	{"100,000 timer messages due at once: the last is delivered after", "ms", none, 0},
	{"100,000 timer messages due at once: p99 of sends, alone", "ms", none, 3},
	{"100,000 timer messages due at once: p99 of sends, beside them", "ms", ownAtMost(5), 3},
	{"100,000 timer messages due at once: p99 of sends, beside/alone", "", none, 2},
	{"100,000 timer messages due at once: longest send, alone", "ms", none, 1},
	{"100,000 timer messages due at once: longest send, beside them", "ms", none, 1},
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

// stormSize is how many messages are due at one ms, stormBehind how long after they are sent, and stormSpan how long sends
// are looked at then: little longer than the storm.
const (
	stormSize   = 100_000
	stormBehind = 8 * time.Second
	stormSpan   = 1500 * time.Millisecond
)

// measureTimerStorm has many messages fall due at once while somebody sends one message at a time.
func (in *instance) measureTimerStorm(ctx context.Context, _ settings, note func(string, float64)) error {
	for topic, queues := range map[string]int{"storm": 4, "beside": 4} {
		if err := in.createTopic(topic, queues); err != nil {
			return err
		}
	}
	sends := sendLoad{topic: "beside", queues: 4, connections: 1, inFlight: 1, body: 128, duration: stormSpan, most: 200_000}
	if _, err := in.send(ctx, sends); err != nil { // so that the connection's code is warm
		return err
	}
	alone, err := in.send(ctx, sends)
	if err != nil {
		return err
	}
	due := time.Now().Add(stormBehind)
	if _, err := in.send(ctx, sendLoad{topic: "storm", queues: 4, connections: 16, inFlight: 32, body: 128, duration: stormBehind, most: stormSize, due: due}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(due) - 100*time.Millisecond):
	}
	last := make(chan error, 1)
	var took time.Duration
	go func() {
		err := in.awaitMessages("storm", 4, stormSize)
		took = time.Since(due)
		last <- err
	}()
	beside, err := in.send(ctx, sends)
	if err := errors.Join(err, <-last); err != nil {
		return err
	}
	note("100,000 timer messages due at once: the last is delivered after", float64(took.Milliseconds()))
	note("100,000 timer messages due at once: p99 of sends, alone", alone.latency(99))
	note("100,000 timer messages due at once: p99 of sends, beside them", beside.latency(99))
	note("100,000 timer messages due at once: p99 of sends, beside/alone", beside.latency(99)/alone.latency(99))
	note("100,000 timer messages due at once: longest send, alone", alone.latency(100))
	note("100,000 timer messages due at once: longest send, beside them", beside.latency(100))
	return nil
}
