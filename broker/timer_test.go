package broker

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestTimerDue: which property counts, and what is refused (HookUtils of 5.3.3).
func TestTimerDue(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	cfg := DefaultConfig("")
	const day = 24 * 3600 * 1000
	for _, c := range []struct {
		properties string
		after      int64 // ms; 0 at once, -1 refused
	}{
		{"TIMER_DELAY_SEC=5|TIMER_DELAY_MS=7|TIMER_DELIVER_MS=1800000000009|__STARTDELIVERTIME=1800000000011", 5000},
		{"TIMER_DELAY_MS=7|TIMER_DELIVER_MS=1800000000009|__STARTDELIVERTIME=1800000000011", 7},
		{"TIMER_DELIVER_MS=1800000000009|__STARTDELIVERTIME=1800000000011", 9},
		{"__STARTDELIVERTIME=1800000000011", 11},
		{"TIMER_DELIVER_MS=1800000000001", 1},
		{"TIMER_DELIVER_MS=1800000000000", 0},
		{"TIMER_DELIVER_MS=5", 0},
		{"TIMER_DELAY_MS=-5", 0},
		{"TIMER_DELAY_SEC=+5", 5000},
		{"TIMER_DELAY_SEC=5s", -1},
		{"TIMER_DELAY_SEC=5s|TIMER_DELAY_MS=7", -1},
		{"TIMER_DELIVER_MS=9223372036854775808", -1},
		{"TIMER_DELIVER_MS=9223372036854775807", -1},
		{"TIMER_DELAY_SEC=9223372036854775807", -1}, // would be in the past in 64 bits
		{"TIMER_DELAY_MS=9223372036854775807", -1},
		{"TIMER_DELAY_MS=-9223372036854775808", 0},
		{"TIMER_DELAY_SEC=3456000", 40 * day},
		{"TIMER_DELAY_MS=3456000001", -1},
		{"TIMER_DELAY_SEC=3456001", -1},
		{"TIMER_DELIVER_MS=1800000000000|TIMER_DEL_UNIQKEY=T+k", -1},
		{"TIMER_DELIVER_MS=1800000000001|TIMER_DEL_UNIQKEY=T+k", 1},
	} {
		timer := timerTextOf(text(c.properties))
		if !timer.set() {
			t.Errorf("%s: not set", c.properties)
		}
		due, err := timer.due(now, &cfg)
		switch {
		case c.after < 0:
			if err == nil {
				t.Errorf("%s: due %d, want an error", c.properties, due)
			}
		case err != nil:
			t.Errorf("%s: %v", c.properties, err)
		case c.after == 0 && due != 0 || c.after > 0 && due != now.UnixMilli()+c.after:
			t.Errorf("%s: due %d", c.properties, due)
		}
	}
	for _, none := range []string{"", "KEYS=k", "TIMER_DEL_UNIQKEY=T+k", "TIMER_DELAY_SEC=5|TIMER_OUT_MS=7"} {
		if timer := timerTextOf(text(none)); timer.set() {
			t.Errorf("%s: set", none)
		}
	}
}

// TestTimer: a message with a time waits in its topic and is delivered when it is due, once, with what 5.3.3 leaves.
func TestTimer(t *testing.T) {
	t.Parallel()
	var clock ahead
	b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, nil)
	began := time.Now().UnixMilli()
	a := b.send("T", 2, "UNIQ_KEY=k|TIMER_DELAY_MS=3600000|KEYS=x", "late")
	check(t, "send", a, protocol.Success, "", "msgId", "queueId", "queueOffset", "recallHandle", "MSG_REGION", "TRACE_ON")
	if q, _ := a.Field("queueId"); q != "2" {
		t.Errorf("queue %s", q)
	}
	b.send("T", 2, "UNIQ_KEY=n", "now")
	past := b.send("T", 2, fmt.Sprintf("UNIQ_KEY=p|TIMER_DELIVER_MS=%d", began-1), "past")
	if _, ok := past.Field("recallHandle"); ok {
		t.Error("a message that does not wait has a handle")
	}
	b.send("T", 2, fmt.Sprintf("__STARTDELIVERTIME=%d", began+1_800_000), "soon")
	b.stored("T", 2, 0, 2)
	clock.forward(2 * time.Hour)
	ms := b.stored("T", 2, 0, 4)
	var got []string
	for _, m := range ms {
		got = append(got, string(m.Body))
	}
	if strings.Join(got, " ") != "now past soon late" {
		t.Fatalf("%v", got)
	}
	m := ms[3]
	due := m.StoreTimestamp
	if d := due - began; d < 3_600_000 {
		t.Errorf("delivered after %d ms", d)
	}
	names := ""
	message.EachProperty(m.Properties, func(name, value string) bool {
		names += name + " "
		return true
	})
	if names != "UNIQ_KEY TIMER_DELAY_MS KEYS CLUSTER TIMER_OUT_MS REAL_TOPIC REAL_QID TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS " {
		t.Errorf("properties %s", names)
	}
	out, _ := m.Property(message.PropertyTimerOutMs)
	if at, _ := strconv.ParseInt(out, 10, 64); at < began+3_600_000 || at > due {
		t.Errorf("TIMER_OUT_MS %s, sent at %d, stored at %d", out, began, due)
	}
	text, _ := a.Field("recallHandle")
	h, ok := message.ParseRecallHandle(text)
	if at, _ := strconv.ParseInt(out, 10, 64); !ok || h != (message.RecallHandle{Topic: "T", BrokerName: "broker-a", Timestamp: strconv.FormatInt(at+1, 10), UniqKey: "k"}) {
		t.Errorf("handle %+v", h)
	}
	c, _ := b.topics.Lookup(topics.Timer)
	if c == nil || c.Perm != 0 {
		t.Errorf("the topic is %+v", c)
	}
}

