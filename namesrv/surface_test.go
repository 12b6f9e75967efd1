package namesrv

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/acltest"
	"rocketd/remoting/acl/admin"
	"rocketd/remoting/remotingtest"
)

// startLogged starts a name server, with accounts, that tells everything to a log.
func startLogged(t *testing.T, tweak func(*Config)) (*Server, *acltest.Log) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain_acl.yml": "accounts:\n- accessKey: theAdmin\n  secretKey: adminSecret\n  admin: true\n- accessKey: theUser\n  secretKey: userSecret\n",
		"admin.yml":     "accessKey: theAdmin\nsecretKey: adminSecret\n", "user.yml": "accessKey: theUser\nsecretKey: userSecret\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "conf", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig(dir)
	cfg.RocketmqHome = dir
	tweak(&cfg)
	l := new(acltest.Log)
	s, err := New(cfg, slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, l
}

func credentials(t *testing.T, s *Server, file string) *acl.Credentials {
	t.Helper()
	c, err := acl.ReadCredentials(filepath.Join(s.config.Load().RocketmqHome, "conf", file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAudit: each code that changes something makes one line, answered or oneway, done or refused, and no line of the whole log has
// a secret of the request.
func TestAudit(t *testing.T) {
	for name, tt := range map[string]struct {
		tweak  func(*Config)
		signed bool
		who    string
		result string // of every line; "" = any
	}{
		"open":             {func(*Config) {}, false, "-", ""},
		"networks":         {func(cfg *Config) { cfg.AdminAllowedNetworks = "10.0.0.0/8" }, false, "-", "NO_PERMISSION"},
		"accounts":         {func(cfg *Config) { cfg.AdminAccountsOnly = true }, false, "-", "NO_PERMISSION"},
		"accounts, signed": {func(cfg *Config) { cfg.AdminAccountsOnly = true }, true, "theAdmin", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := startLogged(t, tt.tweak)
			peer := remotingtest.Dial(t, s.Addr())
			want, opaque, secrets := []protocol.RequestCode{}, int32(0), []string{"verySecret1", "verySecret2", "verySecret3", "adminSecret"}
			for _, code := range slices.Sorted(maps.Keys(Headers())) {
				if admin.KindOf(code) != admin.Change {
					continue
				}
				for _, oneway := range []bool{false, true} {
					cmd := protocol.NewRequest(code, nil, nil)
					opaque++
					cmd.Opaque = opaque
					for _, f := range Headers()[code].Fields() {
						cmd.SetField(f.Key, "a")
					}
					switch code {
					case protocol.PutKVConfig:
						cmd.Fields = nil
						for _, f := range [][2]string{{"namespace", "N"}, {"key", "db.password"}, {"value", secrets[0]}} {
							cmd.SetField(f[0], f[1])
						}
					case protocol.UpdateNamesrvConfig:
						cmd.Body = []byte("vendor.secret=" + secrets[1] + "\nproductEnvName=x\n")
					}
					if tt.signed {
						credentials(t, s, "admin.yml").Sign(cmd)
					} else {
						cmd.SetField("AccessKey", "theAdmin")
						cmd.SetField("Signature", secrets[2])
					}
					want = append(want, code)
					if oneway {
						cmd.Flag |= protocol.FlagOneway
						peer.Send(cmd)
					} else {
						peer.Ask(cmd)
					}
					remotingtest.Eventually(t, code.String()+" is audited", func() bool { return len(l.Audit(t)) >= len(want) })
				}
			}
			lines := l.Audit(t)
			if len(lines) != len(want) || len(want) != 12 {
				t.Fatalf("%d lines of %d requests", len(lines), len(want))
			}
			for i, line := range lines {
				if line["code"] != want[i].String() || line["accessKey"] != tt.who || line["server"] != "name server" ||
					!strings.HasPrefix(line["from"].(string), "127.0.0.1:") || (line["oneway"] == true) != (i%2 == 1) || line["result"] == "" {
					t.Errorf("%v: %v", want[i], line)
				}
				if tt.result != "" && line["result"] != tt.result {
					t.Errorf("%v: result %v, want %s", want[i], line["result"], tt.result)
				}
			}
			for _, secret := range secrets {
				if strings.Contains(l.String(), secret) {
					t.Errorf("the log has the secret %s", secret)
				}
			}
		})
	}
}

// TestBrokerAccountsOnly: who registers a broker must be an administrator; clients may ask, and administrators' networks do not
// matter. A refused registration is in the audit log, others are not.
func TestBrokerAccountsOnly(t *testing.T) {
	s, l := startLogged(t, func(cfg *Config) { cfg.BrokerAccountsOnly, cfg.AdminAllowedNetworks = true, "10.0.0.0/8" })
	peer := remotingtest.Dial(t, s.Addr())
	register := func(file string) *protocol.Command {
		cmd := protocol.NewRequest(protocol.RegisterBroker, &header.RegisterBrokerRequest{
			BrokerName: "broker-a", BrokerAddr: "127.0.0.1:10911", ClusterName: "C", HaServerAddr: "127.0.0.1:10912"}, nil)
		if file != "" {
			credentials(t, s, file).Sign(cmd)
		}
		return peer.Ask(cmd)
	}
	const wants = "REGISTER_BROKER is refused: brokerAccountsOnly of name server wants the signature of an account with admin: true "
	for file, remark := range map[string]string{
		"": wants + "(No accessKey is configured)", "user.yml": wants + "(Need admin permission for request code=103, but accessKey=theUser is not)",
	} {
		if a := register(file); a.Code != int32(protocol.NoPermission) || a.Remark != remark {
			t.Errorf("%q: code %d, %q", file, a.Code, a.Remark)
		}
	}
	if a := register("admin.yml"); a.Code != 0 {
		t.Errorf("code %d, %q", a.Code, a.Remark)
	}
	if a := peer.Ask(protocol.NewRequest(protocol.GetBrokerClusterInfo, nil, nil)); !strings.Contains(string(a.Body), `"127.0.0.1:10911"`) {
		t.Errorf("code %d, %s", a.Code, a.Body)
	}
	if lines := l.Audit(t); len(lines) != 2 || lines[0]["code"] != "REGISTER_BROKER" || lines[0]["result"] != "NO_PERMISSION" {
		t.Errorf("audited: %v", lines)
	}
}

// TestSurfaceReload: the networks count when the file is read again, who must sign does not; no request changes either.
func TestSurfaceReload(t *testing.T) {
	s, _ := startLogged(t, func(*Config) {})
	peer := remotingtest.Dial(t, s.Addr())
	update := func(text string) *protocol.Command {
		return peer.Ask(protocol.NewRequest(protocol.UpdateNamesrvConfig, nil, []byte(text+"\n")))
	}
	for _, key := range []string{"adminAllowedNetworks", "adminAccountsOnly", "brokerAccountsOnly", "aclPlainFile", "rocketmqHome", "kvConfigPath", "configStorePath"} {
		if a := update(key + "=127.0.0.1"); a.Code != int32(protocol.NoPermission) || a.Remark != "Can not update config in black list." {
			t.Errorf("%s: code %d, %q", key, a.Code, a.Remark)
		}
	}
	read := *s.config.Load()
	read.AdminAllowedNetworks, read.AdminAccountsOnly = "10.0.0.0/8", true
	if err := s.Reload(read); err != nil {
		t.Fatal(err)
	}
	if a := update("productEnvName=x"); a.Code != int32(protocol.NoPermission) ||
		a.Remark != "UPDATE_NAMESRV_CONFIG is refused from 127.0.0.1: adminAllowedNetworks of name server does not have this address" {
		t.Errorf("code %d, %q", a.Code, a.Remark)
	}
	read.AdminAllowedNetworks = ""
	if err := s.Reload(read); err != nil {
		t.Fatal(err)
	}
	if a := update("productEnvName=x"); a.Code != 0 {
		t.Errorf("code %d, %q", a.Code, a.Remark)
	}
}
