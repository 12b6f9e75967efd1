//go:build conformance

package client

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// The answer's queue, offset and ids are true of the stored message, and all of the message comes back.
func TestSendSync(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "SendSync", 4)
	p := server.newProducer(t)
	sent := map[string]*primitive.SendResult{}
	ends := map[int]int64{}
	var bodies []string
	for i := range 16 {
		m := primitive.NewMessage(topic, fmt.Appendf(nil, "body %d", i))
		m.WithTag("TagA").WithKeys([]string{fmt.Sprint("key-", i), "second"})
		m.WithProperty("colour", "blau 蓝")
		m.Flag = int32(i)
		r := send(t, p, m)
		if q := r.MessageQueue.QueueId; r.QueueOffset != ends[q] {
			t.Errorf("message %d: offset %d in queue %d, want %d", i, r.QueueOffset, q, ends[q])
		}
		ends[r.MessageQueue.QueueId]++
		sent[string(m.Body)] = r
		bodies = append(bodies, string(m.Body))
	}
	if len(ends) != 4 {
		t.Errorf("sent to %d queues of 4", len(ends))
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-SendSync", listen: in.collect})
	for _, m := range in.expect(t, bodies) {
		r := sent[string(m.Body)]
		if m.MsgId != r.MsgID || m.OffsetMsgId != r.OffsetMsgID || m.QueueOffset != r.QueueOffset || m.Queue.QueueId != r.MessageQueue.QueueId {
			t.Errorf("received %s, sent %+v", m, r)
		}
		if m.Topic != topic || m.GetTags() != "TagA" || !strings.HasSuffix(m.GetKeys(), " second") || m.GetProperty("colour") != "blau 蓝" ||
			m.ReconsumeTimes != 0 || string(m.Body) != fmt.Sprint("body ", m.Flag) {
			t.Errorf("received %s", m)
		}
		if m.StoreHost != server.broker() || m.StoreTimestamp < m.BornTimestamp {
			t.Errorf("stored by %s at %d, born %d", m.StoreHost, m.StoreTimestamp, m.BornTimestamp)
		}
	}
}

func TestSendAsync(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "SendAsync", 4)
	p := server.newProducer(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	places := map[string]bool{}
	var bodies []string
	for i := range 50 {
		m := primitive.NewMessage(topic, fmt.Appendf(nil, "async %d", i))
		bodies = append(bodies, string(m.Body))
		wg.Add(1)
		if err := p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
			defer wg.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || r.Status != primitive.SendOK {
				t.Errorf("answer %+v, %v", r, err)
				return
			}
			places[fmt.Sprint(r.MessageQueue.QueueId, " ", r.QueueOffset)] = true
		}, m); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if len(places) != 50 {
		t.Errorf("%d places for 50 messages", len(places))
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-SendAsync", listen: in.collect})
	in.expect(t, bodies)
}

