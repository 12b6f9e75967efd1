package acl

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/protocol"
	"rocketd/remoting/acl/acltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is the ACL file of the recordings, with some accounts more.
var sample = "# Accounts\n" + strings.Replace(acltest.Recorded, "10.99.99.*\n", "10.99.99.*   # the office\n", 1) + `  - accessKey: listedAdmin
    secretKey: listedSecret
    admin: true
    topicPerms:
      - aclPubOnly=PUB
  - accessKey: consumer
    secretKey: consumerSecret
    topicPerms:
      - T=SUB
    groupPerms:
      - g=SUB
  - accessKey: fromHome
    secretKey: homeSecret
    whiteRemoteAddress: 192.168.7.{1,2}
`

// room is a home with ACL files.
type room struct {
	*testing.T
	home string
	logs *bytes.Buffer
}

func newRoom(t *testing.T, text string) *room {
	r := &room{t, t.TempDir(), new(bytes.Buffer)}
	r.write("plain_acl.yml", text)
	return r
}

func (r *room) path(name string) string {
	return filepath.Join(r.home, "conf", filepath.FromSlash(name))
}

func (r *room) write(name, text string) {
	r.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *room) text(name string) string {
	r.Helper()
	data, err := os.ReadFile(r.path(name))
	if err != nil {
		r.Fatal(err)
	}
	return string(data)
}

func (r *room) options() Options {
	return Options{Folder: Folder{Home: r.home}, Clock: func() time.Time { return time.UnixMilli(1_800_000_000_000) },
		Log: slog.New(slog.NewTextHandler(r.logs, nil))}
}

