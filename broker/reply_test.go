package broker

import (
	"net/netip"
	"strings"
	"testing"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// requester makes a connection a producer by a client id.
func (p *pathBroker) requester(clientId string) *remotingtest.Peer {
	p.tb.Helper()
	peer := p.dial()
	data, err := compat.Marshal(&body.HeartbeatData{ClientID: clientId, ProducerDataSet: []body.ProducerData{{GroupName: "PG"}}})
	if err != nil {
		p.tb.Fatal(err)
	}
	check(p.tb, "heartbeat of "+clientId, peer.Ask(p.request(protocol.HeartBeat, nil, data)), protocol.Success, "")
	return peer
}

// A reply is handed to the client that it names, with the fields that the stock client reads, and stored as it came.
func TestReplyReachesRequester(t *testing.T) {
	b := startPathBroker(t, nil)
	asker := b.requester("asker")
	for i, code := range []protocol.RequestCode{protocol.SendReplyMessage, protocol.SendReplyMessageV2} {
		sent := text("CORRELATION_ID=c|REPLY_TO_CLIENT=asker|MSG_TYPE=reply|WAIT=true")
		h := sendHeader(replyTopic, 0, "")
		h.Properties, h.SysFlag, h.ReconsumeTimes = sent, message.Compressed|message.CompressionZLIB|message.TransactionPrepared, protocol.Some[int32](2)
		b.peer.Send(b.request(code, h, []byte("hello")))
		push := asked(asker, protocol.PushReplyMessageToClient)
		for key, want := range map[string]string{
			"producerGroup": "PG", "topic": replyTopic, "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
			"bornTimestamp": "1700000000000", "flag": "7", "reconsumeTimes": "2", "unitMode": "false",
			"bornHost": b.peer.LocalAddr().String(), "storeHost": b.storeHost().String(), "sysFlag": "773",
		} {
			if got := field(t, push, key); got != want {
				t.Errorf("%v: field %s of the push is %q, want %q", code, key, got, want)
			}
		}
		pushed := field(t, push, "properties")
		if at, _ := message.Property(pushed, message.PropertyPushReplyTime); !strings.HasPrefix(pushed, sent) || at != field(t, push, "storeTimestamp") || string(push.Body) != "hello" {
			t.Errorf("%v: pushed %q with %q", code, push.Body, plain(pushed))
		}
		answer := protocol.NewResponse(protocol.Success, "", nil)
		answer.Opaque = push.Opaque
		asker.Send(answer)
		a := b.peer.Receive()
		check(t, code.String(), a, protocol.Success, "", sendFields...)
		m := b.stored(replyTopic, 0, int64(i), int64(i+1))[0]
		if field(t, a, "msgId") != message.OffsetMsgId(b.storeHost(), m.PhyOffset) || m.Properties != sent || string(m.Body) != "hello" ||
			m.SysFlag != message.Compressed|message.CompressionZLIB || m.ReconsumeTimes != 2 || m.Flag != 7 {
			t.Errorf("%v: answer %v, stored %+v", code, a.Fields, m)
		}
	}
	if n := b.pushed.open.Load(); n != 0 {
		t.Errorf("%d replies wait in the end", n)
	}
}

// What the replier is told when nobody takes its reply, in the official words; the reply is stored all the same.
func TestReplyNotTaken(t *testing.T) {
	b := startPathBroker(t, nil)
	refuser, leaver := b.requester("refuser"), b.requester("leaver")
	ask := func(to string) *protocol.Command {
		return b.request(protocol.SendReplyMessageV2, sendHeader(replyTopic, 0, to), []byte("x"))
	}
	check(t, "no client named", b.peer.Ask(ask("")), 1, "reply message properties[REPLY_TO_CLIENT] is null", sendFields...)
	check(t, "nobody of that name", b.peer.Ask(ask("REPLY_TO_CLIENT=gone")), 1, "push reply message fail, channel of <gone> not found.", sendFields...)

	b.peer.Send(ask("REPLY_TO_CLIENT=refuser"))
	refusal := protocol.NewResponse(protocol.SystemError, "process reply message fail", nil)
	refusal.Opaque = asked(refuser, protocol.PushReplyMessageToClient).Opaque
	refuser.Send(refusal)
	check(t, "refused", b.peer.Receive(), 1, "push reply message to refuserfail.", sendFields...)

	b.peer.Send(ask("REPLY_TO_CLIENT=leaver"))
	asked(leaver, protocol.PushReplyMessageToClient)
	leaver.Close()
	check(t, "gone meanwhile", b.peer.Receive(), 1, "push reply message to leaverfail.", sendFields...)
	if n := len(b.stored(replyTopic, 0, 0, 4)); n != 4 {
		t.Errorf("%d replies stored, want 4", n)
	}

	check(t, "topic", b.ask(protocol.SendReplyMessage, &header.SendMessageRequest{Topic: "New", DefaultTopic: "None"}, nil), 17,
		"topic[New] not exist, apply first please!"+faq, "MSG_REGION", "TRACE_ON")
	check(t, "no fields", b.ask(protocol.SendReplyMessage, &header.Empty{}, nil), 1, "The specified topic is blank.", "MSG_REGION", "TRACE_ON")
}

// With storeReplyMessageEnable off nothing is stored; who was handed the reply is told message id 0.
func TestReplyNotStored(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.StoreReplyMessageEnable, c.ReplyThreadPoolQueueCapacity = false, 1 })
	asker := b.requester("asker")
	before := b.store.MaxPhyOffset()
	ask := b.request(protocol.SendReplyMessageV2, sendHeader(replyTopic, 0, "REPLY_TO_CLIENT=asker"), nil)
	b.peer.Send(ask)
	push := asked(asker, protocol.PushReplyMessageToClient)
	other := b.dial()
	check(t, "one too many", other.Ask(ask), protocol.SystemBusy, "[OVERLOAD]system busy, start flow control for a while")
	taken := protocol.NewResponse(protocol.Success, "", nil)
	taken.Opaque = push.Opaque
	asker.Send(taken)
	a := b.peer.Receive()
	check(t, "taken", a, protocol.Success, "", sendFields...)
	if field(t, a, "msgId") != "0" || field(t, a, "queueId") != "0" || field(t, a, "queueOffset") != "0" {
		t.Errorf("answer %v", a.Fields)
	}
	check(t, "not taken", b.ask(protocol.SendReplyMessageV2, sendHeader(replyTopic, 0, "REPLY_TO_CLIENT=gone"), nil), 1,
		"push reply message fail, channel of <gone> not found.", "MSG_REGION", "TRACE_ON")
	if b.store.MaxPhyOffset() != before {
		t.Error("something was stored")
	}
}

// A delayed reply waits at its level, and a reply creates a topic that is in its file by the time of the answer.
func TestReplyStoredElsewhere(t *testing.T) {
	b := startPathBroker(t, nil)
	check(t, "delayed", b.ask(protocol.SendReplyMessage, sendHeader("Made", 3, "DELAY=99|WAIT=true"), []byte("x")), 1,
		"reply message properties[REPLY_TO_CLIENT] is null", sendFields...)
	if data, err := b.files.ReadFile("/store/config/topics.json"); err != nil || !strings.Contains(string(data), `"Made"`) {
		t.Errorf("topics.json: %v", err)
	}
	m := b.stored("SCHEDULE_TOPIC_XXXX", 17, 0, 1)[0]
	if plain(m.Properties) != "WAIT=true|CLUSTER=DefaultCluster|REAL_TOPIC=Made|REAL_QID=3|DELAY=18" {
		t.Errorf("stored %q", plain(m.Properties))
	}
}

func TestHostText(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:80": "127.0.0.1:80", "[::1]:80": "::1:80", "[::ffff:10.0.0.1]:9": "10.0.0.1:9"} {
		if got := hostText(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
