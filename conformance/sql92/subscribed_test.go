//go:build conformance

package sql92

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// subscribe sends a heartbeat of a group that subscribes a topic by an expression.
func (s session) subscribe(group, topic, expressionType, expression string, version int) {
	s.Helper()
	text, err := json.Marshal(expression)
	if err != nil {
		s.Fatal(err)
	}
	s.done(wire.Request(34).WithBody([]byte(`{"clientID":"c@` + group + `","producerDataSet":[],"consumerDataSet":[{"groupName":"` + group +
		`","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","unitMode":false,` +
		`"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"tagsSet":[],"expressionType":"` + expressionType + `","subString":` + string(text) +
		`,"subVersion":` + strconv.Itoa(version) + `,"topic":"` + topic + `"}]}]}`)))
}

// subscribed is a pull without the subscription: by what the heartbeats have said.
func subscribed(group, topic string, version int) *wire.Frame {
	return pull(group, topic, "", 0).Set("sysFlag", "0").Set("subVersion", strconv.Itoa(version))
}

// takes checks which messages a pull by the group's subscription gives.
func (s session) takes(group, topic string, version int, want ...string) {
	s.Helper()
	a := s.ask(subscribed(group, topic, version))
	if got := s.bodies(a); a.Code != 0 && a.Code != 20 || !slices.Equal(got, want) {
		s.Errorf("%s takes %q, want %q (%d %s)", group, got, want, a.Code, a.Remark)
	}
}

// refused checks a pull's error.
func (s session) refused(f *wire.Frame, code int, remark string) {
	s.Helper()
	if a := s.ask(f); a.Code != code || a.Remark != remark {
		s.Errorf("got %d %q, want %d %q", a.Code, a.Remark, code, remark)
	}
}

// What a heartbeat says holds for the pulls of the group; a newer version replaces an older, an older one changes nothing.
func TestSubscription(t *testing.T) {
	t.Parallel()
	s := dial(t)
	topic, group := s.topic("SqlSubscription", 1), "G-SqlSubscription"
	for _, a := range []string{"1", "2", "3"} {
		s.send(topic, wire.Properties("a", a), "a="+a)
	}
	s.send(topic, wire.Properties("TAGS", "T"), "none")
	s.stored(topic, 4)
	s.subscribe(group, topic, "SQL92", "a = 1 OR a IS NULL", 10)
	s.takes(group, topic, 10, "a=1", "none")
	s.takes(group, topic, 0, "a=1", "none")
	s.refused(subscribed(group, topic, 11), 25, "the consumer's subscription not latest")
	s.subscribe(group, topic, "SQL92", "a > 1", 11)
	s.takes(group, topic, 11, "a=2", "a=3")
	s.subscribe(group, topic, "SQL92", "a = 3", 10)
	s.takes(group, topic, 11, "a=2", "a=3")
	s.subscribe(group, topic, "TAG", "T", 12)
	s.subscribe(group, topic, "SQL92", "a = 3", 13)
	s.takes(group, topic, 13, "a=3")
	s.refused(pull(group, topic, "", 0), 23, "parse the consumer's subscription failed")
}

// An expression that is wrong is refused when the client asks, and a consumer that has it gets nothing but the reason.
func TestWrongExpression(t *testing.T) {
	t.Parallel()
	s := dial(t)
	topic, group := s.topic("SqlWrong", 1), "G-SqlWrong"
	s.send(topic, wire.Properties("a", "1"), "a=1")
	s.stored(topic, 1)
	const reason = `org.apache.rocketmq.filter.parser.TokenMgrError: Lexical error at line 1, column 3.  Encountered: "b" (98), after : "/"`
	if code, remark := s.check(topic, "a/b > 1"); code != 23 || remark != reason {
		t.Errorf("%d %s", code, remark)
	}
	s.subscribe(group, topic, "SQL92", "a = 1", 1)
	s.takes(group, topic, 1, "a=1")
	s.subscribe(group, topic, "SQL92", "a/b > 1", 2)
	if server.Kind == target.Official { // and a pull with the expression in it gives every message
		s.refused(subscribed(group, topic, 2), 27, "The broker's consumer filter data is not exist!Your expression may be wrong!")
	} else { // COMPATIBILITY.md
		s.refused(subscribed(group, topic, 2), 23, "parse the consumer's subscription failed at line 1, column 2: "+reason)
		s.refused(pull(group, topic, "a/b > 1", 0), 23, "parse the consumer's subscription failed at line 1, column 2: "+reason)
		s.refused(pull(group, topic, "a = 1", 0).Set("expressionType", "SQL99"), 23, "parse the consumer's subscription failed: there is no expression type SQL99")
	}
	s.subscribe(group, topic, "SQL92", "", 3)
	s.refused(subscribed(group, topic, 3), 27, "The broker's consumer filter data is not exist!Your expression may be wrong!")
	s.subscribe(group, topic, "NONE", "a", 4)
	if a := s.ask(subscribed(group, topic, 4)); a.Code != 27 && a.Code != 23 {
		t.Errorf("%d %s", a.Code, a.Remark)
	}
}

