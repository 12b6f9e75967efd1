//go:build conformance

package pop

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

const unset = "not set any response code"

// A pop tells where its messages come from, and takes them from all others of the group.
func TestPop(t *testing.T) {
	s := open(t, "Take", 4)
	s.send(1, "", "a", "b", "c")
	s.send(2, "", "d")
	a, got := s.take(s.pop(1, 2, time.Minute))
	s.remark(a, "FOUND")
	s.fields(a, "startOffsetInfo", "0 1 0", "msgOffsetInfo", "0 1 0,1", "restNum", "1", "invisibleTime", "60000", "orderCountInfo", "absent")
	if bodies(got) != "a,b" {
		t.Errorf("got %s", bodies(got))
	}
	if n, err := strconv.Atoi(a.Ext["reviveQid"]); err != nil || n < 0 || n > 7 {
		t.Errorf("reviveQid %q", a.Ext["reviveQid"])
	}
	if at, err := strconv.ParseInt(a.Ext["popTime"], 10, 64); err != nil || time.Since(time.UnixMilli(at)).Abs() > patience {
		t.Errorf("popTime %q", a.Ext["popTime"])
	}
	rest := s.await(2, patience, func() *wire.Frame { return s.pop(-1, 32, time.Minute) })
	if b := bodies(rest); b != "c,d" && b != "d,c" {
		t.Errorf("the rest is %s", b)
	}
	a = s.want(s.pop(-1, 32, time.Minute), 210)
	s.remark(a, "NO_MESSAGE_IN_QUEUE")
	s.fields(a, "startOffsetInfo", "", "msgOffsetInfo", "", "restNum", "0", "orderCountInfo", "absent")
}

// A new group begins where initMode says, and the broker has noted it.
func TestBegin(t *testing.T) {
	s := open(t, "Begin", 1)
	s.send(0, "", "a", "b", "c")
	a, got := s.take(s.pop(0, 32, time.Minute, "initMode", "1"))
	if bodies(got) != "a,b,c" { // it is a young queue: all is in memory
		t.Errorf("got %s (%v)", bodies(got), a.Ext)
	}
	s.stands("0", "3")
}

// The broker filters by tag, and passes over what does not match.
func TestFilter(t *testing.T) {
	s := open(t, "Filter", 1)
	s.send(0, "x", "a")
	s.send(0, "y", "b")
	s.send(0, "x", "c")
	a, got := s.take(s.pop(0, 32, time.Minute, "expType", "TAG", "exp", "y || z"))
	s.fields(a, "startOffsetInfo", "0 0 0", "msgOffsetInfo", "0 0 1", "restNum", "0")
	if bodies(got) != "b" {
		t.Errorf("got %s", bodies(got))
	}
	s.want(s.pop(0, 32, time.Minute, "expType", "TAG", "exp", "||"), 23)
	s.want(s.pop(0, 32, time.Minute, "expType", "SQL92", "exp", "a ="), 23)
}

// What is wrong is answered with its code and remark.
func TestPopRefusals(t *testing.T) {
	s := open(t, "Wrong", 4)
	ip := "the broker[127.0.0.1] "
	for _, c := range []struct {
		name   string
		f      *wire.Frame
		code   int
		remark string
	}{
		{"33 messages", s.pop(0, 33, time.Minute), 29, ip + "pop message's num is greater than 32"},
		{"late", s.pop(0, 1, time.Minute, "bornTime", "1"), 210, ip + "pop message is timeout too much"},
		{"no topic", s.pop(0, 1, time.Minute, "topic", "PopNone"), 17, "topic[PopNone] not exist, apply first please! \nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."},
		{"queue", s.pop(99, 1, time.Minute), 29, "queueId[99] is illegal, topic:[" + s.topic + "] topicConfig.readQueueNums:[4] consumer:[/" + s.LocalAddr() + "]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.want(c.f, c.code)
			s.remark(a, c.remark)
			s.fields(a, "popTime", "0", "invisibleTime", "0", "reviveQid", "0", "restNum", "0", "startOffsetInfo", "absent")
		})
	}
}

