//go:build conformance

package differential

import (
	"fmt"
	"strconv"
	"testing"

	"rocketd/conformance/wire"
)

// fieldCase says what one request answers when one of its fields is left out, or holds no number. What is neither
// harmless nor has an answer of its own fails: there the official server ends in a NullPointerException or a
// NumberFormatException, which the protocol shows as code 1 with some text and no ext fields.
type fieldCase struct {
	name            string
	addr            func() string
	request         func() *wire.Frame
	good            answer
	harmless        string            // fields that may be missing
	missing         map[string]answer // fields whose absence has an answer of its own; "" = no fields at all
	numbers         string            // fields that are tried with the text "x!"
	harmlessNumbers string            // of these, the ones that do no harm
	wrong           map[string]answer // fields whose wrong value has an answer of its own
}

func fieldCases(topic string, phyOffset int64) []fieldCase {
	offsetOf := func(code int, more ...string) func() *wire.Frame {
		return func() *wire.Frame {
			return wire.Request(code, append([]string{"topic", topic, "queueId", "0"}, more...)...)
		}
	}
	phy := strconv.FormatInt(phyOffset, 10)
	nothing := answer{22, "can not find message, maybe time range not correct", "indexLastUpdatePhyoffset indexLastUpdateTimestamp"}
	return []fieldCase{{
		name: "SEND_MESSAGE_V2", addr: broker, request: func() *wire.Frame { return sendV2(topic) }, good: sent,
		harmless: "a c d i j k m", missing: map[string]answer{"b": blank, "": blank},
		// the fast codec of this header throws for any number that it cannot parse, needed or not
		numbers: "b d e f g h j k m", harmlessNumbers: "k m", wrong: map[string]answer{"b": illegalName},
	}, {
		name: "SEND_BATCH_MESSAGE", addr: broker, good: sent,
		request:  func() *wire.Frame { return sendBatch(topic, []byte("one"), []byte("two")) },
		harmless: "a c d i j k m", missing: map[string]answer{"b": blank, "": blank},
		numbers: "b d e f g h j k m", harmlessNumbers: "k m", wrong: map[string]answer{"b": illegalName},
	}, {
		name: "SEND_MESSAGE", addr: broker, request: func() *wire.Frame { return sendV1(topic) }, good: sent,
		harmless: "producerGroup defaultTopic defaultTopicQueueNums properties reconsumeTimes unitMode batch",
		missing:  map[string]answer{"topic": blank, "": blank},
		numbers:  "topic defaultTopicQueueNums queueId sysFlag bornTimestamp flag reconsumeTimes unitMode batch",
		// the slow codec only logs what it cannot parse
		harmlessNumbers: "defaultTopicQueueNums reconsumeTimes unitMode batch", wrong: map[string]answer{"topic": illegalName},
	}, {
		name: "PULL_MESSAGE", addr: broker, request: func() *wire.Frame { return pull(topic) }, good: found,
		harmless: "commitOffset expressionType subVersion subscription suspendTimeoutMillis",
		numbers:  "topic commitOffset maxMsgNums queueId queueOffset subVersion suspendTimeoutMillis sysFlag expressionType subscription",
		wrong: map[string]answer{
			"topic":          {17, "topic[x!] not exist, apply first please! " + seeFAQ, "{}"},
			"expressionType": {1, "The broker does not support consumer to filter message by x!", "{}"},
			"subscription":   {20, "NO_MATCHED_MESSAGE", pullFields},
		},
	}, {
		name: "QUERY_CONSUMER_OFFSET", addr: broker, request: offsetOf(14, "consumerGroup", "G-fields-query"), good: answer{ext: "offset"},
		harmless: "consumerGroup", numbers: "topic queueId", harmlessNumbers: "topic",
	}, {
		name: "UPDATE_CONSUMER_OFFSET", addr: broker, request: offsetOf(15, "consumerGroup", "G-fields", "commitOffset", "0"), good: answer{ext: "{}"},
		harmless: "consumerGroup topic", numbers: "queueId commitOffset",
	}, {
		name: "SEARCH_OFFSET_BY_TIMESTAMP", addr: broker, request: offsetOf(29, "timestamp", "0"), good: answer{ext: "offset"},
		numbers: "topic queueId timestamp", harmlessNumbers: "topic",
	}, {
		name: "GET_MAX_OFFSET", addr: broker, request: offsetOf(30), good: answer{ext: "offset"}, numbers: "topic queueId", harmlessNumbers: "topic",
	}, {
		name: "GET_MIN_OFFSET", addr: broker, request: offsetOf(31), good: answer{ext: "offset"}, numbers: "topic queueId", harmlessNumbers: "topic",
	}, {
		name: "GET_EARLIEST_MSG_STORETIME", addr: broker, request: offsetOf(32), good: answer{ext: "timestamp"},
		numbers: "topic queueId", harmlessNumbers: "topic",
	}, {
		name: "VIEW_MESSAGE_BY_ID", addr: broker, request: func() *wire.Frame { return wire.Request(33, "offset", phy) }, numbers: "offset",
	}, {
		name: "GET_CONSUMER_LIST_BY_GROUP", addr: broker, request: func() *wire.Frame { return wire.Request(38, "consumerGroup", "G-nobody") },
		good: answer{1, "no consumer for this group, G-nobody", "{}"},
	}, {
		name: "CONSUMER_SEND_MSG_BACK", addr: broker, request: func() *wire.Frame {
			return wire.Request(36, "offset", phy, "group", "G-fields", "delayLevel", "3", "originMsgId", "x", "originTopic", topic,
				"unitMode", "false", "maxReconsumeTimes", "16")
		},
		harmless: "maxReconsumeTimes originMsgId originTopic unitMode",
		numbers:  "offset delayLevel maxReconsumeTimes unitMode", harmlessNumbers: "maxReconsumeTimes unitMode",
	}, {
		name: "QUERY_MESSAGE", addr: broker, request: func() *wire.Frame {
			return wire.Request(12, "topic", topic, "key", "nobody-has-it", "maxNum", "4", "beginTimestamp", "0", "endTimestamp", millis())
		},
		good: nothing, harmless: "key topic", numbers: "maxNum beginTimestamp endTimestamp",
	}, {
		name: "UPDATE_AND_CREATE_TOPIC", addr: broker, request: func() *wire.Frame { return createTopic("FieldsCreated", 2) }, good: created,
		harmless: "defaultTopic order topicSysFlag",
		// which of several missing fields is named is the server's own
		missing: map[string]answer{"topic": blank.without(), "": failure},
		numbers: "topic perm readQueueNums writeQueueNums topicSysFlag topicFilterType order", harmlessNumbers: "topicSysFlag order",
		wrong: map[string]answer{"topic": illegalName.without()},
	}, {
		name: "DELETE_TOPIC_IN_BROKER", addr: broker, request: func() *wire.Frame { return wire.Request(215, "topic", "NeverCreated") }, good: answer{},
		missing: map[string]answer{"topic": blank.without(), "": blank.without()},
		numbers: "topic", wrong: map[string]answer{"topic": illegalName.without()},
	}, {
		name: "UNREGISTER_CLIENT", addr: broker, request: func() *wire.Frame {
			return wire.Request(35, "clientID", "nobody", "producerGroup", "P-nobody", "consumerGroup", "G-nobody")
		},
		good: answer{ext: "{}"}, harmless: "clientID producerGroup consumerGroup", missing: map[string]answer{"": {ext: "{}"}},
	}, {
		name: "GET_TOPIC_STATS_INFO", addr: broker, request: func() *wire.Frame { return wire.Request(202, "topic", topic) },
		numbers: "topic", wrong: map[string]answer{"topic": {code: 17, remark: "topic[x!] not exist"}},
	}, {
		name: "INVOKE_BROKER_TO_RESET_OFFSET", addr: broker, request: func() *wire.Frame { return resetOffset("G-fields-reset", topic, "0", true) },
		good:     answer{code: 1, remark: "THe consumer group <G-fields-reset> not exist"},
		harmless: "timestamp isForce", missing: map[string]answer{"": failure},
		numbers: "topic timestamp isForce", harmlessNumbers: "timestamp isForce",
		wrong: map[string]answer{"topic": {code: 1, remark: "[reset-offset] reset offset failed, no topic in this broker. topic=x!"}},
	}, {
		name: "QUERY_CONSUME_TIME_SPAN", addr: broker, request: func() *wire.Frame { return wire.Request(303, "topic", topic, "group", "G-nobody") },
		harmless: "group", missing: map[string]answer{"": failure},
		numbers: "topic", wrong: map[string]answer{"topic": {code: 17, remark: "topic[x!] not exist"}},
	}, {
		name: "GET_CONSUMER_RUNNING_INFO", addr: broker, good: answer{code: 1, remark: "The Consumer <G-nobody> <nobody> not online"},
		request: func() *wire.Frame {
			return wire.Request(307, "consumerGroup", "G-nobody", "clientId", "nobody", "jstackEnable", "true")
		},
		harmless: "jstackEnable", missing: map[string]answer{"": failure}, numbers: "jstackEnable", harmlessNumbers: "jstackEnable",
	}, {
		name: "QUERY_CORRECTION_OFFSET", addr: broker, request: func() *wire.Frame {
			return wire.Request(308, "topic", topic, "compareGroup", "G-nobody", "filterGroups", "G-nobody")
		},
		harmless: "compareGroup filterGroups", missing: map[string]answer{"": failure}, numbers: "topic compareGroup", harmlessNumbers: "topic compareGroup",
	}, {
		name: "CONSUME_MESSAGE_DIRECTLY", addr: broker, good: answer{code: 1, remark: "The Consumer <G-nobody> <nobody> not online"},
		request: func() *wire.Frame {
			return wire.Request(309, "consumerGroup", "G-nobody", "clientId", "nobody", "msgId", fmt.Sprintf("7F00000100002A9F%016X", phyOffset))
		},
		missing: map[string]answer{"clientId": {code: 1, remark: "The Consumer <G-nobody> <null> not online"}, "": failure}, numbers: "msgId",
	}, {
		name: "CLONE_GROUP_OFFSET", addr: broker, request: func() *wire.Frame {
			return wire.Request(314, "srcGroup", "G-nobody", "destGroup", "G-nobody-2", "topic", topic, "offline", "false")
		},
		harmless: "destGroup topic offline", missing: map[string]answer{"": failure}, numbers: "topic offline", harmlessNumbers: "topic offline",
	}, {
		name: "GET_BROKER_CONSUME_STATS", addr: broker, request: func() *wire.Frame { return wire.Request(317, "isOrder", "false") },
		harmless: "isOrder", missing: map[string]answer{"": {}}, numbers: "isOrder", harmlessNumbers: "isOrder",
	}, {
		name: "GET_ROUTEINFO_BY_TOPIC", addr: namesrv, request: func() *wire.Frame { return wire.Request(105, "topic", topic) },
		missing: map[string]answer{
			"topic": {code: 17, remark: "No topic route info in name server for the topic: null" + seeFAQ},
			"":      {code: 17, remark: "No topic route info in name server for the topic: null" + seeFAQ},
		},
	}, {
		name: "PUT_KV_CONFIG", addr: namesrv, request: func() *wire.Frame { return wire.Request(100, "namespace", "N", "key", "K", "value", "V") },
		harmless: "value", missing: map[string]answer{
			"namespace": {code: 1, remark: "namespace or key is null"}, "key": {code: 1, remark: "namespace or key is null"},
			"": {code: 1, remark: "namespace or key is null"},
		},
	}, {
		name: "GET_KV_CONFIG", addr: namesrv, request: func() *wire.Frame { return wire.Request(101, "namespace", "N", "key", "none") },
		good: answer{22, "No config item, Namespace: N Key: none", "{}"},
		missing: map[string]answer{
			"namespace": {22, "No config item, Namespace: null Key: none", "{}"},
			"key":       {22, "No config item, Namespace: N Key: null", "{}"},
			"":          {22, "No config item, Namespace: null Key: null", "{}"},
		},
	}, {
		name: "REGISTER_BROKER", addr: namesrv, request: func() *wire.Frame { return wire.Request(103) }, good: failure,
	}, {
		name: "UNREGISTER_BROKER", addr: namesrv, request: func() *wire.Frame { return wire.Request(104) }, good: failure,
	}}
}

