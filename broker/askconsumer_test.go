package broker

import (
	"fmt"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// join makes a connection a member of group G with a version and takes the notice of it.
func (p *pathBroker) join(clientId string, version int32) *remotingtest.Peer {
	p.tb.Helper()
	peer := p.dial()
	req := p.request(protocol.HeartBeat, nil, heartbeat(p.tb, clientId, "G", "TopicA"))
	req.Version = version
	peer.Send(req)
	for {
		if a := peer.Receive(); a.IsResponse() {
			check(p.tb, "heartbeat of "+clientId, a, protocol.Success, "")
			return peer
		}
	}
}

// asked reads on until the broker's next request of a code.
func asked(peer *remotingtest.Peer, code protocol.RequestCode) *protocol.Command {
	for {
		if c := peer.Receive(); !c.IsResponse() && c.Code == int32(code) {
			return c
		}
	}
}

// Consumers that do not answer hold no lane, whatever their number; each question is answered when the consumer is
// gone, and no more than the bound wait.
func TestSilentConsumer(t *testing.T) {
	p := startPathBroker(t, nil)
	silent := p.join("silent", 409)
	const many = 200 // far more than the admin lane has workers
	questions := p.dial()
	for range many {
		questions.Send(p.request(protocol.GetConsumerRunningInfo, &header.GetConsumerRunningInfoRequest{ConsumerGroup: "G", ClientId: "silent"}, nil))
	}
	for range many {
		asked(silent, protocol.GetConsumerRunningInfo)
	}
	check(t, "another administrator meanwhile", p.ask(protocol.GetSystemTopicListFromBroker, nil, nil), protocol.Success, "")
	if n := p.asked.open.Load(); n != many {
		t.Errorf("%d questions wait, want %d", n, many)
	}
	p.asked.open.Add(maxAsked - many) // as if others waited
	check(t, "one too many", p.ask(protocol.GetConsumerRunningInfo, &header.GetConsumerRunningInfoRequest{ConsumerGroup: "G", ClientId: "silent"}, nil),
		protocol.SystemBusy, "[OVERLOAD]*")
	check(t, "one too many", p.ask(protocol.InvokeBrokerToGetConsumerStatus, &header.GetConsumerStatusRequest{Topic: "TopicA", Group: "G"}, nil),
		protocol.SystemBusy, "[OVERLOAD]*")
	p.asked.open.Add(many - maxAsked)
	silent.Close()
	for range many {
		check(t, "the consumer is gone", questions.Receive(), protocol.SystemError, "invoke consumer <G> <silent> Exception: *")
	}
	if n := p.asked.open.Load(); n != 0 {
		t.Errorf("%d questions wait in the end", n)
	}
}

// A consumer's answer comes back as it is, with the question's opaque.
func TestRelay(t *testing.T) {
	p := startPathBroker(t, nil)
	consumer := p.join("c1", 409)
	for _, tt := range []struct {
		answer *protocol.Command
		fields []string
	}{
		{&protocol.Command{Code: 0, Body: []byte("{}")}, nil},
		{&protocol.Command{Code: 1, Remark: "The Consumer Group <G> not exist in this consumer"}, nil},
		{&protocol.Command{Code: 77, Remark: "own", Header: &header.Empty{}}, []string{"{}"}},
		{&protocol.Command{Code: 0, Fields: []protocol.Field{{Key: "a", Value: "b"}}}, []string{"a"}},
	} {
		question := p.request(protocol.GetConsumerRunningInfo, &header.GetConsumerRunningInfoRequest{ConsumerGroup: "G", ClientId: "c1", JstackEnable: true}, nil)
		question.SetField("more", "1")
		p.peer.Send(question)
		got := asked(consumer, protocol.GetConsumerRunningInfo)
		if field(t, got, "jstackEnable") != "true" || field(t, got, "more") != "1" || field(t, got, "clientId") != "c1" || len(got.Fields) != 4 {
			t.Errorf("the consumer is asked with %v", got.Fields)
		}
		tt.answer.Opaque, tt.answer.Flag = got.Opaque, protocol.FlagResponse
		consumer.Send(tt.answer)
		a := p.peer.Receive()
		if a.Opaque != question.Opaque || string(a.Body) != string(tt.answer.Body) {
			t.Errorf("opaque %d, body %s", a.Opaque, a.Body)
		}
		check(t, "relayed", a, protocol.ResponseCode(tt.answer.Code), tt.answer.Remark, tt.fields...)
	}
}

func TestOldConsumers(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 1), nil)
	p.offsets.Commit(p.anyone(), "G", "TopicA", 0, 0)
	p.join("v3.1.7", 61)
	check(t, "running info of an old one", p.ask(protocol.GetConsumerRunningInfo, &header.GetConsumerRunningInfoRequest{ConsumerGroup: "G", ClientId: "v3.1.7"}, nil),
		protocol.SystemError, "The Consumer <v3.1.7> Version <V3_1_7> too low to finish, please upgrade it to V3_1_8_SNAPSHOT")
	check(t, "reset of an old one", p.ask(protocol.InvokeBrokerToResetOffset, &header.ResetOffsetRequest{Topic: "TopicA", Group: "G", Timestamp: -1}, nil),
		protocol.Success, unsetRemark)
	p.join("v3.0.6", 27)
	check(t, "reset of a very old one", p.ask(protocol.InvokeBrokerToResetOffset, &header.ResetOffsetRequest{Topic: "TopicA", Group: "G", Timestamp: -1}, nil),
		protocol.SystemError, "the client does not support this feature. version=V3_0_6")
	check(t, "status of a very old one", p.ask(protocol.InvokeBrokerToGetConsumerStatus, &header.GetConsumerStatusRequest{Topic: "TopicA", Group: "G"}, nil),
		protocol.SystemError, "the client does not support this feature. version=V3_0_6")
}

