package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
)

var sendFields = []string{"msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON"}

const faq = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."

// TestSendStores: one message in each form of request, as it is stored and answered.
func TestSendStores(t *testing.T) {
	b := startPathBroker(t, nil)
	for i, code := range []protocol.RequestCode{protocol.SendMessage, protocol.SendMessageV2} {
		h := sendHeader("TopicA", 1, "KEYS=k|UNIQ_KEY=u|WAIT=true|TAGS=TagA")
		h.SysFlag, h.ReconsumeTimes = message.Compressed, protocol.Some[int32](3)
		a := b.ask(code, h, []byte("hello"))
		check(t, code.String(), a, protocol.Success, "", sendFields...)
		if q, o := field(t, a, "queueId"), field(t, a, "queueOffset"); q != "1" || o != fmt.Sprint(i) {
			t.Errorf("%v: queue %s, offset %s", code, q, o)
		}
		m := b.stored("TopicA", 1, int64(i), int64(i+1))[0]
		if id := field(t, a, "msgId"); id != message.OffsetMsgId(b.storeHost(), m.PhyOffset) {
			t.Errorf("msgId %s, stored at %d", id, m.PhyOffset)
		}
		if region, trace := field(t, a, "MSG_REGION"), field(t, a, "TRACE_ON"); region != "DefaultRegion" || trace != "true" {
			t.Errorf("region %s, trace %s", region, trace)
		}
		if plain(m.Properties) != "KEYS=k|UNIQ_KEY=u|TAGS=TagA|CLUSTER=DefaultCluster" || string(m.Body) != "hello" || m.Flag != 7 ||
			m.SysFlag != message.Compressed || m.ReconsumeTimes != 3 || m.BornTimestamp != 1_700_000_000_000 ||
			m.BornHost.String() != b.peer.LocalAddr().String() || m.StoreHost != b.storeHost() {
			t.Errorf("stored: %+v", m)
		}
	}
	if a := b.ask(protocol.SendMessageV2, sendHeader("TopicA", 0, ""), nil); a.Code != 0 { // no body is stored
		t.Errorf("no body: code %d, %q", a.Code, a.Remark)
	}
	// The topic was created after TBW102, and is in its file by the time of the answer.
	c, ok := b.topics.Lookup("TopicA")
	if !ok || c.ReadQueueNums != 4 || c.WriteQueueNums != 4 || c.Perm != 6 {
		t.Errorf("created: %+v", c)
	}
	if data, err := b.files.ReadFile("/store/config/topics.json"); err != nil || !strings.Contains(string(data), `"TopicA"`) {
		t.Errorf("topics.json: error %v", err)
	}
}

// TestSendRefused: checks in the official order with the official remarks.
func TestSendRefused(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.AutoCreateSubscriptionGroup = false })
	b.send("TopicA", 0, "", "x")
	long := strings.Repeat("x", 128)
	big := strings.Repeat("x", 4<<20+1)
	illegal := "the message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, msg properties length limit 32KB."
	cases := []struct {
		name   string
		h      *header.SendMessageRequest
		body   string
		code   protocol.ResponseCode
		remark string
	}{
		{"no topic", sendHeader("", 0, ""), "x", 1, "The specified topic is blank."},
		{"blank topic", sendHeader(" ", 0, ""), "x", 1, "The specified topic is blank."},
		{"illegal topic", sendHeader("a/b", 0, ""), "x", 1, "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"},
		{"long topic", sendHeader(long, 0, ""), "x", 1, "The specified topic is longer than topic max length."},
		{"system topic", sendHeader("SCHEDULE_TOPIC_XXXX", 0, ""), "x", 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."},
		{"no template", &header.SendMessageRequest{Topic: "New", DefaultTopic: "None"}, "x", 17, "topic[New] not exist, apply first please!" + faq},
		{"queue too high", sendHeader("TopicA", 4, ""), "x", 1, "request queueId[4] is illegal, TopicConfig [topicName=TopicA, readQueueNums=4, writeQueueNums=4, " +
			"perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false] Producer: 127.0.0.1:*"},
		{"retry topic of no group", sendHeader("%RETRY%nobody", 0, ""), "x", 26, "subscription group not exist, nobody " + faq},
		{"body too large", sendHeader("TopicA", 0, ""), big, 13, illegal},
		{"properties too long", sendHeader("TopicA", 0, "a="+strings.Repeat("x", 32750)), "x", 13, illegal},
	}
	for _, c := range cases {
		before := b.store.MaxPhyOffset()
		check(t, c.name, b.ask(protocol.SendMessage, c.h, []byte(c.body)), c.code, c.remark, "MSG_REGION", "TRACE_ON")
		if b.store.MaxPhyOffset() != before {
			t.Errorf("%s: something was stored", c.name)
		}
	}
	// Where 4.9.8 ends in an exception there is no header.
	check(t, "delay level no number", b.ask(protocol.SendMessage, sendHeader("TopicA", 0, "DELAY=x"), []byte("x")), 1, `property DELAY: "x" is not a number`)
	check(t, "no fields at all", b.ask(protocol.SendMessage, &header.Empty{}, []byte("x")), 1, "The specified topic is blank.", "MSG_REGION", "TRACE_ON")
	check(t, "queue id missing", b.ask(protocol.SendMessage, &header.GetMaxOffsetRequest{Topic: "TopicA"}, []byte("x")), 1, "header field sysFlag is missing")
	check(t, "no default topic", b.ask(protocol.SendMessage, &header.SendMessageRequest{Topic: "New"}, []byte("x")), 1, "header field defaultTopic is missing")
	b.topics.Put(&topics.Config{TopicName: "NoWrite", ReadQueueNums: 1, Perm: 6, TopicFilterType: topics.SingleTag})
	check(t, "no write queues", b.ask(protocol.SendMessage, sendHeader("NoWrite", -1, ""), []byte("x")), 1, "topic[NoWrite] has no write queues")
}