// TestTimerRuntimeInfo: the keys of 5.3.3 are there from the first timer message on.
func TestTimerRuntimeInfo(t *testing.T) {
	b := startPathBroker(t, nil)
	info := func() map[string]string {
		var kv body.KVTable
		if err := compat.Unmarshal(b.ask(protocol.GetBrokerRuntimeInfo, nil, nil).Body, &kv); err != nil {
			t.Fatal(err)
		}
		return kv.Table
	}
	for key := range info() {
		if strings.HasPrefix(key, "timer") {
			t.Errorf("%s before any message has a time", key)
		}
	}
	for i := range 3 {
		b.send("T", 0, fmt.Sprintf("UNIQ_KEY=%d|TIMER_DELAY_SEC=3600", i), "far")
	}
	remotingtest.Eventually(t, "three messages wait", func() bool { return info()["timerCongestNum"] == "3" })
	for key, want := range map[string]string{"timerReadBehind": "0", "timerOffsetBehind": "0", "timerEnqueueTps": "0.0", "timerDequeueTps": "0.0"} {
		if got := info()[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestTimerRefused: times that are none or too far, and what goes not with them.
func TestTimerRefused(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, func(c *Config) { c.TimerMaxDelaySec = 60 })
	remark := "timer message illegal, the delay time should not be bigger than the max delay 60000ms; or if set del msg, the delay time should be bigger than the current time"
	for _, properties := range []string{"TIMER_DELAY_SEC=61", "TIMER_DELIVER_MS=x", "TIMER_DELIVER_MS=5|TIMER_DEL_UNIQKEY=T+k"} {
		a := b.ask(protocol.SendMessage, sendHeader("T", 0, properties), []byte("x"))
		check(t, properties, a, protocol.MessageIllegal, remark, "MSG_REGION", "TRACE_ON")
	}
	a := b.ask(protocol.SendMessage, sendHeader(topics.Timer, 0, "TIMER_OUT_MS=1|REAL_TOPIC=SCHEDULE_TOPIC_XXXX|REAL_QID=0"), []byte("x"))
	check(t, "send to the topic", a, protocol.NoPermission, "Sending message to topic[rmq_sys_wheel_timer] is forbidden.", "MSG_REGION", "TRACE_ON")
	long := b.ask(protocol.SendMessage, sendHeader("T", 0, "TIMER_DELAY_SEC=5|a="+strings.Repeat("v", 32_600)), []byte("x"))
	if long.Code != int32(protocol.MessageIllegal) {
		t.Errorf("properties that have no room for the times: code %d", long.Code)
	}
	if n := b.store.MaxOffset(topics.Timer, 0); n != 0 {
		t.Errorf("%d wait", n)
	}
	// A level counts more, and the time is gone.
	b.send("T", 0, "DELAY=1|TIMER_DELAY_SEC=5|TIMER_DELIVER_MS=x", "level")
	m := b.stored("T", 0, 0, 1)[0]
	if strings.Contains(m.Properties, "TIMER") {
		t.Errorf("properties %s", plain(m.Properties))
	}
	// What has been put off once is not again.
	b.send("T", 1, "TIMER_DELAY_SEC=50|TIMER_OUT_MS=7", "again")
	b.stored("T", 1, 0, 1)
}

// TestTimerOff: as with 4.9.8 the properties mean nothing.
func TestTimerOff(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, func(c *Config) { c.TimerWheelEnable = false })
	a := b.send("T", 0, "UNIQ_KEY=k|TIMER_DELAY_SEC=50|TIMER_DELIVER_MS=x", "now")
	if _, ok := a.Field("recallHandle"); ok {
		t.Error("there is a handle")
	}
	if m := b.stored("T", 0, 0, 1)[0]; plain(m.Properties) != "UNIQ_KEY=k|TIMER_DELAY_SEC=50|TIMER_DELIVER_MS=x|CLUSTER=DefaultCluster" {
		t.Errorf("properties %s", plain(m.Properties))
	}
	b.send("T", 0, "DELAY=1|TIMER_DELAY_SEC=5", "level")
	if m := b.stored("T", 0, 1, 2)[0]; !strings.Contains(m.Properties, "TIMER_DELAY_SEC") {
		t.Errorf("properties %s", plain(m.Properties))
	}
	r := b.ask(protocol.RecallMessage, &header.RecallMessageRequest{Topic: "T", RecallHandle: "x"}, nil)
	check(t, "recall", r, protocol.RequestCodeNotSupported, " request type 370 not supported")
}

// TestRecall: codes and remarks of RecallMessageProcessor of 5.3.3, and that what is recalled is not delivered.
func TestRecall(t *testing.T) {
	t.Parallel()
	var clock ahead
	b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, nil)
	handle := func(a *protocol.Command) string {
		h, _ := a.Field("recallHandle")
		return h
	}
	x := handle(b.send("T", 0, "UNIQ_KEY=x|TIMER_DELAY_SEC=3600", "x"))
	y := b.send("T", 0, "UNIQ_KEY=y|TIMER_DELAY_SEC=3600", "y")
	at, _ := message.ParseRecallHandle(x)
	recall := func(topic, handle string) *protocol.Command {
		return b.ask(protocol.RecallMessage, &header.RecallMessageRequest{ProducerGroup: "PG", Topic: topic, RecallHandle: handle}, nil)
	}
	a := recall("T", x)
	check(t, "recall", a, protocol.Success, unsetRemark, "msgId", "MSG_REGION")
	if id, _ := a.Field("msgId"); id != "x" {
		t.Errorf("msgId %s", id)
	}
	with := func(change func(*message.RecallHandle)) string {
		h := at
		change(&h)
		return h.String()
	}
	const unavailable = "recall failed, broker service not available"
	for _, c := range []struct {
		what, topic, handle string
		code                protocol.ResponseCode
		remark              string
	}{
		{"no topic", "Nowhere", x, protocol.TopicNotExist, "recall failed, the topic[Nowhere] not exist"},
		{"no handle", "T", "###", protocol.IllegalOperation, "recall handle is invalid"},
		{"a property in the key", "T", with(func(h *message.RecallHandle) { h.UniqKey = "x\x02TIMER_DEL_UNIQKEY\x01Other+y" }), protocol.IllegalOperation, "recall handle is invalid"},
		{"other topic", topics.SelfTest, x, protocol.IllegalOperation, "recall failed, topic not match"},
		{"other broker", "T", with(func(h *message.RecallHandle) { h.BrokerName = "b" }), protocol.IllegalOperation, unavailable},
		{"past", "T", with(func(h *message.RecallHandle) { h.Timestamp = "5" }), protocol.IllegalOperation, "recall failed, timestamp invalid"},
		{"far", "T", with(func(h *message.RecallHandle) { h.Timestamp = "9223372036854775807" }), protocol.IllegalOperation, "recall failed, timestamp invalid"},
		{"no time", "T", with(func(h *message.RecallHandle) { h.Timestamp = "x" }), protocol.IllegalOperation, "recall failed, timestamp invalid"},
	} {
		check(t, c.what, recall(c.topic, c.handle), c.code, c.remark, "MSG_REGION")
	}
	check(t, "unknown message", recall("T", with(func(h *message.RecallHandle) { h.UniqKey = "none" })), protocol.Success, unsetRemark, "msgId", "MSG_REGION")
	if handle(y) == "" {
		t.Error("y has no handle")
	}
	clock.forward(2 * time.Hour)
	b.stored("T", 0, 0, 1)
	b.send("T", 0, "TIMER_DELAY_MS=50", "z")
	ms := b.stored("T", 0, 0, 2)
	if string(ms[0].Body) != "y" || string(ms[1].Body) != "z" {
		t.Errorf("delivered %q %q", ms[0].Body, ms[1].Body)
	}
	b.close()
	b = startPathBrokerOn(t, b.fs, func(c *Config) { c.RecallMessageEnable = false })
	check(t, "switched off", b.ask(protocol.RecallMessage, &header.RecallMessageRequest{Topic: "T", RecallHandle: x}, nil),
		protocol.NoPermission, "recall failed, operation is forbidden", "MSG_REGION")
}