// Nothing that a member sends as its status keeps the others' from being answered.
func TestStatusOfSeveral(t *testing.T) {
	p := startPathBroker(t, nil)
	answers := map[string]*protocol.Command{
		"good":   {Body: []byte(`{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:5}}`)},
		"empty":  {Body: []byte(`{}`)},
		"broken": {Body: []byte(`{"messageQueueTable":`)},
		"none":   {},
		"failed": {Code: 1, Remark: "no", Body: []byte(`{}`)},
		"gone":   nil,
	}
	members := map[string]*remotingtest.Peer{}
	for id := range answers {
		members[id] = p.join(id, 409)
	}
	p.peer.Send(p.request(protocol.InvokeBrokerToGetConsumerStatus, &header.GetConsumerStatusRequest{Topic: "TopicA", Group: "G"}, nil))
	for id, a := range answers {
		got := asked(members[id], protocol.GetConsumerStatusFromClient)
		if field(t, got, "topic") != "TopicA" || field(t, got, "group") != "G" || len(got.Fields) != 2 {
			t.Errorf("%s is asked with %v", id, got.Fields)
		}
		if a == nil {
			members[id].Close()
			continue
		}
		a.Opaque, a.Flag = got.Opaque, protocol.FlagResponse
		members[id].Send(a)
	}
	a := p.peer.Receive()
	check(t, "status", a, protocol.Success, unsetRemark)
	if want := `{"consumerTable":{"empty":{},"good":{{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:5}},"messageQueueTable":{}}`; string(a.Body) != want {
		t.Errorf("%s, want %s", a.Body, want)
	}
}

// A reset tells every member the same, in the form of the administrator's language.
func TestResetForms(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 2), nil)
	for q := range int32(2) {
		p.offsets.Commit(p.anyone(), "G", "TopicA", q, 3)
	}
	members := []*remotingtest.Peer{p.join("c1", 409), p.join("c2", 28)}
	mq := func(q int) string { return fmt.Sprintf(`{"brokerName":"broker-a","queueId":%d,"topic":"TopicA"}`, q) }
	java := `{"offsetTable":{` + mq(0) + `:0,` + mq(1) + `:0}}`
	for language, want := range map[protocol.Language]string{
		protocol.Java: java,
		protocol.Go:   java,
		protocol.Cpp: `{"offsetTable":[{"brokerName":"broker-a","offset":0,"queueId":0,"topic":"TopicA"},` +
			`{"brokerName":"broker-a","offset":0,"queueId":1,"topic":"TopicA"}]}`,
	} {
		req := p.request(protocol.InvokeBrokerToResetOffset, &header.ResetOffsetRequest{Topic: "TopicA", Group: "G", Timestamp: -1, IsForce: true}, nil)
		req.Language = language
		a := p.peer.Ask(req)
		check(t, "reset", a, protocol.Success, unsetRemark)
		if string(a.Body) != java {
			t.Errorf("%v is answered %s", language, a.Body)
		}
		for _, m := range members {
			got := asked(m, protocol.ResetConsumerClientOffset)
			if !got.IsOneway() || string(got.Body) != want || field(t, got, "timestamp") != "-1" || field(t, got, "isForce") != "false" {
				t.Errorf("%v: told %v %s, want %s", language, got.Fields, got.Body, want)
			}
		}
	}
	if offset, _ := p.offsets.Query("G", "TopicA", 0); offset != 3 {
		t.Errorf("the broker's own offset became %d", offset)
	}
}