func TestSendConfiguredRefusals(t *testing.T) {
	from := time.Now().Add(time.Hour)
	b := startPathBroker(t, func(c *Config) { c.StartAcceptSendRequestTimeStamp = from.UnixMilli() })
	check(t, "too early", b.ask(protocol.SendMessage, sendHeader("T", 0, ""), nil), 1,
		"broker unable to service, until "+from.Format("2006-01-02 15:04:05,000"), "MSG_REGION", "TRACE_ON")

	b = startPathBroker(t, func(c *Config) { c.BrokerPermission = 4 })
	b.send("Free", 0, "", "x") // brokerPermission counts for order topics only
	b.topics.Put(&topics.Config{TopicName: "Ordered", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: topics.SingleTag, Order: true})
	check(t, "broker not writable", b.ask(protocol.SendMessage, sendHeader("Ordered", 0, ""), nil), 16,
		"the broker[127.0.0.1] sending message is forbidden", "MSG_REGION", "TRACE_ON")
}

func TestSendChoosesQueue(t *testing.T) {
	b := startPathBroker(t, nil)
	seen := map[string]bool{}
	for range 64 {
		seen[field(t, b.send("T", -1, "", "x"), "queueId")] = true
	}
	if len(seen) != 4 {
		t.Errorf("queues %v of 4 were chosen in 64 sends", seen)
	}
}

func TestSendMultiTag(t *testing.T) {
	b := startPathBroker(t, nil)
	b.topics.Put(&topics.Config{TopicName: "Multi", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: topics.MultiTag})
	b.send("Multi", 0, "", "x")
	if m := b.stored("Multi", 0, 0, 1)[0]; m.SysFlag != message.MultiTags {
		t.Errorf("sysFlag %#x", m.SysFlag)
	}
}

// TestSendRetryTopic: a consumer that could not send back sends to its retry topic (message-format.md section 12).
func TestSendRetryTopic(t *testing.T) {
	b := startPathBroker(t, nil)
	send := func(times int32, limit protocol.Optional[int32], version int32) *protocol.Command {
		h := sendHeader("%RETRY%g", 0, "")
		h.ReconsumeTimes, h.MaxReconsumeTimes = protocol.Some(times), limit
		r := b.request(protocol.SendMessage, h, []byte("x"))
		r.Version = version
		return b.peer.Ask(r)
	}
	none := protocol.Optional[int32]{}
	for _, c := range []struct {
		times   int32
		limit   protocol.Optional[int32]
		version int32
		dead    bool
	}{
		{15, none, 409, false}, {16, none, 409, true}, {3, protocol.Some[int32](3), 409, true}, {2, protocol.Some[int32](3), 409, false},
		{3, protocol.Some[int32](3), 120, false}, // before V3_4_9 the header does not count
	} {
		retry, dlq := b.store.MaxOffset("%RETRY%g", 0), b.store.MaxOffset("%DLQ%g", 0)
		if a := send(c.times, c.limit, c.version); a.Code != 0 || field(t, a, "queueId") != "0" {
			t.Fatalf("%+v: code %d, %q", c, a.Code, a.Remark)
		}
		if c.dead {
			dlq++
		} else {
			retry++
		}
		remotingtest.Eventually(t, "stored where it belongs", func() bool {
			return b.store.MaxOffset("%RETRY%g", 0) == retry && b.store.MaxOffset("%DLQ%g", 0) == dlq
		})
	}
}

