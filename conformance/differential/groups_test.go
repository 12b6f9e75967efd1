//go:build conformance

package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

func TestCloneGroupOffset(t *testing.T) {
	t.Parallel()
	a, b := newTopic(t, "CloneA", 2), newTopic(t, "CloneB", 1)
	clone := func(dest, topic, offline string) {
		t.Helper()
		expect(t, broker(), wire.Request(314, "srcGroup", "G-clone", "destGroup", dest, "topic", topic, "offline", offline), answer{})
	}
	commit(t, "G-clone", a, 0, 4)
	commit(t, "G-clone", b, 0, 7)
	commit(t, "G-clone-1", a, 1, 1)
	clone("G-clone-1", a, "false")
	for q, want := range []string{"4", "none"} { // all that the group had is replaced
		if got := committed(t, "G-clone-1", a, q); got != want {
			t.Errorf("queue %d: %s, want %s", q, got, want)
		}
	}
	clone("G-clone-1", "NoSuchTopic", "false")
	clone("G-clone-1", "TBW102", "false")
	if got := committed(t, "G-clone-1", "TBW102", 0) + committed(t, "G-clone-1", b, 0); got != "nonenone" {
		t.Errorf("cloned %s", got)
	}
	join(t, "clone-1", "G-clone", 409, nil, a)
	clone("G-clone-2", b, "false")
	if got := committed(t, "G-clone-2", b, 0); got != "none" {
		t.Errorf("cloned %s of a topic that the group does not subscribe", got)
	}
	clone("G-clone-2", b, "true")
	clone("G-clone-2", a, "false")
	if got := committed(t, "G-clone-2", b, 0) + committed(t, "G-clone-2", a, 0); got != "74" {
		t.Errorf("cloned %s", got)
	}
	expect(t, broker(), wire.Request(314, "srcGroup", "G-clone", "topic", a), answer{}) // nobody gets them
	expect(t, broker(), wire.Request(314, "destGroup", "G-clone-3", "topic", a), failure)
}

func TestCorrectionOffset(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "Correction", 3)
	ask := func(more ...string) *wire.Frame {
		return wire.Request(308, append([]string{"topic", topic, "compareGroup", "G-correct-1"}, more...)...)
	}
	expectBody(t, "of no group", expect(t, broker(), ask(), answer{}), `{"correctionOffsets":{}}`)
	commit(t, "G-correct-1", topic, 0, 4)
	commit(t, "G-correct-2", topic, 0, 2)
	commit(t, "G-correct-2", topic, 1, 9)
	commit(t, "G-correct-3", topic, 0, 1)
	expectBody(t, "of all", expect(t, broker(), ask(), answer{}), `{"correctionOffsets":{"0":1,"1":9}}`)
	expectBody(t, "without one", expect(t, broker(), ask("filterGroups", "G-correct-3"), answer{}), `{"correctionOffsets":{"0":2,"1":9}}`)
	expectBody(t, "without two", expect(t, broker(), ask("filterGroups", "G-correct-3,G-correct-2"), answer{}), `{"correctionOffsets":{"0":4}}`)
	if server.Kind != target.Official { // there the groups that were left out have lost their offsets
		expectBody(t, "of all again", expect(t, broker(), ask("filterGroups", " "), answer{}), `{"correctionOffsets":{"0":1,"1":9}}`)
	}
	expect(t, broker(), ask().Without("topic"), failure)
	expect(t, broker(), ask().Without("compareGroup"), answer{})
}

func TestConsumeTimeSpan(t *testing.T) {
	t.Parallel()
	const group = "G-span"
	topic := newTopic(t, "TimeSpan", 2)
	for range 2 {
		expect(t, broker(), sendV2(topic), sent)
	}
	expectStored(t, topic, 1, 2) // and one more
	f := expect(t, broker(), longPoll(topic, 0, 10*time.Second), found)
	if f == nil {
		return
	}
	ms, err := wire.Messages(f.Body)
	if err != nil || len(ms) != 3 {
		t.Fatalf("%d messages, %v", len(ms), err)
	}
	ask := wire.Request(303, "topic", topic, "group", group)
	spans := func() (all []map[string]any) {
		t.Helper()
		f := expect(t, broker(), ask, answer{})
		if f == nil {
			t.FailNow()
		}
		list, _ := parsed(t, f.Body).(map[string]any)["consumeTimeSpanSet"].([]any)
		for i, v := range list {
			s, _ := v.(map[string]any)
			if got := fmt.Sprint(s["messageQueue"]); got != fmt.Sprintf("map[brokerName:oracle-a queueId:%d topic:TimeSpan]", i) {
				t.Errorf("span %d is of %s", i, got)
			}
			all = append(all, s)
		}
		if len(all) != 2 {
			t.Fatalf("%d spans", len(all))
		}
		return all
	}
	check := func(what string, span map[string]any, min, max, consumed int64, delay func(int64) bool) {
		t.Helper()
		for key, want := range map[string]int64{"minTimeStamp": min, "maxTimeStamp": max, "consumeTimeStamp": consumed} {
			got, _ := span[key].(float64)
			text := fmt.Sprintf("%s:%03d", time.UnixMilli(want).Format("2006-01-02#15:04:05"), (want%1000+1000)%1000)
			if int64(got) != want || span[key+"Str"] != text {
				t.Errorf("%s: %s %v %v, want %d %s", what, key, got, span[key+"Str"], want, text)
			}
		}
		if d, ok := span["delayTime"].(float64); !ok || !delay(int64(d)) || len(span) != 8 {
			t.Errorf("%s: %v", what, span)
		}
	}
	first, last := ms[0].StoreTimestamp, ms[2].StoreTimestamp
	none := func(d int64) bool { return d == 0 }
	some := func(d int64) bool { return d >= 0 && d < time.Hour.Milliseconds() }
	ever := func(d int64) bool { return d > first } // as if the next message were of 1970
	all := spans()
	check("nothing consumed", all[0], first, last, first, ever)
	check("empty queue", all[1], -1, -1, -1, ever)
	commit(t, group, topic, 0, 2)
	commit(t, group, topic, 1, 0)
	all = spans()
	check("two consumed", all[0], first, last, ms[1].StoreTimestamp, some)
	check("empty queue", all[1], -1, -1, -1, none)
	commit(t, group, topic, 0, 3)
	check("all consumed", spans()[0], first, last, last, none)

	expect(t, broker(), wire.Request(303, "topic", "NoSuchTopic", "group", group), answer{code: 17, remark: "topic[NoSuchTopic] not exist"})
	expect(t, broker(), wire.Request(303, "group", group), failure)
	expect(t, broker(), wire.Request(303, "topic", topic), answer{})
}

