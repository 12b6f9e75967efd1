//go:build conformance

package bugs

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// Trap 1: a delay level beyond the last is the last, one that is not positive is none, and one that is no number breaks the send.
// The official server does the same, with an exception as the remark of the last.
func TestDelayLevels(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("Trap1", 1)
	const last = 17 // the queue of the 18th level
	delayed := s.max("SCHEDULE_TOPIC_XXXX", last)
	for _, level := range []string{"18", "19", "2147483647"} {
		s.Done(message(topic, 0, wire.Properties("DELAY", level), "late"))
	}
	until(t, "three are delayed by the longest", func() bool { return s.max("SCHEDULE_TOPIC_XXXX", last) == delayed+3 })
	for _, level := range []string{"0", "-1", "-2147483648"} {
		s.Done(message(topic, 0, wire.Properties("DELAY", level), "at once"))
	}
	if ms := s.stored(topic, 0, 0, 3); len(ms) != 3 {
		t.Errorf("%d messages at once", len(ms))
	}
	for _, level := range []string{"x", "4 ", "4Flags", "99999999999"} {
		if answer := s.Ask(message(topic, 0, wire.Properties("DELAY", level), "never")); answer.Code != systemError || answer.Remark == "" {
			t.Errorf("DELAY %q: %d %q", level, answer.Code, answer.Remark)
		}
	}
	if got := s.max(topic, 0); got != 3 {
		t.Errorf("%d messages are stored", got)
	}
}

// Trap 2: of the properties' text an entry without a name, a value or the separator is dropped, and a separator of entries within
// a value splits it. The official server does the same.
func TestPropertiesText(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("Trap2", 1)
	texts := []struct {
		text string
		want map[string]string
	}{
		{"empty\x01\x02none\x02TAGS\x01A\x02", map[string]string{"TAGS": "A"}},
		{"a\x011\x02\x02\x02b\x012", map[string]string{"a": "1", "b": "2"}},
		{"a\x01x\x01y\x02b\x01v", map[string]string{"a": "x\x01y", "b": "v"}},
		{"a\x01x\x02y\x02b\x01v", map[string]string{"a": "x", "b": "v"}},
		{"a\x01first\x02a\x01second", map[string]string{"a": "second"}},
		{"\x01v\x02b\x01v", map[string]string{"b": "v"}},
	}
	for _, c := range texts {
		s.Done(message(topic, 0, c.text, "x"))
	}
	for i, m := range s.stored(topic, 0, 0, int64(len(texts))) {
		got := maps.Clone(m.Properties)
		delete(got, "CLUSTER") // the broker's own
		if !maps.Equal(got, texts[i].want) {
			t.Errorf("%q is stored as %q, want %q", texts[i].text, m.PropertiesText, texts[i].want)
		}
	}
}

// Trap 3: a group without an offset begins at 0 where the queue does and its first message is still in memory, whatever the group
// says of where to begin; else there is no offset, and it is the client that chooses. The official server does the same.
func TestOffsetOfNewGroup(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("Trap3", 1)
	ask := func() *wire.Frame {
		return s.Ask(wire.Request(14, "consumerGroup", "Trap3-new", "topic", topic, "queueId", "0"))
	}
	s.Done(message(topic, 0, "", "x"))
	s.stored(topic, 0, 0, 1)
	if answer := ask(); answer.Code != success || answer.Ext["offset"] != "0" {
		t.Errorf("%d %q %v", answer.Code, answer.Remark, answer.Ext)
	}
	if got := s.max(topic, 0); got != 1 {
		t.Errorf("max offset %d", got)
	}
}

// Trap 4: the code of a refusal decides whether a client tries the next broker. The official server gives the same.
func TestCodesOfRefusals(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	s.topic("Trap4", 1)
	s.Done(wire.Request(17, "topic", "Trap4-read", "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "4",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	for _, c := range []struct {
		name string
		f    *wire.Frame
		want int
	}{
		{"queue that is not there", message("Trap4", 1, "", "x"), systemError},
		{"topic that may not be written, which clients alone see to", message("Trap4-read", 0, "", "x"), success},
		{"topic that can't be made", message("Trap4-none", 0, "", "x").Set("c", "Trap4-no-model"), topicNotExist},
		{"message too large", message("Trap4", 0, "", strings.Repeat("x", 4<<20+1)), messageIllegal},
	} {
		if answer := s.Ask(c.f); answer.Code != c.want {
			t.Errorf("%s: %d %q, want %d", c.name, answer.Code, answer.Remark, c.want)
		}
	}
}

// Trap 8: a pull whose filter takes nothing moves on all the same, to behind what it has looked at. The official server does the same.
func TestFilteredPullMovesOn(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("Trap8", 1)
	for range 40 {
		s.Done(message(topic, 0, wire.Properties("TAGS", "A"), "x"))
	}
	s.stored(topic, 0, 0, 40)
	answer := s.Ask(pullFrame(topic, 0, 3, "B"))
	if answer.Code != pullRetry || answer.Ext["nextBeginOffset"] != "40" {
		t.Errorf("%d %q %v", answer.Code, answer.Remark, answer.Ext)
	}
}

// Trap 9: the answer to a lock names only the queues that were granted, and an unlock by another client does nothing. The official
// server does the same. (That a lock ends after 60 s is tested beside the code, where there is a clock to turn.)
func TestQueueLocks(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	ask := func(code int, client string, queues ...int) string {
		t.Helper()
		var set []string
		for _, q := range queues {
			set = append(set, fmt.Sprintf(`{"brokerName":"broker-a","queueId":%d,"topic":"Trap9"}`, q))
		}
		body := s.Done(wire.Request(code).WithBody(fmt.Appendf(nil, `{"clientId":%q,"consumerGroup":"Trap9","mqSet":[%s]}`, client, strings.Join(set, ",")))).Body
		if code != 41 {
			return ""
		}
		v, err := wire.ParseJSON(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		granted := map[int]bool{}
		for _, q := range v.(map[string]any)["lockOKMQSet"].([]any) {
			granted[int(q.(map[string]any)["queueId"].(float64))] = true
		}
		var out strings.Builder
		for q := range 4 {
			if granted[q] {
				fmt.Fprint(&out, q)
			}
		}
		return out.String()
	}
	for _, c := range []struct {
		what string
		got  string
		want string
	}{
		{"one locks 0 and 1", ask(41, "one", 0, 1), "01"},
		{"two asks for 1 and 2", ask(41, "two", 1, 2), "2"},
		{"two unlocks what is one's", ask(42, "two", 0, 1), ""},
		{"two asks for 0, 1 and 3", ask(41, "two", 0, 1, 3), "3"},
		{"one asks again", ask(41, "one", 0, 1, 2), "01"},
		{"one unlocks 1", ask(42, "one", 1), ""},
		{"two asks for all", ask(41, "two", 0, 1, 2, 3), "123"},
	} {
		if c.got != c.want {
			t.Errorf("%s: granted %q, want %q", c.what, c.got, c.want)
		}
	}
}