func TestSendOneway(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "SendOneway", 4)
	p := server.newProducer(t)
	var bodies []string
	for i := range 50 {
		m := primitive.NewMessage(topic, fmt.Appendf(nil, "oneway %d", i))
		bodies = append(bodies, string(m.Body))
		if err := p.SendOneWay(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-SendOneway", listen: in.collect})
	in.expect(t, bodies)
}

// A batch goes to one queue, in order, and each message keeps its own properties.
func TestSendBatch(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "SendBatch", 4)
	p := server.newProducer(t)
	var ms []*primitive.Message
	var bodies []string
	for i := range 10 {
		m := primitive.NewMessage(topic, fmt.Appendf(nil, "batch %d", i))
		m.WithTag(fmt.Sprint("Tag", i)).WithKeys([]string{fmt.Sprint("k", i)})
		m.WithProperty("n", fmt.Sprint(i))
		ms, bodies = append(ms, m), append(bodies, string(m.Body))
	}
	r, err := p.SendSync(context.Background(), ms...)
	if err != nil || r.Status != primitive.SendOK {
		t.Fatalf("%+v, %v", r, err)
	}
	ids := strings.Split(r.OffsetMsgID, ",")
	if len(ids) != 10 || r.QueueOffset != 0 {
		t.Fatalf("%d ids at offset %d: %s", len(ids), r.QueueOffset, r.OffsetMsgID)
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-SendBatch", listen: in.collect})
	for _, m := range in.expect(t, bodies) {
		i := int(m.QueueOffset)
		if m.Queue.QueueId != r.MessageQueue.QueueId || string(m.Body) != bodies[i] || m.GetTags() != fmt.Sprint("Tag", i) ||
			m.GetKeys() != fmt.Sprint("k", i) || m.GetProperty("n") != fmt.Sprint(i) || m.OffsetMsgId != ids[i] {
			t.Errorf("element %d: %s", i, m)
		}
	}
}

func TestQueueSelectors(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "Selectors", 4)
	queuesOf := func(selector producer.QueueSelector, n int, prepare func(i int, m *primitive.Message)) []int {
		t.Helper()
		p := server.newProducer(t, producer.WithQueueSelector(selector))
		var out []int
		for i := range n {
			m := primitive.NewMessage(topic, []byte("selected"))
			prepare(i, m)
			out = append(out, send(t, p, m).MessageQueue.QueueId)
		}
		return out
	}
	none := func(int, *primitive.Message) {}

	manual := queuesOf(producer.NewManualQueueSelector(), 4, func(i int, m *primitive.Message) {
		m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: server.Brokers[0].Name, QueueId: 3 - i}
	})
	if !slices.Equal(manual, []int{3, 2, 1, 0}) {
		t.Errorf("manual: %v", manual)
	}
	round := queuesOf(producer.NewRoundRobinQueueSelector(), 8, none)
	if !slices.Equal(round, []int{1, 2, 3, 0, 1, 2, 3, 0}) {
		t.Errorf("round robin: %v", round)
	}
	random := map[int]bool{}
	for _, q := range queuesOf(producer.NewRandomQueueSelector(), 40, none) {
		random[q] = true
	}
	if len(random) < 2 || len(random) > 4 {
		t.Errorf("random: %v", slices.Collect(maps.Keys(random)))
	}
	byKey := map[string]int{}
	for i, q := range queuesOf(producer.NewHashQueueSelector(), 30, func(i int, m *primitive.Message) { m.WithShardingKey(fmt.Sprint("shard", i%5)) }) {
		key := fmt.Sprint("shard", i%5)
		if old, ok := byKey[key]; ok && old != q {
			t.Errorf("hash: %s in queues %d and %d", key, old, q)
		}
		byKey[key] = q
	}
	eventually(t, "all are in the topic", func() bool { return server.messagesIn(t, topic, 4) == 4+8+40+30 })
}

// Bodies beyond 4 KiB travel compressed, are stored so, and come back as they were.
func TestBigBodies(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "BigBodies", 1)
	p := server.newProducer(t)
	random := make([]byte, 1<<20)
	rand.New(rand.NewSource(7)).Read(random)
	bodies := []string{
		strings.Repeat("some text to compress; ", 1<<16), strings.Repeat("x", 4095), strings.Repeat("y", 4097), string(random),
		strings.Repeat("z", 3<<20), "small",
	}
	for _, b := range bodies {
		send(t, p, primitive.NewMessage(topic, []byte(b)))
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-BigBodies", listen: in.collect})
	eventually(t, "all are here", func() bool { return len(in.all()) >= len(bodies) })
	for _, m := range in.all() {
		if string(m.Body) != bodies[m.QueueOffset] {
			t.Errorf("body %d of %d bytes is not the %d bytes that were sent", m.QueueOffset, len(m.Body), len(bodies[m.QueueOffset]))
		}
		if squeezed := m.StoreSize < int32(len(m.Body)); squeezed != slices.Contains([]int64{0, 2, 4}, m.QueueOffset) {
			t.Errorf("body %d: %d bytes are stored as %d", m.QueueOffset, len(m.Body), m.StoreSize)
		}
	}
}

// A delayed message comes when its level says: not sooner, and not much later.
func TestDelay(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "Delay", 2)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-Delay", listen: in.collect})
	p := server.newProducer(t)
	delays := map[string]time.Duration{"level 1": time.Second, "level 2": 5 * time.Second, "level 3": 10 * time.Second, "no level": 0}
	var bodies []string
	for _, body := range slices.Sorted(maps.Keys(delays)) {
		m := primitive.NewMessage(topic, []byte(body))
		var level int
		if _, err := fmt.Sscanf(body, "level %d", &level); err == nil {
			m.WithDelayTimeLevel(level)
		}
		m.WithTag("TagD")
		send(t, p, m)
		bodies = append(bodies, body)
	}
	for _, m := range in.expect(t, bodies) {
		late := time.Duration(m.StoreTimestamp-m.BornTimestamp)*time.Millisecond - delays[string(m.Body)]
		if late < 0 || late > 3*time.Second {
			t.Errorf("%s is %s late", m.Body, late)
		}
		if m.Topic != topic || m.GetTags() != "TagD" {
			t.Errorf("%s", m)
		}
	}
}

// The fast port takes sends.
func TestVIPChannel(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "VIPChannel", 2)
	p := server.newProducer(t, producer.WithVIPChannel(true))
	bodies := sendSome(t, p, topic, 0, 10)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-VIPChannel", listen: in.collect})
	in.expect(t, bodies)
}
