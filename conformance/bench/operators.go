package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rocketd/conformance/wire"
)

// Sizes of the measures for those who run many clients.
const (
	manyClients  = 10_000
	beatPeriod   = 30 * time.Second // of a stock client
	groupMembers = 10               // clients of a group
	adminLoops   = 20
	adminPeriod  = time.Second // of a loop; a shell that starts mqadmin again and again is slower
	adminTurns   = 4           // of sends with and without the loops
)

// operatorMetrics are the lines of these measures.
var operatorMetrics = []metric{
	{"10,000 idle connections: anonymous memory", "MiB", ownAtMost(100), 1},
	{"heartbeats of 10,000 clients: share of a core", "%", ownAtMost(10), 2},
	{"route requests: name server CPU", "µs/request", atMost(0.33), 2},
	{"route requests: throughput", "requests/s", none, 0},
	{"20 admin loops: p99 of sends, alone", "ms", none, 3},
	{"20 admin loops: p99 of sends, beside them", "ms", none, 3},
	{"20 admin loops: p99 of sends, beside/alone", "", ownAtMost(1.5), 2},
	{"20 admin loops: their requests", "requests/s", none, 0},
}

// operators is the group of these steps.
func operators() group {
	return group{warm: true, steps: []step{
		{"routes", (*instance).measureRoutes},
		{"admin loops", (*instance).measureAdminLoops},
		{"many clients", (*instance).measureManyClients},
	}}
}

