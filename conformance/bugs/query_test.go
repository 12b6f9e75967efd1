//go:build conformance

package bugs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

func (s *server) query(topic, key string, unique bool) []*wire.Message {
	s.t.Helper()
	f := wire.Request(12, "topic", topic, "key", key, "maxNum", "32", "beginTimestamp", "0", "endTimestamp", text(time.Now().Add(time.Hour).UnixMilli()))
	if unique {
		f.Set("_UNIQUE_KEY_QUERY", "true")
	}
	answer := s.Ask(f)
	if answer.Code == queryNotFound {
		return nil
	}
	if answer.Code != success {
		s.t.Fatalf("query of %s %s: %d %s", topic, key, answer.Code, answer.Remark)
	}
	ms, err := wire.Messages(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return ms
}

// H07 (#3613): keys whose hashes collide. A query answers records with the hash, the right one among them, and the client
// looks at the keys; clients rely on nothing else. The official server answers those of other topics too, which the asker
// may have no right to read (compat).
func TestKeyCollision(t *testing.T) {
	s := dialShared(t)
	both := []string{"AaTopic", "BBTopic"} // "AaTopic#Aa", "AaTopic#BB", "BBTopic#Aa", "BBTopic#BB" have one hash
	for _, topic := range both {
		s.topic(topic, 1)
		for _, key := range []string{"Aa", "BB"} {
			s.Done(message(topic, 0, wire.Properties("KEYS", key), topic+" "+key))
		}
		s.stored(topic, 0, 0, 2)
	}
	bodies := func(topic, key string) (got []string) {
		for _, m := range s.query(topic, key, false) {
			got = append(got, string(m.Body))
		}
		return got
	}
	for _, topic := range both {
		want := []string{topic + " Aa", topic + " BB"}
		if official() {
			want = []string{"AaTopic Aa", "AaTopic BB", "BBTopic Aa", "BBTopic BB"}
		}
		for _, key := range []string{"Aa", "BB"} {
			until(t, fmt.Sprintf("a query of %s %s answers %q", topic, key, want), func() bool { return slices.Equal(bodies(topic, key), want) })
		}
	}
	if got := s.query("AaTopic", "none", false); len(got) != 0 {
		t.Errorf("a key of no message finds %d", len(got))
	}
}

// H08 (#2735, #6917): all messages with one unique key are answered; which of them a tool shows is its own business. The
// official server does the same.
func TestManyWithOneUniqueKey(t *testing.T) {
	s := dialShared(t)
	topic, key := s.topic("H08", 1), "7F0000010D15000000010000000108AA"
	for _, body := range []string{"first", "second", "third"} {
		s.Done(message(topic, 0, wire.Properties("UNIQ_KEY", key), body))
	}
	until(t, "all are indexed", func() bool { return len(s.query(topic, key, true)) == 3 })
	for i, m := range s.query(topic, key, true) {
		if m.Properties["UNIQ_KEY"] != key || m.QueueOffset != int64(i) {
			t.Errorf("row %d: %q, queue offset %d", i, m.PropertiesText, m.QueueOffset)
		}
	}
}

// H15 (#1787): rows of a consume queue, and what is answered where there are none. The official server does the same.
func TestQueryConsumeQueue(t *testing.T) {
	s := dialShared(t)
	topic := s.topic("H15", 1)
	for range 20 {
		s.Done(message(topic, 0, wire.Properties("TAGS", "TagA"), "row"))
	}
	ms := s.stored(topic, 0, 0, 20)
	ask := func(index, count string) *wire.Frame {
		return s.Ask(wire.Request(321, "topic", topic, "queueId", "0", "index", index, "count", count))
	}
	answer := ask("5", "10")
	if answer.Code != success || answer.Remark != "not set any response code" {
		t.Errorf("%d %q", answer.Code, answer.Remark)
	}
	v, err := wire.ParseJSON(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	dump := v.(map[string]any)
	rows, _ := dump["queueData"].([]any)
	if len(rows) != 10 || dump["minQueueIndex"] != float64(0) || dump["maxQueueIndex"] != float64(20) {
		t.Fatalf("%s", answer.Body)
	}
	for i, r := range rows {
		row := r.(map[string]any)
		if m := ms[5+i]; row["physicOffset"] != float64(m.PhyOffset) || row["physicSize"] != float64(m.Size) ||
			row["tagsCode"] != float64(2598919) || row["eval"] != false { // "TagA".hashCode()
			t.Errorf("row %d: %v", i, row)
		}
	}
	for _, c := range []struct {
		f      *wire.Frame
		code   int
		remark string
	}{
		{ask("20", "10"), success, "Index 20 of 0@H15 is not exist!"},
		{ask("-1", "10"), success, "Index -1 of 0@H15 is not exist!"},
		{s.Ask(wire.Request(321, "topic", "H15-none", "queueId", "3", "index", "0", "count", "1")), systemError, "3@H15-none is not exist!"},
	} {
		if c.f.Code != c.code || c.f.Remark != c.remark || len(c.f.Body) > 0 {
			t.Errorf("%d %q %q, want %d %q", c.f.Code, c.f.Remark, c.f.Body, c.code, c.remark)
		}
	}
	group := s.Ask(wire.Request(321, "topic", topic, "queueId", "0", "index", "0", "count", "1", "consumerGroup", "H15-group"))
	if !strings.Contains(string(group.Body), `"filterData":"H15-group@H15 is not online!"`) {
		t.Errorf("%s", group.Body)
	}
}

// The administrator's requests that clean the store say yes, and take nothing that is in use. The official server does the same.
func TestCleaningRequests(t *testing.T) {
	s := dialShared(t)
	topic := s.topic("Cleaning", 1)
	s.Done(message(topic, 0, "", "stays"))
	s.stored(topic, 0, 0, 1)
	for _, code := range []int{306, 316, 329} {
		answer := s.Ask(wire.Request(code))
		if answer.Code != success || answer.Remark != "" || answer.Ext != nil || len(answer.Body) > 0 {
			t.Errorf("%d: %d %q %v %q", code, answer.Code, answer.Remark, answer.Ext, answer.Body)
		}
	}
	if ms := s.pull(topic, 0, 0, "*"); len(ms) != 1 {
		t.Errorf("%d messages are left", len(ms))
	}
}
