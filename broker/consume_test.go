package broker

import (
	"fmt"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
)

// TestOffsets: requests 14, 15, 29, 30, 31, 32.
func TestOffsets(t *testing.T) {
	b := startPathBroker(t, nil)
	before := time.Now().UnixMilli()
	for i := range 3 {
		b.send("T", 0, "", fmt.Sprint(i))
	}
	ms := b.stored("T", 0, 0, 3)
	query := func(group, topic string, queueId int32) *protocol.Command {
		return b.ask(protocol.QueryConsumerOffset, &header.QueryConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, QueueId: queueId}, nil)
	}
	is := func(what string, a *protocol.Command, key string, want int64) {
		t.Helper()
		check(t, what, a, protocol.Success, "", key)
		if got := field(t, a, key); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %d", what, got, want)
		}
	}
	is("a young queue", query("g", "T", 0), "offset", 0)
	is("an unknown topic", query("g", "None", 5), "offset", 0)
	update := func(group, topic string, offset int64) {
		t.Helper()
		a := b.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, CommitOffset: offset}, nil)
		check(t, "update", a, protocol.Success, "", "{}")
	}
	update("g", "T", 2)
	is("committed", query("g", "T", 0), "offset", 2)
	update("g", "T", 1)
	is("a smaller one", query("g", "T", 0), "offset", 1)
	update("", "T", 9)
	update("g", "", 9)
	is("without group", query("", "T", 0), "offset", 0)

	is("max", b.ask(protocol.GetMaxOffset, &header.GetMaxOffsetRequest{Topic: "T"}, nil), "offset", 3)
	is("max of no topic", b.ask(protocol.GetMaxOffset, &header.GetMaxOffsetRequest{Topic: "None"}, nil), "offset", 0)
	is("min", b.ask(protocol.GetMinOffset, &header.GetMinOffsetRequest{Topic: "T"}, nil), "offset", 0)
	is("before all", b.ask(protocol.SearchOffsetByTimestamp, &header.SearchOffsetRequest{Topic: "T", Timestamp: before - 1}, nil), "offset", 0)
	is("earliest", b.ask(protocol.GetEarliestMsgStoretime, &header.GetEarliestMsgStoretimeRequest{Topic: "T"}, nil), "timestamp", ms[0].StoreTimestamp)
	is("earliest of none", b.ask(protocol.GetEarliestMsgStoretime, &header.GetEarliestMsgStoretimeRequest{Topic: "None"}, nil), "timestamp", -1)
	check(t, "field missing", b.ask(protocol.GetMaxOffset, &header.Empty{}, nil), 1, "*")
}

func TestLocks(t *testing.T) {
	b := startPathBroker(t, nil)
	call := func(code protocol.RequestCode, client string, queues ...int32) *protocol.Command {
		req := &body.LockBatchRequestBody{ClientId: client, ConsumerGroup: "g"}
		for _, q := range queues {
			req.MqSet = append(req.MqSet, body.MessageQueue{Topic: "T", BrokerName: "broker-a", QueueId: q})
		}
		data, err := compat.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		return b.ask(code, nil, data)
	}
	locked := func(a *protocol.Command, want ...int32) {
		t.Helper()
		check(t, "lock", a, protocol.Success, "")
		var r body.LockBatchResponseBody
		if err := compat.Unmarshal(a.Body, &r); err != nil {
			t.Fatal(err)
		}
		var got []int32
		for _, q := range r.LockOKMQSet {
			got = append(got, q.QueueId)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("locked %v, want %v", got, want)
		}
	}
	locked(call(protocol.LockBatchMQ, "a", 0, 1), 0, 1)
	locked(call(protocol.LockBatchMQ, "b", 1, 2), 2)
	check(t, "unlock", call(protocol.UnlockBatchMQ, "a", 1), protocol.Success, "")
	locked(call(protocol.LockBatchMQ, "b", 0, 1), 1)
	check(t, "no body", b.ask(protocol.LockBatchMQ, nil, nil), 1, "the request has no body")
	check(t, "no group", b.ask(protocol.UnlockBatchMQ, nil, []byte("{}")), 1, "the request's body has no consumerGroup")
	check(t, "broken body", b.ask(protocol.UnlockBatchMQ, nil, []byte("{")), 1, "*")
}

