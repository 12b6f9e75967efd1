package broker

import (
	"math/rand"
	"slices"
	"testing"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// heartbeat is the body of a push consumer's and producer's heartbeat.
func heartbeat(tb testing.TB, clientId, group string, topics ...string) []byte {
	tb.Helper()
	d := body.ConsumerData{GroupName: group, ConsumeType: body.ConsumePassively, MessageModel: body.Clustering,
		ConsumeFromWhere: body.ConsumeFromLastOffset}
	for _, t := range append(topics, "%RETRY%"+group) {
		d.SubscriptionDataSet = append(d.SubscriptionDataSet, body.SubscriptionData{Topic: t, SubString: "*", ExpressionType: "TAG", SubVersion: 1})
	}
	data, err := compat.Marshal(&body.HeartbeatData{ClientID: clientId, ConsumerDataSet: []body.ConsumerData{d},
		ProducerDataSet: []body.ProducerData{{GroupName: "P-" + group}}})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// beat sends a heartbeat by a connection and returns what came before the answer.
func (p *pathBroker) beat(peer *remotingtest.Peer, clientId, group string, topics ...string) (before []*protocol.Command) {
	p.tb.Helper()
	before, answer := p.beaten(peer, clientId, group, topics...)
	check(p.tb, "heartbeat", answer, protocol.Success, "")
	return before
}

// beaten is beat for a heartbeat that may fail.
func (p *pathBroker) beaten(peer *remotingtest.Peer, clientId, group string, topics ...string) (before []*protocol.Command, answer *protocol.Command) {
	p.tb.Helper()
	req := p.request(protocol.HeartBeat, nil, heartbeat(p.tb, clientId, group, topics...))
	peer.Send(req)
	for {
		c := peer.Receive()
		if c.IsResponse() && c.Opaque == req.Opaque {
			return before, c
		}
		before = append(before, c)
	}
}

// notified checks that a command tells of a change of a group.
func notified(tb testing.TB, what string, c *protocol.Command, group string) {
	tb.Helper()
	if c.Code != int32(protocol.NotifyConsumerIdsChanged) || !c.IsOneway() || field(tb, c, "consumerGroup") != group {
		tb.Errorf("%s: got %+v, want a change notice of %s", what, c, group)
	}
}

// Members are told of a change before the answer of the heartbeat that made it, as recorded from the official
// broker; a heartbeat that changes nothing tells nobody.
func TestHeartbeatNotices(t *testing.T) {
	p := startPathBroker(t, nil)
	first := p.beat(p.peer, "c1", "G", "TopicA")
	if len(first) != 1 {
		t.Fatalf("%d commands before the first answer, want 1", len(first))
	}
	notified(t, "first heartbeat", first[0], "G")
	if again := p.beat(p.peer, "c1", "G", "TopicA"); len(again) != 0 {
		t.Errorf("a heartbeat without a change: %d notices", len(again))
	}
	second := p.dial()
	if n := p.beat(second, "c2", "G", "TopicA"); len(n) != 1 {
		t.Errorf("the new member itself got %d notices, want 1", len(n))
	}
	notified(t, "the old member", p.peer.Receive(), "G")

	a := p.ask(protocol.GetConsumerListByGroup, &header.GetConsumerListByGroupRequest{ConsumerGroup: "G"}, nil)
	check(t, "list", a, protocol.Success, "", "{}")
	if string(a.Body) != `{"consumerIdList":["c1","c2"]}` {
		t.Errorf("list %s", a.Body)
	}

	second.Close() // noticed at once
	notified(t, "after a connection's end", p.peer.Receive(), "G")
	a = p.ask(protocol.UnregisterClient, &header.UnregisterClientRequest{ClientID: "c1", ConsumerGroup: "G", ProducerGroup: "P-G"}, nil)
	check(t, "unregister", a, protocol.Success, "", "{}")
	a = p.ask(protocol.GetConsumerListByGroup, &header.GetConsumerListByGroupRequest{ConsumerGroup: "G"}, nil)
	check(t, "empty list", a, protocol.SystemError, "no consumer for this group, G", "{}")
}

func TestHeartbeatNoticesSwitchedOff(t *testing.T) {
	t.Run("group", func(t *testing.T) {
		p := startPathBroker(t, nil)
		a := p.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"G","notifyConsumerIdsChangedEnable":false}`))
		check(t, "update group", a, protocol.Success, "")
		if n := p.beat(p.peer, "c1", "G", "TopicA"); len(n) != 0 {
			t.Errorf("%d notices", len(n))
		}
	})
	t.Run("broker", func(t *testing.T) {
		p := startPathBroker(t, func(c *Config) { c.NotifyConsumerIdsChangedEnable = false })
		if n := p.beat(p.peer, "c1", "G", "TopicA"); len(n) != 0 {
			t.Errorf("%d notices", len(n))
		}
	})
}

// A consumer's first heartbeat creates its group and retry topic; its answer waits for their files, so that both
// survive whatever happens next.
func TestHeartbeatCreates(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"Known","retryQueueNums":3}`))
	p.beat(p.peer, "c1", "G", "TopicA")
	p.beat(p.peer, "c1", "Known", "TopicA")
	crashed := p.fs.Crash(0, rand.New(rand.NewSource(1))) // nothing that was not synced
	p.close()
	q := startPathBrokerOn(t, crashed, nil)
	for _, name := range []string{"G", "Known"} {
		if _, ok := q.groups.Lookup(name); !ok {
			t.Errorf("group %s is lost", name)
		}
	}
	for name, queues := range map[string]int32{"%RETRY%G": 1, "%RETRY%Known": 3} {
		if c, ok := q.topics.Lookup(name); !ok || c.ReadQueueNums != queues || c.WriteQueueNums != queues || c.Perm != 6 {
			t.Errorf("%s: %+v, want %d queues", name, c, queues)
		}
	}
}

func TestHeartbeatUnknownGroup(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.AutoCreateSubscriptionGroup = false })
	p.beat(p.peer, "c1", "G", "TopicA")
	if _, ok := p.groups.Lookup("G"); ok {
		t.Error("the group was created")
	}
	if _, ok := p.topics.Lookup("%RETRY%G"); ok {
		t.Error("its retry topic was created")
	}
	if p.consumers.Group("G") == nil {
		t.Error("the member is not known") // 4.9.8 registers it all the same
	}
}

