//go:build conformance

package client

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"rocketd/conformance/wire"
)

func TestAdminTopics(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := server.admin(t)
	topic := server.newTopic(t, "AdminTopics", 5)
	list, err := a.FetchAllTopicList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{topic, "TBW102", server.Brokers[0].Name, server.Brokers[0].Cluster} {
		if !slices.Contains(list.TopicList, want) {
			t.Errorf("the list of topics lacks %s: %q", want, list.TopicList)
		}
	}
	queues, err := a.FetchPublishMessageQueues(ctx, topic)
	if err != nil || len(queues) != 5 {
		t.Errorf("%d queues, %v", len(queues), err)
	}
	for _, q := range queues {
		if q.BrokerName != server.Brokers[0].Name || q.QueueId < 0 || q.QueueId > 4 {
			t.Errorf("queue %s", q)
		}
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-AdminTopics", listen: in.collect})
	in.expect(t, sendSome(t, server.newProducer(t), topic, 0, 3))
	groups, err := a.GetAllSubscriptionGroup(ctx, server.broker(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if g := groups.SubscriptionGroupTable["G-AdminTopics"]; g.GroupName != "G-AdminTopics" || !g.ConsumeEnable || g.RetryMaxTimes != 16 || g.RetryQueueNums != 1 {
		t.Errorf("group %+v", g)
	}
}

func TestAdminDeleteTopic(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := strict.admin(t)
	topic := strict.newTopic(t, "AdminDelete", 3)
	p := strict.newProducer(t)
	sendSome(t, p, topic, 0, 6)
	// The official server can crash when it deletes a topic that is being written to.
	eventually(t, "all are dispatched", func() bool { return strict.messagesIn(t, topic, 3) == 6 })
	if err := a.DeleteTopic(ctx, admin.WithTopicDelete(topic), admin.WithBrokerAddrDelete(strict.broker()), admin.WithNameSrvAddr(strict.namesrv)); err != nil {
		t.Fatal(err)
	}
	if strict.isRouted(t, topic) {
		t.Error("the topic is still routed")
	}
	list, err := a.FetchAllTopicList(ctx)
	if err != nil || slices.Contains(list.TopicList, topic) {
		t.Errorf("the list of topics still has it, %v", err)
	}
	// Who has the old route is told by the broker.
	if r, err := p.SendSync(ctx, primitive.NewMessage(topic, []byte("too late"))); err == nil {
		t.Errorf("sent to a deleted topic: %+v", r)
	}
	// Created again, it is empty.
	strict.newTopic(t, topic, 3)
	if n := strict.messagesIn(t, topic, 3); n != 0 {
		t.Errorf("%d messages in the new topic", n)
	}
}

// Where the broker creates no topics, an unknown one has no route, for producers and consumers.
func TestNoSuchTopic(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := strict.newProducer(t)
	if r, err := p.SendSync(ctx, primitive.NewMessage("NoSuchTopic", []byte("x"))); err == nil || !strings.Contains(err.Error(), "route info not found") {
		t.Errorf("send: %+v, %v", r, err)
	}
	if err := p.SendOneWay(ctx, primitive.NewMessage("NoSuchTopic", []byte("x"))); err == nil {
		t.Error("oneway: no error")
	}
	var in inbox
	if c, err := strict.tryPush(subscription{topic: "NoSuchTopic", group: "G-NoSuchTopic", listen: in.collect}); err == nil ||
		!strings.Contains(err.Error(), "route info not found") {
		t.Errorf("consumer: %v", err)
		_ = c.Shutdown()
	}
	if strict.isRouted(t, "NoSuchTopic") {
		t.Error("the topic came to be")
	}
}

// Where it does create them, the first send makes the topic, with the producer's number of queues.
func TestTopicIsCreatedBySend(t *testing.T) {
	t.Parallel()
	const topic = "CreatedBySend"
	p := server.newProducer(t)
	bodies := sendSome(t, p, topic, 0, 8)
	eventually(t, "the topic is routed", func() bool { return server.isRouted(t, topic) })
	f := server.ask(t, server.namesrv[0], wire.Request(105, "topic", topic))
	if want := `"perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4`; !strings.Contains(string(f.Body), want) {
		t.Errorf("route %s, want %s", f.Body, want)
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-CreatedBySend", listen: in.collect})
	in.expect(t, bodies)
}

// A name server that is not there: an error in bounded time, and none when another one of the list answers.
func TestWrongNameServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	topic := server.newTopic(t, "WrongNameServer", 2)

	lost := &cluster{server.Target, []string{nobody}}
	start := time.Now()
	if r, err := lost.newProducer(t).SendSync(context.Background(), primitive.NewMessage(topic, []byte("x"))); err == nil {
		t.Errorf("sent without a name server: %+v", r)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the error took %s", took)
	}
	var in inbox
	if c, err := lost.tryPush(subscription{topic: topic, group: "G-WrongNameServer", listen: in.collect}); err == nil {
		t.Error("a consumer started without a name server")
		_ = c.Shutdown()
	}

	half := &cluster{server.Target, []string{nobody, server.namesrv[0]}}
	half.newPush(t, subscription{topic: topic, group: "G-WrongNameServer-half", listen: in.collect})
	in.expect(t, sendSome(t, half.newProducer(t), topic, 0, 2))
}
