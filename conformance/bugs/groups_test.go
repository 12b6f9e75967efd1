//go:build conformance

package bugs

import (
	"fmt"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// beat is the heartbeat of a consumer that subscribes one topic.
func beat(clientId, group, topic string) *wire.Frame {
	return wire.Request(34).WithBody(fmt.Appendf(nil, `{"clientID":"%s","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",`+
		`"consumeType":"CONSUME_PASSIVELY","groupName":"%s","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,`+
		`"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"%s"}],"unitMode":false}],"producerDataSet":[]}`,
		clientId, group, topic))
}

// H11 (#1416, #2748): a deleted group's offsets stay, and count when it comes back, unless the administrator has them
// removed with it. The official server does the same.
func TestOffsetsOfDeletedGroup(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	const group = "H11-group"
	topic := s.topic("H11", 1)
	for range 10 {
		s.Done(message(topic, 0, "", "x"))
	}
	s.stored(topic, 0, 0, 10)
	offset := func() int64 {
		return s.Number("offset", wire.Request(14, "consumerGroup", group, "topic", topic, "queueId", "0"))
	}
	known := func() bool {
		return strings.Contains(string(s.Done(wire.Request(201)).Body), `"groupName":"`+group+`"`)
	}
	s.Done(beat("H11-member", group, topic))
	s.Done(wire.Request(15, "consumerGroup", group, "topic", topic, "queueId", "0", "commitOffset", "10"))
	s.Done(wire.Request(35, "clientID", "H11-member", "consumerGroup", group))
	s.Done(wire.Request(207, "groupName", group, "removeOffset", "false"))
	if known() {
		t.Error("the group is still there")
	}
	if got := offset(); got != 10 {
		t.Errorf("after deleting it alone the group is at %d", got)
	}
	s.Done(beat("H11-member", group, topic))
	if got := offset(); got != 10 || !known() {
		t.Errorf("it comes back at %d, known %v", got, known())
	}
	s.Done(wire.Request(35, "clientID", "H11-member", "consumerGroup", group))
	s.Done(wire.Request(207, "groupName", group, "removeOffset", "true"))
	if got := offset(); got != 0 || known() {
		t.Errorf("after deleting it with its offsets the group is at %d, known %v", got, known())
	}
}

// H33 (#5473; alibaba/rocketmq#212): two members of a group subscribe different topics. Each heartbeat takes the other's topic
// away, and its pulls are refused with 24 until its next. The official server does the same; ours says so in its log, with both
// client ids.
func TestMembersDisagree(t *testing.T) {
	t.Parallel()
	const group = "H33-group"
	a, b := dialShared(t), dialShared(t)
	one, two := a.topic("H33-one", 1), a.topic("H33-two", 1)
	for _, topic := range []string{one, two} {
		a.Done(message(topic, 0, "", topic))
		a.stored(topic, 0, 0, 1)
	}
	pull := func(s *server, topic string) *wire.Frame {
		f := pullFrame(topic, 0, 0, "*").Set("consumerGroup", group).Set("subVersion", "1").Set("sysFlag", "0")
		return s.Ask(f)
	}
	expect := func(when string, s *server, topic string, want int) {
		t.Helper()
		answer := pull(s, topic)
		if answer.Code != want || want == notSubscribed && !strings.HasPrefix(answer.Remark, "the consumer's subscription not exist") {
			t.Errorf("%s, pull of %s: %d %q, want %d", when, topic, answer.Code, answer.Remark, want)
		}
	}
	for range 3 {
		a.Done(beat("H33-a", group, one))
		expect("after a's heartbeat", a, one, success)
		expect("after a's heartbeat", b, two, notSubscribed)
		b.Done(beat("H33-b", group, two))
		expect("after b's heartbeat", a, one, notSubscribed)
		expect("after b's heartbeat", b, two, success)
	}
	// With one topic each they would be fine: both are members all the time.
	members := string(a.Done(wire.Request(38, "consumerGroup", group)).Body)
	if !strings.Contains(members, `"H33-a"`) || !strings.Contains(members, `"H33-b"`) {
		t.Errorf("members %s", members)
	}
}