// The topic's bounds and its groups' offsets, as the tables have them.
func TestGroupOffsets(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 2), nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicB", 1), nil)
	for i := range 5 {
		p.send("TopicA", 0, "", fmt.Sprint(i))
	}
	p.stored("TopicA", 0, 0, 5)
	p.offsets.Commit(p.anyone(), "G", "TopicA", 0, 4)
	p.offsets.Commit(p.anyone(), "G", "TopicB", 0, 7)
	p.offsets.Commit(p.anyone(), "H", "TopicA", 0, 2)
	p.offsets.Commit(p.anyone(), "H", "TopicA", 1, 9)

	correction := func(filter string) string {
		a := p.ask(protocol.QueryCorrectionOffset, &header.QueryCorrectionOffset{Topic: "TopicA", CompareGroup: "G", FilterGroups: filter}, nil)
		check(t, "correction", a, protocol.Success, "")
		return string(a.Body)
	}
	if got := correction(""); got != `{"correctionOffsets":{0:2,1:9}}` {
		t.Errorf("of all groups %s", got)
	}
	if got := correction("H,I"); got != `{"correctionOffsets":{0:4}}` {
		t.Errorf("without H %s", got)
	}
	if offset, ok := p.offsets.Query("H", "TopicA", 1); !ok || offset != 9 {
		t.Error("the group that was left out has lost its offsets")
	}

	clone := func(src, dest, topic string) {
		check(t, "clone", p.ask(protocol.CloneGroupOffset, &header.CloneGroupOffsetRequest{SrcGroup: src, DestGroup: dest, Topic: topic}, nil), protocol.Success, "")
	}
	p.offsets.Commit(p.anyone(), "D", "TopicA", 1, 1) // replaced as a whole
	clone("G", "D", "TopicA")
	clone("nobody", "D", "TopicA")
	clone("G", "D", "NoSuchTopic")
	if got := fmt.Sprint(p.offsets.Offsets("D", "TopicA"), p.offsets.Topics("D")); got != "map[0:4] [TopicA]" {
		t.Errorf("cloned %s", got)
	}
	clone("G", "E", "")
	if got := fmt.Sprint(p.offsets.Topics("E")); got != "[TopicA TopicB]" {
		t.Errorf("cloned all %s", got)
	}
	p.join("c1", 409) // G subscribes TopicA only
	clone("G", "F", "")
	if got := fmt.Sprint(p.offsets.Topics("F")); got != "[TopicA]" {
		t.Errorf("cloned of an online group %s", got)
	}
	check(t, "clone", p.ask(protocol.CloneGroupOffset, &header.CloneGroupOffsetRequest{SrcGroup: "G", DestGroup: "F", Offline: true}, nil), protocol.Success, "")
	if got := fmt.Sprint(p.offsets.Topics("F")); got != "[TopicA TopicB]" {
		t.Errorf("cloned as if offline %s", got)
	}
}

func TestTopicConfig(t *testing.T) {
	p := startPathBroker(t, nil)
	p.topics.Put(&body.TopicConfig{TopicName: "T", ReadQueueNums: 4, WriteQueueNums: 5, Perm: 6, TopicFilterType: "SINGLE_TAG", TopicSysFlag: 2, Order: true})
	a := p.ask(protocol.GetTopicConfig, &header.GetTopicConfigRequest{Topic: "T"}, nil)
	check(t, "topic", a, protocol.Success, "")
	// As TopicConfigAndQueueMapping of 5.3.3 writes it.
	if want := `{"attributes":{},"order":true,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":2,"writeQueueNums":5}`; string(a.Body) != want {
		t.Errorf("%s, want %s", a.Body, want)
	}
	check(t, "no topic", p.ask(protocol.GetTopicConfig, &header.GetTopicConfigRequest{Topic: "No"}, nil), protocol.TopicNotExist, "No topic in this broker. topic: No")
}
