package broker

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/broker/pop"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
)

// An invisible time that no Duration can hold is a long one: the message neither comes again at once, nor does a batch in order
// let the next pop have it.
func TestPopForEver(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "kept")
	b.send("T", 1, "", "soon")
	b.stored("T", 0, 0, 1)
	b.stored("T", 1, 0, 1)
	for queueId, invisible := range []int64{math.MaxInt64, 1} { // the first is due first, if it is due at all
		h := popHeader("T", 1, 0)
		h.QueueId, h.InvisibleTime = int32(queueId), invisible
		if n := len(b.pops(h)); n != 1 {
			t.Fatalf("%d messages", n)
		}
	}
	var again []got
	remotingtest.Eventually(t, "the other one comes again", func() bool {
		again = append(again, b.pops(popHeader("T", 32, time.Minute))...)
		return len(again) > 0
	})
	if all := texts(again); len(all) != 1 || all[0] != "soon" {
		t.Errorf("come again: %v", all)
	}
	if n := b.path.pop.checkpoints.Open(); n != 2 {
		t.Errorf("%d checkpoints", n)
	}
	h := popHeader("T", 1, 0)
	h.ConsumerGroup, h.QueueId, h.Order, h.InvisibleTime = "Ordered", 0, true, math.MaxInt64
	if first, second := len(b.pops(h)), len(b.pops(h)); first != 1 || second != 0 {
		t.Errorf("%d messages, then %d", first, second)
	}
}

// What one pop takes of several queues fits a frame; the next pop gets the rest. Officially the answer is sent as it is, and the
// client closes the connection.
func TestPopFitsAFrame(t *testing.T) {
	b := startPathBroker(t, nil)
	big := strings.Repeat("x", b.config().MaxMessageSize)
	const queues, each = 4, 2
	for q := range int32(queues) {
		for range each {
			b.send("T", q, "", big)
		}
	}
	for q := range int32(queues) {
		remotingtest.Eventually(t, "the messages are there", func() bool { return b.store.MaxOffset("T", q) == each })
	}
	total, taken := 0, [queues]int{}
	for total < queues*each {
		waiting := 0 // queues with a rest; a pop takes one such message of each, in an order of its own
		for _, n := range taken {
			if n < each {
				waiting++
			}
		}
		a := b.ask(protocol.PopMessage, popHeader("T", 32, time.Minute), nil)
		ms := b.messages(a)
		n := len(ms)
		if a.Code != 0 || n < min(3, waiting) {
			t.Fatalf("%d messages after %d, of %d queues: %d %q", n, total, waiting, a.Code, a.Remark)
		}
		for _, m := range ms {
			taken[m.QueueId]++
		}
		total += n
		if rest := field(t, a, "restNum"); rest != fmt.Sprint(queues*each-total) {
			t.Errorf("restNum %s after %d", rest, total)
		}
	}
	if n := b.path.pop.checkpoints.Open(); total != queues*each || n != queues*each {
		t.Errorf("%d messages, %d checkpoints", total, n)
	}
}

// A message that comes again, and whose text has no room for its receipt handle, stays under the name of the retry topic, and can be
// acknowledged so; with a handle its length would be negative, and no client could read the answer.
func TestPopAgainWithLongProperties(t *testing.T) {
	b := startPathBroker(t, nil)
	lengths := []int{0, 30, 60, 90, 120, 150, 200}
	for _, less := range lengths {
		b.send("T", 0, "KEYS="+strings.Repeat("k", message.MaxPropertiesLength-len("KEYS||CLUSTER|DefaultCluster")-less), fmt.Sprint(less))
	}
	b.stored("T", 0, 0, int64(len(lengths)))
	if n := len(b.pops(popHeader("T", 32, time.Millisecond))); n != len(lengths) {
		t.Fatalf("%d messages", n)
	}
	var again []string
	topics := map[string]int{}
	remotingtest.Eventually(t, "all come again", func() bool {
		for _, g := range b.pops(popHeader("T", 32, time.Minute)) {
			topics[g.Topic]++
			if g.ReconsumeTimes != 1 {
				t.Errorf("%s comes again for the %d. time", g.Body, g.ReconsumeTimes)
			}
			again = append(again, string(g.Body))
			g.ack.Topic = pop.RetryTopic("CG", "T")
			if _, ok := g.Property(message.PropertyPopCk); !ok { // as a client makes it
				g.ack.ExtraInfo = ""
			}
			if g.ack.ExtraInfo != "" {
				b.acknowledge(g)
			}
		}
		return len(again) >= len(lengths)
	})
	if slices.Sort(again); len(slices.Compact(again)) != len(lengths) || topics["T"] == 0 || topics["%RETRY%CG_T"] == 0 || len(topics) != 2 {
		t.Errorf("got %v of %v", again, topics)
	}
}