func (r *room) open() *Table {
	r.Helper()
	t, err := Open(r.options())
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// stranger is an address in no white list.
var stranger = netip.MustParseAddr("172.16.0.9")

// signed is a request with a signature made here by the rules, with a key ("" = none).
func signed(code protocol.RequestCode, accessKey, secret string, body []byte, fields ...string) *protocol.Command {
	c := &protocol.Command{Code: int32(code), Body: body, HasFields: true}
	for i := 0; i < len(fields); i += 2 {
		c.SetField(fields[i], fields[i+1])
	}
	if accessKey == "" {
		return c
	}
	c.SetField(fieldAccessKey, accessKey)
	key := newSigningKey(secret)
	s := signers.Get().(*signer)
	defer s.release()
	c.SetField(fieldSignature, string(s.sign(&key, c, s.order(c), true)))
	return c
}

// remark is what the answer of a refused request says, without the official class and line; "" = it is let in.
func remark(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	text = strings.TrimPrefix(text, "SYSTEM_ERROR: org.apache.rocketmq.acl.common.AclException: ")
	text, _, _ = strings.Cut(text, ", org.apache.rocketmq.acl.plain.PlainPermissionManager.")
	return text
}

// TestCheck is the table of codes, accounts and resources: expected values by spec section 5 and COMPATIBILITY.md.
func TestCheck(t *testing.T) {
	table := newRoom(t, sample).open()
	heartbeat := func(group, topic string) []byte {
		return []byte(`{"clientID":"c","producerDataSet":[{"groupName":"p"}],"consumerDataSet":[{"groupName":"` + group +
			`","subscriptionDataSet":[{"topic":"` + topic + `","subString":"*"},{"topic":"%RETRY%` + group + `","subString":"*"}]}]}`)
	}
	user := [2]string{"oracleUser", "87654321"}
	admin := [2]string{"oracleAdmin", "12345678"}
	listed := [2]string{"listedAdmin", "listedSecret"}
	consumer := [2]string{"consumer", "consumerSecret"}
	for _, tt := range []struct {
		what   string
		who    [2]string
		code   protocol.RequestCode
		body   []byte
		fields string
		want   string
	}{
		{"no key", [2]string{}, protocol.SendMessageV2, nil, "b=aclAny", "No accessKey is configured"},
		{"unknown key", [2]string{"nobody1", "12345678"}, protocol.SendMessageV2, nil, "b=aclAny", "No acl config for nobody1"},
		{"wrong secret", [2]string{"oracleUser", "87654320"}, protocol.SendMessageV2, nil, "b=aclAny", "Check signature failed for accessKey=oracleUser"},
		{"key of another case", [2]string{"OracleUser", "87654321"}, protocol.HeartBeat, nil, "", "No acl config for OracleUser"},

		{"send, default", user, protocol.SendMessage, nil, "topic=aclAny", ""},
		{"send, denied", user, protocol.SendMessage, nil, "topic=aclDenied", "No default permission for topic:aclDenied"},
		{"send, PUB", user, protocol.SendMessageV2, nil, "b=aclPubOnly", ""},
		{"send, SUB only", user, protocol.SendMessageV2, nil, "b=aclSubOnly", "No default permission for topic:aclSubOnly"},
		{"batch, SUB only", user, protocol.SendBatchMessage, nil, "b=aclSubOnly", "No default permission for topic:aclSubOnly"},
		{"send with both spellings", user, protocol.SendMessageV2, nil, "b=aclAny topic=aclDenied", "No default permission for topic:aclDenied"},
		{"send with both spellings, short", user, protocol.SendMessage, nil, "topic=aclAny b=aclDenied", "No default permission for topic:aclDenied"},
		{"topic there twice: the last counts", user, protocol.SendMessageV2, nil, "b=aclAny b=aclDenied", "No default permission for topic:aclDenied"},
		{"traces", consumer, protocol.SendMessageV2, nil, "b=RMQ_SYS_TRACE_TOPIC", ""},
		{"traces and another topic", consumer, protocol.SendMessageV2, nil, "b=RMQ_SYS_TRACE_TOPIC topic=T", "No default permission for topic:RMQ_SYS_TRACE_TOPIC"},
		{"pull of traces", consumer, protocol.PullMessage, nil, "topic=RMQ_SYS_TRACE_TOPIC consumerGroup=g", "No default permission for topic:RMQ_SYS_TRACE_TOPIC"},

		{"retry topic of its group", consumer, protocol.SendMessageV2, nil, "a=CLIENT_INNER_PRODUCER b=%RETRY%g", ""},
		{"retry topic of another group", consumer, protocol.SendMessageV2, nil, "a=g b=%RETRY%other", "No default permission for group:other"},
		{"retry topic by code 10", consumer, protocol.SendMessage, nil, "topic=%RETRY%other", "No default permission for group:other"},
		{"send back", consumer, protocol.ConsumerSendMsgBack, nil, "group=g originTopic=T", ""},
		{"send back of another group", consumer, protocol.ConsumerSendMsgBack, nil, "group=other", "No default permission for group:other"},
		{"no PUB on its topic", consumer, protocol.SendMessageV2, nil, "b=T", "No default permission for topic:T"},
		{"dead-letter topic", consumer, protocol.PullMessage, nil, "topic=%DLQ%g consumerGroup=g", "No default permission for topic:%DLQ%g"},

		{"pull", consumer, protocol.PullMessage, nil, "topic=T consumerGroup=g", ""},
		{"pull of its retry topic", consumer, protocol.PullMessage, nil, "topic=%RETRY%g consumerGroup=g", ""},
		{"pull by another group", consumer, protocol.PullMessage, nil, "topic=T consumerGroup=other", "No default permission for group:other"},
		{"pull of another topic", consumer, protocol.PullMessage, nil, "topic=U consumerGroup=g", "No default permission for topic:U"},
		{"lite pull of another topic", consumer, protocol.LitePullMessage, nil, "topic=U consumerGroup=g", "No default permission for topic:U"},
		{"pop of another topic", consumer, protocol.PopMessage, nil, "topic=U consumerGroup=g", "No default permission for topic:U"},
		{"acknowledgement of what has come again", consumer, protocol.AckMessage, nil, "topic=%RETRY%g_T consumerGroup=g", ""},
		{"of another topic", consumer, protocol.ChangeMessageInvisibleTime, nil, "topic=%RETRY%g_U consumerGroup=g", "No default permission for topic:U"},
		{"acknowledgement by another group", consumer, protocol.AckMessage, nil, "topic=T consumerGroup=other", "No default permission for group:other"},
		{"batch of acknowledgements", consumer, protocol.BatchAckMessage, []byte(`{"acks":[{"c":"g","t":"T"},{"c":"other","t":"T"}]}`), "", "No default permission for group:other"},
		{"assignment", consumer, protocol.QueryAssignment, []byte(`{"consumerGroup":"g","topic":"U"}`), "", "No default permission for topic:U"},
		{"recall", consumer, protocol.RecallMessage, nil, "topic=T", "No default permission for topic:T"},
		{"mode of a group", consumer, protocol.SetMessageRequestMode, []byte(`{}`), "", "Need admin permission for request code=401, but accessKey=consumer is not"},
		{"query", user, protocol.QueryMessage, nil, "topic=aclPubOnly key=k", "No default permission for topic:aclPubOnly"},
		{"query by unique key", user, protocol.QueryMessage, nil, "topic=aclAny key=k _UNIQUE_KEY_QUERY=true", ""},
		{"offset update", consumer, protocol.UpdateConsumerOffset, nil, "topic=T consumerGroup=g", ""},
		{"offset update of another group", consumer, protocol.UpdateConsumerOffset, nil, "topic=T consumerGroup=other", "No default permission for group:other"},
		{"members", user, protocol.GetConsumerListByGroup, nil, "consumerGroup=aclDeniedGroup", "No default permission for group:aclDeniedGroup"},
		{"unregister a producer", consumer, protocol.UnregisterClient, nil, "clientID=c producerGroup=p", ""},
		{"unregister another group", consumer, protocol.UnregisterClient, nil, "clientID=c consumerGroup=other", "No default permission for group:other"},
		{"offset query needs no permission", consumer, protocol.QueryConsumerOffset, nil, "topic=U consumerGroup=other", ""},

		{"heartbeat", consumer, protocol.HeartBeat, heartbeat("g", "T"), "", ""},
		{"heartbeat of another group", consumer, protocol.HeartBeat, heartbeat("other", "T"), "", "No default permission for group:other"},
		{"heartbeat with another topic", consumer, protocol.HeartBeat, heartbeat("g", "U"), "", "No default permission for topic:U"},
		{"heartbeat that is no JSON", consumer, protocol.HeartBeat, []byte("{"), "", ""},
		{"lock", consumer, protocol.LockBatchMQ, []byte(`{"consumerGroup":"g","clientId":"c","mqSet":[]}`), "", ""},
		{"lock of another group", consumer, protocol.LockBatchMQ, []byte(`{"consumerGroup":"other","clientId":"c","mqSet":[]}`), "", "No default permission for group:other"},

		{"administration", user, protocol.UpdateAndCreateTopic, nil, "topic=aclAny", "Need admin permission for request code=17, but accessKey=oracleUser is not"},
		{"administration by an administrator", admin, protocol.UpdateAndCreateTopic, nil, "topic=aclAny", ""},
		{"administration by one with permissions", listed, protocol.UpdateAndCreateTopic, nil, "topic=aclAny", ""},
		{"an account makes itself administrator", user, protocol.UpdateAndCreateAclConfig, nil, "accessKey=oracleUser admin=true", "Need admin permission for request code=50, but accessKey=oracleUser is not"},
		{"version of the files", user, protocol.GetBrokerClusterAclInfo, nil, "", ""},
		{"reset of offsets", consumer, protocol.InvokeBrokerToResetOffset, nil, "topic=T group=g", "Need admin permission for request code=222, but accessKey=consumer is not"},
		{"administrator", admin, protocol.SendMessageV2, nil, "b=aclDenied", ""},
		{"administrator with permissions", listed, protocol.SendMessageV2, nil, "b=aclPubOnly", ""},
		{"administrator with permissions, default", listed, protocol.SendMessageV2, nil, "b=aclAny", "No default permission for topic:aclAny"},
		{"unknown code", user, 4711, nil, "", ""},
		{"unknown code without a key", [2]string{}, 4711, nil, "", "No accessKey is configured"},
	} {
		var fields []string
		for _, f := range strings.Fields(tt.fields) {
			k, v, _ := strings.Cut(f, "=")
			fields = append(fields, k, v)
		}
		cmd := signed(tt.code, tt.who[0], tt.who[1], tt.body, fields...)
		if got := remark(table.Check(cmd, stranger)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		if err := table.Check(cmd, netip.MustParseAddr("10.99.99.1")); err != nil {
			t.Errorf("%s: refused in the global white list: %v", tt.what, err)
		}
	}
	noKey := &protocol.Command{Code: 310}
	noKey.SetField(fieldAccessKey, "fromHome")
	for addr, want := range map[string]string{"192.168.7.2": "", "192.168.7.3": "Check signature failed for accessKey=fromHome", "::ffff:192.168.7.1": ""} {
		if got := remark(table.Check(noKey, netip.MustParseAddr(addr))); got != want {
			t.Errorf("account white list, %s: %q", addr, got)
		}
	}
}

// TestOfficialRemark: the whole remark, recorded from the official server but for the line number, which is 4.9.8's.
func TestOfficialRemark(t *testing.T) {
	table := newRoom(t, sample).open()
	err := table.Check(&protocol.Command{Code: 17}, stranger)
	want := "SYSTEM_ERROR: org.apache.rocketmq.acl.common.AclException: No accessKey is configured, " +
		"org.apache.rocketmq.acl.plain.PlainPermissionManager.validate(PlainPermissionManager.java:664)"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if table.Refused() != 1 {
		t.Errorf("%d refused", table.Refused())
	}
}

// TestAuthorize: what only a handler knows.
func TestAuthorize(t *testing.T) {
	table := newRoom(t, sample).open()
	cmd := signed(protocol.ViewMessageById, "consumer", "consumerSecret", nil, "offset", "0")
	for topic, want := range map[string]string{
		"T": "", "%RETRY%g": "", "U": "No default permission for topic:U", "%RETRY%other": "No default permission for group:other",
	} {
		if got := remark(table.Authorize(cmd, stranger, topic, Sub)); got != want {
			t.Errorf("%s: %q", topic, got)
		}
	}
}
