//go:build conformance

package differential

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// consumer is a hand-made member of a consumer group.
type consumer struct {
	*wire.Conn
	id string
}

// heartbeat is what a push consumer says of itself.
func heartbeat(clientId, group string, version int, topics ...string) *wire.Frame {
	var subscriptions []map[string]any
	for _, topic := range topics {
		subscriptions = append(subscriptions, map[string]any{"classFilterMode": false, "codeSet": []int{}, "expressionType": "TAG",
			"subString": "*", "subVersion": 1, "tagsSet": []string{}, "topic": topic})
	}
	text, err := json.Marshal(map[string]any{"clientID": clientId, "producerDataSet": []any{}, "consumerDataSet": []any{map[string]any{
		"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "consumeType": "CONSUME_PASSIVELY", "groupName": group, "messageModel": "CLUSTERING",
		"subscriptionDataSet": subscriptions, "unitMode": false}}})
	if err != nil {
		panic(err) // only strings are in it
	}
	f := wire.Request(34).WithBody(text)
	f.Version = version
	return f
}

// join makes a member of a group; onServer answers what the broker asks of it.
func join(t *testing.T, clientId, group string, version int, onServer func(*wire.Frame) *wire.Frame, topics ...string) consumer {
	t.Helper()
	c, err := wire.Dial(broker(), onServer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f, err := c.Call(heartbeat(clientId, group, version, topics...), patience)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := (answer{}).matches(f); wrong != "" {
		t.Fatalf("heartbeat of %s: %s", clientId, wrong)
	}
	return consumer{c, clientId}
}

// asked waits until the broker has asked n requests of a code of this consumer, and returns the last.
func (c consumer) asked(t *testing.T, code, n int) *wire.Frame {
	t.Helper()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-every.C {
		var of []*wire.Frame
		for _, f := range c.Requests() {
			if f.Code == code {
				of = append(of, f)
			}
		}
		if len(of) >= n {
			return of[n-1]
		}
	}
	t.Fatalf("%s was not asked %d times for %d", c.id, n, code)
	return nil
}

// commit notes where a group stands.
func commit(t *testing.T, group, topic string, queueId int, offset int64) {
	t.Helper()
	expect(t, broker(), wire.Request(15, "consumerGroup", group, "topic", topic, "queueId", itoa(queueId),
		"commitOffset", strconv.FormatInt(offset, 10)), answer{ext: "{}"})
}

// committed is where a group stands, as the broker's table has it.
func committed(t *testing.T, group, topic string, queueId int) string {
	t.Helper()
	f := expect(t, broker(), wire.Request(43), answer{})
	if f == nil {
		return ""
	}
	table, _ := parsed(t, f.Body).(map[string]any)["offsetTable"].(map[string]any)
	queues, _ := table[topic+"@"+group].(map[string]any)
	offset, ok := queues[itoa(queueId)].(float64)
	if !ok {
		return "none"
	}
	return strconv.FormatInt(int64(offset), 10)
}

// parsed reads a body in fastjson's dialect.
func parsed(t *testing.T, text []byte) any {
	t.Helper()
	v, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// plain is a body in a form in which two of the same content are equal texts.
func plain(t *testing.T, text []byte) string {
	t.Helper()
	b, err := json.Marshal(parsed(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func expectBody(t *testing.T, what string, f *wire.Frame, want string) {
	t.Helper()
	if f == nil {
		return
	}
	if got := plain(t, f.Body); got != plain(t, []byte(want)) {
		t.Errorf("%s: body %s, want %s", what, f.Body, want)
	}
}

func queueJSON(topic string, queueId int) string {
	return fmt.Sprintf(`{"brokerName":"oracle-a","queueId":%d,"topic":"%s"}`, queueId, topic)
}

// A request for one consumer is handed on as it is, and its answer comes back as it is.
func TestRunningInfo(t *testing.T) {
	t.Parallel()
	const group = "G-running"
	answers := make(chan *wire.Frame, 1)
	c := join(t, "running-1", group, 409, func(f *wire.Frame) *wire.Frame {
		if f.Code == 307 {
			return <-answers
		}
		return nil
	}, "TBW102")
	ask := func(clientId string) *wire.Frame {
		return wire.Request(307, "consumerGroup", group, "clientId", clientId, "jstackEnable", "true", "more", "kept")
	}
	for i, tt := range []struct {
		given *wire.Frame
		want  answer
	}{
		{(&wire.Frame{Language: "JAVA"}).WithBody([]byte(`{"jstack":"main","properties":{"a":"b"}}`)), answer{}},
		{&wire.Frame{Code: 1, Language: "JAVA", Remark: "The Consumer Group <G-running> not exist in this consumer"},
			answer{code: 1, remark: "The Consumer Group <G-running> not exist in this consumer"}},
		{(&wire.Frame{Code: 208, Language: "JAVA"}).Set("own", "field"), answer{code: 208, ext: "own"}},
	} {
		answers <- tt.given
		f := expect(t, broker(), ask("running-1"), tt.want)
		if f != nil && string(f.Body) != string(tt.given.Body) {
			t.Errorf("body %q, want %q", f.Body, tt.given.Body)
		}
		got := c.asked(t, 307, i+1)
		if ext := strings.Join(got.ExtNames(), " "); ext != "clientId consumerGroup jstackEnable more" || got.Ext["jstackEnable"] != "true" || got.IsOneway() {
			t.Errorf("the consumer is asked with %v, flag %d", got.Ext, got.Flag)
		}
	}
	expect(t, broker(), ask("nobody"), answer{code: 1, remark: "The Consumer <G-running> <nobody> not online"})
	expect(t, broker(), ask("running-1").Set("consumerGroup", "G-no"), answer{code: 1, remark: "The Consumer <G-no> <running-1> not online"})
	expect(t, broker(), ask("running-1").Without("consumerGroup"), failure)
	expect(t, broker(), ask("running-1").Without("clientId"), failure)
	expect(t, broker(), wire.Request(307), failure)

	for version, name := range map[int]string{0: "V3_0_0_SNAPSHOT", 15: "V3_0_0_FINAL", 45: "V3_0_15", 61: "V3_1_7"} {
		id := "old-" + itoa(version)
		join(t, id, group, version, nil, "TBW102")
		expect(t, broker(), ask(id), answer{code: 1,
			remark: "The Consumer <" + id + "> Version <" + name + "> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"})
	}
}

// A consumer that does not answer is waited for 10 s.
func TestConsumerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	join(t, "silent", "G-silent", 409, nil, "TBW102")
	began := time.Now()
	expect(t, broker(), wire.Request(307, "consumerGroup", "G-silent", "clientId", "silent"),
		answer{code: 207, remark: "consumer <G-silent> <silent> Timeout: *"})
	if took := time.Since(began); took < 9*time.Second {
		t.Errorf("answered after %v", took)
	}
}

// A consumer that goes away before it has answered: the official server waits its 10 s out all the same.
func TestConsumerThatGoesAway(t *testing.T) {
	t.Parallel()
	c := join(t, "leaving", "G-leaving", 409, nil, "TBW102")
	admin := dial(t, broker())
	p, err := admin.Send(wire.Request(307, "consumerGroup", "G-leaving", "clientId", "leaving"))
	if err != nil {
		t.Fatal(err)
	}
	c.asked(t, 307, 1)
	c.Close()
	f, err := p.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	want := answer{code: 1, remark: "invoke consumer <G-leaving> <leaving> Exception: *"}
	if server.Kind == target.Official {
		want = answer{code: 207, remark: "consumer <G-leaving> <leaving> Timeout: *"}
	}
	if wrong := want.matches(f); wrong != "" {
		t.Error(wrong)
	}
}

// A consumer is given a stored message, as it is stored, and what it makes of it comes back.
func TestConsumeDirectly(t *testing.T) {
	t.Parallel()
	first := newTopicWithMessage(t, "Directly")
	const group = "G-directly"
	result := `{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":1}`
	c := join(t, "direct-1", group, 409, func(f *wire.Frame) *wire.Frame {
		if f.Code != 309 {
			return nil
		}
		return (&wire.Frame{Language: "JAVA"}).WithBody([]byte(result))
	}, first.Topic)
	host := first.StoreHost.Addr().As4()
	id := fmt.Sprintf("%X%08X%016X", host[:], first.StoreHost.Port(), first.PhyOffset)
	ask := func() *wire.Frame {
		return wire.Request(309, "consumerGroup", group, "clientId", "direct-1", "msgId", id)
	}
	f := expect(t, broker(), ask(), answer{})
	expectBody(t, "result", f, result)
	got := c.asked(t, 309, 1)
	if got.Ext["brokerName"] != "oracle-a" || got.Ext["msgId"] != id || len(got.Ext) != 4 {
		t.Errorf("the consumer is asked with %v", got.Ext)
	}
	if ms, err := wire.Messages(got.Body); err != nil || len(ms) != 1 || ms[0].PhyOffset != first.PhyOffset || string(ms[0].Body) != "hello" {
		t.Errorf("the consumer is given %v, %v", ms, err)
	}
	expect(t, broker(), ask().Set("brokerName", "another"), answer{})
	if got := c.asked(t, 309, 2); got.Ext["brokerName"] != "oracle-a" {
		t.Errorf("the consumer is asked with %v", got.Ext)
	}
	expect(t, broker(), ask().Without("clientId"), answer{code: 1, remark: "The Consumer <G-directly> <null> not online"})
	expect(t, broker(), ask().Set("clientId", "nobody"), answer{code: 1, remark: "The Consumer <G-directly> <nobody> not online"})
	for _, wrong := range []string{"", "x", "C0A80001", id[:16] + "G" + id[17:], id[:16] + "7FFFFFFFFFFFFFF0"} {
		expect(t, broker(), ask().Set("msgId", wrong), failure)
	}
	expect(t, broker(), ask().Without("msgId"), failure)
	expect(t, broker(), ask().Without("consumerGroup"), failure)
}

// resetOffset is the administrator's request.
func resetOffset(group, topic, timestamp string, force bool) *wire.Frame {
	return wire.Request(222, "topic", topic, "group", group, "timestamp", timestamp, "isForce", strconv.FormatBool(force))
}

func TestResetOffset(t *testing.T) {
	t.Parallel()
	const group = "G-reset"
	topic := newTopic(t, "Reset", 2)
	expect(t, broker(), resetOffset(group, "NoSuchTopic", "-1", true),
		answer{code: 1, remark: "[reset-offset] reset offset failed, no topic in this broker. topic=NoSuchTopic"})
	expect(t, broker(), resetOffset(group, topic, "-1", true), answer{code: 1, remark: "THe consumer group <G-reset> not exist"})
	for range 4 {
		expect(t, broker(), sendV2(topic), sent)
	}
	expectStored(t, topic, 2, 4) // and one more
	commit(t, group, topic, 0, 2)
	expect(t, broker(), resetOffset(group, topic, "-1", true), answer{code: 1, remark: "THe consumer group <G-reset> not exist"})
	commit(t, group, topic, 1, 1)
	for _, timestamp := range []string{"-1", "0", "1700000000000"} {
		expect(t, broker(), resetOffset(group, topic, timestamp, true), answer{code: 206,
			remark: "Consumer not online, so can not reset offset, Group: G-reset Topic: Reset Timestamp: " + timestamp})
	}
	one, two := join(t, "reset-1", group, 409, nil, topic), join(t, "reset-2", group, 28, nil, topic)
	table := func(a, b int) string {
		return fmt.Sprintf(`{"offsetTable":{%s:%d,%s:%d}}`, queueJSON(topic, 0), a, queueJSON(topic, 1), b)
	}
	future := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	for i, tt := range []struct {
		timestamp string
		force     bool
		a, b      int
	}{
		{"-1", true, 5, 0},  // to the end
		{"-1", false, 2, 0}, // only backwards
		{"0", true, 0, 0},   // to the beginning
		{"0", false, 0, 0},
		{future, true, 4, 0}, // the message nearest to the time
		{future, false, 2, 0},
	} {
		f := expect(t, broker(), resetOffset(group, topic, tt.timestamp, tt.force), created)
		expectBody(t, tt.timestamp, f, table(tt.a, tt.b))
		for _, c := range []consumer{one, two} {
			got := c.asked(t, 220, i+1)
			expectBody(t, c.id, got, table(tt.a, tt.b))
			if !got.IsOneway() || fmt.Sprint(got.Ext) != "map[group:G-reset isForce:false timestamp:"+tt.timestamp+" topic:Reset]" {
				t.Errorf("%s is told %v, flag %d", c.id, got.Ext, got.Flag)
			}
		}
	}
	// The members are told in the form that the administrator's language has; he is answered in Java's.
	f := resetOffset(group, topic, "0", true)
	f.Language = "CPP"
	expectBody(t, "C++", expect(t, broker(), f, created), table(0, 0))
	for _, c := range []consumer{one, two} {
		list, _ := parsed(t, c.asked(t, 220, 7).Body).(map[string]any)["offsetTable"].([]any)
		got := sortedTexts(list)
		if want := []string{`{"brokerName":"oracle-a","offset":0,"queueId":0,"topic":"Reset"}`, `{"brokerName":"oracle-a","offset":0,"queueId":1,"topic":"Reset"}`}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is told %s, want %s", c.id, got, want)
		}
	}
	// Without isForce it is not forced; the broker's own table stays as it was.
	expectBody(t, "unforced", expect(t, broker(), resetOffset(group, topic, "-1", true).Without("isForce"), created), table(2, 0))
	if got := committed(t, group, topic, 0); got != "2" {
		t.Errorf("the broker's offset became %s", got)
	}
	for _, field := range []string{"topic", "group"} {
		expect(t, broker(), resetOffset(group, topic, "0", true).Without(field), failure)
	}
	// A time that is none is 1970.
	expectBody(t, "no time", expect(t, broker(), resetOffset(group, topic, "x", true), created), table(0, 0))
	expectBody(t, "no time", expect(t, broker(), resetOffset(group, topic, "0", true).Without("timestamp"), created), table(0, 0))

	join(t, "reset-old", group, 27, nil, topic)
	expect(t, broker(), resetOffset(group, topic, "-1", true), answer{code: 1, remark: "the client does not support this feature. version=V3_0_6"})
}

func TestConsumerStatus(t *testing.T) {
	t.Parallel()
	const group, topic = "G-status", "TBW102"
	table := func(offset int) string { return fmt.Sprintf(`{%s:%d}`, queueJSON(topic, 3), offset) }
	stands := func(offset int) func(*wire.Frame) *wire.Frame {
		return func(f *wire.Frame) *wire.Frame {
			if f.Code != 221 {
				return nil
			}
			if offset < 0 {
				return &wire.Frame{Code: 1, Language: "JAVA", Remark: "no", Body: []byte(`{}`)}
			}
			return (&wire.Frame{Language: "JAVA"}).WithBody([]byte(`{"consumerTable":{},"messageQueueTable":` + table(offset) + `}`))
		}
	}
	ask := func(more ...string) *wire.Frame {
		return wire.Request(223, append([]string{"topic", topic, "group", group}, more...)...)
	}
	expect(t, broker(), ask(), failure) // nobody is online
	one := join(t, "status-1", group, 409, stands(5), topic)
	join(t, "status-2", group, 28, stands(7), topic)
	join(t, "status-3", group, 409, stands(-1), topic)
	f := expect(t, broker(), ask(), created)
	expectBody(t, "of all", f, `{"consumerTable":{"status-1":`+table(5)+`,"status-2":`+table(7)+`},"messageQueueTable":{}}`)
	if got := one.asked(t, 221, 1); fmt.Sprint(got.Ext) != "map[group:G-status topic:TBW102]" || got.IsOneway() {
		t.Errorf("the member is asked with %v, flag %d", got.Ext, got.Flag)
	}
	expectBody(t, "of one", expect(t, broker(), ask("clientAddr", "status-2"), created), `{"consumerTable":{"status-2":`+table(7)+`},"messageQueueTable":{}}`)
	expectBody(t, "of nobody", expect(t, broker(), ask("clientAddr", "nobody"), created), `{"consumerTable":{},"messageQueueTable":{}}`)
	expectBody(t, "of a blank", expect(t, broker(), ask("clientAddr", " "), created),
		`{"consumerTable":{"status-1":`+table(5)+`,"status-2":`+table(7)+`},"messageQueueTable":{}}`)
	expect(t, broker(), ask().Without("topic"), created)
	expect(t, broker(), ask().Without("group"), failure)
	join(t, "status-old", group, 27, stands(9), topic)
	expect(t, broker(), ask(), answer{code: 1, remark: "the client does not support this feature. version=V3_0_6"})
}
