//go:build conformance

package acl

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// accounts is the ACL file that the broker starts with. The loopback address is in no white list: everybody must sign.
const accounts = `globalWhiteRemoteAddresses:
- 10.99.99.*
accounts:
- accessKey: theAdmin
  secretKey: "12345678"
  admin: true
- accessKey: listedAdmin
  secretKey: listedSecret
  admin: true
  topicPerms:
  - aclPub=PUB
- accessKey: theUser
  secretKey: 87654321
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
  topicPerms:
  - aclDenied=DENY
  - aclPub=PUB
  - aclSub=SUB
  groupPerms:
  - aclDeniedGroup=DENY
- accessKey: consumer
  secretKey: consumerSecret
  topicPerms:
  - aclT=SUB
  groupPerms:
  - aclG=SUB
- accessKey: fromHere
  secretKey: hereSecret
  whiteRemoteAddress: 127.0.0.1-9
- accessKey: fromThere
  secretKey: thereSecret
  whiteRemoteAddress: 127.0.0.{2,3}
`

// patience is how long an answer may take.
const patience = 30 * time.Second

var secrets = map[string]string{"theAdmin": "12345678", "listedAdmin": "listedSecret", "theUser": "87654321", "consumer": "consumerSecret", "fromThere": "thereSecret"}

// start starts a broker with access control, alone: the name server has none.
func start(t *testing.T) *target.Target {
	return target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Name: "acl-a", Cluster: "AclCluster", ACL: accounts}}})
}

