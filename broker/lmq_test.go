package broker

import (
	"strings"
	"testing"
	"time"

	"rocketd/broker/stats"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

func light(c *Config) { c.EnableLmq, c.EnableMultiDispatch = true, true }

// Topics and groups of light message queues are there without being made, and are never in a table or a file.
func TestLightNames(t *testing.T) {
	b := startPathBroker(t, light)
	b.send("TopicA", 1, "INNER_MULTI_DISPATCH=%LMQ%a,%LMQ%b|TAGS=x", "hello")
	m := b.stored("%LMQ%a", 0, 0, 1)[0]
	if v, _ := m.Property("INNER_MULTI_QUEUE_OFFSET"); v != "0,0" || m.Topic != "TopicA" || m.QueueId != 1 {
		t.Errorf("stored %+v", m)
	}
	check(t, "queue 1", b.ask(protocol.PullMessage, pullHeader("%LMQ%a", 1, 0), nil), protocol.SystemError, "queueId[1] is illegal, topic:[%LMQ%a] *", "{}")
	b.send("%LMQ%own", 0, "", "x")
	created := b.ask(protocol.UpdateAndCreateTopic, &header.CreateTopicRequest{Topic: "%LMQ%made", ReadQueueNums: 4, WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
	check(t, "create topic", created, protocol.Success, unsetRemark)
	group, err := compat.Marshal(&body.SubscriptionGroupConfig{GroupName: "%LMQ%g"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "create group", b.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, group), protocol.Success, "")
	if c, ok := b.topics.Lookup("%LMQ%made"); !ok || c.ReadQueueNums != 1 || c.Perm != 6 {
		t.Errorf("topic %+v", c)
	}
	if g, ok := b.groups.Lookup("%LMQ%g"); !ok || !g.ConsumeEnable || g.RetryMaxTimes != 16 {
		t.Errorf("group %+v", g)
	}
	all, _ := b.topics.All()
	for _, c := range all {
		if isLmq(c.TopicName) {
			t.Errorf("topic %s is in the table", c.TopicName)
		}
	}
	if b.groups.Wrapper().SubscriptionGroupTable["%LMQ%g"] != nil {
		t.Error("the group is in the table")
	}
	check(t, "delete", b.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "%LMQ%b"}, nil), protocol.Success, "")
	if b.store.MaxOffset("%LMQ%b", 0) != 0 || b.store.MaxOffset("%LMQ%a", 0) != 1 {
		t.Error("the wrong queue is deleted")
	}
	if group, topic := b.statsNames("%LMQ%g", "TopicA"); group != "%LMQ%" || topic != "TopicA" {
		t.Errorf("counted under %s, %s", group, topic)
	}
	check(t, "bad name", b.ask(protocol.SendMessage, sendHeader("TopicA", 0, "INNER_MULTI_DISPATCH=../x"), nil), protocol.MessageIllegal, "*", "MSG_REGION", "TRACE_ON")
}

// Too many light queues: nothing is read from any, all else goes on.
func TestLightLimit(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { light(c); c.MaxLmqConsumeQueueNum = 1 })
	b.send("TopicA", 0, "INNER_MULTI_DISPATCH=%LMQ%a,%LMQ%b", "x")
	b.stored("TopicA", 0, 0, 1)
	check(t, "pull", b.ask(protocol.PullMessage, pullHeader("%LMQ%a", 0, 0), nil), protocol.SystemError, "store getMessage return null", "{}")
}

// Pops of light queues are counted under one name, as pulls are: there may be very many of them.
func TestLightPops(t *testing.T) {
	b := startPathBroker(t, light)
	b.send("TopicA", 0, "INNER_MULTI_DISPATCH=%LMQ%a", "x")
	b.stored("%LMQ%a", 0, 0, 1)
	if list := b.pops(popHeader("%LMQ%a", 1, time.Minute)); len(list) != 1 {
		t.Fatalf("%d popped", len(list))
	}
	if _, ok := b.traffic.View(stats.GroupGetNums, "%LMQ%@CG"); !ok {
		t.Error("the pop is not counted under the common name")
	}
	if _, ok := b.traffic.View(stats.GroupGetNums, "%LMQ%a@CG"); ok {
		t.Error("the pop is counted under the queue's own name")
	}
}

// A light group has one offset a topic; the file and code 43 have them in a part of their own.
func TestLightOffsets(t *testing.T) {
	b := startPathBroker(t, light)
	commit := func(group, topic string, queueId int32, offset int64) {
		check(t, "commit", b.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, QueueId: queueId, CommitOffset: offset}, nil), protocol.Success, "", "{}")
	}
	commit("%LMQ%g", "%LMQ%a", 0, 5)
	commit("%LMQ%g", "TopicA", 3, 7)
	commit("G", "TopicA", 3, 9)
	a := b.ask(protocol.QueryConsumerOffset, &header.QueryConsumerOffsetRequest{ConsumerGroup: "%LMQ%g", Topic: "TopicA", QueueId: 1}, nil)
	if field(t, a, "offset") != "7" {
		t.Errorf("answer %v", a.Fields)
	}
	want := `{"lmqOffsetTable":{"%LMQ%a@%LMQ%g":5,"TopicA@%LMQ%g":7},"offsetTable":{"TopicA@G":{3:9}}}`
	if got := string(b.ask(protocol.GetAllConsumerOffset, nil, nil).Body); got != want {
		t.Errorf("all offsets %s, want %s", got, want)
	}
	files := b.files
	b.close()
	data, err := files.ReadFile("/store/config/lmqConsumerOffset.json")
	if text := strings.NewReplacer("\n", "", "\t", "").Replace(string(data)); err != nil || text != want {
		t.Errorf("file %s, error %v", text, err)
	}
}
