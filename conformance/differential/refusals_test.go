//go:build conformance

package differential

import (
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// Queue ids: a send is held against the topic's queues, but any negative id means "choose one"; a pull is held against
// both ends; what asks for offsets only is answered for any queue.
func TestQueueIdsOutOfRange(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "QueueIds").Topic
	eitherForm(t, func(t *testing.T, form byte) {
		ask := func(f *wire.Frame, want answer) {
			t.Helper()
			f.Form = form
			expect(t, broker(), f, want)
		}
		for _, id := range []string{"2", "3", "100", "2147483647"} {
			refused := answer{1, "request queueId[" + id + "] is illegal, TopicConfig [topicName=QueueIds, readQueueNums=2, writeQueueNums=2, " +
				"perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]*", "MSG_REGION TRACE_ON"}
			ask(sendV2(topic).Set("e", id), refused)
			ask(sendV1(topic).Set("queueId", id), refused)
			batch := sendBatch(topic, []byte("x")).Set("e", id)
			ask(batch, refused)
		}
		for _, id := range []string{"-1", "2", "2147483647", "-2147483648"} {
			ask(pull(topic).Set("queueId", id),
				answer{1, "queueId[" + id + "] is illegal, topic:[QueueIds] topicConfig.readQueueNums:[2] consumer:[/127.0.0.1:*", "{}"})
		}
		for _, id := range []string{"-1", "2", "100"} {
			ask(wire.Request(30, "topic", topic, "queueId", id), answer{ext: "offset"})
			ask(wire.Request(31, "topic", topic, "queueId", id), answer{ext: "offset"})
			ask(wire.Request(14, "topic", topic, "queueId", id, "consumerGroup", "G-queue-ids"), answer{ext: "offset"})
		}
		ask(sendV2(topic).Set("e", "-1"), sent)
		ask(sendV2(topic).Set("e", "1"), sent)
	})
	// The refused ones were not stored: the first message and, per form, one anywhere and one in queue 1.
	expectStored(t, topic, 2, 5)
}

func TestTopicNames(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("L", 127)
	system := func(name string) answer {
		return answer{1, "The topic[" + name + "] is conflict with system topic.", ""}
	}
	forbidden := func(name string) answer {
		return answer{16, "Sending message to topic[" + name + "] is forbidden.", "MSG_REGION TRACE_ON"}
	}
	unknown := func(name string) answer {
		return answer{17, "topic[" + name + "] not exist, apply first please! " + seeFAQ, "{}"}
	}
	for _, c := range []struct {
		topic              string
		send, create, pull answer
	}{
		{"", blank, blank.without(), unknown("")},
		{" ", blank, blank.without(), unknown(" ")},
		{"a b", illegalName, illegalName.without(), unknown("a b")},
		{"a/b", illegalName, illegalName.without(), unknown("a/b")},
		{"a.b", illegalName, illegalName.without(), unknown("a.b")},
		{"../x", illegalName, illegalName.without(), unknown("../x")},
		{"..", illegalName, illegalName.without(), unknown("..")},
		{"nul\x00l", illegalName, illegalName.without(), unknown("nul\x00l")},
		{"主题", illegalName, illegalName.without(), unknown("主题")},
		{longest + "x", tooLongName, tooLongName.without(), unknown(longest + "x")},
		{longest, sent, created, found},
		{"Percent%And|Bar", sent, created, found},
		{"SCHEDULE_TOPIC_XXXX", forbidden("SCHEDULE_TOPIC_XXXX"), system("SCHEDULE_TOPIC_XXXX"), answer{}},
		{"SELF_TEST_TOPIC", forbidden("SELF_TEST_TOPIC"), system("SELF_TEST_TOPIC"), answer{}},
		{"OFFSET_MOVED_EVENT", forbidden("OFFSET_MOVED_EVENT"), system("OFFSET_MOVED_EVENT"), answer{}},
		{"RMQ_SYS_TRANS_HALF_TOPIC", forbidden("RMQ_SYS_TRANS_HALF_TOPIC"), system("RMQ_SYS_TRANS_HALF_TOPIC"), answer{}},
		{"RMQ_SYS_TRANS_OP_HALF_TOPIC", forbidden("RMQ_SYS_TRANS_OP_HALF_TOPIC"), system("RMQ_SYS_TRANS_OP_HALF_TOPIC"), answer{}},
		{"TBW102", sent, system("TBW102"), found},
		{"BenchmarkTest", sent, system("BenchmarkTest"), found},
		{"rmq_sys_anything", sent, system("rmq_sys_anything"), answer{}},
		{"%RETRY%G-names", sent, created, found},
		{"%DLQ%G-names", sent, created, found},
	} {
		expect(t, broker(), sendV2(c.topic), c.send)
		expect(t, broker(), createTopic(c.topic, 2), c.create)
		if c.pull != (answer{}) {
			f := longPoll(c.topic, 0, patience)
			if c.pull != found {
				f = pull(c.topic)
			}
			expect(t, broker(), f, c.pull)
		}
	}
}