func TestFieldsMissingOrWrong(t *testing.T) {
	t.Parallel()
	eitherForm(t, func(t *testing.T, form byte) {
		first := newTopicWithMessage(t, "Fields-"+strconv.Itoa(int(form)))
		waitRouted(t, first.Topic)
		for _, c := range fieldCases(first.Topic, first.PhyOffset) {
			t.Run(c.name, func(t *testing.T) {
				ask := func(change func(f *wire.Frame), want answer) {
					t.Helper()
					f := c.request()
					f.Form = form
					change(f)
					got := expect(t, c.addr(), f, want)
					// An exception is answered in the server's default form; what a handler says, in the request's.
					if got != nil && got.Form != form && want != failure && !among("12 33", strconv.Itoa(f.Code)) {
						t.Errorf("asked in form %d, answered in form %d", form, got.Form)
					}
				}
				ask(func(*wire.Frame) {}, c.good)
				for _, name := range c.request().ExtNames() {
					want, ok := c.missing[name]
					if !ok && among(c.harmless, name) {
						want = c.good
					} else if !ok {
						want = failure
					}
					ask(func(f *wire.Frame) { f.Without(name) }, want)
				}
				if want, ok := c.missing[""]; ok {
					ask(func(f *wire.Frame) { f.Ext = nil }, want)
				}
				for _, name := range words(c.numbers) {
					want, ok := c.wrong[name]
					if !ok && among(c.harmlessNumbers, name) {
						want = c.good
					} else if !ok {
						want = failure
					}
					ask(func(f *wire.Frame) { f.Set(name, "x!") }, want)
				}
			})
		}
	})
}

func TestBodiesMissingOrWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code     int
		name     string
		harmless string // bodies that do no harm
	}{
		{34, "HEART_BEAT", "{}"}, {41, "LOCK_BATCH_MQ", "{}"}, {42, "UNLOCK_BATCH_MQ", ""}, {200, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "[]"},
	} {
		for _, body := range []string{"", "{", "[]", "{}", "nonsense"} {
			want := failure
			if body != "" && among(c.harmless, body) {
				want = answer{}
			}
			f := expect(t, broker(), wire.Request(c.code).WithBody([]byte(body)), want)
			if t.Failed() {
				t.Fatalf("%s with body %q: %+v", c.name, body, f)
			}
		}
	}
}
