package broker

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// The loopback address is in the white list of one account alone, which so needs no signature.
const accessRules = `accounts:
- accessKey: theAdmin
  secretKey: adminSecret
  admin: true
  whiteRemoteAddress: 127.0.0.1
- accessKey: theUser
  secretKey: userSecret
`

// as gives a request the key of an account.
func as(accessKey string, cmd *protocol.Command) *protocol.Command {
	cmd.SetField("AccessKey", accessKey)
	return cmd
}

func startAccessBroker(t *testing.T) (*pathBroker, string) {
	home := t.TempDir()
	file := filepath.Join(home, "conf", "plain_acl.yml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(accessRules), 0o600); err != nil {
		t.Fatal(err)
	}
	return startPathBroker(t, func(cfg *Config) { cfg.AclEnable, cfg.RocketmqHome = true, home }), file
}

// TestAccess: every request is looked at first, also of codes that are not served, and administration changes the file.
func TestAccess(t *testing.T) {
	p, file := startAccessBroker(t)
	const exception = "org.apache.rocketmq.acl.common.AclException: "
	for _, code := range []protocol.RequestCode{protocol.GetBrokerConfig, protocol.HeartBeat, protocol.PullMessage, 4711} {
		check(t, code.String(), p.ask(code, nil, nil), protocol.SystemError, exception+"No accessKey is configured*")
		check(t, code.String(), p.peer.Ask(as("theUser", p.request(code, nil, nil))), protocol.SystemError, exception+"Check signature failed for accessKey=theUser*")
	}
	admin := func(code protocol.RequestCode, h any) *protocol.Command {
		return p.peer.Ask(as("theAdmin", p.request(code, h, nil)))
	}
	check(t, "unknown code", admin(4711, nil), protocol.RequestCodeNotSupported, " request type 4711 not supported")
	add := p.request(protocol.UpdateAndCreateAclConfig, nil, nil)
	for _, f := range [][2]string{{"accessKey", "newUser"}, {"secretKey", "newSecret"}, {"admin", "false"}, {"topicPerms", "TopicA=PUB,TopicB=PUB|SUB"}, {"whiteRemoteAddress", "10.0.0.{1,2}"}} {
		add.SetField(f[0], f[1])
	}
	check(t, "new account", p.peer.Ask(as("theAdmin", add)), protocol.Success, "")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "- accessKey: \"newUser\"\n  secretKey: \"newSecret\"\n  whiteRemoteAddress: 10.0.0.{1,2}\n  admin: false\n  topicPerms:\n  - TopicA=PUB\n  - TopicB=PUB|SUB\n") {
		t.Errorf("%v, the file is now\n%s", err, text)
	}
	a := admin(protocol.GetBrokerClusterAclInfo, nil)
	check(t, "version", a, protocol.Success, "", "version", "allAclFileVersion", "brokerName", "brokerAddr", "clusterName")
	if version, _ := a.Field("version"); !strings.HasPrefix(version, `{"counter":1,"timestamp":`) {
		t.Errorf("version %s", version)
	}
	if all, _ := a.Field("allAclFileVersion"); !strings.HasPrefix(all, `{"`+file+`":{"counter":1,"timestamp":`) {
		t.Errorf("all versions %s", all)
	}
	check(t, "deleted", admin(protocol.DeleteAclConfig, &header.DeleteAccessConfigRequest{AccessKey: "newUser"}), protocol.Success, "")
	check(t, "deleted again", admin(protocol.DeleteAclConfig, &header.DeleteAccessConfigRequest{AccessKey: "newUser"}), protocol.DeleteAclConfigFailed,
		"The accesskey[newUser] corresponding to accessConfig has been deleted failed.")
	check(t, "no key", admin(protocol.DeleteAclConfig, nil), protocol.DeleteAclConfigFailed, "The accesskey[null] corresponding to accessConfig has been deleted failed.")
	check(t, "white list", admin(protocol.UpdateGlobalWhiteAddrsConfig, &header.UpdateGlobalWhiteAddrsConfigRequest{GlobalWhiteAddrs: "127.0.0.1"}), protocol.Success, "")
	check(t, "in the white list", p.ask(protocol.GetBrokerConfig, nil, nil), protocol.Success, "", "version")
	check(t, "white list of another file", admin(protocol.UpdateGlobalWhiteAddrsConfig,
		&header.UpdateGlobalWhiteAddrsConfigRequest{GlobalWhiteAddrs: "*", AclFileFullPath: "/etc/passwd"}), protocol.UpdateGlobalWhiteAddrsConfigFailed,
		"The globalWhiteAddresses[*] has been updated failed.")
}

// TestRefusalsAreTold: the log has a line for each account, code and reason of an address, once a minute.
func TestRefusalsAreTold(t *testing.T) {
	var log bytes.Buffer
	b := &Broker{log: slog.New(slog.NewTextHandler(&log, nil)), clock: func() time.Time { return time.Unix(1, 0) }}
	for range 2 {
		for _, r := range []struct {
			code protocol.RequestCode
			key  string
			err  string
		}{
			{protocol.SendMessageV2, "", "No accessKey is configured"},
			{protocol.SendMessageV2, "theUser", "Check signature failed"},
			{protocol.SendMessageV2, "theUser", "No default permission for TopicA"},
			{protocol.HeartBeat, "theUser", "Check signature failed"},
		} {
			b.tellDenied(netip.MustParseAddrPort("10.0.0.1:5000"), r.code, r.key, errors.New(r.err))
		}
	}
	if n := strings.Count(log.String(), "request refused by access control"); n != 4 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	for n := range 10_000 {
		b.tellDenied(netip.MustParseAddrPort("10.0.0.2:5000"), protocol.HeartBeat, fmt.Sprint("made up ", n), errors.New("No acl config"))
	}
	if n := strings.Count(log.String(), "10.0.0.2:5000"); n > deniedKinds {
		t.Errorf("%d lines about the keys that one peer made up", n)
	}
}
