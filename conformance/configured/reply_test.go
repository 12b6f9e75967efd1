//go:build conformance

package configured

import (
	"testing"

	"rocketd/conformance/wire"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// reply is the answer to a request of a client.
func reply(to, body string) *wire.Frame {
	f := message(replyTopic, body, "CORRELATION_ID", "c", "REPLY_TO_CLIENT", to, "MSG_TYPE", "reply", "WAIT", "true")
	f.Code = 325
	return f
}

// requester is a client that takes replies.
func requester(t *testing.T, id string) *session {
	t.Helper()
	s := connectAs(t, func(f *wire.Frame) *wire.Frame { return wire.Request(0) })
	s.Done(wire.ProducerHeartbeat(id, "Requesters"))
	return s
}

// taken are the bodies of the replies that it got.
func (s *session) taken() (bodies string) {
	for _, f := range s.Conn.Requests() {
		if f.Code == 326 {
			bodies += string(f.Body) + " "
		}
	}
	return bodies
}

// With storeReplyMessageEnable=false a reply is handed over and kept nowhere; who hands it over gets a message id of 0, and hears
// when nobody is there to take it.
func TestReplyIsNotStored(t *testing.T) {
	t.Parallel()
	s, asker := connect(t), requester(t, "asker")
	a := s.Done(reply("asker", "one"))
	if a.Remark != "" || a.Ext["msgId"] != "0" || a.Ext["queueId"] != "0" || a.Ext["queueOffset"] != "0" {
		t.Errorf("answered %q %v", a.Remark, a.Ext)
	}
	if got := asker.taken(); got != "one " {
		t.Errorf("handed over: %q", got)
	}
	if a = s.Ask(reply("nobody", "two")); a.Code != 1 || a.Remark != "push reply message fail, channel of <nobody> not found." {
		t.Errorf("nobody: %d %q", a.Code, a.Remark)
	}
	if n := s.max(replyTopic, 0); n != 0 {
		t.Errorf("%d replies are stored", n)
	}
}

// A reply goes to the newest connection with the client's id; not any more when the requester has gone, and again when it is back.
func TestRequesterGoesAndReturns(t *testing.T) {
	t.Parallel()
	s := connect(t)
	const gone = "push reply message fail, channel of <traveller> not found."
	old, newer := requester(t, "traveller"), requester(t, "traveller")
	s.Done(reply("traveller", "first"))
	if newer.taken() != "first " || old.taken() != "" {
		t.Errorf("the newer connection has got %q, the older one %q", newer.taken(), old.taken())
	}
	newer.Conn.Close()
	until(t, "the broker knows that it is gone", func() bool {
		a := s.Ask(reply("traveller", "lost"))
		return a.Code == 1 && a.Remark == gone
	})
	if old.taken() != "" {
		t.Errorf("the older connection has got %q", old.taken())
	}
	// The next heartbeat of the connection that is left makes it known again; the official broker knows it no more.
	old.Done(wire.ProducerHeartbeat("traveller", "Requesters"))
	if a := s.Ask(reply("traveller", "second")); official() != (a.Code == 1 && a.Remark == gone) || official() == (old.taken() == "second ") {
		t.Errorf("after its heartbeat: %d %q, it has got %q", a.Code, a.Remark, old.taken())
	}
	back := requester(t, "traveller")
	s.Done(reply("traveller", "third"))
	if back.taken() != "third " {
		t.Errorf("the one that is back has got %q", back.taken())
	}
	if n := s.max(replyTopic, 0); n != 0 {
		t.Errorf("%d replies are stored", n)
	}
}
