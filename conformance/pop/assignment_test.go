//go:build conformance

package pop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// member makes a connection a member of the group.
func (s *session) member(clientId string) *session {
	s.Helper()
	m := &session{T: s.T, topic: s.topic, group: s.group, broker: s.broker}
	m.connect()
	m.want(wire.Request(34).WithBody([]byte(`{"clientID":"`+clientId+`","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY",`+
		`"groupName":"`+s.group+`","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,`+
		`"tagsSet":[],"topic":"`+s.topic+`"}],"unitMode":false}],"producerDataSet":[]}`)), 0)
	return m
}

// assigned asks what a client takes messages from: "mode: queue ids"; "nothing said" without a list.
func (s *session) assigned(clientId, strategy, model string) string {
	s.Helper()
	a := s.want(wire.Request(400).WithBody([]byte(fmt.Sprintf(`{"topic":%q,"consumerGroup":%q,"clientId":%q,"strategyName":%q,"messageModel":%q}`,
		s.topic, s.group, clientId, strategy, model))), 0)
	list, ok := s.object(a)["messageQueueAssignments"].([]any)
	if !ok {
		return "nothing said"
	}
	mode := "none"
	var ids []string
	for _, one := range list {
		o := one.(map[string]any)
		q := o["messageQueue"].(map[string]any)
		if q["topic"] != s.topic || q["brokerName"] != server.Brokers[0].Name {
			s.Errorf("assigned %v", q)
		}
		mode = o["mode"].(string)
		ids = append(ids, fmt.Sprint(q["queueId"]))
	}
	slices.Sort(ids)
	return mode + ": " + strings.Join(ids, " ")
}

// The broker shares out queues by the official strategies, and says who pops.
func TestAssignment(t *testing.T) {
	s := open(t, "Assign", 8)
	expect := func(want, clientId, strategy, model string) {
		t.Helper()
		if got := s.assigned(clientId, strategy, model); got != want {
			t.Errorf("%s, %s, %s: %s, want %s", clientId, strategy, model, got, want)
		}
	}
	expect("nothing said", "a", "AVG", "CLUSTERING") // nobody is there
	for _, id := range []string{"a", "b", "c", "d"} {
		s.member(id)
	}
	expect("PULL: 0 1", "a", "AVG", "CLUSTERING")
	expect("PULL: 6 7", "d", "AVG", "CLUSTERING")
	expect("PULL: 1 5", "b", "AVG_BY_CIRCLE", "CLUSTERING")
	expect("nothing said", "b", "CONSISTENT_HASH", "CLUSTERING")
	expect("PULL: 0 1 2 3 4 5 6 7", "b", "AVG", "BROADCASTING")
	expect("none: ", "stranger", "AVG", "CLUSTERING")

	set := func(topic, group, mode string, share, code int) *wire.Frame {
		t.Helper()
		return s.want(wire.Request(401).WithBody([]byte(fmt.Sprintf(`{"topic":%q,"consumerGroup":%q,"mode":%q,"popShareQueueNum":%d}`, topic, group, mode, share))), code)
	}
	s.remark(set("%RETRY%"+s.group, s.group, "POP", 0, 16), "retry topic is not allowed to set mode")
	s.remark(set("PopNone", s.group, "POP", 0, 17), "topic[PopNone] not exist")
	set(s.topic, s.group, "POP", 0, 0)
	expect("POP: -1", "a", "AVG", "CLUSTERING")
	set(s.topic, s.group, "POP", 1, 0)
	expect("POP: 0 1 2 3", "a", "AVG", "CLUSTERING")
	expect("POP: 0 1 6 7", "d", "AVG", "CLUSTERING")
	expect("POP: 0 3 4 7", "d", "AVG_BY_CIRCLE", "CLUSTERING")

	entry := fmt.Sprintf(`{"consumerGroup":%q,"mode":"POP","popShareQueueNum":1,"topic":%q}`, s.group, s.topic)
	a := s.want(wire.Request(402), 0)
	if !strings.Contains(string(a.Body), entry) {
		t.Errorf("402 says %s, not %s", a.Body, entry)
	}
	text, err := os.ReadFile(filepath.Join(server.Brokers[0].StoreDir, "config", "messageRequestMode.json"))
	if err != nil {
		t.Fatal(err)
	}
	if plain := strings.Join(strings.Fields(string(text)), ""); !strings.Contains(plain, entry) {
		t.Errorf("the file says %s", plain)
	}
	s.want(wire.Request(401).WithBody([]byte(`{"topic":"`+s.topic+`","mode":"POP","popShareQueueNum":0}`)), 1)
	set(s.topic, s.group, "pull", 0, 0)
	expect("PULL: 2 3", "b", "AVG", "CLUSTERING")
}

// Where a group stands that pops shows as where one that pulls stands, and a group that pulls has all messages beside it.
func TestProgress(t *testing.T) {
	s := open(t, "Progress", 2)
	s.send(0, "", "a", "b", "c")
	s.send(1, "", "d")
	s.take(s.pop(0, 2, 5*60*1e9))
	s.stands("0", "2")
	s.member("p")
	a := s.want(wire.Request(208, "consumerGroup", s.group, "topic", s.topic), 0)
	v, err := wire.ParseJSON(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for q, o := range v.(map[string]any)["offsetTable"].(map[string]any) {
		for _, id := range []string{"0", "1"} {
			if strings.Contains(q, `"queueId":`+id) {
				w := o.(map[string]any)
				got[id] = fmt.Sprint(w["consumerOffset"], " of ", w["brokerOffset"])
			}
		}
	}
	if got["0"] != "2 of 3" || got["1"] != "0 of 1" {
		t.Errorf("progress %v: %s", got, a.Body)
	}
	pull := wire.Request(11, "consumerGroup", s.group+"Pull", "topic", s.topic, "queueId", "0", "queueOffset", "0", "maxMsgNums", "32", "sysFlag", "4",
		"commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG")
	if got := bodies(s.messages(s.want(pull, 0))); got != "a,b,c" {
		t.Errorf("a group that pulls got %s", got)
	}
}
