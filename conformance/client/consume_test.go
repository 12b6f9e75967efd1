//go:build conformance

package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Messages sent before and after a consumer's start all come, once; the later ones by the held pull, at once.
func TestPushConcurrent(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "PushConcurrent", 4)
	p := server.newProducer(t)
	bodies := sendSome(t, p, topic, 0, 100)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-PushConcurrent", listen: in.collect})
	in.expect(t, bodies)
	var waits []time.Duration
	for i := range 20 {
		start := time.Now()
		bodies = append(bodies, sendSome(t, p, topic, 100+i, 1)...)
		in.expect(t, bodies)
		waits = append(waits, time.Since(start))
	}
	// Looked at by the scan alone, a held pull is answered up to 5 s late. A busy machine may hold up one or two.
	if slices.Sort(waits); waits[len(waits)-3] > 4*time.Second {
		t.Errorf("messages took %s to their waiting consumer", waits)
	}
}

// Orderly consumption: the messages of a key come in the order of their sending, one at a time in each queue.
func TestPushOrderly(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "PushOrderly", 4)
	p := server.newProducer(t, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	var bodies []string
	for i := range 80 {
		m := primitive.NewMessage(topic, fmt.Appendf(nil, "shard%d %02d", i%5, i/5))
		m.WithShardingKey(fmt.Sprint("shard", i%5))
		send(t, p, m)
		bodies = append(bodies, string(m.Body))
	}
	var in inbox
	var busy [4]atomic.Int32
	server.newPush(t, subscription{topic: topic, group: "G-PushOrderly", options: []consumer.Option{consumer.WithConsumerOrder(true)},
		listen: func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			q := &busy[ms[0].Queue.QueueId]
			if q.Add(1) != 1 {
				t.Error("two calls for one queue at once")
			}
			defer q.Add(-1)
			<-time.After(time.Millisecond) // a listener that works
			in.put(ms...)
			return consumer.ConsumeSuccess, nil
		}})
	last := map[string]string{}
	for _, m := range in.expect(t, bodies) {
		key, n, _ := strings.Cut(string(m.Body), " ")
		if n <= last[key] {
			t.Errorf("%s came after %s of %s", n, last[key], key)
		}
		last[key] = n
	}
}

// A locked queue's messages wait for the listener that refused one, and come again in the same order.
func TestOrderlySuspends(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "OrderlySuspends", 1)
	p := server.newProducer(t)
	bodies := sendSome(t, p, topic, 0, 5)
	var in inbox
	var refused atomic.Bool
	server.newPush(t, subscription{topic: topic, group: "G-OrderlySuspends", options: []consumer.Option{consumer.WithConsumerOrder(true),
		consumer.WithSuspendCurrentQueueTimeMillis(200 * time.Millisecond)},
		listen: func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			if string(ms[0].Body) == bodies[2] && !refused.Swap(true) {
				return consumer.SuspendCurrentQueueAMoment, nil
			}
			in.put(ms...)
			return consumer.ConsumeSuccess, nil
		}})
	in.expect(t, bodies)
	if got := in.bodies(); !slices.Equal(got, bodies) || !refused.Load() {
		t.Errorf("came as %q", got)
	}
}