// TestSendBack: the way of a message that nobody can consume, as AbstractSendMessageProcessor#consumerSendMsgBack of 4.9.8.
func TestSendBack(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MessageDelayLevel = "1h 1h 1h 1h 1h" })
	b.send("T", 0, "TAGS=A", "x")
	origin := b.stored("T", 0, 0, 1)[0]
	req := func(change func(*header.ConsumerSendMsgBackRequest)) *header.ConsumerSendMsgBackRequest {
		h := sendBackHeader("g", origin.PhyOffset)
		change(h)
		return h
	}
	back := func(h *header.ConsumerSendMsgBackRequest) *protocol.Command {
		return b.ask(protocol.ConsumerSendMsgBack, h, nil)
	}
	waiting := func(level int32, n int64) message.Message {
		t.Helper()
		all := b.stored(topics.Schedule, level-1, 0, n)
		return all[n-1]
	}
	check(t, "the broker's choice of level", back(req(func(h *header.ConsumerSendMsgBackRequest) {})), protocol.Success, "")
	m := waiting(3, 1)
	if want := "TAGS=A|CLUSTER=DefaultCluster|RETRY_TOPIC=T|ORIGIN_MESSAGE_ID=" + message.OffsetMsgId(b.storeHost(), origin.PhyOffset) +
		"|WAIT=false|DELAY=3|REAL_TOPIC=%RETRY%g|REAL_QID=0"; plain(m.Properties) != want || m.ReconsumeTimes != 1 ||
		string(m.Body) != "x" || m.BornHost != origin.BornHost || m.BornTimestamp != origin.BornTimestamp {
		t.Errorf("stored %+v, want properties %s", m, want)
	}
	check(t, "the client's level", back(req(func(h *header.ConsumerSendMsgBackRequest) { h.DelayLevel = 2 })), protocol.Success, "")
	waiting(2, 1)
	check(t, "again", back(req(func(h *header.ConsumerSendMsgBackRequest) { h.Offset = m.PhyOffset })), protocol.Success, "")
	if m = waiting(4, 1); m.ReconsumeTimes != 2 {
		t.Errorf("%d times", m.ReconsumeTimes)
	}
	dead := func(what string, h *header.ConsumerSendMsgBackRequest, n int64) {
		t.Helper()
		check(t, what, back(h), protocol.Success, "")
		d := b.stored("%DLQ%g", 0, 0, n)[n-1]
		if v, _ := message.Property(d.Properties, "DELAY"); v != "0" {
			t.Errorf("%s: DELAY=%s", what, v)
		}
	}
	dead("negative level", req(func(h *header.ConsumerSendMsgBackRequest) { h.DelayLevel = -1 }), 1)
	dead("the client's limit", req(func(h *header.ConsumerSendMsgBackRequest) { h.MaxReconsumeTimes = protocol.Some[int32](0) }), 2)
	if c, ok := b.topics.Lookup("%DLQ%g"); !ok || c.WriteQueueNums != 1 || c.Perm != 6 {
		t.Errorf("dead-letter topic: %+v", c)
	}
	old := b.request(protocol.ConsumerSendMsgBack, req(func(h *header.ConsumerSendMsgBackRequest) { h.MaxReconsumeTimes = protocol.Some[int32](0) }), nil)
	old.Version = 120
	check(t, "an old client's limit does not count", b.peer.Ask(old), protocol.Success, "")
	waiting(3, 2)

	check(t, "no such message", back(req(func(h *header.ConsumerSendMsgBackRequest) { h.Offset = 1 << 40 })), 1, "look message by offset failed, 1099511627776")
	none := *b.groups.Find("none")
	none.RetryQueueNums = 0
	b.groups.Put(&none)
	at := b.store.MaxPhyOffset()
	check(t, "no retry queues", back(req(func(h *header.ConsumerSendMsgBackRequest) { h.Group = "none" })), protocol.Success, "")
	if b.store.MaxPhyOffset() != at {
		t.Error("stored though the group has no retry queues")
	}
	b.topics.Put(&topics.Config{TopicName: "%RETRY%ro", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 4, TopicFilterType: topics.SingleTag})
	check(t, "retry topic not writable", back(req(func(h *header.ConsumerSendMsgBackRequest) { h.Group = "ro" })), 16, "the topic[%RETRY%ro] sending message is forbidden")
	check(t, "field missing", b.ask(protocol.ConsumerSendMsgBack, &header.Empty{}, nil), 1, "*")
}