func TestSendBatch(t *testing.T) {
	b := startPathBroker(t, nil)
	var data []byte
	for i := range 3 {
		data = message.AppendElement(data, message.Element{Flag: int32(i), Body: fmt.Appendf(nil, "b%d", i), Properties: []byte(text("KEYS=k" + fmt.Sprint(i)))})
	}
	data = message.AppendElement(data, message.Element{Body: []byte("bare")})
	h := sendHeader("T", 2, "WAIT=true")
	h.Batch = true
	a := b.ask(protocol.SendBatchMessage, h, data)
	check(t, "batch", a, protocol.Success, "", sendFields...)
	ms := b.stored("T", 2, 0, 4)
	var ids []string
	for i, m := range ms {
		ids = append(ids, message.OffsetMsgId(b.storeHost(), m.PhyOffset))
		want := fmt.Sprintf("KEYS=k%d|WAIT=true|CLUSTER=DefaultCluster", i)
		if i == 3 {
			want = "WAIT=true|CLUSTER=DefaultCluster"
		}
		if plain(m.Properties) != want || m.QueueOffset != int64(i) || i < 3 && m.Flag != int32(i) {
			t.Errorf("element %d: %+v", i, m)
		}
	}
	if got := field(t, a, "msgId"); got != strings.Join(ids, ",") || field(t, a, "queueOffset") != "0" {
		t.Errorf("msgId %s, want %v; offset %s", got, ids, field(t, a, "queueOffset"))
	}
	// What says it is no batch is one message, whatever the code; what says it is one is one.
	h.Batch = false
	if a = b.ask(protocol.SendBatchMessage, h, []byte("single")); a.Code != 0 {
		t.Errorf("code 320 without m: %d, %q", a.Code, a.Remark)
	}
	illegal := "the message is illegal, maybe msg body*"
	refused := []string{"MSG_REGION", "TRACE_ON"}
	for _, c := range []struct {
		name   string
		change func(*header.SendMessageRequest) []byte
		code   protocol.ResponseCode
		remark string
		fields []string
	}{
		{"delay", func(h *header.SendMessageRequest) []byte { h.Properties = text("DELAY=1"); return data }, 13, illegal, refused},
		{"prepared", func(h *header.SendMessageRequest) []byte { h.SysFlag = message.TransactionPrepared; return data }, 13, illegal, refused},
		{"too large", func(h *header.SendMessageRequest) []byte { return make([]byte, 4<<20+1) }, 13, illegal, refused},
		{"malformed", func(h *header.SendMessageRequest) []byte { return data[:len(data)-1] }, 1, "message: malformed batch*", nil},
		{"no body", func(h *header.SendMessageRequest) []byte { return nil }, 1, "batch without a body", nil},
		{"properties too long together", func(h *header.SendMessageRequest) []byte {
			h.Properties = text("a=" + strings.Repeat("x", 20000))
			return message.AppendElement(nil, message.Element{Properties: []byte(text("b=" + strings.Repeat("y", 20000)))})
		}, 13, illegal, refused},
	} {
		h := sendHeader("T", 2, "")
		h.Batch = true
		body := c.change(h)
		check(t, c.name, b.ask(protocol.SendMessageV2, h, body), c.code, c.remark, c.fields...)
	}
}

