//go:build conformance

package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// instances numbers the clients: two with the same instance name would be one to the client.
var instances struct {
	sync.Mutex
	n int
}

func instance() string {
	instances.Lock()
	defer instances.Unlock()
	instances.n++
	return fmt.Sprintf("i%d", instances.n)
}

// newProducer starts a producer, which ends with the case.
func (c *cluster) newProducer(t *testing.T, extra ...producer.Option) rocketmq.Producer {
	t.Helper()
	p, err := rocketmq.NewProducer(append([]producer.Option{producer.WithNsResolver(c.resolver()), producer.WithGroupName("P-" + t.Name()[4:]),
		producer.WithInstanceName(instance()), producer.WithRetry(1)}, extra...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p
}

// send sends one message and checks what the answer says of it.
func send(t *testing.T, p rocketmq.Producer, m *primitive.Message) *primitive.SendResult {
	t.Helper()
	r, err := p.SendSync(context.Background(), m)
	if err != nil {
		t.Fatalf("send to %s: %v", m.Topic, err)
	}
	if r.Status != primitive.SendOK || r.MsgID == "" || r.OffsetMsgID == "" || r.MessageQueue.Topic != m.Topic {
		t.Fatalf("send to %s: %+v", m.Topic, r)
	}
	return r
}

// sendSome sends numbered messages, spread over the queues, and returns their bodies.
func sendSome(t *testing.T, p rocketmq.Producer, topic string, from, n int) []string {
	t.Helper()
	var bodies []string
	for i := from; i < from+n; i++ {
		body := fmt.Sprintf("%s body %d", topic, i)
		send(t, p, primitive.NewMessage(topic, []byte(body)))
		bodies = append(bodies, body)
	}
	return bodies
}

// toQueue makes a message for one queue of the one broker; the producer needs the manual selector.
func (c *cluster) toQueue(topic string, queueId int, body string) *primitive.Message {
	m := primitive.NewMessage(topic, []byte(body))
	m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: c.Brokers[0].Name, QueueId: queueId}
	return m
}

// inbox is what a consumer has received, in the order of its coming.
type inbox struct {
	mu struct {
		sync.Mutex
		messages []*primitive.MessageExt
		at       []time.Time
	}
}

func (b *inbox) put(ms ...*primitive.MessageExt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range ms {
		b.mu.messages = append(b.mu.messages, m)
		b.mu.at = append(b.mu.at, time.Now())
	}
}

func (b *inbox) all() []*primitive.MessageExt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mu.messages)
}

func (b *inbox) times() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mu.at)
}

func (b *inbox) bodies() []string {
	var out []string
	for _, m := range b.all() {
		out = append(out, string(m.Body))
	}
	return out
}

// expect waits for messages with just these bodies, in any order, each once.
func (b *inbox) expect(t *testing.T, bodies []string) []*primitive.MessageExt {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages", len(bodies)), func() bool { return len(b.all()) >= len(bodies) })
	if got := sorted(b.bodies()); !slices.Equal(got, sorted(bodies)) {
		t.Fatalf("got %q\nwant %q", got, sorted(bodies))
	}
	return b.all()
}

// listener is the function that a push consumer calls.
type listener = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// collect is a listener that takes everything.
func (b *inbox) collect(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	b.put(ms...)
	return consumer.ConsumeSuccess, nil
}

// subscription is a push consumer's start.
type subscription struct {
	topic, group, tags string
	listen             listener
	options            []consumer.Option
	selector           *consumer.MessageSelector // instead of tags
}

// newPush starts a push consumer, which ends with the case if not before.
func (c *cluster) newPush(t *testing.T, s subscription) rocketmq.PushConsumer {
	t.Helper()
	p, err := c.tryPush(s)
	if err != nil {
		t.Fatalf("consumer of %s: %v", s.topic, err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p
}

func (c *cluster) tryPush(s subscription) (rocketmq.PushConsumer, error) {
	p, err := rocketmq.NewPushConsumer(append([]consumer.Option{consumer.WithNsResolver(c.resolver()), consumer.WithGroupName(s.group),
		consumer.WithInstance(instance()), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}, s.options...)...)
	if err != nil {
		return nil, err
	}
	selector := consumer.MessageSelector{}
	if s.tags != "" {
		selector = consumer.MessageSelector{Type: consumer.TAG, Expression: s.tags}
	}
	if s.selector != nil {
		selector = *s.selector
	}
	if err := p.Subscribe(s.topic, selector, s.listen); err != nil {
		return nil, err
	}
	return p, p.Start()
}

// newPull starts a pull consumer, which ends with the case if not before.
func (c *cluster) newPull(t *testing.T, topic, group string, extra ...consumer.Option) rocketmq.PullConsumer {
	t.Helper()
	p, err := rocketmq.NewPullConsumer(append([]consumer.Option{consumer.WithNsResolver(c.resolver()), consumer.WithGroupName(group),
		consumer.WithInstance(instance()), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}, extra...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("pull consumer of %s: %v", topic, err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p
}
