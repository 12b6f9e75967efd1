package broker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/acl"
	"rocketd/remoting/remotingtest"
)

// topicRules has an account that may do everything but with TopicA, its owner, and one that may do nothing.
const topicRules = `accounts:
- accessKey: theOwner
  secretKey: ownerSecret
  topicPerms:
  - TopicA=PUB|SUB
  - "%LMQ%a=PUB"
- accessKey: thePlain
  secretKey: plainSecret
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
  topicPerms:
  - TopicA=DENY
- accessKey: theAdmin
  secretKey: adminSecret
  admin: true
- accessKey: theNobody
  secretKey: nobodySecret
`

// signer signs requests as an account.
type signer struct {
	*pathBroker
	credentials *acl.Credentials
}

func startTopicBroker(t *testing.T, tweak func(*Config)) (owner, plain, nobody signer) {
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, "conf", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain_acl.yml", topicRules)
	b := startPathBroker(t, func(cfg *Config) {
		cfg.AclEnable, cfg.RocketmqHome = true, home
		tweak(cfg)
	})
	as := func(key, secret string) signer {
		c, err := acl.ReadCredentials(write("tools.yml", "accessKey: "+key+"\nsecretKey: "+secret+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return signer{&pathBroker{Broker: b.Broker, tb: t, peer: b.dial(), fs: b.fs, next: 1000}, c}
	}
	return as("theOwner", "ownerSecret"), as("thePlain", "plainSecret"), as("theNobody", "nobodySecret")
}

func (s signer) asks(code protocol.RequestCode, h any, body string) *protocol.Command {
	s.tb.Helper()
	return s.asksOn(s.peer, code, h, body)
}

func (s signer) asksOn(peer *remotingtest.Peer, code protocol.RequestCode, h any, body string) *protocol.Command {
	s.tb.Helper()
	cmd := s.request(code, h, []byte(body))
	s.credentials.Sign(cmd)
	return peer.Ask(cmd)
}

const deniedPrefix = "org.apache.rocketmq.acl.common.AclException: No default permission for "

func denied(t *testing.T, what string, a *protocol.Command, resource string) {
	t.Helper()
	check(t, what, a, protocol.SystemError, deniedPrefix+resource+",*")
}

// TestWaitingMessages: who may not read a topic does not read its messages while they wait to be in it either, and who
// may not write to it does not end its transactions.
func TestWaitingMessages(t *testing.T) {
	owner, plain, nobody := startTopicBroker(t, func(*Config) {})
	at := func(a *protocol.Command) int64 {
		_, offset, err := message.ParseOffsetMsgId(field(t, a, "msgId"))
		if err != nil {
			t.Fatal(err)
		}
		return offset
	}
	delayed := owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, "DELAY=18"), "later")
	half := owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, tran), "half")
	for name, a := range map[string]*protocol.Command{"delayed": delayed, "half": half} {
		check(t, name, a, protocol.Success, "", sendFields...)
		view := &header.ViewMessageRequest{Offset: at(a)}
		check(t, name+" by its owner", owner.asks(protocol.ViewMessageById, view, ""), protocol.Success, "")
		denied(t, name+", denied by name", plain.asks(protocol.ViewMessageById, view, ""), "topic:TopicA")
		denied(t, name+", no permission", nobody.asks(protocol.ViewMessageById, view, ""), "topic:TopicA")
		plain.groups.FindOrCreate("G")
		denied(t, name+" sent back", plain.asks(protocol.ConsumerSendMsgBack, &header.ConsumerSendMsgBackRequest{Offset: at(a), Group: "G"}, ""), "topic:TopicA")
	}
	for _, topic := range []string{message.TopicSchedule, message.TopicTransHalf, message.TopicTransOpHalf, message.TopicTimer, message.TopicPopLog} {
		h := pullHeader(topic, 17, 0)
		denied(t, topic, plain.asks(protocol.PullMessage, h, ""), "topic:"+topic)
		denied(t, topic+" by key", plain.asks(protocol.QueryMessage, &header.QueryMessageRequest{Topic: topic, Key: "k", MaxNum: 1}, ""), "topic:"+topic)
	}
	end := &header.EndTransactionRequest{ProducerGroup: "TPG", CommitLogOffset: at(half), CommitOrRollback: message.TransactionCommit}
	for name, s := range map[string]signer{"denied by name": plain, "no permission": nobody} {
		denied(t, "commit, "+name, s.asks(protocol.EndTransaction, end, ""), "topic:TopicA")
	}
	check(t, "commit", owner.asks(protocol.EndTransaction, end, ""), protocol.Success, "")
}

// TestHalfMessagesAreShownToTheirAccounts: anybody can join a producer group, but is not told of its half messages.
func TestHalfMessagesAreShownToTheirAccounts(t *testing.T) {
	owner, plain, nobody := startTopicBroker(t, soon)
	for name, s := range map[string]signer{"a": plain, "c": nobody} {
		check(t, "heartbeat", s.asks(protocol.HeartBeat, nil, `{"clientID":"`+name+`","producerDataSet":[{"groupName":"TPG"}],"consumerDataSet":[]}`), protocol.Success, "")
	}
	// A peer of the owner's that is in the group waits; the others, before and behind it in the order, get nothing.
	asked := owner.dial()
	check(t, "half", owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, tran), "half"), protocol.Success, "", sendFields...)
	check(t, "heartbeat", owner.asksOn(asked, protocol.HeartBeat, nil, `{"clientID":"b","producerDataSet":[{"groupName":"TPG"}],"consumerDataSet":[]}`), protocol.Success, "")
	for range 3 {
		if h, m := checked(t, asked); string(m.Body) != "half" || h.ProducerGroup != "TPG" {
			t.Errorf("asked about %q", m.Body)
		}
	}
	for name, s := range map[string]signer{"denied by name": plain, "no permission": nobody} {
		// Their next frame is the answer to this, and no check.
		check(t, name, s.asks(protocol.GetMaxOffset, &header.GetMaxOffsetRequest{Topic: "TopicA"}, ""), protocol.Success, "", "offset")
	}
}

