//go:build conformance

package pop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// setMode says how the group takes messages of its topic.
func (s *session) setMode(mode string) {
	s.Helper()
	s.want(wire.Request(401).WithBody([]byte(fmt.Sprintf(`{"topic":%q,"consumerGroup":%q,"mode":%q,"popShareQueueNum":0}`, s.topic, s.group, mode))), 0)
}

// reset is what mqadmin resetOffsetByTime asks of a broker, for a time in ms; -1 is the end.
func (s *session) reset(timestamp string) *wire.Frame {
	return wire.Request(222, "topic", s.topic, "group", s.group, "timestamp", timestamp, "isForce", "true")
}

// A group that pops is set back, and forwards, by the broker itself, whoever of it is online: members hold no offsets.
func TestReset(t *testing.T) {
	s := open(t, "Reset", 2)
	s.setMode("POP")
	s.send(0, "", "a", "b", "c")
	_, got := s.take(s.pop(0, 2, time.Minute))
	if bodies(got) != "a,b" {
		t.Fatalf("got %s", bodies(got))
	}
	for _, online := range []bool{false, true} {
		if online {
			s.member("r")
		}
		a := s.want(s.reset("0"), 0)
		if !strings.Contains(string(a.Body), `"offsetTable"`) || !strings.Contains(string(a.Body), s.topic) {
			t.Errorf("the answer tells %s", a.Body)
		}
		if got = s.await(3, patience, func() *wire.Frame { return s.pop(0, 32, time.Minute) }); bodies(got) != "a,b,c" {
			t.Errorf("set back, online %t: got %s", online, bodies(got))
		}
	}
	s.want(s.reset("0"), 0)
	s.want(s.reset("-1"), 0)
	s.want(s.pop(0, 32, time.Minute), 210)
	s.stands("0", "3")
	for i := range 2 { // a batch in order does not keep the queue after a reset
		s.want(s.reset("0"), 0)
		if _, got = s.take(s.pop(0, 1, time.Minute, "order", "true")); bodies(got) != "a" {
			t.Errorf("in order, %d: got %s", i, bodies(got))
		}
	}
}

// A group that was set back is given all again, though the broker is killed meanwhile.
func TestKillAfterReset(t *testing.T) {
	s := open(t, "KillReset", 1)
	s.send(0, "", "a", "b", "c", "d", "e")
	if _, got := s.take(s.pop(0, 1, 5*time.Minute)); bodies(got) != "a" { // it stays under way
		t.Fatalf("got %s", bodies(got))
	}
	_, got := s.take(s.pop(0, 32, 5*time.Minute))
	for _, m := range got {
		s.want(s.about(200051, m), 0)
	}
	s.stands("0", "5")
	s.want(wire.Request(15, "consumerGroup", s.group, "topic", s.topic, "queueId", "0", "commitOffset", "1"), 0)
	s.stands("0", "1")
	if _, got = s.take(s.pop(0, 1, 5*time.Minute)); bodies(got) != "b" {
		t.Fatalf("set back: got %s", bodies(got))
	}
	s.saved("2")
	if err := s.broker.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.broker.Start(); err != nil {
		t.Fatal(err)
	}
	s.connect()
	var all []string
	for deadline := time.Now().Add(comeback); !contains(all, "c", "d", "e"); {
		if time.Now().After(deadline) {
			t.Fatalf("after the kill: %v", all)
		}
		_, more := s.take(s.pop(0, 32, 5*time.Minute))
		for _, m := range more {
			all = append(all, string(m.Body))
		}
	}
}
