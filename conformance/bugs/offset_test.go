//go:build conformance

package bugs

import (
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// H09 (#5752, #2661, #3062, #951): a time behind the last message gives the last message's offset, not the one behind it. The
// official server does that, and scripts may count on it: so do we.
func TestOffsetOfFutureTime(t *testing.T) {
	s := dialShared(t)
	topic := s.topic("H09", 1)
	for range 10 {
		s.Done(message(topic, 0, "", "x"))
	}
	ms := s.stored(topic, 0, 0, 10)
	search := func(ms int64) int64 {
		t.Helper()
		return s.Number("offset", wire.Request(29, "topic", topic, "queueId", "0", "timestamp", text(ms)))
	}
	if got := search(time.Now().Add(time.Hour).UnixMilli()); got != 9 {
		t.Errorf("in an hour: %d", got)
	}
	if got := search(ms[0].StoreTimestamp - 60_000); got != 0 {
		t.Errorf("a minute before the first: %d", got)
	}
	if got := s.max(topic, 0); got != 10 {
		t.Errorf("the end: %d", got)
	}
}

// H10 (#4215, #2181): a pull far behind the end is told the end as the next offset, never 0, also where the queue begins with
// 0. The official server does the same.
func TestPullBehindTheEnd(t *testing.T) {
	s := dialShared(t)
	topic := s.topic("H10", 1)
	for range 5 {
		s.Done(message(topic, 0, "", "x"))
	}
	s.stored(topic, 0, 0, 5)
	answer := s.Ask(pullFrame(topic, 0, 105, "*"))
	if answer.Code != pullMoved || answer.Ext["nextBeginOffset"] != "5" || answer.Ext["minOffset"] != "0" || answer.Ext["maxOffset"] != "5" {
		t.Errorf("%d %q %v", answer.Code, answer.Remark, answer.Ext)
	}
}

// H09, of resetOffsetByTime: the time "now", which mqadmin sends as -1, takes an online group to the end of its queues, a time behind
// the last message to that message. The official server does the same.
func TestResetToFutureTime(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("H09-reset", 1)
	for range 10 {
		s.Done(message(topic, 0, "", "x"))
	}
	s.stored(topic, 0, 0, 10)
	s.Done(wire.Request(34).WithBody([]byte(`{"clientID":"H09-member","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",` +
		`"consumeType":"CONSUME_PASSIVELY","groupName":"H09-reset","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,` +
		`"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"H09-reset"}],"unitMode":false}],"producerDataSet":[]}`)))
	s.Done(wire.Request(15, "consumerGroup", "H09-reset", "topic", topic, "queueId", "0", "commitOffset", "4"))
	for _, c := range []struct{ timestamp, force, want string }{
		{"-1", "true", "10"},
		{text(time.Now().Add(time.Hour).UnixMilli()), "true", "9"},
		{"-1", "false", "4"}, // without force offsets only go back
		{"0", "true", "0"},
	} {
		answer := s.Done(wire.Request(222, "topic", topic, "group", "H09-reset", "timestamp", c.timestamp, "isForce", c.force))
		v, err := wire.ParseJSON(answer.Body)
		if err != nil {
			t.Fatalf("%v in %s", err, answer.Body)
		}
		table, _ := v.(map[string]any)["offsetTable"].(map[string]any)
		if len(table) != 1 {
			t.Fatalf("timestamp %s: %s", c.timestamp, answer.Body)
		}
		for _, got := range table {
			if text(int64(got.(float64))) != c.want {
				t.Errorf("timestamp %s, force %s: %v, want %s", c.timestamp, c.force, got, c.want)
			}
		}
	}
}