func TestTagFilter(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "TagFilter", 4)
	p := server.newProducer(t)
	want := map[string][]string{}
	for i := range 40 {
		body := fmt.Sprint("tagged ", i)
		m := primitive.NewMessage(topic, []byte(body))
		tag := []string{"TagA", "TagB", "TagC", ""}[i%4]
		if tag != "" {
			m.WithTag(tag)
		}
		// Aa and BB have the same hash in Java: the broker lets both pass, and the client chooses.
		if i%4 == 1 && i%8 == 1 {
			tag = "Aa"
			m.WithTag(tag)
		} else if i%4 == 1 {
			tag = "BB"
			m.WithTag(tag)
		}
		send(t, p, m)
		want["*"] = append(want["*"], body)
		want[tag] = append(want[tag], body)
	}
	for _, c := range []struct {
		name, tags string
		want       []string
	}{
		{"One", "TagA", want["TagA"]}, {"Two", "TagA || TagC", append(slices.Clone(want["TagA"]), want["TagC"]...)},
		{"All", "*", want["*"]}, {"SameHash", "Aa", want["Aa"]}, {"Many", "TagC||BB  ||None", append(slices.Clone(want["TagC"]), want["BB"]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var in inbox
			group := "G-TagFilter-" + c.name
			server.newPush(t, subscription{topic: topic, group: group, tags: c.tags, listen: in.collect})
			in.expect(t, c.want)
		})
	}
}

// In broadcast mode every member gets everything, in cluster mode each message has one receiver.
func TestBroadcastAndCluster(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "BroadcastAndCluster", 4)
	p := server.newProducer(t)
	var all, each [2]inbox
	for i := range 2 {
		server.newPush(t, subscription{topic: topic, group: "G-Broadcast", listen: all[i].collect,
			options: []consumer.Option{consumer.WithConsumerModel(consumer.BroadCasting)}})
		server.newPush(t, subscription{topic: topic, group: "G-Cluster", listen: each[i].collect})
	}
	var bodies []string
	eventuallyEvery(t, 300*time.Millisecond, "both members of the cluster get messages", func() bool {
		bodies = append(bodies, sendSome(t, p, topic, len(bodies), 8)...)
		return len(each[0].all()) > 0 && len(each[1].all()) > 0
	})
	// While a queue moves from one member to the other, messages in the air may come twice: at least once is the promise.
	eventually(t, "the cluster has them all", func() bool {
		seen := append(each[0].bodies(), each[1].bodies()...)
		return !slices.ContainsFunc(bodies, func(b string) bool { return !slices.Contains(seen, b) })
	})
	for i := range all {
		eventually(t, "a broadcast member has them all", func() bool { return len(all[i].all()) >= len(bodies) })
		if got := sorted(all[i].bodies()); !slices.Equal(got, sorted(bodies)) {
			t.Errorf("member %d got %d of %d messages: %q", i, len(got), len(bodies), got)
		}
	}
}

// Queues are shared out anew when members come and go; no queue is without a reader or with two.
func TestRebalance(t *testing.T) {
	t.Parallel()
	const queues = 6
	topic := server.newTopic(t, "Rebalance", queues)
	p := server.newProducer(t, producer.WithQueueSelector(producer.NewManualQueueSelector()))
	var mu sync.Mutex
	readers := map[string]int{} // body → member that took it last
	member := func(n int) listener {
		return func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				readers[string(m.Body)] = n
			}
			return consumer.ConsumeSuccess, nil
		}
	}
	var sent []string
	// shares sends one message to each queue and counts how many of them each member takes within a while.
	shares := func() map[int]int {
		var bodies []string
		for q := range queues {
			body := fmt.Sprintf("message %d in queue %d", len(sent)+q, q)
			send(t, p, server.toQueue(topic, q, body))
			bodies = append(bodies, body)
		}
		sent = append(sent, bodies...)
		out := map[int]int{}
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for range 500 {
			mu.Lock()
			clear(out)
			for _, b := range bodies {
				out[readers[b]]++ // member 0: nobody yet
			}
			mu.Unlock()
			if out[0] == 0 {
				delete(out, 0)
				break
			}
			<-every.C
		}
		return out
	}
	shared := func(want map[int]int) {
		t.Helper()
		eventuallyWithin(t, rebalancePatience, fmt.Sprintf("the shares are %v", want), func() bool { return maps.Equal(shares(), want) })
	}
	join := func(n int) func() error {
		return server.newPush(t, subscription{topic: topic, group: "G-Rebalance", listen: member(n)}).Shutdown
	}
	leave1 := join(1)
	shared(map[int]int{1: 6})
	join(2)
	shared(map[int]int{1: 3, 2: 3})
	leave3 := join(3)
	shared(map[int]int{1: 2, 2: 2, 3: 2})
	if err := leave1(); err != nil {
		t.Error(err)
	}
	shared(map[int]int{2: 3, 3: 3})
	if err := leave3(); err != nil {
		t.Error(err)
	}
	shared(map[int]int{2: 6})
	eventually(t, "every message has been read by someone", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(sent, func(b string) bool { return readers[b] == 0 })
	})
}