// measureManyClients connects clients, lets them be silent, and has each send its heartbeat. The first round of
// heartbeats makes groups and tells their members of each other; the second is what goes on for ever.
func (in *instance) measureManyClients(ctx context.Context, s settings, note func(string, float64)) error {
	before, err := anonymous(in.pid())
	if err != nil {
		return err
	}
	conns := make([]net.Conn, 0, manyClients)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range manyClients {
		c, err := net.DialTimeout("tcp", in.addr(), patience)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	if _, err := wire.CallOnce(in.addr(), wire.Request(21), patience); err != nil { // those before it are accepted then
		return err
	}
	time.Sleep(time.Second) // whatever the server does for new connections
	after, err := anonymous(in.pid())
	if err != nil {
		return err
	}
	note("10,000 idle connections: anonymous memory", float64(max(0, after-before))/mib)
	var cpu time.Duration
	for round := range 2 {
		begin, err := cpuTime(in.pid())
		if err != nil {
			return err
		}
		if err := in.beat(ctx, conns, s.phase); err != nil {
			return err
		}
		end, err := cpuTime(in.pid())
		if err != nil {
			return err
		}
		cpu = end - begin
		if round == 0 {
			time.Sleep(time.Second) // the notices
		}
	}
	note("heartbeats of 10,000 clients: share of a core", 100*cpu.Seconds()/beatPeriod.Seconds())
	return nil
}

// beat sends a heartbeat on each connection, spread over a time, and waits for the answers.
func (in *instance) beat(ctx context.Context, conns []net.Conn, duration time.Duration) error {
	const hands = 16
	var wg sync.WaitGroup
	errs := make([]error, hands)
	begin := time.Now()
	for h := range hands {
		wg.Go(func() {
			for i := h; i < len(conns) && ctx.Err() == nil; i += hands {
				if wait := time.Until(begin.Add(duration * time.Duration(i) / time.Duration(len(conns)))); wait > 0 {
					time.Sleep(wait)
				}
				if errs[h] = heartbeat(conns[i], i); errs[h] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// heartbeat sends the heartbeat of client i and waits for its answer, passing over the notices to consumers.
func heartbeat(conn net.Conn, i int) error {
	group := i / groupMembers
	body := fmt.Sprintf(`{"clientID":"10.1.%d.%d@%d","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",`+
		`"groupName":"many-%d","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG",`+
		`"subString":"*","subVersion":1,"tagsSet":[],"topic":"bench"}],"unitMode":false}],"producerDataSet":[{"groupName":"many-producer"}]}`,
		i/250, i%250, i, group)
	f := wire.Request(34).WithBody([]byte(body))
	f.Opaque = int32(i + 1)
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(f.Encode()); err != nil {
		return err
	}
	for {
		a, err := wire.Read(conn)
		if err != nil {
			return err
		}
		if !a.IsResponse() {
			continue
		}
		if a.Code != 0 {
			return fmt.Errorf("heartbeat answered %d %s", a.Code, a.Remark)
		}
		return nil
	}
}

// measureRoutes asks the name server for one topic's route, as many as it answers.
func (in *instance) measureRoutes(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("bench", 16); err != nil {
		return err
	}
	n := in.NameServers[0]
	run := func(duration time.Duration) (outcome, error) {
		const connections, inFlight = 16, 32
		load := sendLoad{topic: "bench", queues: 1, connections: connections, inFlight: inFlight, duration: duration, most: 3_000_000}
		var left atomic.Int64
		left.Store(load.most)
		ctx, cancel := context.WithTimeout(ctx, duration)
		defer cancel()
		var (
			wg      sync.WaitGroup
			senders [connections]*sender
			errs    [connections]error
		)
		for i := range senders {
			t, err := newTemplate(wire.Request(105, "topic", "bench"))
			if err != nil {
				return outcome{}, err
			}
			conn, err := net.DialTimeout("tcp", n.Addr, patience)
			if err != nil {
				return outcome{}, err
			}
			defer conn.Close()
			senders[i] = &sender{load: &load, t: t, conn: conn, answers: newResponses(conn), sentAt: make([]time.Time, inFlight), histo: newHistogram()}
		}
		before, err := cpuTime(n.Pid())
		if err != nil {
			return outcome{}, err
		}
		begin := time.Now()
		for i, s := range senders {
			wg.Go(func() { errs[i] = s.run(ctx, &left) })
		}
		wg.Wait()
		o := outcome{took: time.Since(begin)}
		after, err := cpuTime(n.Pid())
		o.cpu = after - before
		for _, s := range senders {
			o.messages += s.messages
		}
		return o, errors.Join(append(errs[:], err)...)
	}
	if _, err := run(s.warm / 4); err != nil {
		return err
	}
	o, err := run(s.phase)
	if err != nil {
		return err
	}
	note("route requests: name server CPU", o.cpuPerMessage())
	note("route requests: throughput", o.perSecond())
	return nil
}

// measureAdminLoops sees what twenty loops of statsAll and topicList do to sends. Each begins a pass once a second; on
// a machine that the load shares, loops without a pause would measure how the processors are shared and nothing else.
// Sends with and without them take turns: what else the machine does changes by the second, and must meet both.
func (in *instance) measureAdminLoops(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("hotsend", 4); err != nil {
		return err
	}
	sends := func(duration time.Duration) (outcome, error) {
		return in.send(ctx, sendLoad{topic: "hotsend", queues: 4, connections: 2, inFlight: 1, body: 128, duration: duration, most: 400_000})
	}
	if _, err := sends(s.warm / 4); err != nil {
		return err
	}
	alone, beside := newHistogram(), newHistogram()
	var requests atomic.Int64
	var took time.Duration
	for range adminTurns {
		o, err := sends(s.phase / adminTurns)
		if err != nil {
			return err
		}
		alone.Merge(o.latencies)
		stop := in.adminLoops(ctx, &requests)
		begin := time.Now()
		o, err = sends(s.phase / adminTurns)
		took += time.Since(begin)
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
		beside.Merge(o.latencies)
	}
	p99 := func(h *hdrhistogram.Histogram) float64 { return outcome{latencies: h}.latency(99) }
	note("20 admin loops: p99 of sends, alone", p99(alone))
	note("20 admin loops: p99 of sends, beside them", p99(beside))
	note("20 admin loops: p99 of sends, beside/alone", p99(beside)/p99(alone))
	note("20 admin loops: their requests", float64(requests.Load())/took.Seconds())
	return nil
}

// adminLoops starts the loops, spread over a period, and counts their requests. What it returns ends them.
func (in *instance) adminLoops(ctx context.Context, requests *atomic.Int64) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var errs [adminLoops]error
	begin := time.Now()
	for i := range errs {
		wg.Go(func() {
			for pass := 0; ctx.Err() == nil && errs[i] == nil; pass++ {
				due := begin.Add(time.Duration(pass)*adminPeriod + time.Duration(i)*adminPeriod/adminLoops)
				if wait := time.Until(due); wait > 0 {
					select {
					case <-ctx.Done():
						return
					case <-time.After(wait):
					}
				}
				errs[i] = in.adminPass(requests)
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs[:]...)
	}
}

// adminPass is what mqadmin's topicList and statsAll ask.
func (in *instance) adminPass(requests *atomic.Int64) error {
	ns, err := wire.Dial(in.NameServers[0].Addr, nil)
	if err != nil {
		return err
	}
	defer ns.Close()
	broker, err := wire.Dial(in.addr(), nil)
	if err != nil {
		return err
	}
	defer broker.Close()
	ask := func(c *wire.Conn, f *wire.Frame) (*wire.Frame, error) {
		requests.Add(1)
		return c.Call(f, patience)
	}
	if _, err := ask(ns, wire.Request(206)); err != nil { // topicList
		return err
	}
	list, err := ask(ns, wire.Request(206)) // statsAll
	if err != nil {
		return err
	}
	all, err := wire.ParseJSON(list.Body)
	if err != nil {
		return err
	}
	names, _ := all.(map[string]any)["topicList"].([]any)
	for _, name := range names {
		topic := fmt.Sprint(name)
		for _, q := range []struct {
			c *wire.Conn
			f *wire.Frame
		}{
			{ns, wire.Request(105, "topic", topic)},
			{broker, wire.Request(300, "topic", topic)},
			{broker, wire.Request(315, "statsName", "TOPIC_PUT_NUMS", "statsKey", topic)},
			{broker, wire.Request(208, "consumerGroup", "bench-consumer", "topic", topic)},
		} {
			if _, err := ask(q.c, q.f); err != nil {
				return err
			}
		}
	}
	return nil
}