func TestBrokerConsumeStats(t *testing.T) {
	t.Parallel()
	const group = "G-stats"
	a, b := newTopic(t, "StatsA", 2), newTopic(t, "StatsB", 1)
	for range 2 {
		expect(t, broker(), sendV2(a), sent)
	}
	expectStored(t, a, 1, 2) // and one more
	f := expect(t, broker(), longPoll(a, 0, 10*time.Second), found)
	if f == nil {
		return
	}
	ms, err := wire.Messages(f.Body)
	if err != nil || len(ms) != 3 {
		t.Fatalf("%d messages, %v", len(ms), err)
	}
	of := func(order string) (string, map[string]any) {
		t.Helper()
		f := expect(t, broker(), wire.Request(317, "isOrder", order), answer{})
		if f == nil {
			t.FailNow()
		}
		all, _ := parsed(t, f.Body).(map[string]any)
		list, _ := all["consumeStatsList"].([]any)
		for _, v := range list {
			if one, _ := v.(map[string]any); one[group] != nil {
				stats, _ := one[group].([]any)
				var texts []string
				for _, v := range stats {
					text, err := json.Marshal(v)
					if err != nil {
						t.Fatal(err)
					}
					texts = append(texts, string(text))
				}
				slices.Sort(texts)
				return fmt.Sprint(texts), all
			}
		}
		return "none", all
	}
	if got, _ := of("false"); got != "none" {
		t.Errorf("a group that is not there yet: %s", got)
	}
	commit(t, group, a, 0, 2)
	commit(t, group, b, 0, 0)
	commit(t, group, "NoSuchTopic", 0, 1)
	one := join(t, "stats-1", group, 409, nil, a)
	queue := func(topic string, q, end, at int, last int64) string {
		return fmt.Sprintf(`"{\"brokerName\":\"oracle-a\",\"queueId\":%d,\"topic\":\"%s\"}":{"brokerOffset":%d,"consumerOffset":%d,"lastTimestamp":%d}`, q, topic, end, at, last)
	}
	stats := func(queues string) string { return `{"consumeTps":0,"offsetTable":{` + queues + `}}` }
	ofA := stats(queue(a, 0, 3, 2, ms[1].StoreTimestamp) + "," + queue(a, 1, 0, 0, 0))
	got, all := of("false")
	if got != "["+ofA+"]" {
		t.Errorf("online: %s, want %s", got, ofA)
	}
	if all["brokerAddr"] != broker() {
		t.Errorf("brokerAddr %v", all["brokerAddr"])
	}
	if got, _ := of("true"); got != "[]" { // it has a place without an ordered topic
		t.Errorf("ordered: %s", got)
	}
	one.Close() // then what it does not subscribe counts too
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	want := "[" + ofA + " " + stats(queue(b, 0, 0, 0, 0)) + "]"
	for end := time.Now().Add(patience); ; <-every.C {
		if got, _ := of("false"); got == want {
			break
		} else if time.Now().After(end) {
			t.Fatalf("offline: %s, want %s", got, want)
		}
	}
	expect(t, broker(), wire.Request(317), answer{})
}

// What 5.x clients send to any broker: a 4.9 broker refuses it.
func TestCodesOf5(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "Codes5").Topic
	lite := func() *wire.Frame {
		f := longPoll(topic, 0, 10*time.Second)
		f.Code = 361
		return f.Set("maxMsgBytes", "2147483647")
	}
	config := wire.Request(351, "topic", topic, "lo", "true")
	if server.Kind == target.Official {
		expect(t, broker(), lite(), answer{code: 3, remark: " request type 361 not supported"})
		expect(t, broker(), config, answer{code: 3, remark: " request type 351 not supported"})
		return
	}
	if f := expect(t, broker(), lite().Set("sysFlag", "22"), found); f != nil {
		if ms, err := wire.Messages(f.Body); err != nil || len(ms) != 1 || string(ms[0].Body) != "hello" {
			t.Errorf("%v, %v", ms, err)
		}
	}
	expect(t, broker(), lite().Set("topic", "NoSuchTopic"), answer{17, "topic[NoSuchTopic] not exist, apply first please! " + seeFAQ, "{}"})
	expect(t, fastPort(), lite(), answer{code: 3, remark: " request type 361 not supported"})
	expectBody(t, "topic", expect(t, broker(), config, answer{}), `{"attributes":{},"order":false,"perm":6,"readQueueNums":2,`+
		`"topicFilterType":"SINGLE_TAG","topicName":"Codes5","topicSysFlag":0,"writeQueueNums":2}`)
	expect(t, broker(), wire.Request(351, "topic", "NoSuchTopic"), answer{code: 17, remark: "No topic in this broker. topic: NoSuchTopic"})
	expect(t, broker(), wire.Request(351), failure)
}