// TestSendRun: pipelined sends, some refused, are stored in their order and each gets its own answer.
func TestSendRun(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "first")
	const n = 300
	var cmds []*protocol.Command
	for i := range n {
		h := sendHeader("T", 0, "")
		if i%3 == 1 {
			h.QueueId = 99
		}
		r := b.request(protocol.SendMessageV2, h, fmt.Appendf(nil, "%d", i))
		if i%5 == 0 {
			r.Flag = protocol.FlagOneway
		}
		cmds = append(cmds, r)
	}
	b.peer.Send(cmds...)
	answers := map[int32]*protocol.Command{}
	for i, r := range cmds {
		if i%5 != 0 {
			a := b.peer.Receive()
			answers[a.Opaque] = a
			_ = r
		}
	}
	ms := b.stored("T", 0, 0, 201)
	for len(ms) < 201 {
		ms = append(ms, b.stored("T", 0, int64(len(ms)), 201)...)
	}
	at := 1
	for i, r := range cmds {
		a := answers[r.Opaque]
		if (a == nil) != (i%5 == 0) {
			t.Fatalf("%d: answer %v", i, a)
		}
		if i%3 == 1 {
			if a != nil && a.Code != 1 {
				t.Errorf("%d: code %d", i, a.Code)
			}
			continue
		}
		if string(ms[at].Body) != fmt.Sprint(i) {
			t.Fatalf("place %d has %s, want %d", at, ms[at].Body, i)
		}
		if a != nil && (a.Code != 0 || field(t, a, "queueOffset") != fmt.Sprint(at) || field(t, a, "msgId") != message.OffsetMsgId(b.storeHost(), ms[at].PhyOffset)) {
			t.Errorf("%d: code %d, %v", i, a.Code, a.Fields)
		}
		at++
	}
}

func TestSendDelayed(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MessageDelayLevel = "1h 2h" })
	b.send("T", 3, "WAIT=true|DELAY=1|TAGS=A", "x")
	b.send("T", 3, "DELAY=7", "beyond the highest level")
	b.send("T", 3, "DELAY=0", "at once")
	b.send("T", 3, "DELAY=-1", "at once")
	remotingtest.Eventually(t, "stored", func() bool {
		return b.store.MaxOffset(topics.Schedule, 0) == 1 && b.store.MaxOffset(topics.Schedule, 1) == 1 && b.store.MaxOffset("T", 3) == 2
	})
	m := b.stored(topics.Schedule, 0, 0, 1)[0]
	if plain(m.Properties) != "WAIT=true|DELAY=1|TAGS=A|CLUSTER=DefaultCluster|REAL_TOPIC=T|REAL_QID=3" {
		t.Errorf("waiting: %s", plain(m.Properties))
	}
	if m = b.stored(topics.Schedule, 1, 0, 1)[0]; !strings.Contains(plain(m.Properties), "DELAY=2") || strings.Contains(plain(m.Properties), "DELAY=7") {
		t.Errorf("waiting: %s", plain(m.Properties))
	}
}

// TestDelayedIsDelivered: end to end, with the official default of level 1.
func TestDelayedIsDelivered(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, func(c *Config) { c.MessageDelayLevel = "1s 2h"; hourlyScan(c) })
	start := time.Now()
	a := b.send("T", 1, "DELAY=1|TAGS=A", "x")
	if q := field(t, a, "queueId"); q != "1" {
		t.Errorf("answered queue %s", q)
	}
	h := pullHeader("T", 1, 0)
	h.SysFlag |= pullSuspend
	h.SuspendTimeoutMillis = 15_000
	h.Subscription = "A"
	got := b.ask(protocol.PullMessage, h, nil)
	took := time.Since(start)
	if got.Code != 0 || took < 999*time.Millisecond {
		t.Fatalf("pulled after %v: code %d, %q", took, got.Code, got.Remark)
	}
	m := b.messages(got)[0]
	if plain(m.Properties) != "DELAY=1|TAGS=A|CLUSTER=DefaultCluster|REAL_TOPIC=T|REAL_QID=1" || m.QueueOffset != 0 || string(m.Body) != "x" {
		t.Errorf("delivered: %+v", m)
	}
}

func TestSyncFlush(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.FlushDiskType = "SYNC_FLUSH" })
	for _, wait := range []string{"", "WAIT=true", "WAIT=false"} {
		b.send("T", 0, wait, "x")
	}
	var cmds []*protocol.Command
	for i := range 64 {
		cmds = append(cmds, b.request(protocol.SendMessageV2, sendHeader("T", 0, []string{"", "WAIT=false"}[i%2]), []byte("x")))
	}
	b.peer.Send(cmds...)
	var seen []int32
	for range cmds {
		a := b.peer.Receive()
		if a.Code != 0 || field(t, a, "msgId") == "" {
			t.Fatalf("code %d, %q", a.Code, a.Remark)
		}
		seen = append(seen, a.Opaque)
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); len(seen) != 64 {
		t.Errorf("%d answers", len(seen))
	}
	b.stored("T", 0, 0, 67)
}
