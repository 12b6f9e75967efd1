//go:build conformance

package bugs

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/conformance/wire/wiretest"
)

// patience is how long anything may take that has to happen.
const patience = 40 * time.Second

// Codes of answers.
const (
	success       = 0
	systemError   = 1
	pullNotFound  = 19
	pullRetry     = 20
	pullMoved     = 21
	queryNotFound = 22

	messageIllegal = 13
	topicNotExist  = 17
	notSubscribed  = 24
	groupNotExist  = 26
)

// shared is the broker of all cases that need none of their own.
var shared *target.Target

func TestMain(m *testing.M) {
	os.Exit(target.RunMain(m, target.Options{NamesrvConf: map[string]string{"orderMessageEnable": "true"},
		Brokers: []target.BrokerOptions{{Conf: map[string]string{"enablePropertyFilter": "true"}}}}, func(t *target.Target) { shared = t }))
}

func official() bool { return shared.Kind == target.Official }

// server is a broker as a raw client sees it.
type server struct {
	wiretest.Asker
	t *testing.T
}

// dial connects to a broker; the connection is closed with the test.
func dial(t *testing.T, addr string) *server {
	t.Helper()
	c, err := wire.Dial(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &server{wiretest.Asker{T: t, Conn: c, Patience: patience}, t}
}

func dialShared(t *testing.T) *server {
	t.Helper()
	return dial(t, shared.Brokers[0].Addr)
}

func text[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// topic creates a topic.
func (s *server) topic(name string, queues int) string {
	s.t.Helper()
	s.Done(wire.Request(17, "topic", name, "defaultTopic", "TBW102", "readQueueNums", text(queues), "writeQueueNums", text(queues), "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	return name
}

// message is a send as the Java client makes it.
func message(topic string, queueId int, properties, body string) *wire.Frame {
	return wire.Request(310, "a", "BugProducer", "b", topic, "c", "TBW102", "d", "4", "e", text(queueId), "f", "0",
		"g", text(time.Now().UnixMilli()), "h", "0", "i", properties, "j", "0", "k", "false", "m", "false").WithBody([]byte(body))
}

// batch is a send of a batch whose elements are encoded already.
func batch(topic string, queueId int, properties string, elements []byte) *wire.Frame {
	f := message(topic, queueId, properties, "").Set("m", "true").WithBody(elements)
	f.Code = 320
	return f
}

func pullFrame(topic string, queueId int, offset int64, tags string) *wire.Frame {
	return wire.Request(11, "consumerGroup", "BugReader", "topic", topic, "queueId", text(queueId), "queueOffset", text(offset), "maxMsgNums", "32",
		"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", tags, "subVersion", "0", "expressionType", "TAG")
}

// pull pulls a queue from an offset to its end; tags is a tag expression.
func (s *server) pull(topic string, queueId int, offset int64, tags string) (all []*wire.Message) {
	s.t.Helper()
	for {
		answer := s.Ask(pullFrame(topic, queueId, offset, tags))
		switch answer.Code {
		case success:
			ms, err := wire.Messages(answer.Body)
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, ms...)
		case pullRetry:
		case pullNotFound:
			return all
		default:
			s.t.Fatalf("pull of %s %d from %d: %d %s", topic, queueId, offset, answer.Code, answer.Remark)
		}
		offset, _ = strconv.ParseInt(answer.Ext["nextBeginOffset"], 10, 64)
	}
}

// max is the end of a queue.
func (s *server) max(topic string, queueId int) int64 {
	s.t.Helper()
	return s.Number("offset", wire.Request(30, "topic", topic, "queueId", text(queueId)))
}

// stored waits until a queue has n messages and returns those from an offset on.
func (s *server) stored(topic string, queueId int, offset, n int64) []*wire.Message {
	s.t.Helper()
	until(s.t, fmt.Sprintf("%s %d has %d messages", topic, queueId, n), func() bool { return s.max(topic, queueId) >= n })
	return s.pull(topic, queueId, offset, "*")
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	wiretest.Until(t, patience, what, condition)
}

var hasIPv6 = sync.OnceValue(func() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
})
