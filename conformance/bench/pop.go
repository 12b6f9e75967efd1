package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"rocketd/conformance/wire"
)

// popGroup measures POP consumption, of which 4.9 has nothing: the official server is 5.3.3.
func popGroup() group {
	return group{later: true, warm: true, steps: []step{{"POP", (*instance).measurePop}}}
}

// popMetrics are its measures.
var popMetrics = []metric{
	{"POP and ack of each, 128 B: server CPU", "µs/message", atMost(0.5), 2},
	{"POP and ack of each, 128 B: throughput", "messages/s", none, 0},
}

// What consumers there are, and how many messages they find.
const (
	popQueues    = 8
	popConsumers = 16
	popMessages  = 400_000
)

// measurePop has consumers pop batches of 32 and acknowledge each message with a request of its own, as stock clients do.
// What the official server does about an acknowledgement when the invisible time is over is not in the figure.
func (in *instance) measurePop(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("pop", popQueues); err != nil {
		return err
	}
	var r outcome
	for range 2 { // the first time warms up
		if _, err := in.send(ctx, sendLoad{topic: "pop", queues: popQueues, connections: 64, inFlight: 32, body: 128, duration: s.phase, most: popMessages}); err != nil {
			return err
		}
		if err := in.awaitDispatch("pop", popQueues); err != nil {
			return err
		}
		var err error
		if r, err = in.popAll(ctx, s.phase); err != nil {
			return err
		}
	}
	note("POP and ack of each, 128 B: server CPU", r.cpuPerMessage())
	note("POP and ack of each, 128 B: throughput", r.perSecond())
	return nil
}

// popAll consumes until there is nothing left or the time is over.
func (in *instance) popAll(ctx context.Context, duration time.Duration) (outcome, error) {
	conns := make([]*wire.Conn, popConsumers)
	for i := range conns {
		c, err := wire.Dial(in.addr(), nil)
		if err != nil {
			return outcome{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	return in.watch(func() (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, duration)
		defer cancel()
		errs, done := make([]error, popConsumers), make([]int64, popConsumers)
		var wg sync.WaitGroup
		for i, c := range conns {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := 1; ctx.Err() == nil && errs[i] == nil && n > 0; {
					n, errs[i] = popOnce(c)
					done[i] += int64(n)
				}
			}()
		}
		wg.Wait()
		var o outcome
		for _, n := range done {
			o.messages += n
		}
		if o.messages == 0 {
			errs = append(errs, errors.New("no message was popped"))
		}
		return o, errors.Join(errs...)
	})
}

// popOnce pops a batch and acknowledges it; n is its size.
func popOnce(c *wire.Conn) (n int, err error) {
	f, err := c.Call(wire.Request(200050, "consumerGroup", "bench-pop", "topic", "pop", "queueId", "-1", "maxMsgNums", "32", "invisibleTime", "60000",
		"pollTime", "0", "bornTime", strconv.FormatInt(time.Now().UnixMilli(), 10), "initMode", "0", "expType", "TAG", "exp", "*", "order", "false"), patience)
	if err != nil || f.Code == 210 {
		return 0, err
	}
	if f.Code != 0 {
		return 0, fmt.Errorf("pop answered with %d %s", f.Code, f.Remark)
	}
	starts := map[string]string{}
	for _, e := range strings.Split(f.Ext["startOffsetInfo"], ";") {
		p := strings.Fields(e)
		starts[p[0]+" "+p[1]] = p[2]
	}
	var acks []*wire.Pending
	for _, e := range strings.Split(f.Ext["msgOffsetInfo"], ";") {
		p := strings.Fields(e)
		topic := "pop"
		if p[0] == "1" {
			topic = "%RETRY%bench-pop_pop"
		}
		for _, offset := range strings.Split(p[2], ",") {
			handle := strings.Join([]string{starts[p[0]+" "+p[1]], f.Ext["popTime"], f.Ext["invisibleTime"], f.Ext["reviveQid"], p[0], "broker-a", p[1], offset}, " ")
			a, err := c.Send(wire.Request(200051, "consumerGroup", "bench-pop", "topic", topic, "queueId", p[1], "extraInfo", handle, "offset", offset))
			if err != nil {
				return 0, err
			}
			acks = append(acks, a)
		}
	}
	for _, a := range acks {
		f, err := a.Wait(patience)
		if err != nil {
			return 0, err
		}
		if f.Code != 0 {
			return 0, fmt.Errorf("ack answered with %d %s", f.Code, f.Remark)
		}
	}
	return len(acks), nil
}