// A refused message comes again: with its topic, its body, and one more on its count, after the delay of its level.
func TestRetry(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "Retry", 2)
	p := server.newProducer(t)
	m := primitive.NewMessage(topic, []byte("once more"))
	m.WithTag("TagR").WithKeys([]string{"retry-key"})
	m.WithProperty("own", "property")
	r := send(t, p, m)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: server.newGroup(t, "G-Retry"), tags: "TagR",
		listen: func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			in.put(ms...)
			switch ms[0].ReconsumeTimes {
			case 0: // the server chooses the delay: level 3, 10 s
				return consumer.ConsumeRetryLater, nil
			case 1:
				c, _ := primitive.GetConcurrentlyCtx(ctx)
				c.DelayLevelWhenNextConsume = 1
				return consumer.ConsumeRetryLater, nil
			}
			return consumer.ConsumeSuccess, nil
		}})
	got := in.expect(t, []string{"once more", "once more", "once more"})
	delays := []time.Duration{0, 10 * time.Second, time.Second}
	for i, m := range got {
		if int(m.ReconsumeTimes) != i || m.Topic != topic || m.GetTags() != "TagR" || m.GetKeys() != "retry-key" || m.GetProperty("own") != "property" {
			t.Errorf("attempt %d: %s", i, m)
		}
		if m.MsgId != r.MsgID {
			t.Errorf("attempt %d: id %s, sent %s", i, m.MsgId, r.MsgID)
		}
		if i == 0 {
			continue
		}
		if m.GetProperty(primitive.PropertyOriginMessageId) != r.OffsetMsgID {
			t.Errorf("attempt %d: origin %s, sent as %s", i, m.GetProperty(primitive.PropertyOriginMessageId), r.OffsetMsgID)
		}
		at := in.times()
		if took := at[i].Sub(at[i-1]); took < delays[i]-50*time.Millisecond || took > delays[i]+15*time.Second { // the next level, and the one by default, are later
			t.Errorf("attempt %d came after %s, want %s", i, took, delays[i])
		}
	}
}

// A message that was refused too often lands in the group's dead-letter topic.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "DeadLetter", 2)
	group := server.newGroup(t, "G-DeadLetter")
	p := server.newProducer(t)
	m := primitive.NewMessage(topic, []byte("never"))
	m.WithKeys([]string{"dead-key"})
	r := send(t, p, m)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: group, options: []consumer.Option{consumer.WithMaxReconsumeTimes(1)},
		listen: func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			in.put(ms...)
			c, _ := primitive.GetConcurrentlyCtx(ctx)
			c.DelayLevelWhenNextConsume = 1
			return consumer.ConsumeRetryLater, nil
		}})
	in.expect(t, []string{"never", "never"})
	dead := "%DLQ%" + group
	eventually(t, dead+" is routed", func() bool { return server.isRouted(t, dead) })
	var letters inbox
	server.newPush(t, subscription{topic: dead, group: "G-DeadLetter-reader", listen: letters.collect})
	got := letters.expect(t, []string{"never"})[0]
	if got.Topic != dead || got.GetKeys() != "dead-key" || got.MsgId != r.MsgID || got.GetProperty(primitive.PropertyRetryTopic) != topic {
		t.Errorf("%s", got)
	}
	if n := len(in.all()); n != 2 {
		t.Errorf("the listener was called %d times", n)
	}
}