func TestBrokenHeartbeats(t *testing.T) {
	p := startPathBroker(t, nil)
	for _, text := range []string{"", "{", "[]", "7", "null"} {
		if a := p.ask(protocol.HeartBeat, nil, []byte(text)); a.Code != int32(protocol.SystemError) || a.HasFields {
			t.Errorf("body %q: code %d, %q, fields %v", text, a.Code, a.Remark, a.HasFields)
		}
	}
	check(t, "{}", p.ask(protocol.HeartBeat, nil, []byte("{}")), protocol.Success, "")
}

func TestCheckClientConfig(t *testing.T) {
	p := startPathBroker(t, nil)
	for text, want := range map[string]string{
		`{}`: "",
		`{"subscriptionData":{"topic":"T","subString":"*"}}`:                            "",
		`{"subscriptionData":{"expressionType":"TAG","topic":"T","subString":"a"}}`:     "",
		`{"subscriptionData":{"expressionType":"SQL92","topic":"T","subString":"a>1"}}`: "The broker does not support consumer to filter message by SQL92",
	} {
		code := protocol.Success
		if want != "" {
			code = protocol.SystemError
		}
		check(t, text, p.ask(protocol.CheckClientConfig, nil, []byte(text)), code, want)
	}
	check(t, "no body", p.ask(protocol.CheckClientConfig, nil, nil), protocol.SystemError, "the request has no body") // an exception in 4.9.8
}

func TestConnectionLists(t *testing.T) {
	p := startPathBroker(t, nil)
	a := p.ask(protocol.GetConsumerConnectionList, &header.GetConsumerConnectionListRequest{ConsumerGroup: "G"}, nil)
	check(t, "consumers of nothing", a, protocol.ConsumerNotOnline, "the consumer group[G] not online")
	a = p.ask(protocol.GetProducerConnectionList, &header.GetProducerConnectionListRequest{ProducerGroup: "P-G"}, nil)
	check(t, "producers of nothing", a, protocol.SystemError, "the producer group[P-G] not exist")
	p.beat(p.peer, "c1", "G", "TopicA")
	me := p.peer.LocalAddr().String()

	a = p.ask(protocol.GetConsumerConnectionList, &header.GetConsumerConnectionListRequest{ConsumerGroup: "G"}, nil)
	check(t, "consumers", a, protocol.Success, "")
	want := `{"connectionSet":[{"clientAddr":"` + me + `","clientId":"c1","language":"JAVA","version":409}],` +
		`"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{` +
		`"%RETRY%G":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"%RETRY%G"},` +
		`"TopicA":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"TopicA"}}}`
	if string(a.Body) != want {
		t.Errorf("consumers\n%s\nwant\n%s", a.Body, want)
	}
	a = p.ask(protocol.GetProducerConnectionList, &header.GetProducerConnectionListRequest{ProducerGroup: "P-G"}, nil)
	check(t, "producers", a, protocol.Success, "")
	if want := `{"connectionSet":[{"clientAddr":"` + me + `","clientId":"c1","language":"JAVA","version":409}]}`; string(a.Body) != want {
		t.Errorf("producers\n%s\nwant\n%s", a.Body, want)
	}
	a = p.ask(protocol.GetAllProducerInfo, nil, nil)
	check(t, "all producers", a, protocol.Success, "")
	info := new(body.ProducerTableInfo)
	if err := compat.Unmarshal(a.Body, info); err != nil {
		t.Fatal(err)
	}
	if g := info.Data["P-G"]; len(g) != 1 || g[0].RemoteIP != "/"+me || g[0].LastUpdateTimestamp == 0 {
		t.Errorf("all producers %s", a.Body)
	}
	a = p.ask(protocol.QueryTopicConsumeByWho, &header.QueryTopicConsumeByWhoRequest{Topic: "TopicA"}, nil)
	check(t, "who consumes", a, protocol.Success, "")
	if string(a.Body) != `{"groupList":["G"]}` {
		t.Errorf("who consumes: %s", a.Body)
	}
	p.offsets.Commit(p.anyone(), "Offline", "TopicA", 0, 1)
	a = p.ask(protocol.QueryTopicConsumeByWho, &header.QueryTopicConsumeByWhoRequest{Topic: "TopicA"}, nil)
	list := new(body.GroupList)
	if err := compat.Unmarshal(a.Body, list); err != nil || !slices.Equal(list.GroupList, []string{"G", "Offline"}) {
		t.Errorf("who consumes: %s, %v", a.Body, err)
	}
}