// A topic that is not there is created from the default topic that the send names, if that one lends its form.
func TestAutoCreation(t *testing.T) {
	t.Parallel()
	missing := func(name string) answer {
		return answer{17, "topic[" + name + "] not exist, apply first please!" + seeFAQ, "MSG_REGION TRACE_ON"}
	}
	expect(t, broker(), sendV2("AutoNoSuchDefault").Set("c", "NotThere"), missing("AutoNoSuchDefault"))
	expect(t, broker(), sendV2("AutoNoDefault").Without("c"), failure)
	expect(t, broker(), sendV2("AutoEmptyDefault").Set("c", ""), missing("AutoEmptyDefault"))
	expect(t, broker(), sendV2("AutoFromPlainTopic").Set("c", newTopic(t, "AutoPlain", 1)), missing("AutoFromPlainTopic"))
	for _, c := range []struct{ topic, ask, last, beyond string }{
		{"AutoFour", "4", "3", "4"}, {"AutoMany", "100", "7", "8"}, {"AutoOne", "1", "0", "1"},
	} {
		expect(t, broker(), sendV2(c.topic).Set("d", c.ask).Set("e", c.last), sent)
		expect(t, broker(), sendV2(c.topic).Set("e", c.beyond), answer{1, "request queueId[" + c.beyond + "] is illegal*", "MSG_REGION TRACE_ON"})
	}
}

func TestMessageLimits(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "Limits").Topic
	const maxBody = 4 << 20
	properties := func(n int) string { return wire.Properties("a", strings.Repeat("p", n-2)) }
	// The broker adds CLUSTER, so the client's share of the 32767 bytes is that much smaller.
	room := 32767 - len("\x02CLUSTER\x01OracleCluster")
	for _, c := range []struct {
		name string
		f    *wire.Frame
		want answer
	}{
		{"no body", sendV2(topic).WithBody(nil), sent},
		{"largest body", sendV2(topic).WithBody(make([]byte, maxBody)), sent},
		{"body too large", sendV2(topic).WithBody(make([]byte, maxBody+1)), illegal},
		{"body far too large", sendV2(topic).WithBody(make([]byte, 15<<20)), illegal},
		{"largest properties", sendV2(topic).Set("i", properties(room)), sent},
		{"properties too long by one", sendV2(topic).Set("i", properties(room+1)), illegal},
		{"properties of 32 KiB", sendV2(topic).Set("i", properties(32767)), illegal},
		{"properties of 70 kB", sendV2(topic).Set("i", properties(70000)), illegal},
		{"batch too large", sendBatch(topic, make([]byte, 3<<20), make([]byte, 3<<20)), illegal},
		{"batch with a delay", sendBatch(topic, []byte("a")).Set("i", wire.Properties("DELAY", "1")), illegal},
		{"batch of garbage", sendBatch(topic).WithBody([]byte("garbage")), failure},
		{"batch of much garbage", sendBatch(topic).WithBody([]byte(strings.Repeat("garbage ", 20))), failure},
		{"batch of nothing", sendBatch(topic).WithBody(nil), failure},
		{"batch cut short", sendBatch(topic).WithBody(wire.Batch("", []byte("one"), []byte("two"))[:30]), failure},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := expect(t, broker(), c.f, c.want)
			if f != nil && c.want == sent && f.Ext["queueId"] != "0" {
				t.Errorf("sent to queue %s", f.Ext["queueId"])
			}
		})
	}
	expectStored(t, topic, 1, 4) // the first and three of these
}

// What is switched off, or lacking, is refused in the words of an official broker that has it switched off.
func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "SwitchedOff").Topic
	half := wire.Properties("TRAN_MSG", "true", "PGROUP", "P-raw", "UNIQ_KEY", "0123456789ABCDEF0123456789ABCDEF")
	refused := answer{16, "the broker[127.0.0.1] sending transaction message is forbidden", "MSG_REGION TRACE_ON"}
	expect(t, broker(), sendV2(topic).Set("i", half).Set("f", "4"), refused)
	expect(t, broker(), sendV2(topic).Set("i", half), refused)
	expect(t, broker(), sendV1(topic).Set("properties", half).Set("sysFlag", "4"), refused)
	expect(t, fastPort(), sendV2(topic).Set("i", half).Set("f", "4"), refused)
	expect(t, broker(), sendV2(topic).Set("i", wire.Properties("TRAN_MSG", "false")), sent)

	noSQL := "The broker does not support consumer to filter message by SQL92"
	expect(t, broker(), pull(topic).Set("expressionType", "SQL92").Set("subscription", "a > 1"), answer{1, noSQL, "{}"})
	expect(t, broker(), wire.Request(46).WithBody([]byte(`{"clientId":"c","group":"G","namespace":"","subscriptionData":`+
		`{"classFilterMode":false,"codeSet":[],"expressionType":"SQL92","subString":"a > 1","subVersion":1,"tagsSet":[],"topic":"SwitchedOff"}}`)),
		answer{code: 1, remark: noSQL})

	expectStored(t, topic, 1, 2) // no half message may be seen
}