// TestTimerTransaction: a half message with a time waits from its commit on, as in 5.3.3.
func TestTimerTransaction(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.TimerMaxDelaySec = 60 })
	h := b.half("T", 1, tran+"|TIMER_DELAY_MS=200", "timed")
	if n := b.store.MaxOffset(topics.Timer, 0); n != 0 {
		t.Fatal("a half message waits for its time")
	}
	began := time.Now().UnixMilli()
	check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
	m := b.stored("T", 1, 0, 1)[0]
	if d := m.StoreTimestamp - began; d < 200 {
		t.Errorf("delivered after %d ms", d)
	}
	far := b.ask(protocol.SendMessage, sendHeader("T", 1, tran+"|TIMER_DELAY_SEC=61"), []byte("far"))
	check(t, "too far", far, protocol.MessageIllegal, timerRemark(b.config()), "MSG_REGION", "TRACE_ON")
	h = b.half("T", 1, tran+"|TIMER_DELAY_SEC=50", "far now")
	cfg := b.Config()
	cfg.TimerMaxDelaySec = 40
	b.cfg.Store(&cfg)
	check(t, "too far since", b.ask(protocol.EndTransaction, h, nil), protocol.MessageIllegal, timerRemark(b.config()))
}

// TestTimerRestart: what waits survives a stop and a kill, with its time.
func TestTimerRestart(t *testing.T) {
	t.Parallel()
	var clock ahead
	b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, nil)
	b.send("T", 0, "TIMER_DELAY_SEC=3600", "a")
	b.send("T", 0, "TIMER_DELAY_SEC=72000", "far")
	b.close()
	b = startPathBrokerAt(t, b.fs, clock.now, nil)
	b.send("T", 0, "TIMER_DELAY_SEC=3601", "b")
	fs := b.fs.Kill()
	if n := b.store.MaxOffset("T", 0); n != 0 {
		t.Errorf("%d messages came early", n)
	}
	b.close()
	b = startPathBrokerAt(t, fs, clock.now, nil)
	b.send("T", 1, "", "at once")
	b.stored("T", 1, 0, 1)
	if n := b.store.MaxOffset("T", 0); n != 0 {
		t.Errorf("%d messages came early after the kill", n)
	}
	clock.forward(2 * time.Hour)
	ms := b.stored("T", 0, 0, 2)
	if string(ms[0].Body) != "a" || string(ms[1].Body) != "b" || b.store.MaxOffset("T", 0) != 2 {
		t.Errorf("%q %q, %d", ms[0].Body, ms[1].Body, b.store.MaxOffset("T", 0))
	}
}

