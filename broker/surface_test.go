package broker

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/acltest"
	"rocketd/remoting/acl/admin"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// startLogged starts a broker in memory that tells everything to a log.
func startLogged(t *testing.T, tweak func(*Config)) (*pathBroker, *acltest.Log) {
	t.Helper()
	cfg := DefaultConfig("/store")
	cfg.ListenPort, cfg.BindAddress = 0, "127.0.0.1"
	cfg.BrokerIP1, cfg.BrokerName = "127.0.0.1", "broker-a"
	cfg.MappedFileSizeCommitLog = 1 << 20
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = 500, 2000
	if tweak != nil {
		tweak(&cfg)
	}
	l, fs := new(acltest.Log), vfs.NewMem(time.Now)
	b, err := New(cfg, Options{FS: fs, Files: vfs.Files{FS: fs}, Log: slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pathBroker{Broker: b, tb: t}
	t.Cleanup(p.close)
	p.peer = p.dial()
	return p, l
}

// secretFile writes a file below a home.
func secretFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// credentials of an account of accessRules.
func credentials(t *testing.T, accessKey, secretKey string) *acl.Credentials {
	t.Helper()
	c, err := acl.ReadCredentials(secretFile(t, filepath.Join(t.TempDir(), "tools.yml"), "accessKey: "+accessKey+"\nsecretKey: "+secretKey+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changes are the codes of a broker that change something.
func changes() (codes []protocol.RequestCode) {
	for _, code := range slices.Sorted(maps.Keys(Headers())) {
		if admin.KindOf(code) == admin.Change {
			codes = append(codes, code)
		}
	}
	return codes
}

// full is a request of a code with every field of its header, and secrets wherever they have a place.
func (p *pathBroker) full(code protocol.RequestCode, secrets []string) *protocol.Command {
	cmd := p.request(code, nil, nil)
	for _, f := range Headers()[code].Fields() {
		value := "Aname"
		switch {
		case remoting.IsSecretKey(f.Key):
			value = secrets[0]
		case f.Number:
			value = "1"
		}
		cmd.SetField(f.Key, value)
	}
	switch code {
	case protocol.UpdateBrokerConfig:
		cmd.Body = []byte("vendor.password=" + secrets[1] + "\ntls.server.keyPassword=" + secrets[1] + "\n")
	case protocol.UpdateAndCreateSubscriptionGroup:
		cmd.Body = []byte(`{"groupName":"Aname","secretKey":"` + secrets[1] + `"}`)
	case protocol.SetMessageRequestMode:
		cmd.Body = []byte(`{"topic":"Aname","consumerGroup":"Aname","mode":"POP","secretKey":"` + secrets[1] + `"}`)
	}
	cmd.SetField("SecurityToken", secrets[2])
	return cmd
}

// TestAudit: each code that changes something makes one line, whoever asks, answered or oneway, done or refused, and no line of
// the whole log has a secret of the request.
func TestAudit(t *testing.T) {
	home := t.TempDir()
	secretFile(t, filepath.Join(home, "conf", "plain_acl.yml"), accessRules)
	secrets := []string{"verySecretKey1", "verySecretKey2", "verySecretToken3", "verySecretSignature"}
	signer := credentials(t, "theAdmin", "adminSecret")
	for name, tt := range map[string]struct {
		tweak  func(*Config)
		signed bool
		who    string
		result string // of every line; "" = any
	}{
		"open":                      {nil, false, "-", ""},
		"networks":                  {func(cfg *Config) { cfg.AdminAllowedNetworks = "10.0.0.0/8" }, false, "-", "NO_PERMISSION"},
		"accounts":                  {func(cfg *Config) { cfg.AdminAccountsOnly = true }, false, "-", "NO_PERMISSION"},
		"accounts, signed":          {func(cfg *Config) { cfg.AdminAccountsOnly = true }, true, "theAdmin", ""},
		"access control":            {func(cfg *Config) { cfg.AclEnable = true }, false, "-", "SYSTEM_ERROR"},
		"access control, signed":    {func(cfg *Config) { cfg.AclEnable = true }, true, "theAdmin", ""},
		"signed from another place": {func(cfg *Config) { cfg.AclEnable, cfg.AdminAllowedNetworks = true, "10.0.0.0/8" }, true, "theAdmin", "NO_PERMISSION"},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := startLogged(t, func(cfg *Config) {
				cfg.RocketmqHome = home
				if tt.tweak != nil {
					tt.tweak(cfg)
				}
			})
			want := 0
			for _, code := range changes() {
				for _, oneway := range []bool{false, true} {
					cmd := p.full(code, secrets)
					if tt.signed {
						signer.Sign(cmd)
						signature, _ := cmd.Field("Signature")
						secrets = append(secrets, signature)
					} else {
						cmd.SetField("AccessKey", "theUser")
						cmd.SetField("Signature", secrets[3])
					}
					if oneway {
						cmd.Flag |= protocol.FlagOneway
						p.peer.Send(cmd)
					} else {
						p.peer.Send(cmd)
						if a := p.peer.Receive(); a.Opaque != cmd.Opaque {
							t.Fatalf("%v: the answer is %+v", code, a)
						}
					}
					want++
					remotingtest.Eventually(t, code.String()+" is audited", func() bool { return len(l.Audit(t)) >= want })
				}
			}
			check(t, "a question", func() *protocol.Command {
				cmd := p.request(protocol.GetBrokerRuntimeInfo, nil, nil)
				signer.Sign(cmd)
				return p.peer.Ask(cmd)
			}(), protocol.Success, "")
			lines := l.Audit(t)
			if len(lines) != want {
				t.Fatalf("%d lines of %d requests", len(lines), want)
			}
			for i, line := range lines {
				code := changes()[i/2]
				if line["code"] != code.String() || line["accessKey"] != tt.who || line["server"] != "broker broker-a" ||
					!strings.HasPrefix(line["from"].(string), "127.0.0.1:") || (line["oneway"] == true) != (i%2 == 1) || line["result"] == "" {
					t.Errorf("%v: %v", code, line)
				}
				if tt.result != "" && line["result"] != tt.result {
					t.Errorf("%v: result %v, want %s", code, line["result"], tt.result)
				}
			}
			for _, secret := range append(secrets, "adminSecret", "userSecret") {
				if text := l.String(); strings.Contains(text, secret) {
					i := strings.Index(text, secret)
					t.Errorf("the log has the secret %s: …%s", secret, text[max(0, i-400):i+len(secret)])
				}
			}
		})
	}
}

// TestAdminNetworks: where administrators may be is no matter for all other requests, and changes with the file.
func TestAdminNetworks(t *testing.T) {
	p, _ := startLogged(t, func(cfg *Config) { cfg.AdminAllowedNetworks = "10.0.0.0/8, 192.168.7.7" })
	const refused = "%s is refused from 127.0.0.1: adminAllowedNetworks of broker broker-a does not have this address"
	ask := func() *protocol.Command { return p.ask(protocol.UpdateBrokerConfig, nil, []byte("traceOn=true\n")) }
	check(t, "update", ask(), protocol.NoPermission, strings.Replace(refused, "%s", "UPDATE_BROKER_CONFIG", 1))
	fast := remotingtest.Dial(t, remotingtest.Addr(p.fast))
	check(t, "by the fast port", fast.Ask(p.request(protocol.DeleteTopicInBroker, nil, nil)), protocol.NoPermission, strings.Replace(refused, "%s", "DELETE_TOPIC_IN_BROKER", 1))
	if n := p.surface.Refused(); n != 2 {
		t.Errorf("%d refused", n)
	}
	// A send makes its topic, a heartbeat its group; nobody is an administrator for that.
	check(t, "send", p.ask(protocol.SendMessage, sendHeader("Made", 0, ""), []byte("x")), protocol.Success, "", "msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON")
	work := p.dial()
	for code := range Headers() {
		if admin.KindOf(code) == admin.Change || code == protocol.GetBrokerClusterAclInfo {
			continue
		}
		last := p.request(protocol.GetMaxOffset, nil, nil)
		work.Send(p.request(code, nil, nil), last)
		for a := work.Receive(); a.Opaque != last.Opaque; a = work.Receive() { // a refusal comes at once
			if strings.Contains(a.Remark, "adminAllowedNetworks") {
				t.Errorf("%v: %q", code, a.Remark)
			}
		}
	}

	check(t, "its own key", p.ask(protocol.UpdateBrokerConfig, nil, []byte("adminAllowedNetworks=\n")), protocol.NoPermission, strings.Replace(refused, "%s", "UPDATE_BROKER_CONFIG", 1))
	read := p.Config()
	read.AdminAllowedNetworks = "127.0.0.1"
	if err := p.Reload(read); err != nil {
		t.Fatal(err)
	}
	check(t, "update after the file was read again", ask(), protocol.Success, "")
	check(t, "its own key", p.ask(protocol.UpdateBrokerConfig, nil, []byte("adminAllowedNetworks=\n")), protocol.NoPermission, "Can not update config in black list.")
	read.AdminAllowedNetworks = "10.0.0.1/8"
	if err := p.Reload(read); err == nil || !strings.Contains(err.Error(), "adminAllowedNetworks: 10.0.0.1/8") {
		t.Errorf("a wrong network: %v", err)
	}
	check(t, "update after a wrong file", ask(), protocol.Success, "")
}

// TestAdminAccountsOnly: codes that change something must be signed by an administrator, whatever white lists say; all others
// are open to everybody.
func TestAdminAccountsOnly(t *testing.T) {
	home := t.TempDir()
	file := secretFile(t, filepath.Join(home, "conf", "plain_acl.yml"), accessRules)
	p, _ := startLogged(t, func(cfg *Config) { cfg.RocketmqHome, cfg.AdminAccountsOnly = home, true })
	const wants = "UPDATE_BROKER_CONFIG is refused: adminAccountsOnly of broker broker-a wants the signature of an account with admin: true "
	update := func(by *acl.Credentials) *protocol.Command {
		cmd := p.request(protocol.UpdateBrokerConfig, nil, []byte("traceOn=true\n"))
		if by != nil {
			by.Sign(cmd)
		}
		return p.peer.Ask(cmd)
	}
	check(t, "nobody", update(nil), protocol.NoPermission, wants+"(No accessKey is configured)")
	check(t, "unsigned from a white address", p.peer.Ask(as("theAdmin", p.request(protocol.UpdateBrokerConfig, nil, nil))), protocol.NoPermission, wants+"(Check signature failed for accessKey=theAdmin)")
	check(t, "a user", update(credentials(t, "theUser", "userSecret")), protocol.NoPermission, wants+"(Need admin permission for request code=25, but accessKey=theUser is not)")
	check(t, "a wrong secret", update(credentials(t, "theAdmin", "otherSecret")), protocol.NoPermission, wants+"(Check signature failed for accessKey=theAdmin)")
	check(t, "the administrator", update(credentials(t, "theAdmin", "adminSecret")), protocol.Success, "")
	check(t, "a send by nobody", p.ask(protocol.SendMessage, sendHeader("TopicA", 0, ""), []byte("x")), protocol.Success, "", "msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON")
	check(t, "a question by nobody", p.ask(protocol.GetBrokerConfig, nil, nil), protocol.Success, "", "version")

	add := p.request(protocol.UpdateAndCreateAclConfig, nil, nil)
	for _, f := range [][2]string{{"accessKey", "newUser"}, {"secretKey", "newSecret"}, {"admin", "true"}} {
		add.SetField(f[0], f[1])
	}
	credentials(t, "theAdmin", "adminSecret").Sign(add)
	check(t, "a new account", p.peer.Ask(add), protocol.Success, "")
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "newUser") {
		t.Errorf("%v, the file is now\n%s", err, text)
	}
	check(t, "it administrates", update(credentials(t, "newUser", "newSecret")), protocol.Success, "")
}

// TestNamesrvAccount: what goes to name servers is signed by the account of a file, which is read again with the configuration; a file
// that is wrong changes nothing, and is no start.
func TestNamesrvAccount(t *testing.T) {
	dir := t.TempDir()
	first := secretFile(t, filepath.Join(dir, "first.yml"), "accessKey: theAdmin\nsecretKey: adminSecret\n")
	second := secretFile(t, filepath.Join(dir, "second.yml"), "accessKey: otherAdmin\nsecretKey: otherSecret\n")
	bad := secretFile(t, filepath.Join(dir, "bad.yml"), "accessKey: theAdmin\nsecretKey: short\n")
	p, l := startLogged(t, func(cfg *Config) { cfg.NamesrvAccountFile = first })
	signedBy := func() string {
		key, _ := p.signed(protocol.NewRequest(protocol.RegisterBroker, nil, nil)).Field("AccessKey")
		return key
	}
	if key := signedBy(); key != "theAdmin" {
		t.Errorf("signed by %q", key)
	}
	for _, tt := range []struct{ file, key, err string }{
		{second, "otherAdmin", ""},
		{bad, "otherAdmin", "namesrvAccountFile: " + bad + ": The accessKey=theAdmin and secretKey=****** cannot be null"},
		{filepath.Join(dir, "none.yml"), "otherAdmin", "namesrvAccountFile: open "},
		{"", "", ""},
	} {
		read := p.Config()
		read.NamesrvAccountFile = tt.file
		err := p.Reload(read)
		if (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.file, err)
		}
		if key := signedBy(); key != tt.key {
			t.Errorf("%s: signed by %q", tt.file, key)
		}
	}
	p.send("T", 0, "", "x")
	read := p.Config()
	read.NamesrvAccountFile, read.MappedFileSizeCommitLog = first, 2*read.MappedFileSizeCommitLog
	if err := p.Reload(read); err == nil || signedBy() != "" {
		t.Errorf("a file that is refused for another key: %v, signed by %q", err, signedBy())
	}
	if text := l.String(); strings.Contains(text, "adminSecret") || strings.Contains(text, "otherSecret") {
		t.Error("the log has a secret")
	}
	cfg := DefaultConfig("/store")
	cfg.BrokerIP1, cfg.ListenPort, cfg.NamesrvAccountFile = "127.0.0.1", 0, bad
	fs := vfs.NewMem(time.Now)
	if b, err := New(cfg, Options{FS: fs, Files: vfs.Files{FS: fs}, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "namesrvAccountFile") {
		t.Errorf("a start with a wrong file: %v, %v", b, err)
	}
}