// TestWaysIntoTopics: who may not write to a topic gets no message into it by another request, or by another topic.
func TestWaysIntoTopics(t *testing.T) {
	owner, plain, nobody := startTopicBroker(t, light)
	reply := func(topic, properties string) *header.SendMessageRequest {
		return sendHeader(topic, 0, "REPLY_TO_CLIENT=nobodyThere|"+properties)
	}
	for _, code := range []protocol.RequestCode{protocol.SendReplyMessage, protocol.SendReplyMessageV2} {
		denied(t, "reply", nobody.asks(code, reply("TopicA", ""), "x"), "topic:TopicA")
		denied(t, "reply", plain.asks(code, reply("TopicA", ""), "x"), "topic:TopicA")
		// Where stock clients send them: the requester is not there, but the reply is let in.
		check(t, "reply", nobody.asks(code, reply(replyTopic, ""), "x"), protocol.SystemError, "push reply message fail, channel of <nobodyThere> not found.", sendFields...)
		denied(t, "reply dispatched", plain.asks(code, reply(replyTopic, "INNER_MULTI_DISPATCH=TopicA"), "x"), "topic:TopicA")
	}
	for names, resource := range map[string]string{"TopicA": "topic:TopicA", "%LMQ%x,TopicA": "topic:TopicA", ",TopicA,": "topic:TopicA"} {
		denied(t, "dispatched to "+names, plain.asks(protocol.SendMessage, sendHeader("TopicB", 0, "INNER_MULTI_DISPATCH="+names), "x"), resource)
	}
	denied(t, "dispatched to another group", owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, "INNER_MULTI_DISPATCH=%LMQ%a,%RETRY%g"), "x"), "group:g")
	check(t, "dispatched", owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, "INNER_MULTI_DISPATCH=%LMQ%a"), "x"), protocol.Success, "", sendFields...)
	remotingtest.Eventually(t, "what is stored is in its queues", func() bool { return owner.store.DispatchedOffset() == owner.store.MaxPhyOffset() })
	if n := owner.store.MaxOffset("TopicA", 0); n != 1 {
		t.Errorf("TopicA has %d messages, of which its owner sent one", n)
	}
}

// TestAccountFileMode: the file of the account that signs has a secret too.
func TestAccountFileMode(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o644: true} {
		path := filepath.Join(t.TempDir(), "tools.yml")
		if err := os.WriteFile(path, []byte("accessKey: theBroker\nsecretKey: brokerSecret\n"), mode); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		b := &Broker{log: slog.New(slog.NewTextHandler(&out, nil))}
		if _, err := b.readCredentials(&Config{NamesrvAccountFile: path}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "OTHERS MAY READ"); got != want || strings.Contains(out.String(), "brokerSecret") {
			t.Errorf("mode %v: told %v, %s", mode, got, out.String())
		}
	}
}

// TestSignaturesAreNotHandedOn: a consumer that is asked for an administrator does not get what he has signed with: neither the code
// nor the keys are signed, so that a client id which its owner has chosen well makes of it the signature of another request.
func TestSignaturesAreNotHandedOn(t *testing.T) {
	owner, plain, _ := startTopicBroker(t, func(*Config) {})
	stored := owner.asks(protocol.SendMessage, sendHeader("TopicA", 0, ""), "x")
	consumer := plain.dial()
	beat := plain.request(protocol.HeartBeat, nil, []byte(`{"clientID":"evilUsertrueevilSecret","producerDataSet":[],"consumerDataSet":[{"groupName":"G","subscriptionDataSet":[]}]}`))
	plain.credentials.Sign(beat)
	consumer.Send(beat)
	for a := consumer.Receive(); ; a = consumer.Receive() { // the notice that the group has changed comes before
		if a.IsResponse() {
			check(t, "heartbeat", a, protocol.Success, "")
			break
		}
	}
	admin := owner
	admin.peer = owner.dial()
	var err error
	file := filepath.Join(t.TempDir(), "tools.yml")
	if err := os.WriteFile(file, []byte("accessKey: theAdmin\nsecretKey: adminSecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if admin.credentials, err = acl.ReadCredentials(file); err != nil {
		t.Fatal(err)
	}
	for code, h := range map[protocol.RequestCode]any{
		protocol.GetConsumerRunningInfo: &header.GetConsumerRunningInfoRequest{ConsumerGroup: "G", ClientId: "evilUsertrueevilSecret"},
		protocol.ConsumeMessageDirectly: &header.ConsumeMessageDirectlyResultRequest{ConsumerGroup: "G", ClientId: "evilUsertrueevilSecret", MsgId: field(t, stored, "msgId")},
	} {
		cmd := admin.request(code, h, nil)
		cmd.SetField("SecurityToken", "aToken")
		admin.credentials.Sign(cmd)
		admin.peer.Send(cmd)
		got := asked(consumer, code)
		if id := field(t, got, "clientId"); id != "evilUsertrueevilSecret" {
			t.Errorf("%v: asked as %q", code, id)
		}
		for _, f := range got.Fields {
			if f.Key == "AccessKey" || f.Key == "Signature" || f.Key == "SecurityToken" {
				t.Errorf("%v is handed on with %s=%s", code, f.Key, f.Value)
			}
		}
		answer := protocol.NewResponse(protocol.Success, "", nil)
		answer.Opaque = got.Opaque
		consumer.Send(answer)
		check(t, code.String(), admin.peer.Receive(), protocol.Success, "")
	}
}
