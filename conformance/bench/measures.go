package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"rocketd/conformance/target"
)

// metric is one line of the table.
type metric struct {
	name   string
	unit   string
	wanted wish
	digits int
}

// wish is what is good enough; the zero value: nothing is set.
type wish struct {
	most  float64 // the ratio rocketd/official, or rocketd's own value
	least float64
	own   bool // rocketd's own value is judged
}

func atMost(ratio float64) wish    { return wish{most: ratio} }
func atLeast(ratio float64) wish   { return wish{least: ratio} }
func ownAtMost(value float64) wish { return wish{most: value, own: true} }

var none wish

// The lines of the table, in their order. What is wanted is what the project set itself.
var metrics = append([]metric{
	{"start to first answered send", "ms", atMost(0.1), 0},
	{"memory: anonymous, idle", "MiB", none, 1},
	{"send 128 B, 64x32: server CPU", "µs/message", atMost(0.25), 2},
	{"send 128 B, 64x32: throughput", "messages/s", none, 0},
	{"send 128 B, 64x32: p50", "ms", none, 2},
	{"send 128 B, 64x32: p99", "ms", none, 2},
	{"memory: anonymous, under that load", "MiB", atMost(0.25), 1},
	{"catch-up pull 128 B: server CPU", "µs/message", atMost(0.33), 2},
	{"catch-up pull 128 B: throughput", "messages/s", none, 0},
	{"SQL-filtered pull: server CPU", "µs/message", atMost(0.3), 2},
	{"SQL-filtered pull: throughput", "messages/s", none, 0},
	{"send one at a time: p50", "ms", atMost(0.7), 3},
	{"send one at a time: p99", "ms", none, 3},
	{"end to end at 2000/s: p50", "ms", none, 3},
	{"end to end at 2000/s: p99", "ms", none, 3},
	{"end to end at 2000/s: p99.9", "ms", none, 3},
	{"end to end at 2000/s: server CPU", "µs/message", none, 1},
	{"send 1 KiB, 64x32: server CPU", "µs/message", atMost(0.3), 2},
	{"send 1 KiB, 64x32: throughput", "messages/s", none, 0},
	{"send 16 KiB, 64x32: server CPU", "µs/message", atMost(0.5), 2},
	{"send 16 KiB, 64x32: throughput", "messages/s", none, 0},
	{"batch 32x128 B, 16x4: server CPU", "µs/message", none, 2},
	{"batch 32x128 B, 16x4: throughput", "messages/s", none, 0},
	{"delay level 1 at 10000/s: lateness p50", "ms", none, 2},
	{"delay level 1 at 10000/s: lateness p99", "ms", ownAtMost(10), 2},
	{"delay level 1 at 10000/s: server CPU", "µs/message", none, 1},
	{"transaction 128 B, 64x16: server CPU", "µs/message", atMost(0.3), 2},
	{"transaction 128 B, 64x16: throughput", "messages/s", none, 0},
	{"sends beside 10000 open transactions: p50 alone", "ms", none, 3},
	{"sends beside 10000 open transactions: p50", "ms", none, 3},
	{"sends beside 10000 open transactions: p50, beside/alone", "", ownAtMost(1.2), 2},
	{"Go client, sync sends: throughput", "messages/s", none, 0},
	{"Go client, sync sends: p99", "ms", none, 2},
	{"Go client, push: throughput", "messages/s", none, 0},
	{"Go client, both: server CPU", "µs/message", none, 1},
	{"sync flush, send 1 KiB, 64x32: throughput", "messages/s", atLeast(3), 0},
	{"sync flush, send 1 KiB, 64x32: p99", "ms", none, 2},
	{"sync flush, send 1 KiB, 64x32: server CPU", "µs/message", none, 2},
	{"restart after kill -9: to first answered send", "ms", atMost(0.25), 0},
	{"cold reader: p99 of hot sends, alone", "ms", none, 3},
	{"cold reader: p99 of hot sends, beside it", "ms", none, 3},
	{"cold reader: p99 of hot sends, beside/alone", "", ownAtMost(1.5), 2},
	{"cold reader: p99 end to end, alone", "ms", none, 3},
	{"cold reader: p99 end to end, beside it", "ms", none, 3},
	{"cold reader: p99 end to end, beside/alone", "", ownAtMost(1.5), 2},
	{"cold reader: its own throughput", "MiB/s", none, 0},
}, slices.Concat(aclMetrics, popMetrics, timerMetrics, operatorMetrics, hostileMetrics)...)

const mib = 1 << 20

// step takes some measures of a running server.
type step struct {
	name string
	run  func(in *instance, ctx context.Context, s settings, note func(string, float64)) error
}

// A group of steps shares a server, started on a fresh store with a configuration.
type group struct {
	conf  map[string]string
	later bool // what only 5.x has: the official server is 5.3.3
	warm  bool // the official server compiles itself before the first step
	steps []step
}

// groups is all there is to measure; client is the load program of the stock Go client.
func groups(client string) []group {
	return []group{
		{warm: true, steps: []step{
			{"start", (*instance).measureStart},
			{"send 128 B", (*instance).measureSend128},
			{"pull", (*instance).measurePull},
			{"send one at a time", (*instance).measureOneAtATime},
			{"end to end", (*instance).measureEndToEnd},
			{"send 1 KiB", (*instance).measureSend1K},
			{"send 16 KiB", (*instance).measureSend16K},
			{"batch", (*instance).measureBatch},
			{"delay", (*instance).measureDelay},
			{"transactions", (*instance).measureTransactions},
			{"Go client", func(in *instance, ctx context.Context, s settings, note func(string, float64)) error {
				return in.measureClient(ctx, s, client, note)
			}},
		}},
		{conf: openChecks, steps: []step{
			{"open transactions", (*instance).measureOpenTransactions},
		}},
		{conf: map[string]string{"enablePropertyFilter": "true"}, warm: true, steps: []step{
			{"SQL filter", (*instance).measureSQLFilter},
		}},
		{steps: []step{
			{"access control", (*instance).measureACL},
		}},
		hostile(),
		{conf: map[string]string{"flushDiskType": "SYNC_FLUSH"}, steps: []step{
			{"sync flush", (*instance).measureSyncFlush},
		}},
		{steps: []step{
			{"restart after kill", (*instance).measureRestart},
			{"cold reader", (*instance).measureColdReader},
		}},
		popGroup(),
		timerGroup(),
		operators(),
	}
}

