// Command load lets the stock Go client send for a while, synchronously from several goroutines, and then consume all
// of it with a push consumer. It prints one JSON object; conformance/bench runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	senders = 16
	most    = 200_000 // messages
)

type report struct {
	Sent            int64
	SendSeconds     float64
	SendP99Millis   float64
	Received        int64
	ReceiveSeconds  float64
	ReceiveComplete bool
}

func main() {
	namesrv := flag.String("namesrv", "127.0.0.1:9876", "name servers, joined by semicolons")
	topic := flag.String("topic", "bench", "an existing, empty topic")
	seconds := flag.Float64("seconds", 3, "how long to send")
	flag.Parse()
	rlog.SetLogLevel("fatal")
	r, err := run(primitive.NewPassthroughResolver(strings.Split(*namesrv, ";")), *topic, time.Duration(*seconds*float64(time.Second)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ns primitive.NsResolver, topic string, duration time.Duration) (report, error) {
	var r report
	if err := r.send(ns, topic, duration); err != nil {
		return r, err
	}
	return r, r.receive(ns, topic)
}

func (r *report) send(ns primitive.NsResolver, topic string, duration time.Duration) error {
	p, err := rocketmq.NewProducer(producer.WithNsResolver(ns), producer.WithGroupName("bench-load"), producer.WithInstanceName("sender"))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	defer func() { _ = p.Shutdown() }()
	body := []byte(strings.Repeat("x", 128))
	var sent atomic.Int64
	latencies := make([][]time.Duration, senders)
	errs := make(chan error, senders)
	begin := time.Now()
	for i := range senders {
		go func() {
			for time.Since(begin) < duration && sent.Load() < most {
				at := time.Now()
				if _, err := p.SendSync(context.Background(), primitive.NewMessage(topic, body)); err != nil {
					errs <- err
					return
				}
				latencies[i] = append(latencies[i], time.Since(at))
				sent.Add(1)
			}
			errs <- nil
		}()
	}
	for range senders {
		if err := <-errs; err != nil {
			return err
		}
	}
	r.Sent, r.SendSeconds = sent.Load(), time.Since(begin).Seconds()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	if len(all) > 0 {
		r.SendP99Millis = float64(all[len(all)*99/100]) / float64(time.Millisecond)
	}
	return nil
}

func (r *report) receive(ns primitive.NsResolver, topic string) error {
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(ns), consumer.WithGroupName("bench-load"), consumer.WithInstance("receiver"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumeMessageBatchMaxSize(32))
	if err != nil {
		return err
	}
	var received atomic.Int64
	var first sync.Once
	var begin time.Time
	done := make(chan struct{})
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		first.Do(func() { begin = time.Now() })
		if n := received.Add(int64(len(ms))); n >= r.Sent && n-int64(len(ms)) < r.Sent {
			close(done)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	select {
	case <-done:
		r.ReceiveComplete = true
	case <-time.After(90 * time.Second):
	}
	r.Received, r.ReceiveSeconds = received.Load(), time.Since(begin).Seconds()
	return c.Shutdown()
}
