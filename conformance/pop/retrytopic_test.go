//go:build conformance

package pop

import (
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// A group gets messages again, and it alone, however long its name and that of the topic are; its clients name the retry
// topic by both.
func TestLongNames(t *testing.T) {
	s := open(t, "Long"+strings.Repeat("T", 80), 1)
	s.group = "PopGroupLong" + strings.Repeat("G", 80)
	s.want(wire.Request(200).WithBody([]byte(`{"groupName":"`+s.group+`","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`)), 0)
	other := *s
	other.group = "PopGroupLongOther"
	s.want(wire.Request(200).WithBody([]byte(`{"groupName":"`+other.group+`","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`)), 0)
	s.send(0, "tag", "a", "b")
	if _, got := s.take(s.pop(0, 32, 3*time.Second)); bodies(got) != "a,b" {
		t.Fatalf("got %s", bodies(got))
	}
	all := func() *wire.Frame { return s.pop(0, 32, 3*time.Second) }
	for times := int32(1); times <= 2; times++ {
		again := s.await(2, comeback, all)
		if bodies(again) != "a,b" {
			t.Fatalf("come again: %s", bodies(again))
		}
		for _, m := range again {
			if m.Topic != s.topic || m.ReconsumeTimes != times || m.Properties["TAGS"] != "tag" || strings.Fields(m.handle)[4] != "1" {
				t.Errorf("%s, %d times, %v", m.Topic, m.ReconsumeTimes, m.Properties)
			}
		}
		if times == 2 {
			a := s.want(s.about(200053, again[0], "invisibleTime", "60000"), 0)
			h := strings.Fields(again[0].handle)
			h[0], h[1], h[2], h[3] = h[7], a.Ext["popTime"], a.Ext["invisibleTime"], a.Ext["reviveQid"]
			again[0].handle = strings.Join(h, " ")
			for _, m := range again {
				s.want(s.about(200051, m), 0)
			}
		}
	}
	if a := s.ask(s.pop(0, 32, time.Minute, "pollTime", "6000")); a.Code != 210 {
		t.Errorf("what was acknowledged: %d %q", a.Code, a.Remark)
	}
	if _, got := other.take(other.pop(0, 32, time.Minute)); bodies(got) != "a,b" {
		t.Errorf("another group got %s", bodies(got))
	}
	if end := s.want(wire.Request(30, "topic", s.topic, "queueId", "0"), 0).Ext["offset"]; end != "2" {
		t.Errorf("the topic ends at %s", end)
	}
}

// With a topic its messages that would come again are deleted, and do not come to a new topic of that name.
func TestDeletedTopic(t *testing.T) {
	s := open(t, "Deleted", 1)
	retry := "%RETRY%" + s.group + "_" + s.topic
	create := wire.Request(17, "topic", s.topic, "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false")
	for _, round := range []string{"first", "second"} {
		s.send(0, "", round+"1", round+"2")
		if got := s.await(2, patience, func() *wire.Frame { return s.pop(0, 32, 2*time.Second) }); bodies(got) != round+"1,"+round+"2" {
			t.Fatalf("got %s", bodies(got))
		}
		ended := ""
		for deadline := time.Now().Add(comeback); ended != "2"; { // there, and not popped yet
			if time.Now().After(deadline) {
				t.Fatalf("the retry topic ends at %s", ended)
			}
			s.ask(s.pop(0, 1, time.Second, "topic", "PopNone", "pollTime", "100"))
			ended = s.want(wire.Request(30, "topic", retry, "queueId", "0"), 0).Ext["offset"]
		}
		if round == "second" {
			break
		}
		s.want(wire.Request(215, "topic", s.topic), 0)
		s.want(wire.Request(351, "topic", retry), 17)
		s.want(create, 0)
		s.sent[0] = 0
		s.want(s.pop(0, 32, time.Minute, "consumerGroup", s.group+"New"), 210)
		s.want(wire.Request(15, "consumerGroup", s.group, "topic", s.topic, "queueId", "0", "commitOffset", "0"), 0)
		s.want(s.pop(0, 32, time.Minute), 210)
	}
	if again := s.await(2, comeback, func() *wire.Frame { return s.pop(0, 32, time.Minute) }); bodies(again) != "second1,second2" {
		t.Errorf("come again: %s", bodies(again))
	}
}
