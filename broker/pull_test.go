package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

var pullFields = []string{"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"}

// TestPullResults: codes, remarks and next offsets for every place of the asked offset, as PullMessageProcessor of 4.9.8.
func TestPullResults(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "0")
	for i := range 4 {
		b.send("T", 0, "TAGS=TagA", fmt.Sprint(i+1))
	}
	b.stored("T", 0, 0, 5)
	cases := []struct {
		name    string
		change  func(h *header.PullMessageRequest)
		code    protocol.ResponseCode
		remark  string
		next    int64
		max     int64
		message int
	}{
		{"all", func(h *header.PullMessageRequest) {}, 0, "FOUND", 5, 5, 5},
		{"some", func(h *header.PullMessageRequest) { h.MaxMsgNums, h.QueueOffset = 2, 1 }, 0, "FOUND", 3, 5, 2},
		{"no number is one", func(h *header.PullMessageRequest) { h.MaxMsgNums = 0 }, 0, "FOUND", 1, 5, 1},
		{"a great many", func(h *header.PullMessageRequest) { h.MaxMsgNums = 1 << 30 }, 0, "FOUND", 5, 5, 5},
		{"a tag", func(h *header.PullMessageRequest) { h.Subscription = "TagA" }, 0, "FOUND", 5, 5, 4},
		{"tags", func(h *header.PullMessageRequest) { h.Subscription, h.MaxMsgNums = "TagB || TagA", 2 }, 0, "FOUND", 3, 5, 2},
		{"another tag", func(h *header.PullMessageRequest) { h.Subscription = "TagB" }, 20, "NO_MATCHED_MESSAGE", 5, 5, 0},
		{"at the end", func(h *header.PullMessageRequest) { h.QueueOffset = 5 }, 19, "OFFSET_OVERFLOW_ONE", 5, 5, 0},
		{"beyond", func(h *header.PullMessageRequest) { h.QueueOffset = 6 }, 21, "OFFSET_OVERFLOW_BADLY", 5, 5, 0},
		{"before the start", func(h *header.PullMessageRequest) { h.QueueOffset = -1 }, 21, "OFFSET_TOO_SMALL", 0, 5, 0},
		{"empty queue", func(h *header.PullMessageRequest) { h.QueueId = 1 }, 19, "NO_*", 0, 0, 0},
		{"empty queue, later", func(h *header.PullMessageRequest) { h.QueueId, h.QueueOffset = 1, 9 }, 21, "NO_*", 0, 0, 0},
	}
	for _, c := range cases {
		h := pullHeader("T", 0, 0)
		c.change(h)
		a := b.ask(protocol.PullMessage, h, nil)
		check(t, c.name, a, c.code, c.remark, pullFields...)
		if n, m := field(t, a, "nextBeginOffset"), field(t, a, "maxOffset"); n != fmt.Sprint(c.next) || m != fmt.Sprint(c.max) ||
			field(t, a, "minOffset") != "0" || field(t, a, "suggestWhichBrokerId") != "0" {
			t.Errorf("%s: %v", c.name, a.Fields)
		}
		if ms := b.messages(a); len(ms) != c.message {
			t.Errorf("%s: %d messages", c.name, len(ms))
		}
	}
	h := pullHeader("T", 0, 0)
	h.MaxMsgNums = -1
	check(t, "negative number", b.ask(protocol.PullMessage, h, nil), 1, "header field maxMsgNums: -1 is negative")

	// Each 21 leaves an event.
	remotingtest.Eventually(t, "events are stored", func() bool { return b.store.MaxOffset(topics.OffsetMovedEvent, 0) == 3 })
	m := b.stored(topics.OffsetMovedEvent, 0, 0, 3)[0]
	if want := `{"consumerGroup":"CG","messageQueue":{"brokerName":"broker-a","queueId":0,"topic":"T"},"offsetNew":5,"offsetRequest":6}`; string(m.Body) != want {
		t.Errorf("event %s, want %s", m.Body, want)
	}
	if p := plain(m.Properties); p != "TAGS=CG|DELAY=0|KEYS=CG" || m.BornHost != b.storeHost() {
		t.Errorf("event: properties %s, born at %v", p, m.BornHost)
	}
}