// A held pull is woken by a message that its expression takes, and by no other.
func TestHeldPull(t *testing.T) {
	t.Parallel()
	s := dial(t)
	topic, group := s.topic("SqlHeld", 1), "G-SqlHeld"
	s.subscribe(group, topic, "SQL92", "a BETWEEN 5 AND 10", 1)
	hold := func(f *wire.Frame, flag string) *wire.Pending {
		p, err := dial(t).Send(f.Set("sysFlag", flag).Set("suspendTimeoutMillis", "14000"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s.send(topic, wire.Properties("a", "5"), "first")
	s.stored(topic, 1)
	all := map[string]*wire.Pending{
		"subscribed": hold(subscribed(group, topic, 1).Set("queueOffset", "1"), "2"),
		"inline":     hold(pull(group, topic, "a = 7", 1), "6"),
	}
	for name, p := range all {
		if f, err := p.Wait(700 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: not held: %+v, %v", name, f, err)
		}
	}
	s.send(topic, wire.Properties("a", "x"), "no number")
	s.send(topic, wire.Properties("a", "11"), "too large")
	for name, p := range all {
		if f, err := p.Wait(700 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			if err != nil || f.Code == 0 { // the official scan every 5 s wakes whoever is behind: it finds nothing
				t.Fatalf("%s: woken by what it does not take: %+v, %v", name, f, err)
			}
			delete(all, name)
		}
	}
	s.send(topic, wire.Properties("a", "7"), "wanted")
	for name, p := range all {
		f, err := p.Wait(patience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := s.bodies(f); !slices.Equal(got, []string{"wanted"}) && f.Code != 20 {
			t.Errorf("%s: %d %s %q", name, f.Code, f.Remark, got)
		}
	}
}

// With filterSupportRetry a message in a retry topic has to fulfil the expression of the topic that it is from.
func TestRetryTopic(t *testing.T) {
	t.Parallel()
	s := dial(t)
	topic, group := s.topic("SqlRetry", 1), "G-SqlRetry"
	s.subscribe(group, topic, "SQL92", "a > 1", 1)
	retry := "%RETRY%" + group
	s.send(retry, wire.Properties("a", "1", "RETRY_TOPIC", topic), "excluded")
	s.send(retry, wire.Properties("a", "2", "RETRY_TOPIC", topic), "taken")
	s.send(retry, wire.Properties("a", "1", "RETRY_TOPIC", "SqlRetryOther"), "of another topic")
	s.stored(retry, 3)
	a := s.ask(pull(group, retry, "*", 0).Set("expressionType", "TAG"))
	if got := s.bodies(a); !slices.Equal(got, []string{"taken", "of another topic"}) {
		t.Errorf("%d %s %q", a.Code, a.Remark, got)
	}
}

// What consumers subscribe outlasts the broker in consumerFilter.json, and the bits of messages spare reading them.
func TestBitsAndFile(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{
		"enablePropertyFilter": "true", "enableCalcFilterBitMap": "true", "enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "1048576",
	}}}})
	b := c.Brokers[0]
	s := dialTo(t, b.Addr)
	topic := s.topic("SqlBits", 1)
	if text := string(s.done(wire.Request(26)).Body); !strings.Contains(text, "\nbitMapLengthConsumeQueueExt=112\n") {
		t.Errorf("the configuration lacks the length of a bit map:\n%s", text)
	}
	s.send(topic, wire.Properties("a", "5"), "before")
	s.stored(topic, 1)
	expressions := map[string]string{"G-SqlBits-1": "a > 1", "G-SqlBits-2": "a < 0", "G-SqlBits-3": "b IS NULL"}
	for group, e := range expressions {
		s.subscribe(group, topic, "SQL92", e, 7)
	}
	waitMillisecond()
	for _, a := range []string{"5", "-5", "x", "1"} {
		s.send(topic, wire.Properties("a", a), a)
	}
	s.send(topic, wire.Properties("b", "1"), "none")
	s.stored(topic, 6)
	s.takes("G-SqlBits-1", topic, 7, "before", "5")
	s.takes("G-SqlBits-2", topic, 7, "-5")
	s.takes("G-SqlBits-3", topic, 7, "before", "5", "-5", "x", "1")

	// The bits are the official ones: with the default settings three of 112.
	for group, want := range map[string][]string{
		"G-SqlBits-1": {"", "5"}, "G-SqlBits-2": {"", "-5"}, "G-SqlBits-3": {"", "5", "-5", "x", "1"},
	} {
		s.bits(topic, group, want)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.StoreDir, "config", "consumerFilter.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		FilterDataByTopic map[string]struct {
			Topic           string
			GroupFilterData map[string]map[string]any
		}
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	of := f.FilterDataByTopic[topic]
	if len(of.GroupFilterData) != 3 || of.Topic != topic {
		t.Fatalf("%s", text)
	}
	for group, e := range expressions {
		g := of.GroupFilterData[group]
		bloom, _ := g["bloomFilterData"].(map[string]any)
		if g["expression"] != e || g["expressionType"] != "SQL92" || g["topic"] != topic || g["consumerGroup"] != group ||
			g["clientVersion"] != 7.0 || bloom["bitNum"] != 112.0 || len(bloom["bitPos"].([]any)) != 3 {
			t.Errorf("%s: %v", group, g)
		}
	}
	t.Logf("%s", text)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s = dialTo(t, b.Addr)
	s.subscribe("G-SqlBits-1", topic, "SQL92", "a > 1", 7)
	s.takes("G-SqlBits-1", topic, 7, "before", "5")
}

