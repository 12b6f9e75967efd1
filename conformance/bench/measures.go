package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"rocketd/conformance/target"
)

// metric is one line of the table.
type metric struct {
	name   string
	unit   string
	wanted float64 // the greatest ratio rocketd/official that is good enough; 0 = none is set
	digits int
}

// The lines of the table, in their order. The wanted ratios are those that the project set itself for its first release.
var metrics = []metric{
	{"start to first answered send", "ms", 0.1, 0},
	{"memory: anonymous, idle", "MiB", 0, 1},
	{"send 128 B, 64x32: server CPU", "µs/message", 0.3, 2},
	{"send 128 B, 64x32: throughput", "messages/s", 0, 0},
	{"send 128 B, 64x32: p50", "ms", 0, 2},
	{"send 128 B, 64x32: p99", "ms", 0, 2},
	{"memory: anonymous, under that load", "MiB", 0.25, 1},
	{"catch-up pull 128 B: server CPU", "µs/message", 0.4, 2},
	{"catch-up pull 128 B: throughput", "messages/s", 0, 0},
	{"send one at a time: p50", "ms", 0.7, 3},
	{"send one at a time: p99", "ms", 0, 3},
	{"end to end at 2000/s: p50", "ms", 0, 3},
	{"end to end at 2000/s: p99", "ms", 0, 3},
	{"end to end at 2000/s: p99.9", "ms", 0, 3},
	{"end to end at 2000/s: server CPU", "µs/message", 0, 1},
	{"send 1 KiB, 64x32: server CPU", "µs/message", 0, 2},
	{"send 1 KiB, 64x32: throughput", "messages/s", 0, 0},
	{"batch 32x128 B, 16x4: server CPU", "µs/message", 0, 2},
	{"batch 32x128 B, 16x4: throughput", "messages/s", 0, 0},
	{"Go client, sync sends: throughput", "messages/s", 0, 0},
	{"Go client, sync sends: p99", "ms", 0, 2},
	{"Go client, push: throughput", "messages/s", 0, 0},
	{"Go client, both: server CPU", "µs/message", 0, 1},
}

const mib = 1 << 20

// measure starts one server and takes all measures of it.
func measure(ctx context.Context, s settings, kind kind, client string, results *results) (err error) {
	in, err := startInstance(ctx, kind)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := in.close(); err == nil {
			err = cerr
		}
	}()
	note := func(name string, value float64) { results.add(kind, name, value) }
	note("start to first answered send", ms(in.firstAnswer))
	idle, err := anonymous(in.pid())
	if err != nil {
		return err
	}
	note("memory: anonymous, idle", float64(idle)/mib)

	if err := in.createTopic("bench", 16); err != nil {
		return err
	}
	if err := in.createTopic("warm", 16); err != nil {
		return err
	}
	warm := sendLoad{topic: "warm", queues: 16, connections: 64, inFlight: 32, body: 128, duration: s.warm, most: 1_000_000}
	if kind == target.Rocketd {
		warm.duration /= 4
	}
	if _, err := in.send(ctx, warm); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"send 128 B", func() error { return in.measureSend128(ctx, s, note) }},
		{"pull", func() error { return in.measurePull(ctx, s, note) }},
		{"send one at a time", func() error { return in.measureOneAtATime(ctx, s, note) }},
		{"end to end", func() error { return in.measureEndToEnd(ctx, s, note) }},
		{"send 1 KiB", func() error { return in.measureSend1K(ctx, s, note) }},
		{"batch", func() error { return in.measureBatch(ctx, s, note) }},
		{"Go client", func() error { return in.measureClient(ctx, s, client, note) }},
	} {
		if !s.only.MatchString(step.name) && step.name != "send 128 B" { // the pull needs what that one sends
			continue
		}
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "  %-20s done\n", step.name)
	}
	return nil
}

func (in *instance) measureSend128(ctx context.Context, s settings, note func(string, float64)) error {
	load := sendLoad{topic: "bench", queues: 16, connections: 64, inFlight: 32, body: 128, duration: s.phase, most: 1_500_000}
	r, err := in.send(ctx, load)
	if err != nil {
		return err
	}
	const name = "send 128 B, 64x32: "
	note(name+"server CPU", r.cpuPerMessage())
	note(name+"throughput", r.perSecond())
	note(name+"p50", r.latency(50))
	note(name+"p99", r.latency(99))
	note("memory: anonymous, under that load", float64(r.memory)/mib)
	return nil
}

func (in *instance) measureSend1K(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.send(ctx, sendLoad{topic: "bench", queues: 16, connections: 64, inFlight: 32, body: 1024, duration: s.phase, most: 500_000})
	if err != nil {
		return err
	}
	note("send 1 KiB, 64x32: server CPU", r.cpuPerMessage())
	note("send 1 KiB, 64x32: throughput", r.perSecond())
	return nil
}

func (in *instance) measureBatch(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.send(ctx, sendLoad{topic: "bench", queues: 16, connections: 16, inFlight: 4, body: 128, batch: 32, duration: s.phase, most: 3_000_000})
	if err != nil {
		return err
	}
	note("batch 32x128 B, 16x4: server CPU", r.cpuPerMessage())
	note("batch 32x128 B, 16x4: throughput", r.perSecond())
	return nil
}

func (in *instance) measureOneAtATime(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.send(ctx, sendLoad{topic: "bench", queues: 16, connections: 1, inFlight: 1, body: 128, duration: s.phase, most: 50_000})
	if err != nil {
		return err
	}
	note("send one at a time: p50", r.latency(50))
	note("send one at a time: p99", r.latency(99))
	return nil
}

func (in *instance) measurePull(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.pull(ctx, "bench", 16, s.phase)
	if err != nil {
		return err
	}
	note("catch-up pull 128 B: server CPU", r.cpuPerMessage())
	note("catch-up pull 128 B: throughput", r.perSecond())
	return nil
}

func (in *instance) measureEndToEnd(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("endtoend", 4); err != nil {
		return err
	}
	r, err := in.endToEnd(ctx, "endtoend", 4, 2000, s.phase)
	if err != nil {
		return err
	}
	note("end to end at 2000/s: p50", r.latency(50))
	note("end to end at 2000/s: p99", r.latency(99))
	note("end to end at 2000/s: p99.9", r.latency(99.9))
	note("end to end at 2000/s: server CPU", r.cpuPerMessage())
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
