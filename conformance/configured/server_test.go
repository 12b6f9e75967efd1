//go:build conformance

package configured

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/conformance/wire/wiretest"
)

// patience bounds every wait.
const patience = 60 * time.Second

// checkAfter is the broker's transactionTimeOut in ms.
const checkAfter = 3000

var server *target.Target

func TestMain(m *testing.M) {
	flag.Parse()
	// The cases wait far more than they work.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(target.RunMain(m, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{
		"transactionCheckInterval": "500", "transactionTimeOut": strconv.Itoa(checkAfter), "transactionCheckMax": "1000",
		"enablePropertyFilter": "true", "filterDataCleanTimeSpan": "2000",
		"storeReplyMessageEnable": "false",
		"traceTopicEnable":        "true", "msgTraceTopicName": "OwnTraceTopic",
		"messageDelayLevel": "1s 2s 3s",
		"timerWheelEnable":  "false", // 4.9 has no such key, and no timer messages
		"enableLmq":         "true", "enableMultiDispatch": "true",
	}}}}, func(t *target.Target) { server = t }))
}

func official() bool { return server.Kind == target.Official }

// session is a client's connection to the broker.
type session struct {
	wiretest.Asker
	t *testing.T
}

func connect(t *testing.T) *session { return connectAs(t, nil) }

// connectAs is connect of a client that answers the broker's requests.
func connectAs(t *testing.T, answer func(*wire.Frame) *wire.Frame) *session {
	t.Helper()
	c, err := wire.Dial(server.Brokers[0].Addr, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &session{wiretest.Asker{T: t, Conn: c, Patience: patience}, t}
}

// topic makes a topic of one queue.
func (s *session) topic(name string) string {
	s.t.Helper()
	s.Done(wire.Request(17, "topic", name, "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	return name
}

func message(topic, body string, properties ...string) *wire.Frame {
	return wire.Request(310, "a", "ConfiguredProducer", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0",
		"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "0", "i", wire.Properties(properties...), "j", "0", "k", "false", "m", "false").
		WithBody([]byte(body))
}

// pull asks a queue 0 for messages, with the subscription in the request.
func pull(group, topic string, offset int64) *wire.Frame {
	return wire.Request(11, "consumerGroup", group, "topic", topic, "queueId", "0", "queueOffset", strconv.FormatInt(offset, 10), "maxMsgNums", "32",
		"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG")
}

func (s *session) max(topic string, queueId int) int64 {
	s.t.Helper()
	return s.Number("offset", wire.Request(30, "topic", topic, "queueId", strconv.Itoa(queueId)))
}

// stored waits until queue 0 has n messages and returns all.
func (s *session) stored(topic string, n int64) []*wire.Message {
	s.t.Helper()
	until(s.t, fmt.Sprintf("%s has %d messages", topic, n), func() bool { return s.max(topic, 0) >= n })
	ms, err := wire.Messages(s.Done(pull("ConfiguredReader", topic, 0)).Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return ms
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	wiretest.Until(t, patience, what, condition)
}