// heartbeat registers a consumer of group CG on the broker's own connection.
func (p *pathBroker) heartbeat(model body.MessageModel, s ...body.SubscriptionData) {
	p.tb.Helper()
	data, err := compat.Marshal(&body.HeartbeatData{ClientID: "c1", ConsumerDataSet: []body.ConsumerData{{GroupName: "CG", MessageModel: model,
		ConsumeType: body.ConsumePassively, ConsumeFromWhere: body.ConsumeFromFirstOffset, SubscriptionDataSet: s}}})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.peer.Send(p.request(protocol.HeartBeat, nil, data))
	for {
		if a := p.peer.Receive(); a.IsResponse() { // a notice may come before the answer
			if a.Code != 0 {
				p.tb.Fatalf("heartbeat: code %d, %q", a.Code, a.Remark)
			}
			return
		}
	}
}

func subscription(topic, expression string, version int64) body.SubscriptionData {
	s := body.SubscriptionData{Topic: topic, SubString: expression, SubVersion: version, ExpressionType: "TAG"}
	if expression != "*" {
		s.CodeSet, s.TagsSet = []int32{compat.HashCode(expression)}, []string{expression}
	}
	return s
}

// TestPullRefused: checks in the official order with the official remarks.
func TestPullRefused(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "TAGS=TagA", "x")
	b.topics.Put(&topics.Config{TopicName: "WriteOnly", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 2, TopicFilterType: topics.SingleTag})
	disabled, quiet := *b.groups.Find("Disabled"), *b.groups.Find("CG")
	disabled.ConsumeEnable = false
	b.groups.Put(&disabled)
	cases := []struct {
		name   string
		change func(h *header.PullMessageRequest)
		code   protocol.ResponseCode
		remark string
	}{
		{"group disabled", func(h *header.PullMessageRequest) { h.ConsumerGroup = "Disabled" }, 16, "subscription group no permission, Disabled"},
		{"no topic", func(h *header.PullMessageRequest) { h.Topic = "None" }, 17, "topic[None] not exist, apply first please! " + faq},
		{"topic not readable", func(h *header.PullMessageRequest) { h.Topic = "WriteOnly" }, 16, "the topic[WriteOnly] pulling message is forbidden"},
		{"queue too high", func(h *header.PullMessageRequest) { h.QueueId = 4 }, 1, "queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:*"},
		{"queue negative", func(h *header.PullMessageRequest) { h.QueueId = -1 }, 1, "queueId[-1] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:*"},
		{"only separators", func(h *header.PullMessageRequest) { h.Subscription = "||" }, 23, "parse the consumer's subscription failed"},
		{"SQL92", func(h *header.PullMessageRequest) { h.ExpressionType, h.Subscription = "SQL92", "a > 1" }, 1, "The broker does not support consumer to filter message by SQL92"},
		{"SQL92 without a text", func(h *header.PullMessageRequest) { h.ExpressionType, h.Subscription = "SQL92", "" }, 23, "parse the consumer's subscription failed"},
		{"no heartbeat", func(h *header.PullMessageRequest) { h.SysFlag = 0 }, 24, "the consumer's group info not exist" + faq},
	}
	for _, c := range cases {
		h := pullHeader("T", 0, 0)
		c.change(h)
		check(t, c.name, b.ask(protocol.PullMessage, h, nil), c.code, c.remark, "{}")
	}
	check(t, "field missing", b.ask(protocol.PullMessage, &header.Empty{}, nil), 1, "*")

	subscribed := func(topic string, version int64) *protocol.Command {
		h := pullHeader(topic, 0, 0)
		h.SysFlag, h.SubVersion = 0, version
		return b.ask(protocol.PullMessage, h, nil)
	}
	b.heartbeat(body.Broadcasting, subscription("T", "TagA", 10))
	check(t, "subscribed", subscribed("T", 10), 0, "FOUND", pullFields...)
	check(t, "subscription newer at the client", subscribed("T", 11), 25, "the consumer's subscription not latest", "{}")
	check(t, "topic not subscribed", subscribed(topics.Benchmark, 10), 24, "the consumer's subscription not exist"+faq, "{}")
	quiet.ConsumeBroadcastEnable = false
	b.groups.Put(&quiet)
	check(t, "no broadcast", subscribed("T", 10), 16, "the consumer group[CG] can not consume by broadcast way", "{}")
	b.heartbeat(body.Clustering, subscription("T", "TagB", 12))
	check(t, "subscription replaced", subscribed("T", 12), 20, "NO_MATCHED_MESSAGE", pullFields...)
	class := subscription("T", "org.example.Filter", 13)
	class.ClassFilterMode, class.CodeSet = true, nil
	b.heartbeat(body.Clustering, class)
	check(t, "class filter", subscribed("T", 13), 0, "FOUND", pullFields...)
	sql := subscription("T", "a > 1", 14)
	sql.ExpressionType = "SQL92"
	b.heartbeat(body.Clustering, sql)
	check(t, "SQL92 subscribed", subscribed("T", 14), 1, "The broker does not support consumer to filter message by SQL92", "{}")
}

