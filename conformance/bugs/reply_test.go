//go:build conformance

package bugs

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// plainSend is a send to queue 0.
func plainSend(topic string, body []byte, properties ...string) *wire.Frame {
	return wire.Request(310, "a", "P-bugs", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", text(time.Now().UnixMilli()), "h", "0",
		"i", wire.Properties(properties...), "j", "0", "k", "false", "m", "false").WithBody(body)
}

// reply is the answer to a request of a client.
func reply(to, correlation string, body []byte, more ...string) *wire.Frame {
	f := plainSend(replyTopic, body, append([]string{"CORRELATION_ID", correlation, "REPLY_TO_CLIENT", to, "MSG_TYPE", "reply"}, more...)...)
	f.Code = 325
	return f
}

// requester is a client that answers the replies that it gets.
func requester(t *testing.T, addr, id string, answer func(*wire.Frame) *wire.Frame) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(addr, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if a, err := c.Call(wire.ProducerHeartbeat(id, "Requesters"), patience); err != nil || a.Code != 0 {
		t.Fatalf("heartbeat: %v %v", a, err)
	}
	return c
}

// Replies that no stock client would send: twice, of the greatest size and beyond it, to the correlation id of another client's request,
// after the topic of replies was to be deleted. The broker hands over whatever comes and keeps what a log can hold; the requester
// decides by the correlation id, which means nothing to the broker.
func TestOddReplies(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{}}})
	s, addr := dial(t, c.Brokers[0].Addr), c.Brokers[0].Addr
	take := func(*wire.Frame) *wire.Frame { return wire.Request(0) }
	one, two := requester(t, addr, "one", take), requester(t, addr, "two", take)
	refuser := requester(t, addr, "late", func(*wire.Frame) *wire.Frame { // as a requester whose time is over
		return &wire.Frame{Code: 1, Remark: "process reply message fail"}
	})
	stored := int64(0)
	for _, c := range []struct {
		name   string
		f      *wire.Frame
		kept   bool
		remark string
	}{
		{"first", reply("one", "same", []byte("first")), true, ""},
		{"twice", reply("one", "same", []byte("first")), true, ""},
		{"id of another's request", reply("two", "same", []byte("second")), true, ""},
		{"4 MiB", reply("one", "c", bytes.Repeat([]byte("x"), 4<<20)), true, ""},
		{"a byte more", reply("one", "c", bytes.Repeat([]byte("y"), 4<<20+1)), false, ""},
		{"8 MiB", reply("one", "c", bytes.Repeat([]byte("z"), 8<<20)), false, ""},
		{"many properties", reply("one", "c", []byte("p"), "P", strings.Repeat("p", 32767-100)), true, ""},
		{"too many properties", reply("one", "c", []byte("p"), "P", strings.Repeat("p", 32767)), false, ""},
		{"far too many", reply("one", "c", []byte("p"), "P", strings.Repeat("p", 70000)), false, ""},
		{"empty", reply("one", "c", nil), true, ""},
		{"too late", reply("late", "c", []byte("l")), true, "push reply message to latefail."},
	} {
		a := s.Ask(c.f)
		code, id := 0, a.Ext["msgId"]
		if c.remark != "" {
			code = systemError
		}
		offset := stored
		if !c.kept {
			offset = 0
		}
		if a.Code != code || a.Remark != c.remark || (id == "0") == c.kept || a.Ext["queueOffset"] != text(offset) || a.Ext["queueId"] != "0" {
			t.Errorf("%s: %d %q %v, want offset %d", c.name, a.Code, a.Remark, a.Ext, offset)
		}
		if c.kept {
			stored++
		}
		to := map[string]*wire.Conn{"one": one, "two": two, "late": refuser}[wire.ParseProperties(c.f.Ext["i"])["REPLY_TO_CLIENT"]]
		got := to.Requests()
		push := got[len(got)-1]
		properties := wire.ParseProperties(push.Ext["properties"]) // in any order
		pushTime := properties["PUSH_REPLY_TIME"]
		delete(properties, "PUSH_REPLY_TIME")
		if push.Code != 326 || !bytes.Equal(push.Body, c.f.Body) || !maps.Equal(properties, wire.ParseProperties(c.f.Ext["i"])) || pushTime == "" {
			t.Errorf("%s: handed over %d, a body of %d bytes", c.name, push.Code, len(push.Body))
		}
	}
	if n := len(one.Requests()) + len(two.Requests()) + len(refuser.Requests()); n != 11 {
		t.Errorf("%d replies handed over", n)
	}
	const conflict = "The topic[" + replyTopic + "] is conflict with system topic."
	if a := s.Ask(wire.Request(215, "topic", replyTopic)); a.Code != systemError || a.Remark != conflict {
		t.Errorf("deleted: %d %q", a.Code, a.Remark)
	}
	if a := s.Done(reply("one", "c", []byte("after"))); a.Ext["queueOffset"] != text(stored) {
		t.Errorf("after that: %v", a.Ext)
	}
	if large := s.stored(replyTopic, 0, 3, stored+1)[0]; len(large.Body) != 4<<20 {
		t.Errorf("4 MiB are stored as %d bytes", len(large.Body))
	}
}

