//go:build conformance

package timer

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// start starts a server that has timer messages.
func start(t *testing.T) *target.Target {
	t.Helper()
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	return target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Name: "broker-a", Conf: map[string]string{"recallMessageEnable": "true"}}}})
}

func handle(parts ...string) string {
	return base64.URLEncoding.EncodeToString([]byte(strings.Join(parts, " ")))
}

func ms(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// TestTimer is one server's: answers, what is delivered, transactions, refusals, and kill -9.
func TestTimer(t *testing.T) {
	c := start(t)
	b := c.Brokers[0]
	s := connect(t, b)

	topic := s.topic("TimerProperties")
	at := time.Now().Add(2500 * time.Millisecond)
	a := s.want(message(topic, "late", "TIMER_DELIVER_MS", ms(at), "KEYS", "k"), 0)
	if a.Ext["queueId"] != "0" {
		t.Errorf("queue %s", a.Ext["queueId"])
	}
	if names := slices.Sorted(maps.Keys(a.Ext)); strings.Join(names, " ") != "MSG_REGION TRACE_ON msgId queueId queueOffset recallHandle transactionId" &&
		strings.Join(names, " ") != "MSG_REGION TRACE_ON msgId queueId queueOffset recallHandle" { // the unique key again, in 5.x
		t.Errorf("answer %v", a.Ext)
	}

	// The delay of a half message counts from its commit on.
	topic2 := s.topic("TimerTransaction")
	half := s.want(wire.Half(topic2, 0, "TimerPG", "half", "TIMER_DELAY_MS", "2500"), 0)
	committed := time.Now().UnixMilli()
	s.want(wire.EndSent("TimerPG", half, wire.Commit), 0)
	far := s.want(wire.Half(topic2, 0, "TimerPG", "far", "TIMER_DELAY_SEC", "40000000"), 13)
	if !strings.HasPrefix(far.Remark, "timer message illegal, the delay time should not be bigger than the max delay ") {
		t.Errorf("a half message that is too far away: %q", far.Remark)
	}

	m := s.stored(topic, 1)[0]
	s.due(m, at.UnixMilli())
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Properties)), func(n string) bool {
		return n == "MSG_REGION" || n == "TRACE_ON" // 5.x gives them to every message
	})
	if strings.Join(names, " ") != "CLUSTER KEYS REAL_QID REAL_TOPIC TIMER_DELIVER_MS TIMER_DEQUEUE_MS TIMER_ENQUEUE_MS TIMER_OUT_MS UNIQ_KEY WAIT" {
		t.Errorf("properties %v", names)
	}
	if p := m.Properties; p["REAL_TOPIC"] != topic || p["REAL_QID"] != "0" || p["TIMER_DELIVER_MS"] != ms(at) || m.Flag != 7 {
		t.Errorf("delivered %+v", m)
	}
	if !official() { // 5.3.3 loses the message
		s.due(s.stored(topic2, 1)[0], committed+2500)
	}
	refusals(s, topic)
	recallOfAnother(s)
	kill(s)
}