func TestPullBrokerRefusals(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.BrokerPermission, c.AutoCreateSubscriptionGroup = 2, false })
	check(t, "broker not readable", b.ask(protocol.PullMessage, pullHeader("T", 0, 0), nil), 16, "the broker[127.0.0.1] pulling message is forbidden", "{}")
	b = startPathBroker(t, func(c *Config) { c.AutoCreateSubscriptionGroup = false })
	check(t, "no group", b.ask(protocol.PullMessage, pullHeader("T", 0, 0), nil), 26, "subscription group [CG] does not exist, "+faq, "{}")
	// The fast port does not pull.
	p := remotingtest.Dial(t, fmt.Sprintf("127.0.0.1:%d", b.FastPort()))
	check(t, "fast port", p.Ask(b.request(protocol.PullMessage, pullHeader("T", 0, 0), nil)), 3, " request type 11 not supported")
}

// TestPullCommits: an offset is committed by the first pass only, held or not, and not by a refused pull.
func TestPullCommits(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "x")
	b.stored("T", 0, 0, 1)
	commit := func(queueId int32, offset, at int64, flags int32) {
		h := pullHeader("T", queueId, at)
		h.SysFlag |= flags
		h.CommitOffset, h.SuspendTimeoutMillis = offset, 60_000
		if flags&pullSuspend != 0 {
			b.peer.Send(b.request(protocol.PullMessage, h, nil))
			return
		}
		b.ask(protocol.PullMessage, h, nil)
	}
	offset := func(queueId int32) int64 { o, _ := b.offsets.Query("CG", "T", queueId); return o }
	commit(0, 5, 0, 0)
	if offset(0) != -1 {
		t.Errorf("committed %d without the flag", offset(0))
	}
	commit(0, 5, 0, pullCommitOffset)
	if offset(0) != 5 {
		t.Errorf("committed %d, want 5", offset(0))
	}
	commit(9, 5, 0, pullCommitOffset)
	if offset(9) != -1 {
		t.Error("committed by a refused pull")
	}
	commit(1, 7, 0, pullCommitOffset|pullSuspend)
	remotingtest.Eventually(t, "held and committed", func() bool { return b.path.held.Held() == 1 && offset(1) == 7 })
	b.offsets.Commit(b.anyone(), "CG", "T", 1, 3)
	other := b.dial()
	r := b.request(protocol.SendMessage, sendHeader("T", 1, ""), []byte("x"))
	other.Ask(r)
	if a := b.peer.Receive(); a.Code != 0 || offset(1) != 3 {
		t.Errorf("woken: code %d; the second pass committed %d", a.Code, offset(1))
	}
}

func held(topic string, queueId int32, offset, millis int64) *header.PullMessageRequest {
	h := pullHeader(topic, queueId, offset)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = millis
	return h
}

// hourlyScan has held pulls looked at each hour: what answers one is an arrival.
func hourlyScan(c *Config) { c.LongPollingEnable, c.ShortPollingTimeMills = false, 3_600_000 }

