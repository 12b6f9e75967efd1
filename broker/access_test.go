package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