// What is acknowledged does not come again, what is not does, with its retry topic and handle.
func TestAckAndComeAgain(t *testing.T) {
	s := open(t, "Ack", 2)
	s.send(1, "tag", "a", "b", "c")
	_, got := s.take(s.pop(1, 32, 4*time.Second))
	if bodies(got) != "a,b,c" {
		t.Fatalf("got %s", bodies(got))
	}
	a := s.want(s.about(200051, got[1]), 0)
	if a.Remark != "" {
		t.Errorf("remark %q", a.Remark)
	}
	s.want(s.about(200051, got[1]), 0)
	s.want(s.about(200051, got[1], "queueId", "99"), 13)
	a = s.want(s.about(200051, got[1], "offset", "1000"), 208)
	s.remark(a, "offset is illegal, key:"+s.topic+"@1, commit:1000, store:0~3")
	s.want(s.about(200051, got[1], "topic", "PopNone"), 17)
	s.want(s.about(200051, got[1], "extraInfo", "1 2"), 1)

	again := s.await(2, comeback, func() *wire.Frame { return s.pop(-1, 32, time.Minute) })
	if bodies(again) != "a,c" {
		t.Fatalf("come again: %s", bodies(again))
	}
	for i, m := range again {
		h := strings.Fields(m.handle)
		if m.Topic != s.topic || m.ReconsumeTimes != 1 || m.QueueId != 0 || m.Flag != 0 && m.Flag != got[0].Flag || m.Properties["TAGS"] != "tag" ||
			m.Properties["UNIQ_KEY"] != got[2*i].Properties["UNIQ_KEY"] || len(h) != 8 || h[4] != "1" || h[6] != "0" || h[7] != strconv.Itoa(i) {
			t.Errorf("message %d: topic %s, reconsumeTimes %d, queue %d, %v", i, m.Topic, m.ReconsumeTimes, m.QueueId, m.Properties)
		}
		if first := strings.Fields(got[0].handle)[1]; m.Properties["1ST_POP_TIME"] != first {
			t.Errorf("1ST_POP_TIME %q, want %s", m.Properties["1ST_POP_TIME"], first)
		}
		if m.BornTimestamp != got[2*i].BornTimestamp {
			t.Error("another born timestamp")
		}
		s.want(s.about(200051, m), 0)
	}
}

// The invisible time of one message can be changed: only it comes again at the new time.
func TestChangeInvisibleTime(t *testing.T) {
	s := open(t, "Change", 1)
	s.send(0, "", "a", "b")
	_, got := s.take(s.pop(0, 32, 5*time.Minute))
	a := s.want(s.about(200053, got[1], "invisibleTime", "2000"), 0)
	s.remark(a, unset)
	s.fields(a, "invisibleTime", "2000", "reviveQid", strings.Fields(got[1].handle)[3])
	if a.Ext["popTime"] < strings.Fields(got[1].handle)[1] {
		t.Errorf("popTime %s", a.Ext["popTime"])
	}
	a = s.want(s.about(200053, got[1], "invisibleTime", "2000", "offset", "2"), 208)
	s.remark(a, unset)
	s.want(s.about(200053, got[1], "invisibleTime", "2000", "queueId", "7"), 13)
	s.want(s.about(200053, got[1], "invisibleTime", "2000", "topic", "PopNone"), 17)
	if again := s.await(1, comeback, func() *wire.Frame { return s.pop(0, 32, time.Minute) }); bodies(again) != "b" {
		t.Errorf("come again: %s", bodies(again))
	}
}