// Requesters that come back again and again with their client id while replies are sent to them: each reply is answered, and the one
// that stays gets what comes in the end.
func TestRequesterReconnects(t *testing.T) {
	t.Parallel()
	addr := shared.Brokers[0].Addr
	s := dial(t, addr)
	take := func(*wire.Frame) *wire.Frame { return wire.Request(0) }
	for range 3 {
		c := requester(t, addr, "restless", take)
		var run []*wire.Frame
		for range 20 {
			run = append(run, reply("restless", "c", bytes.Repeat([]byte("x"), 1000)))
		}
		pending, err := s.Conn.SendAll(run)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		for _, p := range pending {
			a, err := p.Wait(patience)
			if err != nil {
				t.Fatal(err)
			}
			if a.Code != 0 && a.Remark != "push reply message to restlessfail." && a.Remark != "push reply message fail, channel of <restless> not found." {
				t.Fatalf("answered %d %q", a.Code, a.Remark)
			}
		}
	}
	last := requester(t, addr, "restless", take)
	s.Done(reply("restless", "c", []byte("last")))
	if got := last.Requests(); len(got) != 1 || string(got[0].Body) != "last" {
		t.Errorf("it has got %d", len(got))
	}
}

// The topic of traces on a broker that has none: the first trace makes it, as any topic, and traceTopicEnable changed at run time
// changes nothing until the next start. Traces are as large as messages may be.
func TestTraceTopicAtRunTime(t *testing.T) {
	t.Parallel()
	const trace = "RMQ_SYS_TRACE_TOPIC"
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{}}})
	s := dial(t, c.Brokers[0].Addr)
	topics := func() bool { return bytes.Contains(s.Done(wire.Request(21)).Body, []byte(`"`+trace+`"`)) }
	set := func(on string) { s.Done(wire.Request(25).WithBody([]byte("traceTopicEnable=" + on + "\n"))) }
	set("true")
	if topics() {
		t.Error("it is there at once")
	}
	offset := int64(0)
	send := func(size int) {
		t.Helper()
		if a := s.Done(plainSend(trace, bytes.Repeat([]byte("t"), size))); a.Ext["queueOffset"] != text(offset) {
			t.Errorf("trace of %d bytes: %v", size, a.Ext)
		}
		offset++
	}
	send(1)
	if !topics() {
		t.Error("the first trace has not made it")
	}
	send(4 << 20)
	if a := s.Ask(plainSend(trace, bytes.Repeat([]byte("t"), 4<<20+1))); a.Code != 13 {
		t.Errorf("too large: %d %q", a.Code, a.Remark)
	}
	set("false")
	send(1)
	if m := s.stored(trace, 0, 1, offset)[0]; len(m.Body) != 4<<20 {
		t.Errorf("stored as %d bytes", len(m.Body))
	}
	if a := s.Ask(wire.Request(215, "topic", trace)); a.Code != systemError || a.Remark != "The topic["+trace+"] is conflict with system topic." {
		t.Errorf("deleted: %d %q", a.Code, a.Remark)
	}
}