// refusals are the codes and remarks of recalls that can't be.
func refusals(s *session, topic string) {
	future := ms(time.Now().Add(time.Hour))
	for _, c := range []struct {
		what, topic, handle string
		code                int
		remark              string
	}{
		{"no topic", "TimerNowhere", handle("v1", "TimerNowhere", "broker-a", future, "k"), 17, "recall failed, the topic[TimerNowhere] not exist"},
		{"no base64", topic, "###", 604, "recall handle is invalid"},
		{"other version", topic, handle("v2", topic, "broker-a", future, "k"), 604, "recall handle is invalid"},
		{"a part lacks", topic, handle("v1", topic, "broker-a", future), 604, "recall handle is invalid"},
		{"an empty part", topic, handle("v1", topic, "broker-a", future, ""), 604, "recall handle is invalid"},
		{"nothing", topic, "", 604, "recall handle is invalid"},
		{"other topic", topic, handle("v1", "T", "broker-a", future, "k"), 604, "recall failed, topic not match"},
		{"other broker", topic, handle("v1", topic, "broker-b", future, "k"), 604, "recall failed, broker service not available"},
		{"past", topic, handle("v1", topic, "broker-a", "1700000000000", "k"), 604, "recall failed, timestamp invalid"},
		{"no time", topic, handle("v1", topic, "broker-a", "x", "k"), 604, "recall failed, timestamp invalid"},
		{"too far", topic, handle("v1", topic, "broker-a", "9000000000000000", "k"), 604, "recall failed, timestamp invalid"},
		{"unknown message", topic, handle("v1", topic, "broker-a", future, "k", "more"), 0, "not set any response code"},
	} {
		a := s.ask(wire.Request(370, "producerGroup", "PG", "topic", c.topic, "recallHandle", c.handle))
		if c.handle == "" {
			a = s.ask(wire.Request(370, "producerGroup", "PG", "topic", c.topic))
		}
		if a.Code != c.code || a.Remark != c.remark || a.Ext["MSG_REGION"] != "DefaultRegion" || c.code == 0 && a.Ext["msgId"] != "k" {
			s.Errorf("%s: answered %d %q %v", c.what, a.Code, a.Remark, a.Ext)
		}
	}
}

// recallOfAnother: a message that says of itself that it recalls another one. The official server believes it, whatever topic that is
// of; so whoever may send to one topic recalls messages of all.
func recallOfAnother(s *session) {
	topic, other := s.topic("TimerRecalled"), s.topic("TimerRecaller")
	at := time.Now().Add(5 * time.Second)
	s.want(message(topic, "recalled", "TIMER_DELIVER_MS", ms(at)), 0)
	s.want(message(topic, "behind", "TIMER_DELIVER_MS", ms(at.Add(3*time.Second))), 0)
	key := fmt.Sprintf("%032X", topic+"recalled")[:32]
	s.want(message(other, "recall", "TIMER_DELIVER_MS", ms(at), "TIMER_DEL_UNIQKEY", topic+"+"+key), 0)
	all := s.storedAtLeast(topic, 1)
	if official() {
		s.stored(topic, 1)
		if string(all[0].Body) != "behind" {
			s.Errorf("the official server has delivered %s", all[0].Body)
		}
		return
	}
	all = s.stored(topic, 2)
	if string(all[0].Body) != "recalled" || len(s.now(other)) != 0 {
		s.Errorf("delivered %s; %d messages of the recalling topic", all[0].Body, len(s.now(other)))
	}
}

// kill: what waits when the broker is killed is delivered afterwards.
func kill(s *session) {
	topic := s.topic("TimerKill")
	at := time.Now().Add(4 * time.Second)
	for i := range 200 {
		s.want(message(topic, strconv.Itoa(i), "TIMER_DELIVER_MS", ms(at)), 0)
	}
	s.want(message(topic, "kept", "TIMER_DELIVER_MS", ms(at)), 0)
	far := s.want(message(topic, "gone", "TIMER_DELIVER_MS", ms(at)), 0)
	s.want(wire.Request(370, "producerGroup", "PG", "topic", topic, "recallHandle", far.Ext["recallHandle"]), 0)
	if err := s.broker.Kill(); err != nil {
		s.Fatal(err)
	}
	if err := s.broker.Start(); err != nil {
		s.Fatal(err)
	}
	s = connect(s.T, s.broker)
	all := s.storedAtLeast(topic, 201)
	for _, m := range all { // the official broker delivers some twice
		s.due(m, at.UnixMilli())
		if string(m.Body) == "gone" {
			s.Error("what was recalled is delivered")
		}
	}
	if !official() && len(all) != 201 { // the kill came before anything was due
		s.Errorf("%d messages", len(all))
	}
}