// Many messages are acknowledged at once; bits count from the first.
func TestBatchAck(t *testing.T) {
	s := open(t, "Batch", 1)
	s.send(0, "", "a", "b", "c")
	_, got := s.take(s.pop(0, 32, 4*time.Second))
	h := strings.Fields(got[0].handle)
	body := `{"brokerName":"` + server.Brokers[0].Name + `","acks":[{"c":"` + s.group + `","t":"` + s.topic + `","r":"0","so":` + h[0] + `,"q":0,"rq":` + h[3] +
		`,"pt":` + h[1] + `,"it":` + h[2] + `,"b":"BQ=="}]}` // bits 0 and 2
	s.want(wire.Request(200151).WithBody([]byte(body)), 0)
	s.want(wire.Request(200151), 208)
	s.want(wire.Request(200151).WithBody([]byte(`{"acks":[]}`)), 208)
	if again := s.await(1, comeback, func() *wire.Frame { return s.pop(-1, 32, time.Minute) }); bodies(again) != "b" {
		t.Errorf("come again: %s", bodies(again))
	}
}

// In order: the next batch comes only when this one is acknowledged or its time is over; then it is counted.
func TestOrderly(t *testing.T) {
	s := open(t, "Order", 2)
	s.send(1, "", "a", "b", "c")
	order := func(more ...string) *wire.Frame {
		return s.pop(1, 2, 3*time.Second, append([]string{"order", "true"}, more...)...)
	}
	a, got := s.take(order("attemptId", "one"))
	s.fields(a, "reviveQid", "999", "startOffsetInfo", "0 1 0", "msgOffsetInfo", "0 1 0,1", "orderCountInfo", "0 1 0")
	a = s.want(order(), 210)
	s.fields(a, "orderCountInfo", "")
	_, same := s.take(order("attemptId", "one"))
	if bodies(same) != "a,b" {
		t.Errorf("the same attempt got %s", bodies(same))
	}
	stale := got[0] // of an earlier pop: it changes nothing
	h := strings.Fields(stale.handle)
	h[1] = "1700000000000"
	stale.handle = strings.Join(h, " ")
	s.want(s.about(200051, stale), 0)
	a, got = nil, nil
	for deadline := time.Now().Add(comeback); got == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the batch did not come again")
		}
		a, got = s.take(order("pollTime", "1000", "bornTime", strconv.FormatInt(time.Now().UnixMilli(), 10)))
	}
	s.fields(a, "orderCountInfo", "0 qo1%0 1;0 qo1%1 1;0 1 1", "msgOffsetInfo", "0 1 0,1")
	if got[0].ReconsumeTimes != 0 {
		t.Error("the stored reconsumeTimes are not 0")
	}
	c := s.want(s.about(200053, got[0], "invisibleTime", "100000"), 0)
	s.fields(c, "popTime", a.Ext["popTime"], "reviveQid", "999")
	s.want(s.about(200051, got[0]), 0)
	s.stands("1", "1")
	s.want(s.about(200051, got[1]), 0)
	s.want(s.about(200051, got[1]), 0)
	s.stands("1", "2")
	a, got = s.take(order())
	s.fields(a, "orderCountInfo", "0 1 0", "msgOffsetInfo", "0 1 2", "restNum", "0")
	f := s.about(200051, got[0], "offset", "3")
	s.want(f, 13)
	s.want(s.about(200051, got[0]), 0)
}

// In order: a pop that waits because a batch is under way goes on when the batch is acknowledged, long before its time is over.
func TestOrderlyGoesOn(t *testing.T) {
	s := open(t, "OrderGoesOn", 1)
	s.send(0, "", "a", "b", "c")
	_, got := s.take(s.pop(0, 2, 10*time.Minute, "order", "true"))
	p, err := s.Send(s.pop(0, 2, 10*time.Minute, "order", "true", "pollTime", "50000"))
	if err != nil {
		t.Fatal(err)
	}
	s.want(s.about(200051, got[0]), 0)
	if a, err := p.Wait(300 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("after half of the batch: %+v, %v", a, err)
	}
	s.want(s.about(200051, got[1]), 0)
	a, err := p.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	if next := s.messages(a); a.Code != 0 || bodies(next) != "c" {
		t.Errorf("it goes on with %d %q, %s", a.Code, a.Remark, bodies(next))
	}
}