// TestLongPoll: a held pull is answered by an arrival that its filter takes, without waiting for the scan.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, hourlyScan)
	b.send("T", 0, "", "0")
	b.stored("T", 0, 0, 1)
	consumer := b.dial()
	h := held("T", 0, 1, 60_000)
	h.Subscription = "TagA"
	r := b.request(protocol.PullMessage, h, nil)
	consumer.Send(r)
	remotingtest.Eventually(t, "held", func() bool { return b.path.held.Held() == 1 })
	b.send("T", 0, "TAGS=TagB", "other")
	b.send("T", 1, "TAGS=TagA", "other queue")
	if a, err := consumer.TryReceive(100 * time.Millisecond); err == nil {
		t.Fatalf("answered with code %d by a message that it does not want", a.Code)
	}
	consumer = nil
	consumer2 := b.dial()
	r2 := b.request(protocol.PullMessage, held("T", 0, 2, 60_000), nil)
	consumer2.Send(r2)
	remotingtest.Eventually(t, "held", func() bool { return b.path.held.Held() == 2 })
	b.send("T", 0, "TAGS=TagA", "wanted")
	a := consumer2.Receive()
	if ms := b.messages(a); a.Code != 0 || a.Opaque != r2.Opaque || len(ms) != 1 || string(ms[0].Body) != "wanted" {
		t.Fatalf("code %d, %q", a.Code, a.Remark)
	}
	remotingtest.Eventually(t, "none held", func() bool { return b.path.held.Held() == 0 })
}

// TestLongPollTimesOut: the scan answers a pull whose time is over; here with the short period of longPollingEnable=false.
func TestLongPollTimesOut(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.LongPollingEnable, c.ShortPollingTimeMills = false, 50 })
	b.send("T", 0, "", "0")
	b.stored("T", 0, 0, 1)
	a := b.ask(protocol.PullMessage, held("T", 0, 1, 3_600_000), nil)
	check(t, "time-out", a, protocol.PullNotFound, "OFFSET_OVERFLOW_ONE", pullFields...)
	if field(t, a, "nextBeginOffset") != "1" {
		t.Errorf("%v", a.Fields)
	}
}

// TestHeldPullsEnd: the end of a connection drops its pulls, the end of the broker answers them.
func TestHeldPullsEnd(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "0")
	b.stored("T", 0, 0, 1)
	gone := b.dial()
	for q := range int32(3) {
		gone.Send(b.request(protocol.PullMessage, held("T", q, int64(1-min(q, 1)), 60_000), nil))
	}
	r := b.request(protocol.PullMessage, held("T", 0, 1, 60_000), nil)
	b.peer.Send(r)
	remotingtest.Eventually(t, "held", func() bool { return b.path.held.Held() == 4 })
	gone.Close()
	remotingtest.Eventually(t, "dropped", func() bool { return b.path.held.Held() == 1 })
	peer := b.peer
	done := make(chan *protocol.Command, 1)
	go func() {
		a, err := peer.TryReceive(remotingtest.Patience)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	b.close()
	a := <-done
	check(t, "stopped", a, protocol.PullNotFound, "OFFSET_OVERFLOW_ONE", pullFields...)
	if a.Opaque != r.Opaque || field(t, a, "nextBeginOffset") != "1" {
		t.Errorf("opaque %d, %v", a.Opaque, a.Fields)
	}
}

// TestPullsOfAStoppingBroker: once held pulls have been answered, one that would be held is told to come back later.
func TestPullsOfAStoppingBroker(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "0")
	b.stored("T", 0, 0, 1)
	b.answerHeld()
	check(t, "would be held", b.ask(protocol.PullMessage, held("T", 0, 1, 60_000), nil), protocol.ServiceNotAvailable, "the broker is stopping", "{}")
	check(t, "does not ask to be held", b.ask(protocol.PullMessage, pullHeader("T", 0, 1), nil), protocol.PullNotFound, "OFFSET_OVERFLOW_ONE", pullFields...)
	check(t, "finds messages", b.ask(protocol.PullMessage, held("T", 0, 0, 60_000), nil), protocol.Success, "FOUND", pullFields...)
}

// TestLongPollRace lets a producer and consumers run against each other: no message may wait for a scan.
func TestLongPollRace(t *testing.T) {
	b := startPathBroker(t, nil)
	const n = 300
	b.send("T", 0, "", "first")
	b.stored("T", 0, 0, 1)
	errs := make(chan error, 4)
	for g := range 4 {
		p := b.dial()
		go func() {
			for at := int64(1); at <= n; {
				r := protocol.NewRequest(protocol.PullMessage, held("T", 0, at, 60_000), nil)
				r.Opaque = int32(at)
				p.Send(r)
				a, err := p.TryReceive(3 * time.Second)
				if err != nil || a.Code != 0 {
					errs <- fmt.Errorf("consumer %d at %d: %v, %v", g, at, a, err)
					return
				}
				at += int64(len(b.messages(a)))
			}
			errs <- nil
		}()
	}
	for i := range n {
		b.send("T", 0, "", strings.Repeat("x", i%7))
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