// TestTimerSwitchedOffAndOn: what waits when the timer is switched off is kept and shown to nobody, also after its time, and comes when
// it is on again.
func TestTimerSwitchedOffAndOn(t *testing.T) {
	b := startPathBroker(t, nil)
	a := b.send("T", 1, "UNIQ_KEY=k|TIMER_DELAY_MS=1500", "waits")
	due := time.Now().Add(1500 * time.Millisecond)
	if _, ok := a.Field("recallHandle"); !ok {
		t.Fatal("it does not wait")
	}
	b.close()
	b = startPathBrokerOn(t, b.fs, func(c *Config) { c.TimerWheelEnable = false })
	remotingtest.Eventually(t, "its time has come", func() bool { return time.Now().After(due) })
	b.send("T", 1, "TIMER_DELAY_MS=1500", "at once")
	if ms := b.stored("T", 1, 0, 1); string(ms[0].Body) != "at once" || b.store.MaxOffset("T", 1) != 1 {
		t.Errorf("stored %q, %d", ms[0].Body, b.store.MaxOffset("T", 1))
	}
	b.close()
	b = startPathBrokerOn(t, b.fs, nil)
	if ms := b.stored("T", 1, 1, 2); string(ms[0].Body) != "waits" {
		t.Errorf("delivered %q", ms[0].Body)
	}
}