// A pop that finds nothing waits, for a message that its filter takes or until its time is over.
func TestLongPoll(t *testing.T) {
	s := open(t, "Poll", 2)
	waiting := func(group string, more ...string) *wire.Pending {
		f := s.pop(-1, 32, time.Minute, append([]string{"pollTime", "60000", "consumerGroup", group}, more...)...)
		p, err := s.Send(f)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := waiting(s.group, "expType", "TAG", "exp", "x")
	info := func() string {
		return s.want(wire.Request(200055, "consumerGroup", s.group, "topic", s.topic, "queueId", "-1"), 0).Ext["pollingNum"]
	}
	waits := func() {
		t.Helper()
		for deadline := time.Now().Add(patience); info() != "1"; {
			if time.Now().After(deadline) {
				t.Fatalf("%s pops wait", info())
			}
		}
	}
	waits()
	s.send(0, "y", "no")
	waits() // still, or again: the official broker may have looked
	s.send(1, "x", "yes")
	a, err := p.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.messages(a); a.Code != 0 || bodies(got) != "yes" {
		t.Errorf("woken with %d, %s", a.Code, bodies(got))
	}
	start := time.Now()
	a = s.want(s.pop(0, 32, time.Minute, "pollTime", "1000", "exp", "x"), 210)
	s.remark(a, "NO_MESSAGE_IN_QUEUE")
	if time.Since(start) < 900*time.Millisecond { // it counts from bornTime
		t.Errorf("answered after %s", time.Since(start))
	}
}

// A pop that waits for a client that has gone takes nothing: the message is for the next one at once, not after the invisible time.
func TestHeldPopOfGoneClient(t *testing.T) {
	s := open(t, "HeldGone", 1)
	gone := s.member("gone")
	if _, err := gone.Send(gone.pop(0, 32, 5*time.Minute, "pollTime", "120000")); err != nil {
		t.Fatal(err)
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !ok(); {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	await("it does not wait", func() bool {
		return s.want(wire.Request(200055, "consumerGroup", s.group, "topic", s.topic, "queueId", "0"), 0).Ext["pollingNum"] == "1"
	})
	gone.Conn.Close()
	await("the broker does not notice that it has gone", func() bool { return s.ask(wire.Request(38, "consumerGroup", s.group)).Code != 0 })
	s.send(0, "", "a")
	if got := s.await(1, patience, func() *wire.Frame { return s.pop(0, 32, time.Minute) }); bodies(got) != "a" {
		t.Errorf("got %s", bodies(got))
	}
}

// NOTIFICATION tells whether there is something, and waits for it.
func TestNotification(t *testing.T) {
	s := open(t, "Note", 2)
	note := func(poll string) *wire.Frame {
		return wire.Request(200054, "consumerGroup", s.group, "topic", s.topic, "queueId", "-1", "pollTime", poll,
			"bornTime", strconv.FormatInt(time.Now().UnixMilli(), 10))
	}
	a := s.want(note("500"), 0)
	s.fields(a, "hasMsg", "false", "pollingFull", "false")
	p, err := s.Send(note("20000"))
	if err != nil {
		t.Fatal(err)
	}
	s.send(1, "", "a")
	if a, err = p.Wait(patience); err != nil {
		t.Fatal(err)
	}
	s.remark(a, unset)
	s.fields(a, "hasMsg", "true")
	s.fields(s.want(note("0"), 0), "hasMsg", "true")
	s.want(note("0").Set("topic", "PopNone"), 17)
	s.want(note("0").Set("queueId", "5"), 29)
}

// PEEK_MESSAGE shows and does not take.
func TestPeek(t *testing.T) {
	s := open(t, "Peek", 2)
	peek := wire.Request(200052, "consumerGroup", s.group, "topic", s.topic, "queueId", "-1", "maxMsgNums", "2")
	a := s.want(peek, 19)
	s.remark(a, "NO_MESSAGE_IN_QUEUE")
	s.send(0, "", "a", "b", "c")
	for range 2 {
		a = s.want(peek, 0)
		s.remark(a, "FOUND")
		s.fields(a, "popTime", "0", "invisibleTime", "0", "reviveQid", "0", "restNum", "3", "startOffsetInfo", "absent")
		if got := bodies(s.messages(a)); got != "a,b" {
			t.Errorf("peeked %s", got)
		}
	}
	s.remark(s.want(wire.Request(200056), 0), unset)
}

// Numbers that are missing are 0, but for those of an acknowledgement.
func TestPopFieldsMissing(t *testing.T) {
	s := open(t, "Missing", 1)
	s.send(0, "", "a", "b", "c", "d")
	without := func(f *wire.Frame, code int, names ...string) {
		t.Helper()
		for _, name := range names {
			saved := f.Ext[name]
			s.want(f.Without(name), code)
			f.Set(name, saved)
		}
	}
	f := s.pop(0, 1, time.Minute)
	without(f, 0, "initMode", "pollTime", "queueId", "order")
	without(f, 210, "maxMsgNums")
	without(wire.Request(200054, "consumerGroup", s.group, "topic", s.topic, "queueId", "0", "pollTime", "0", "bornTime", "0"), 0, "queueId", "pollTime", "bornTime")
	without(wire.Request(200055, "consumerGroup", s.group, "topic", s.topic, "queueId", "0"), 0, "queueId")
	without(wire.Request(200052, "consumerGroup", s.group+"Peek", "topic", s.topic, "queueId", "0", "maxMsgNums", "1"), 19, "maxMsgNums")
	s.send(0, "", "e")
	_, got := s.take(s.pop(0, 1, time.Minute))
	if len(got) != 1 {
		t.Fatal("nothing was popped")
	}
	without(s.about(200051, got[0]), 1, "topic", "queueId", "extraInfo", "offset")
	without(s.about(200053, got[0], "invisibleTime", "60000"), 1, "topic", "queueId", "extraInfo", "offset", "invisibleTime")
}

// A batch of acknowledgements that does not say what it means is refused.
func TestBatchAckWrong(t *testing.T) {
	s := open(t, "BatchWrong", 1)
	s.send(0, "", "a")
	for _, c := range []struct {
		name, more string
		code       int
	}{
		{"right", `"r":"0","b":"AQ=="`, 0}, {"no bit", `"r":"0","b":""`, 0}, {"no bit set", `"r":"0"`, 1}, {"no base64", `"r":"0","b":"!!"`, 1},
		{"no flag", `"b":"AQ=="`, 1}, {"another flag", `"r":"z","b":"AQ=="`, 1},
	} {
		body := `{"brokerName":"broker-a","acks":[{"c":"` + s.group + `","t":"` + s.topic + `","so":0,"q":0,"rq":0,"pt":1,"it":60000,` + c.more + `}]}`
		if a := s.ask(wire.Request(200151).WithBody([]byte(body))); a.Code != c.code {
			t.Errorf("%s: %d %q, want %d", c.name, a.Code, a.Remark, c.code)
		}
	}
	s.want(wire.Request(200151).WithBody([]byte(`{"acks":[{"c":"`+s.group+`","r":"0","so":0,"q":0,"rq":0,"pt":1,"it":60000,"b":"AQ=="}]}`)), 1)
}

// In order, without an invisible time: the batch has that of the pop that comes next.
func TestOrderlyWithoutInvisibleTime(t *testing.T) {
	s := open(t, "OrderNow", 1)
	s.send(0, "", "a", "b", "c")
	order := func() *wire.Frame { return s.pop(0, 2, 2*time.Second, "order", "true") }
	a, got := s.take(order().Set("invisibleTime", "0"))
	s.fields(a, "invisibleTime", "0", "orderCountInfo", "0 0 0")
	if bodies(got) != "a,b" {
		t.Fatalf("got %s", bodies(got))
	}
	s.want(order(), 210)
	if again := s.await(2, comeback, order); bodies(again) != "a,b" {
		t.Errorf("come again: %s", bodies(again))
	}
}