// Popped light message queues: offsets are places in the light queue, not those that the messages have in their own.
func TestPopLight(t *testing.T) {
	b := startPathBroker(t, light)
	for i := range 3 {
		b.send("TopicA", 1, "", fmt.Sprint("other ", i))
	}
	b.send("TopicA", 1, "INNER_MULTI_DISPATCH=%LMQ%a", "one")
	b.send("TopicA", 1, "INNER_MULTI_DISPATCH=%LMQ%a", "two")
	b.stored("%LMQ%a", 0, 0, 2)
	h := popHeader("%LMQ%a", 32, time.Minute)
	h.InvisibleTime = 200
	a := b.ask(protocol.PopMessage, h, nil)
	if o := field(t, a, "msgOffsetInfo"); o != "0 0 0,1" {
		t.Fatalf("offsets %q", o)
	}
	ack := &header.AckMessageRequest{ConsumerGroup: "CG", Topic: "%LMQ%a", Offset: 1,
		ExtraInfo: strings.Join([]string{"0", field(t, a, "popTime"), "200", field(t, a, "reviveQid"), "0", "broker-a", "0", "1"}, " ")}
	check(t, "ack", b.ask(protocol.AckMessage, ack, nil), protocol.Success, "")
	var again []got
	remotingtest.Eventually(t, "it comes again", func() bool {
		again = append(again, b.pops(popHeader("%LMQ%a", 32, time.Minute))...)
		return b.path.pop.checkpoints.Open() == len(again) && len(again) > 0
	})
	if len(again) != 1 || string(again[0].Body) != "one" {
		t.Errorf("come again: %v", texts(again))
	}
	b.acknowledge(again...)
	// A queue that is removed takes with it what is under way: another of that name has other messages there.
	b.send("TopicA", 1, "INNER_MULTI_DISPATCH=%LMQ%a", "three")
	b.stored("%LMQ%a", 0, 2, 3)
	if list := b.pops(popHeader("%LMQ%a", 32, time.Minute)); len(list) != 1 || b.path.pop.checkpoints.Open() != 1 {
		t.Fatalf("%v are under way", texts(list))
	}
	check(t, "delete", b.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "%LMQ%a"}, nil), protocol.Success, "")
	if n := b.path.pop.checkpoints.Open(); n != 0 {
		t.Errorf("%d checkpoints of a queue that is gone", n)
	}
}

// Who names a queue that it has never popped makes nobody keep it: as many names as there may be queues would else keep all groups
// from popping.
func TestStrangersKeepNoQueues(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "a")
	b.stored("T", 0, 0, 1)
	const handle = "0 1 1 999 0 broker-a 0 0"
	ask := func(group string) {
		check(t, "ack", b.ask(protocol.AckMessage, &header.AckMessageRequest{ConsumerGroup: group, Topic: "T", ExtraInfo: handle}, nil), protocol.Success, "")
		check(t, "change", b.ask(protocol.ChangeMessageInvisibleTime,
			&header.ChangeInvisibleTimeRequest{ConsumerGroup: group, Topic: "T", ExtraInfo: handle, InvisibleTime: 1}, nil),
			protocol.Success, unsetRemark, "popTime", "invisibleTime", "reviveQid")
		all := `{"acks":[{"c":"` + group + `","t":"T","r":"0","so":0,"q":0,"rq":999,"pt":1,"it":1,"b":"AQ=="},{"c":"CG","t":"` + group + `","r":"0","so":0,"q":7,"rq":999,"pt":1,"it":1,"b":"AQ=="}]}`
		check(t, "batch", b.ask(protocol.BatchAckMessage, nil, []byte(all)), protocol.Success, "")
	}
	ask("Stranger")
	c := b.path.pop.checkpoints
	if c.Known(pop.Key{Topic: "T", Group: "Stranger"}) != nil || c.Known(pop.Key{Topic: "Stranger", Group: "CG", QueueId: 7}) != nil {
		t.Error("a queue is kept")
	}
	// One whose batch the broker has forgotten: its first message can be acknowledged, what does not exist can't.
	b.offsets.Commit(b.anyone(), "Stranger", "T", 0, 0)
	for range 2 { // the second acknowledges what comes next
		ask("Stranger")
		check(t, "ack beyond the end", b.ask(protocol.AckMessage, &header.AckMessageRequest{ConsumerGroup: "Stranger", Topic: "T", ExtraInfo: handle, Offset: 1}, nil), protocol.Success, "")
		if at, _ := b.offsets.Query("Stranger", "T", 0); at != 1 {
			t.Errorf("the group stands at %d", at)
		}
	}
}

// maxMessageSize is for clients: a small one keeps no pop and no acknowledgement from being recorded. An attemptId is bounded.
func TestPopOddities(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MaxMessageSize = 10 })
	b.send("T", 0, "", "a")
	b.send("T", 0, "", "b")
	b.stored("T", 0, 0, 2)
	list := b.pops(popHeader("T", 32, time.Minute))
	if len(list) != 2 {
		t.Fatalf("%d messages", len(list))
	}
	b.acknowledge(list...)
	if n := b.path.pop.checkpoints.Open(); n != 0 {
		t.Errorf("%d checkpoints", n)
	}
	h := popHeader("T", 32, time.Minute)
	h.Order, h.AttemptId = true, strings.Repeat("x", maxAttemptId+1)
	check(t, "long attemptId", b.ask(protocol.PopMessage, h, nil), protocol.InvalidParameter, "attemptId is longer than 255 bytes",
		"popTime", "invisibleTime", "reviveQid", "restNum")
}

// A group that was deleted is not made again by its messages that come again.
func TestPopAgainOfDeletedGroup(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "a")
	b.stored("T", 0, 0, 1)
	b.pops(popHeader("T", 1, 300*time.Millisecond))
	check(t, "delete", b.ask(protocol.DeleteSubscriptionGroup, &header.DeleteSubscriptionGroupRequest{GroupName: "CG"}, nil), protocol.Success, "")
	remotingtest.Eventually(t, "it comes again", func() bool { return b.store.MaxOffset(pop.RetryTopic("CG", "T"), 0) == 1 })
	if _, ok := b.groups.Lookup("CG"); ok {
		t.Error("the group is there again")
	}
}