// bits checks, by QUERY_CONSUME_QUEUE, for which messages the bits let a group through: those that its expression takes, and a few
// more; and that the others were decided without reading them.
func (s session) bits(topic, group string, take []string) {
	s.Helper()
	a := s.done(wire.Request(321, "topic", topic, "queueId", "0", "index", "0", "count", "10", "consumerGroup", group))
	var dump struct {
		FilterData string
		QueueData  []struct {
			BitMap, ExtendDataJson string
			Eval                   bool
		}
	}
	if err := json.Unmarshal(a.Body, &dump); err != nil {
		s.Fatalf("%v in %s", err, a.Body)
	}
	if !strings.Contains(dump.FilterData, `"expressionType":"SQL92"`) || len(dump.QueueData) != 6 {
		s.Fatalf("%s", a.Body)
	}
	excluded := 0
	for i, q := range dump.QueueData {
		body := []string{"", "5", "-5", "x", "1", "none"}[i]
		if wanted := slices.Contains(take, body); wanted && !q.Eval {
			s.Errorf("%s: the bits exclude %q", group, body)
		}
		if !q.Eval {
			excluded++
		}
		if (q.BitMap == "") != (i == 0) {
			s.Errorf("%s: message %d has the bits %q", group, i, q.BitMap)
		}
	}
	if excluded == 0 {
		s.Errorf("%s: the bits exclude nothing", group)
	}
}

// waitMillisecond waits for the clock's next millisecond: an expression counts for messages that are younger.
func waitMillisecond() {
	for start := time.Now().UnixMilli(); time.Now().UnixMilli() <= start+1; {
		runtime.Gosched()
	}
}