// ask asks on a connection of its own.
func ask(t *testing.T, addr string, f *wire.Frame) *wire.Frame {
	t.Helper()
	a, err := wire.CallOnce(addr, f, patience)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refusal is what a refused request is told; "" = it is let in, whatever its handler says.
func refusal(a *wire.Frame) string {
	text, ok := strings.CutPrefix(a.Remark, "org.apache.rocketmq.acl.common.AclException: ")
	if !ok {
		return ""
	}
	text, place, ok := strings.Cut(text, ", org.apache.rocketmq.acl.plain.PlainPermissionManager.")
	if a.Code != 1 || !ok || !strings.Contains(place, "(PlainPermissionManager.java:") {
		return fmt.Sprintf("code %d, %s", a.Code, a.Remark)
	}
	return text
}

func request(code int, fields string, body string) func() *wire.Frame {
	return func() *wire.Frame {
		f := wire.Request(code)
		f.Ext = map[string]string{}
		for _, field := range strings.Fields(fields) {
			k, v, _ := strings.Cut(field, "=")
			f.Set(k, v)
		}
		if body != "" {
			f.Body = []byte(body)
		}
		return f
	}
}

func send(code int, fields string) func() *wire.Frame {
	letters := "d=4 e=0 f=0 g=1700000000000 h=0 i=KEYS\x01k j=0 k=false m=false c=TBW102 "
	if code == 10 {
		letters = "defaultTopic=TBW102 defaultTopicQueueNums=4 queueId=0 sysFlag=0 bornTimestamp=1700000000000 flag=0 properties=KEYS\x01k reconsumeTimes=0 unitMode=false "
	}
	return request(code, letters+fields, "hello")
}

func pull(topic, group string) func() *wire.Frame {
	return request(11, "consumerGroup="+group+" topic="+topic+" queueId=0 queueOffset=0 maxMsgNums=4 sysFlag=4 commitOffset=0 suspendTimeoutMillis=0 subscription=* subVersion=0 expressionType=TAG", "")
}

func heartbeat(group, topic string) func() *wire.Frame {
	return request(34, "", `{"clientID":"aclClient","producerDataSet":[{"groupName":"aclP"}],"consumerDataSet":[{"groupName":"`+group+
		`","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","unitMode":false,"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"`+topic+`"}]}]}`)
}

func denied(resource string) string { return "No default permission for " + resource }

// TestTable asks as each account for each resource, in both header forms.
func TestTable(t *testing.T) {
	c := start(t)
	addr := c.Brokers[0].Addr
	const same = "same"
	for i, tt := range []struct {
		what, who string
		frame     func() *wire.Frame
		official  string
		rocketd   string // same = as official
	}{
		{"send, default", "theUser", send(310, "a=P b=aclAny"), "", same},
		{"send, denied", "theUser", send(310, "a=P b=aclDenied"), denied("topic:aclDenied"), same},
		{"send, PUB", "theUser", send(310, "a=P b=aclPub"), "", same},
		{"send, SUB", "theUser", send(310, "a=P b=aclSub"), denied("topic:aclSub"), same},
		{"long names, denied", "theUser", send(10, "producerGroup=P topic=aclDenied"), denied("topic:aclDenied"), same},
		{"no permission at all", "fromThere", send(310, "a=P b=aclAny"), denied("topic:aclAny"), same},
		{"administrator", "theAdmin", send(310, "a=P b=aclDenied"), "", same},
		{"administrator with permissions, PUB", "listedAdmin", send(310, "a=P b=aclPub"), "", same},
		{"administrator with permissions, another topic", "listedAdmin", send(310, "a=P b=aclAny"), denied("topic:aclAny"), same},
		{"traces", "consumer", send(310, "a=P b=RMQ_SYS_TRACE_TOPIC"), "", same},
		{"reply", "consumer", send(325, "a=P b=AclCluster_REPLY_TOPIC"), "", same},
		{"reply to another topic", "consumer", send(325, "a=P b=aclAny"), "", denied("topic:aclAny")},
		{"waiting messages, default", "theUser", pull("SCHEDULE_TOPIC_XXXX", "aclG"), "", denied("topic:SCHEDULE_TOPIC_XXXX")},
		{"half messages, default", "theUser", pull("RMQ_SYS_TRANS_HALF_TOPIC", "aclG"), "", denied("topic:RMQ_SYS_TRANS_HALF_TOPIC")},
		{"batch, denied", "theUser", send(320, "a=P b=aclDenied"), "", denied("topic:aclDenied")},

		{"retry topic, its own group named", "consumer", send(310, "a=aclG b=%RETRY%aclG"), "", same},
		{"retry topic, another group named", "consumer", send(310, "a=other b=%RETRY%other"), denied("group:other"), same},
		{"retry topic of another group, its own named", "consumer", send(310, "a=aclG b=%RETRY%other"), "", denied("group:other")},
		{"retry topic by code 10", "consumer", send(10, "producerGroup=aclG topic=%RETRY%other"), "", denied("group:other")},
		{"retry topic by the client's own producer", "consumer", send(310, "a=CLIENT_INNER_PRODUCER b=%RETRY%aclG"), denied("group:CLIENT_INNER_PRODUCER"), ""},
		{"send back", "consumer", request(36, "offset=90000000 group=aclG delayLevel=1 originMsgId=x originTopic=aclT unitMode=false maxReconsumeTimes=16", ""), "", same},
		{"send back of a message of another topic", "consumer", request(36, "offset=0 group=aclG delayLevel=1 originMsgId=x originTopic=aclT unitMode=false maxReconsumeTimes=16", ""),
			"", denied("topic:aclAny")}, // the first case has sent it
		{"message of another topic", "consumer", request(33, "offset=0", ""), "", denied("topic:aclAny")},
		{"message", "theUser", request(33, "offset=0", ""), "", same},
		{"send back of another group", "consumer", request(36, "offset=0 group=other delayLevel=1 originMsgId=x originTopic=aclT unitMode=false maxReconsumeTimes=16", ""), denied("group:other"), same},
		{"its topic, PUB", "consumer", send(310, "a=P b=aclT"), denied("topic:aclT"), same},

		{"pull", "consumer", pull("aclT", "aclG"), "", same},
		{"pull of its retry topic", "consumer", pull("%RETRY%aclG", "aclG"), "", same},
		{"pull by another group", "consumer", pull("aclT", "other"), denied("group:other"), same},
		{"pull of another topic", "consumer", pull("aclAny", "aclG"), denied("topic:aclAny"), same},
		{"pull of its dead letters", "consumer", pull("%DLQ%aclG", "aclG"), denied("topic:%DLQ%aclG"), same},
		{"query", "theUser", request(12, "topic=aclPub key=k maxNum=4 beginTimestamp=0 endTimestamp=9000000000000", ""), denied("topic:aclPub"), same},
		{"query, PUB|SUB", "theUser", request(12, "topic=aclAny key=k maxNum=4 beginTimestamp=0 endTimestamp=9000000000000", ""), "", same},
		{"query by unique key, as the Java client signs", "theUser", request(12, "topic=aclAny key=k maxNum=4 beginTimestamp=0 endTimestamp=9000000000000 _UNIQUE_KEY_QUERY=true", ""),
			"Check signature failed for accessKey=theUser", ""},
		{"offsets", "consumer", request(15, "consumerGroup=aclG topic=aclT queueId=0 commitOffset=0", ""), "", same},
		{"offsets of another group", "consumer", request(15, "consumerGroup=other topic=aclT queueId=0 commitOffset=0", ""), denied("group:other"), same},
		{"members", "theUser", request(38, "consumerGroup=aclDeniedGroup", ""), denied("group:aclDeniedGroup"), same},
		{"unregister", "consumer", request(35, "clientID=aclClient consumerGroup=other", ""), denied("group:other"), same},
		{"heartbeat", "consumer", heartbeat("aclG", "aclT"), "", same},
		{"heartbeat with another topic", "consumer", heartbeat("aclG", "aclAny"), denied("topic:aclAny"), same},
		{"heartbeat of another group", "consumer", heartbeat("other", "aclT"), denied("group:other"), same},
		{"lock of another group", "consumer", request(41, "", `{"consumerGroup":"other","clientId":"aclClient","mqSet":[]}`), "", denied("group:other")},
		{"question for an offset", "consumer", request(14, "consumerGroup=other topic=aclAny queueId=0", ""), "", same},

		{"topic, no administrator", "theUser", request(17, "topic=aclAny defaultTopic=TBW102 readQueueNums=1 writeQueueNums=1 perm=6 topicFilterType=SINGLE_TAG topicSysFlag=0 order=false", ""),
			"Need admin permission for request code=17, but accessKey=theUser is not", same},
		{"topic", "theAdmin", request(17, "topic=aclMade defaultTopic=TBW102 readQueueNums=1 writeQueueNums=1 perm=6 topicFilterType=SINGLE_TAG topicSysFlag=0 order=false", ""), "", same},
		{"configuration", "theUser", request(25, "", "traceOn=true\n"), "Need admin permission for request code=25, but accessKey=theUser is not", same},
		{"group", "theUser", request(200, "", `{"groupName":"aclG"}`), "Need admin permission for request code=200, but accessKey=theUser is not", same},
		{"group deleted", "theUser", request(207, "groupName=aclNone", ""), "Need admin permission for request code=207, but accessKey=theUser is not", same},
		{"topic deleted", "theUser", request(215, "topic=aclNone", ""), "Need admin permission for request code=215, but accessKey=theUser is not", same},
		{"account deleted", "theUser", request(51, "accessKey=noSuchUser", ""), "", "Need admin permission for request code=51, but accessKey=theUser is not"},
		{"versions", "theUser", request(52, "", ""), "", same},
		{"expired queues", "theUser", request(306, "", ""), "", "Need admin permission for request code=306, but accessKey=theUser is not"},
		{"unknown code", "theUser", request(9999, "", ""), "", same},

		{"no key", "", send(310, "a=P b=aclAny"), "No accessKey is configured", same},
		{"no key, heartbeat", "", heartbeat("aclG", "aclT"), "No accessKey is configured", same},
		{"no key, unknown code", "", request(9999, "", ""), "No accessKey is configured", same},
		{"unknown key", "nobody1", send(310, "a=P b=aclAny"), "No acl config for nobody1", same},
	} {
		want := tt.official
		if c.Kind == target.Rocketd && tt.rocketd != same {
			want = tt.rocketd
		}
		for form, name := range map[byte]string{wire.JSON: "JSON", wire.Binary: "binary"} {
			f := tt.frame()
			f.Form = form
			if tt.who != "" {
				f.Sign(tt.who, secrets[tt.who])
			}
			if got := refusal(ask(t, addr, f)); got != want {
				t.Errorf("%d %s, %s: %q, want %q", i, tt.what, name, got, want)
			}
		}
	}
	// Whoever is in a white list needs no signature; a wrong one does not matter.
	f := send(310, "a=P b=aclDenied")().Set("AccessKey", "fromHere")
	if got := refusal(ask(t, addr, f)); got != "" {
		t.Errorf("account white list: %q", got)
	}
	f = send(310, "a=P b=aclAny")().Sign("theUser", "wrongSecret")
	if got := refusal(ask(t, addr, f)); got != "Check signature failed for accessKey=theUser" {
		t.Errorf("wrong secret: %q", got)
	}
	f = send(310, "a=P b=aclAny")().Sign("theUser", secrets["theUser"]).WithBody([]byte("other"))
	if got := refusal(ask(t, addr, f)); got != "Check signature failed for accessKey=theUser" {
		t.Errorf("changed body: %q", got)
	}
	// The official decoder of the binary form makes null of an empty text, and signs "null".
	f = send(310, "a=P b=aclAny")().Set("i", "")
	f.Form = wire.Binary
	want := ""
	if c.Kind == target.Official {
		want = "Check signature failed for accessKey=theUser"
	}
	if got := refusal(ask(t, addr, f.Sign("theUser", secrets["theUser"]))); got != want {
		t.Errorf("an empty text in the binary form: %q, want %q", got, want)
	}
	// The fast port has the same check.
	fast := "127.0.0.1:" + strconv.Itoa(c.Brokers[0].Port()-2)
	if got := refusal(ask(t, fast, send(310, "a=P b=aclAny")())); got != "No accessKey is configured" {
		t.Errorf("fast port: %q", got)
	}
	if text, err := os.ReadFile(c.Brokers[0].ACLFile); err != nil || string(text) != accounts {
		t.Errorf("questions have changed the file: %v\n%s", err, text)
	}
}