// steps are the names of all steps.
func steps() (names []string) {
	for _, g := range groups("") {
		for _, s := range g.steps {
			names = append(names, s.name)
		}
	}
	return names
}

// measure takes all measures of one kind of server that are asked for, a server after the other.
func measure(ctx context.Context, s settings, kind kind, client string, results *results) error {
	for _, g := range groups(client) {
		g.steps = slices.DeleteFunc(g.steps, func(step step) bool { return !s.only.MatchString(step.name) })
		if len(g.steps) == 0 {
			continue
		}
		if err := g.measure(ctx, s, kind, results); err != nil {
			return err
		}
	}
	return nil
}

func (g group) measure(ctx context.Context, s settings, kind kind, results *results) (err error) {
	software := kind
	if g.later && kind == target.Official {
		software = target.Official5
	}
	in, err := startInstance(ctx, software, g.conf)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := in.close(); err == nil {
			err = cerr
		}
	}()
	note := func(name string, value float64) { results.add(kind, name, value) }
	if in.idle, err = anonymous(in.pid()); err != nil {
		return err
	}
	if g.warm {
		if err := in.warmUp(ctx, s.warm); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	for _, step := range g.steps {
		if err := step.run(in, ctx, s, note); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "  %-20s done\n", step.name)
	}
	return nil
}

// warmUp loads a server for a while. rocketd is compiled already and gets a quarter.
func (in *instance) warmUp(ctx context.Context, duration time.Duration) error {
	if in.Kind == target.Rocketd {
		duration /= 4
	}
	for _, topic := range []string{"bench", "warm"} {
		if err := in.createTopic(topic, 16); err != nil {
			return err
		}
	}
	_, err := in.send(ctx, sendLoad{topic: "warm", queues: 16, connections: 64, inFlight: 32, body: 128, duration: duration, most: 1_000_000})
	return err
}

// measureStart notes what was seen before any load.
func (in *instance) measureStart(_ context.Context, _ settings, note func(string, float64)) error {
	note("start to first answered send", ms(in.firstAnswer))
	note("memory: anonymous, idle", float64(in.idle)/mib)
	return nil
}

func (in *instance) measureSend128(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.send128(ctx, s)
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

// send128 is the load that leaves what the pull reads.
func (in *instance) send128(ctx context.Context, s settings) (outcome, error) {
	in.pullable = true
	return in.send(ctx, sendLoad{topic: "bench", queues: 16, connections: 64, inFlight: 32, body: 128, duration: s.phase, most: 1_500_000})
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

func (in *instance) measureSend16K(ctx context.Context, s settings, note func(string, float64)) error {
	r, err := in.send(ctx, sendLoad{topic: "bench", queues: 16, connections: 64, inFlight: 32, body: 16 << 10, duration: s.phase, most: 60_000})
	if err != nil {
		return err
	}
	note("send 16 KiB, 64x32: server CPU", r.cpuPerMessage())
	note("send 16 KiB, 64x32: throughput", r.perSecond())
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
	if !in.pullable {
		if _, err := in.send128(ctx, s); err != nil {
			return err
		}
	}
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
	r, err := in.endToEnd(ctx, steadyLoad{topic: "endtoend", queues: 4, rate: 2000, duration: s.phase})
	if err != nil {
		return err
	}
	note("end to end at 2000/s: p50", r.latency(50))
	note("end to end at 2000/s: p99", r.latency(99))
	note("end to end at 2000/s: p99.9", r.latency(99.9))
	note("end to end at 2000/s: server CPU", r.cpuPerMessage())
	return nil
}

// measureDelay has 10,000 messages fall due in every second; lateness is how much later than a second after the send a
// message reaches a consumer that waits for it.
func (in *instance) measureDelay(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("delayed", 4); err != nil {
		return err
	}
	r, err := in.endToEnd(ctx, steadyLoad{topic: "delayed", queues: 4, rate: 10_000, duration: s.phase, level: 1, due: time.Second})
	if err != nil {
		return err
	}
	note("delay level 1 at 10000/s: lateness p50", r.latency(50))
	note("delay level 1 at 10000/s: lateness p99", r.latency(99))
	note("delay level 1 at 10000/s: server CPU", r.cpuPerMessage())
	return nil
}

func (in *instance) measureSyncFlush(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("bench", 16); err != nil {
		return err
	}
	load := sendLoad{topic: "bench", queues: 16, connections: 64, inFlight: 32, body: 1024, duration: s.phase / 2, most: 500_000}
	if _, err := in.send(ctx, load); err != nil { // warms up what there is to be warmed
		return err
	}
	load.duration = s.phase
	r, err := in.send(ctx, load)
	if err != nil {
		return err
	}
	note("sync flush, send 1 KiB, 64x32: throughput", r.perSecond())
	note("sync flush, send 1 KiB, 64x32: p99", r.latency(99))
	note("sync flush, send 1 KiB, 64x32: server CPU", r.cpuPerMessage())
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
