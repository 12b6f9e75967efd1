//go:build conformance

package configured

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// A pull that waits at a light queue is woken by a message that names the queue, one at another light queue is not.
func TestLightQueueWakes(t *testing.T) {
	t.Parallel()
	s := connect(t)
	topic := s.topic("LightWakes")
	hold := func(group, name string) *wire.Pending {
		p, err := connect(t).Conn.Send(pull(group, name, 0).Set("sysFlag", "6").Set("suspendTimeoutMillis", "50000"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	wanted := map[string]*wire.Pending{"plain group": hold("LightReader", "%LMQ%wakes"), "light group": hold("%LMQ%mqtt/client@1:2", "%LMQ%wakes")}
	other := hold("LightReader", "%LMQ%sleeps")
	for name, p := range wanted {
		if a, err := p.Wait(300 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: not held: %+v, %v", name, a, err)
		}
	}
	s.Done(message(topic, "good morning", "INNER_MULTI_DISPATCH", "%LMQ%wakes,%LMQ%awake", "TAGS", "x"))
	for name, p := range wanted {
		a, err := p.Wait(patience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ms, err := wire.Messages(a.Body)
		if err != nil || a.Code != 0 || len(ms) != 1 || string(ms[0].Body) != "good morning" || ms[0].Topic != topic || ms[0].Properties["INNER_MULTI_QUEUE_OFFSET"] != "0,0" {
			t.Errorf("%s: %d %q, %+v, %v", name, a.Code, a.Remark, ms, err)
		}
	}
	if a, err := other.Wait(300 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("another light queue: %+v, %v", a, err)
	}
	// What lies in a light queue goes with it, and in no other.
	s.Done(wire.Request(215, "topic", "%LMQ%awake"))
	if gone, kept := s.max("%LMQ%awake", 0), s.max("%LMQ%wakes", 0); gone != 0 || kept != 1 || s.max(topic, 0) != 1 {
		t.Errorf("%d in the queue that was removed, %d in the other", gone, kept)
	}
}

// A light group is named after a client, has one offset a topic whatever queue is named, and its members are found.
func TestLightGroups(t *testing.T) {
	t.Parallel()
	s := connect(t)
	topic := s.topic("LightGroups")
	const group, other = "%LMQ%10.0.0.1@mqtt/one", "%LMQ%10.0.0.1@mqtt/two"
	for range 3 {
		s.Done(message(topic, "x", "INNER_MULTI_DISPATCH", "%LMQ%groups"))
	}
	until(t, "three are dispatched", func() bool { return s.max("%LMQ%groups", 0) == 3 })
	offset := func(group, topic, queueId string) string {
		return s.Done(wire.Request(14, "consumerGroup", group, "topic", topic, "queueId", queueId)).Ext["offset"]
	}
	commit := func(group, topic, queueId, offset string) {
		s.Done(wire.Request(15, "consumerGroup", group, "topic", topic, "queueId", queueId, "commitOffset", offset))
	}
	commit(group, "%LMQ%groups", "0", "2")
	commit(group, topic, "3", "1")
	commit(other, topic, "0", "7")
	for _, c := range []struct{ group, topic, queueId, want string }{
		{group, "%LMQ%groups", "0", "2"}, {group, topic, "0", "1"}, {group, topic, "3", "1"}, {other, topic, "9", "7"},
	} {
		if got := offset(c.group, c.topic, c.queueId); got != c.want {
			t.Errorf("%s in %s %s stands at %s, want %s", c.group, c.topic, c.queueId, got, c.want)
		}
	}
	// A pull commits too (flag 1).
	s.Done(pull(group, "%LMQ%groups", 0).Set("sysFlag", "5").Set("commitOffset", "3"))
	if got := offset(group, "%LMQ%groups", "0"); got != "3" {
		t.Errorf("after the pull it stands at %s", got)
	}
	all := string(s.Done(wire.Request(43)).Body)
	for _, want := range []string{`"%LMQ%groups@` + group + `":3`, `"` + topic + "@" + group + `":1`, `"` + topic + "@" + other + `":7`} {
		if at := strings.Index(all, `"lmqOffsetTable"`); at < 0 || !strings.Contains(all[at:], want) {
			t.Errorf("all offsets lack %s:\n%s", want, all)
		}
	}
	s.Done(wire.Request(34).WithBody([]byte(`{"clientID":"10.0.0.1@mqtt/one","producerDataSet":[],"consumerDataSet":[{"groupName":"` + group +
		`","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","unitMode":false,` +
		`"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"tagsSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"topic":"%LMQ%groups"}]}]}`)))
	if members := string(s.Done(wire.Request(38, "consumerGroup", group)).Body); members != `{"consumerIdList":["10.0.0.1@mqtt/one"]}` {
		t.Errorf("members %s", members)
	}
	if groups := string(s.Done(wire.Request(201)).Body); strings.Contains(groups, group) {
		t.Errorf("the table of groups has %s", group)
	}
}

// A message that waits is in no light queue before it is in its own topic. The official server puts it there at once, so that it is
// consumed before it is due, or although it is never committed; and its copies once more.
func TestLightQueuesOfWhatWaits(t *testing.T) {
	t.Parallel()
	s := connect(t)
	topic := s.topic("LightWaits")
	s.Done(message(topic, "late", "INNER_MULTI_DISPATCH", "%LMQ%late", "DELAY", "1"))
	half := s.Done(wire.Half(topic, 0, "LightProducer", "half", "INNER_MULTI_DISPATCH", "%LMQ%half"))
	undone := s.Done(wire.Half(topic, 0, "LightProducer", "undone", "INNER_MULTI_DISPATCH", "%LMQ%undone"))
	s.Done(wire.EndSent("LightProducer", undone, wire.Rollback))
	s.Done(wire.EndSent("LightProducer", half, wire.Commit))
	until(t, "both are in their topic", func() bool { return s.max(topic, 0) == 2 })
	want := map[string]int64{"%LMQ%late": 1, "%LMQ%half": 1, "%LMQ%undone": 0}
	if official() {
		want = map[string]int64{"%LMQ%late": 2, "%LMQ%half": 2, "%LMQ%undone": 1}
	}
	for name, n := range want {
		until(t, "they are in "+name, func() bool { return s.max(name, 0) >= n })
		if got := s.max(name, 0); got != n {
			t.Errorf("%d messages in %s, want %d", got, name, n)
		}
	}
}
