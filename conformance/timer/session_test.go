//go:build conformance

package timer

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// patience bounds every wait. early is how much before its time the official broker may deliver: it rounds to the second below.
const (
	patience = 60 * time.Second
	early    = 1100
)

// session is a client's connection to a broker.
type session struct {
	*testing.T
	broker *target.Broker
	conn   *wire.Conn
}

func connect(t *testing.T, b *target.Broker) *session {
	t.Helper()
	c, err := wire.Dial(b.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &session{t, b, c}
}

func (s *session) ask(f *wire.Frame) *wire.Frame {
	s.Helper()
	a, err := s.conn.Call(f, patience)
	if err != nil {
		s.Fatalf("code %d: %v", f.Code, err)
	}
	return a
}

// want sends a request whose answer must have a code.
func (s *session) want(f *wire.Frame, code int) *wire.Frame {
	s.Helper()
	a := s.ask(f)
	if a.Code != code {
		s.Fatalf("code %d, %v: answered %d %q, want %d", f.Code, f.Ext, a.Code, a.Remark, code)
	}
	return a
}

func (s *session) topic(name string) string {
	s.Helper()
	s.want(wire.Request(17, "topic", name, "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"), 0)
	return name
}

// message is a send with properties.
func message(topic, body string, properties ...string) *wire.Frame {
	all := append([]string{"UNIQ_KEY", fmt.Sprintf("%032X", topic+body)[:32], "WAIT", "true"}, properties...)
	return wire.Request(310, "a", "PG", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", strconv.FormatInt(time.Now().UnixMilli(), 10),
		"h", "7", "i", wire.Properties(all...), "j", "0", "k", "false", "m", "false").WithBody([]byte(body))
}

// stored waits for n messages in a topic's queue, and fails when there are more.
func (s *session) stored(topic string, n int) []*wire.Message {
	s.Helper()
	all := s.storedAtLeast(topic, n)
	if len(all) > n {
		s.Errorf("%d messages in %s, want %d", len(all), topic, n)
	}
	return all
}

// storedAtLeast waits for n different messages in a topic's queue.
func (s *session) storedAtLeast(topic string, n int) []*wire.Message {
	s.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); ; <-every.C {
		all := s.now(topic)
		bodies := map[string]bool{}
		for _, m := range all {
			bodies[string(m.Body)] = true
		}
		if len(bodies) >= n {
			return all
		}
		if time.Now().After(end) {
			s.Fatalf("%d of %d messages in %s", len(all), n, topic)
		}
	}
}

// now is what a topic's queue has.
func (s *session) now(topic string) (all []*wire.Message) {
	s.Helper()
	for {
		a := s.ask(wire.Request(11, "consumerGroup", "TimerReader", "topic", topic, "queueId", "0", "queueOffset", fmt.Sprint(len(all)), "maxMsgNums", "32",
			"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG"))
		if a.Code != 0 {
			return all
		}
		ms, err := wire.Messages(a.Body)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, ms...)
	}
}

func official() bool {
	k, err := target.Selected5()
	return err == nil && k == target.Official5
}

// due checks that a message was stored when it was due or a little later: nobody can tell how busy the machine is.
func (s *session) due(m *wire.Message, at int64) {
	s.Helper()
	slack := int64(early)
	if !official() {
		slack = 0
	}
	if m.StoreTimestamp < at-slack {
		s.Errorf("%s was delivered %d ms before it is due", m.Body, at-m.StoreTimestamp)
	}
}
