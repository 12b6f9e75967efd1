//go:build conformance

package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Pulling by hand from one queue: found, at the end, beyond it; offsets kept by the client and committed when asked.
func TestPullFrom(t *testing.T) {
	t.Parallel()
	const group = "G-PullFrom"
	topic := server.newTopic(t, "PullFrom", 2)
	p := server.newProducer(t, producer.WithQueueSelector(producer.NewManualQueueSelector()))
	var bodies []string
	for i := range 10 {
		bodies = append(bodies, "pulled "+string(rune('0'+i)))
		send(t, p, server.toQueue(topic, 1, bodies[i]))
	}
	eventually(t, "all are dispatched", func() bool { return server.messagesIn(t, topic, 2) == 10 })
	c := server.newPull(t, topic, group)
	queue := &primitive.MessageQueue{Topic: topic, BrokerName: server.Brokers[0].Name, QueueId: 1}
	pull := func(offset int64, n int) *primitive.PullResult {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r, err := c.PullFrom(ctx, queue, offset, n)
		if err != nil {
			t.Fatalf("pull at %d: %v", offset, err)
		}
		return r
	}
	var got []string
	offset := int64(0)
	for _, n := range []int{3, 3, 32} {
		r := pull(offset, n)
		if r.Status != primitive.PullFound || r.MinOffset != 0 || r.MaxOffset != 10 || len(r.GetMessageExts()) != min(n, 10-int(offset)) ||
			r.NextBeginOffset != offset+int64(len(r.GetMessageExts())) {
			t.Errorf("pull of %d at %d: %+v", n, offset, r)
		}
		for _, m := range r.GetMessageExts() {
			got = append(got, string(m.Body))
		}
		offset = r.NextBeginOffset
	}
	if !slices.Equal(got, bodies) {
		t.Errorf("pulled %q", got)
	}
	if r := pull(100, 1); r.Status != primitive.PullOffsetIllegal || r.NextBeginOffset != 10 {
		t.Errorf("pull beyond the end: %+v", r)
	}

	if err := c.UpdateOffset(queue, 7); err != nil {
		t.Fatal(err)
	}
	if n, err := c.CurrentOffset(queue); err != nil || n != 7 {
		t.Errorf("current offset %d, %v", n, err)
	}
	// The client drops an offset that it is to persist before its queue has been shared out to it, so it is told again.
	eventually(t, "offset 7 is committed", func() bool {
		if err := c.UpdateOffset(queue, 7); err != nil {
			t.Fatal(err)
		}
		if err := c.PersistOffset(context.Background(), topic); err != nil {
			t.Fatal(err)
		}
		return server.committed(t, group, topic, 1) == "7"
	})
}

// The pull consumer that shares queues out by itself: poll, acknowledge, and go on there after a restart.
func TestPoll(t *testing.T) {
	t.Parallel()
	const group = "G-Poll"
	topic := server.newTopic(t, "Poll", 4)
	p := server.newProducer(t)
	poll := func(c rocketmq.PullConsumer, n int) []string {
		t.Helper()
		var got []string
		eventually(t, "all are polled", func() bool {
			r, err := c.Poll(context.Background(), time.Second)
			if errors.Is(err, consumer.ErrNoNewMsg) {
				return len(got) >= n
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range r.GetMsgList() {
				got = append(got, string(m.Body))
			}
			c.ACK(context.Background(), r, consumer.ConsumeSuccess)
			return len(got) >= n
		})
		return sorted(got)
	}
	bodies := sendSome(t, p, topic, 0, 20)
	first := server.newPull(t, topic, group)
	if got := poll(first, 20); !slices.Equal(got, sorted(bodies)) {
		t.Errorf("polled %q", got)
	}
	server.awaitCommitted(t, group, topic, 4)
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	more := sendSome(t, p, topic, 20, 8)
	if got := poll(server.newPull(t, topic, group), 8); !slices.Equal(got, sorted(more)) {
		t.Errorf("polled after the restart %q", got)
	}
}
