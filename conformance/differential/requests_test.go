//go:build conformance

package differential

import (
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// Answers that many cases share, with the official texts.
var (
	sent        = answer{ext: "MSG_REGION TRACE_ON msgId queueId queueOffset"}
	found       = answer{remark: "FOUND", ext: pullFields}
	created     = answer{remark: "not set any response code"} // the official server forgets to clear the default
	blank       = answer{1, "The specified topic is blank.", "MSG_REGION TRACE_ON"}
	illegalName = answer{1, `The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$`, "MSG_REGION TRACE_ON"}
	tooLongName = answer{1, "The specified topic is longer than topic max length.", "MSG_REGION TRACE_ON"}
	illegal     = answer{13, "the message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, " +
		"msg properties length limit 32KB.", "MSG_REGION TRACE_ON"}
)

const (
	pullFields = "maxOffset minOffset nextBeginOffset suggestWhichBrokerId"
	seeFAQ     = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
)

// without is the answer without its ext fields: what handlers other than the send's say.
func (a answer) without() answer { return answer{a.code, a.remark, ""} }

func millis() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

// sendV2 is a send with the short field names, as the Java client makes it.
func sendV2(topic string) *wire.Frame {
	return wire.Request(310, "a", "P-raw", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", millis(), "h", "0",
		"i", wire.Properties("KEYS", "k"), "j", "0", "k", "false", "m", "false").WithBody([]byte("hello"))
}

// sendV1 is the same with the long field names, as the Go client makes it.
func sendV1(topic string) *wire.Frame {
	return wire.Request(10, "producerGroup", "P-raw", "topic", topic, "defaultTopic", "TBW102", "defaultTopicQueueNums", "4",
		"queueId", "0", "sysFlag", "0", "bornTimestamp", millis(), "flag", "0", "properties", wire.Properties("KEYS", "k"),
		"reconsumeTimes", "0", "unitMode", "false", "batch", "false").WithBody([]byte("hello"))
}

func sendBatch(topic string, bodies ...[]byte) *wire.Frame {
	f := sendV2(topic).Set("m", "true").WithBody(wire.Batch("", bodies...))
	f.Code = 320
	return f
}

// pull asks for messages with the subscription in the request (sysFlag 4), so that no heartbeat is needed.
func pull(topic string) *wire.Frame {
	return wire.Request(11, "consumerGroup", "G-raw", "topic", topic, "queueId", "0", "queueOffset", "0", "maxMsgNums", "4", "sysFlag", "4",
		"commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG")
}

// longPoll is a pull that the server may hold.
func longPoll(topic string, offset int64, hold time.Duration) *wire.Frame {
	return pull(topic).Set("sysFlag", "6").Set("queueOffset", strconv.FormatInt(offset, 10)).
		Set("suspendTimeoutMillis", strconv.FormatInt(hold.Milliseconds(), 10))
}

func createTopic(topic string, queues int) *wire.Frame {
	n := strconv.Itoa(queues)
	return wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false")
}

// newTopic makes the topic of one test.
func newTopic(t *testing.T, topic string, queues int) string {
	t.Helper()
	expect(t, broker(), createTopic(topic, queues), created)
	if t.Failed() {
		t.FailNow()
	}
	return topic
}

// newTopicWithMessage makes a topic of two queues, with one message in the first that a pull finds already, and
// returns the message.
func newTopicWithMessage(t *testing.T, topic string) *wire.Message {
	t.Helper()
	newTopic(t, topic, 2)
	expect(t, broker(), sendV2(topic), sent)
	f, err := wire.CallOnce(broker(), longPoll(topic, 0, 10*time.Second), patience)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := found.matches(f); wrong != "" {
		t.Fatal(wrong)
	}
	ms, err := wire.Messages(f.Body)
	if err != nil || len(ms) != 1 {
		t.Fatalf("%d messages, %v", len(ms), err)
	}
	return ms[0]
}

// expectStored checks how many messages a topic's first queues hold. One more is sent and waited for: messages are
// dispatched in their order, so that with it all before it are.
func expectStored(t *testing.T, topic string, queues int, want int64) {
	t.Helper()
	expect(t, broker(), sendV2(topic), sent)
	want++
	var got int64
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-every.C {
		got = 0
		for q := range queues {
			got += maxOffset(t, topic, q)
		}
		if got >= want {
			break
		}
	}
	if got != want {
		t.Errorf("%d messages are stored in %s, want %d", got, topic, want)
	}
}

func maxOffset(t *testing.T, topic string, queueId int) int64 {
	t.Helper()
	f := expect(t, broker(), wire.Request(30, "topic", topic, "queueId", strconv.Itoa(queueId)), answer{ext: "offset"})
	if f == nil {
		t.FailNow()
	}
	n, err := strconv.ParseInt(f.Ext["offset"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