func TestSendBackBrokerRefusals(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.AutoCreateSubscriptionGroup = false })
	check(t, "no group", b.ask(protocol.ConsumerSendMsgBack, &header.ConsumerSendMsgBackRequest{Group: "g"}, nil), 26, "subscription group not exist, g "+faq)
	b = startPathBroker(t, func(c *Config) { c.BrokerPermission = 4 })
	check(t, "not writable", b.ask(protocol.ConsumerSendMsgBack, &header.ConsumerSendMsgBackRequest{Group: "g"}, nil), 16, "the broker[127.0.0.1] sending message is forbidden")
}

// TestQueries: requests 12 and 33.
func TestQueries(t *testing.T) {
	b := startPathBroker(t, nil)
	for i := range 3 {
		b.send("T", 0, "KEYS=k1 k2|UNIQ_KEY=u"+fmt.Sprint(i), fmt.Sprint(i))
	}
	ms := b.stored("T", 0, 0, 3)
	query := func(key string, max int32, unique bool) *protocol.Command {
		r := b.request(protocol.QueryMessage, &header.QueryMessageRequest{Topic: "T", Key: key, MaxNum: max, EndTimestamp: time.Now().Add(time.Hour).UnixMilli()}, nil)
		r.SetField("_UNIQUE_KEY_QUERY", fmt.Sprint(unique))
		return b.peer.Ask(r)
	}
	indexFields := []string{"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
	remotingtest.Eventually(t, "indexed", func() bool { return len(b.messages(query("k2", 32, false))) == 3 })
	check(t, "by key", query("k1", 32, false), protocol.Success, "", indexFields...)
	if n := len(b.messages(query("k1", 2, false))); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	a := query("u1", 0, true) // a query by unique key has its own number
	if got := b.messages(a); len(got) != 1 || string(got[0].Body) != "1" {
		t.Errorf("by unique key: code %d, %d messages", a.Code, len(got))
	}
	check(t, "miss", query("nobody", 32, false), 22, "can not find message, maybe time range not correct", indexFields...)

	view := func(offset int64) *protocol.Command {
		return b.ask(protocol.ViewMessageById, &header.ViewMessageRequest{Offset: offset}, nil)
	}
	a = view(ms[1].PhyOffset)
	check(t, "by id", a, protocol.Success, "")
	if got := b.messages(a); len(got) != 1 || string(got[0].Body) != "1" {
		t.Errorf("by id: %d messages", len(got))
	}
	for _, at := range []int64{1 << 40, ms[1].PhyOffset + 1, -1} {
		check(t, "no message there", view(at), 1, fmt.Sprintf("can not find message by the offset, %d", at))
	}
}

// TestPathSurvivesRestart: what was answered is there after a stop: messages, topics, offsets of the delay levels.
func TestPathSurvivesRestart(t *testing.T) {
	t.Parallel()
	tweak := func(c *Config) { c.MessageDelayLevel = "1s 2h" }
	b := startPathBroker(t, tweak)
	b.send("T", 1, "TAGS=A", "x")
	b.send("T", 1, "DELAY=1", "soon")
	b.send("T", 1, "DELAY=2", "late")
	b.stored("T", 1, 0, 2)
	fs := b.fs
	b.close()
	b = startPathBrokerOn(t, fs, tweak)
	if ms := b.stored("T", 1, 0, 2); len(ms) != 2 || string(ms[1].Body) != "soon" {
		t.Fatalf("%d messages", len(ms))
	}
	if at := b.path.delay.Load().Offsets(); at[1] != 1 || at[2] != 0 {
		t.Errorf("delay offsets %v", at)
	}
	if a := b.send("T", 1, "", "next"); field(t, a, "queueOffset") != "2" {
		t.Errorf("next offset %s", field(t, a, "queueOffset"))
	}
}

func sendBackHeader(group string, phyOffset int64) *header.ConsumerSendMsgBackRequest {
	return &header.ConsumerSendMsgBackRequest{Offset: phyOffset, Group: group, OriginTopic: "T"}
}
