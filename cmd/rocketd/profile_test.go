package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/acl"
	"rocketd/remoting/remotingtest"
)

// trusting dials a server with TLS and wants the certificate of a file.
func trusting(t *testing.T, port int, certificate string) *remotingtest.Peer {
	t.Helper()
	text, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", certificate)
	}
	nc, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	return remotingtest.NewPeer(t, nc)
}

// lines are those of the standard output up to the last of a start with the profile.
func (c *child) profileLines() (lines []string) {
	c.t.Helper()
	for {
		lines = append(lines, c.line())
		if strings.Contains(lines[len(lines)-1], "(adminAllowedNetworks)") {
			return lines
		}
	}
}

// secretsOf are the secret keys in a file.
func secretsOf(t *testing.T, path string) (secrets []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*secretKey: "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		secrets = append(secrets, m[1])
	}
	return secrets
}

// TestSecureProfile: one flag starts servers that serve nothing but TLS, nobody without an account, and no administrator from
// elsewhere; what they need they make once and name, and no secret is in any line.
func TestSecureProfile(t *testing.T) {
	dir := t.TempDir()
	ns, port := ports(t)
	conf := filepath.Join(dir, "data", "conf")
	for round := range 2 {
		c := start(t, dir, "standalone", "--profile", "secure", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port))
		said := strings.Join(c.profileLines(), "\n")
		how := []string{"made now", "as it was"}[round]
		for _, want := range []string{
			"administrator rocketdAdmin, " + how + ": its secret is only in " + conf + "/tools.yml and " + conf + "/plain_acl.yml",
			"certificate " + conf + "/rocketd-cert.pem, " + how, "to do: give each application an account", "from 127.0.0.0/8,::1/128 only",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("round %d: no %q in\n%s", round, want, said)
			}
		}
		for name, mode := range map[string]os.FileMode{"tools.yml": 0o600, "plain_acl.yml": 0o600, "rocketd-identity.pem": 0o600, "rocketd-cert.pem": 0o644} {
			if info, err := os.Stat(filepath.Join(conf, name)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		tools := filepath.Join(conf, "tools.yml")
		signer, err := acl.ReadCredentials(tools)
		if err != nil {
			t.Fatal(err)
		}
		exchange(t, ns, port, filepath.Join(conf, "rocketd-cert.pem"), signer)
		c.signal(syscall.SIGTERM)
		if code := c.exit(); code != exitOK {
			t.Errorf("code %d", code)
		}
		secrets := secretsOf(t, tools)
		if again := secretsOf(t, filepath.Join(conf, "plain_acl.yml")); len(secrets) != 1 || len(again) != 1 || again[0] != secrets[0] {
			t.Fatalf("%d and %d secrets", len(secrets), len(again))
		}
		if strings.Contains(said+c.log.String(), secrets[0]) {
			t.Error("the secret was said")
		}
		if n := strings.Count(c.log.String(), "level=AUDIT "); n != 6 {
			t.Errorf("%d audit lines in\n%s", n, c.log.String())
		}
	}
}

// exchange asks both servers as everybody may, or may not.
func exchange(t *testing.T, ns, port int, certificate string, signer *acl.Credentials) {
	t.Helper()
	for _, p := range []int{ns, port, port - 2} {
		nc, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", p), patience)
		if err != nil {
			t.Fatal(err)
		}
		plain := remotingtest.NewPeer(t, nc)
		plain.Send(protocol.NewRequest(protocol.GetRouteInfoByTopic, nil, nil))
		plain.Closed()
	}
	signed := func(code protocol.RequestCode, h any, body string) *protocol.Command {
		cmd := protocol.NewRequest(code, h, []byte(body))
		signer.Sign(cmd)
		return cmd
	}
	named, broker := trusting(t, ns, certificate), trusting(t, port, certificate)
	route := &header.GetRouteInfoRequest{Topic: "TBW102"}
	put := &header.PutKVConfigRequest{Namespace: "N", Key: "k", Value: "v"}
	rename := &header.RegisterBrokerRequest{BrokerName: "thief", BrokerAddr: "127.0.0.1:1", ClusterName: "C"}
	for i, ask := range []struct {
		peer *remotingtest.Peer
		cmd  *protocol.Command
		code protocol.ResponseCode
		text string // in remark or body
	}{
		{named, protocol.NewRequest(protocol.GetRouteInfoByTopic, route, nil), protocol.Success, fmt.Sprintf("127.0.0.1:%d", port)},
		{named, protocol.NewRequest(protocol.PutKVConfig, put, nil), protocol.NoPermission, "No accessKey is configured"},
		{named, protocol.NewRequest(protocol.RegisterBroker, rename, nil), protocol.NoPermission, "brokerAccountsOnly"},
		{named, signed(protocol.PutKVConfig, put, ""), protocol.Success, ""},
		{broker, protocol.NewRequest(protocol.GetBrokerConfig, nil, nil), protocol.SystemError, "No accessKey is configured"},
		{broker, protocol.NewRequest(protocol.UpdateBrokerConfig, nil, []byte("traceOn=true\n")), protocol.SystemError, "No accessKey is configured"},
		{broker, signed(protocol.UpdateBrokerConfig, nil, "traceOn=true\n"), protocol.Success, ""},
		{broker, signed(protocol.UpdateBrokerConfig, nil, "adminAllowedNetworks=0.0.0.0/0\n"), protocol.NoPermission, "black list"},
		{broker, signed(protocol.GetBrokerConfig, nil, ""), protocol.Success, "\nadminAllowedNetworks=127.0.0.0/8,::1/128\n"},
	} {
		ask.cmd.Opaque = int32(i + 1)
		if a := ask.peer.Ask(ask.cmd); a.Code != int32(ask.code) || !strings.Contains(a.Remark+string(a.Body), ask.text) {
			t.Errorf("request %d, %v: code %d, %q", i, protocol.RequestCode(ask.cmd.Code), a.Code, a.Remark)
		}
	}
}

// TestSecureProfileApart: name server and broker as two processes of one user share what the first makes, though both start at the
// same moment on nothing.
func TestSecureProfileApart(t *testing.T) {
	dir := t.TempDir()
	ns, port := ports(t)
	n := unstarted(t, dir, "namesrv", "--profile", "secure", "-c", conf(t, fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\n", ns)))
	b := unstarted(t, dir, "broker", "--profile", "secure", "-n", fmt.Sprintf("127.0.0.1:%d", ns), "-c",
		conf(t, fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\nbrokerName=broker-a\nstorePathRootDir=%s/store\n", port, dir)))
	n.start()
	b.start()
	if said := strings.Join(n.profileLines(), "\n"); strings.Contains(said, "to do: write") {
		t.Error(said)
	}
	b.profileLines()
	certificate := filepath.Join(dir, "rocketd", "conf", "rocketd-cert.pem")
	peer := trusting(t, ns, certificate)
	remotingtest.Eventually(t, "the broker is registered with TLS and its signature", func() bool {
		a := peer.Ask(protocol.NewRequest(protocol.GetBrokerClusterInfo, nil, nil))
		return strings.Contains(string(a.Body), `"broker-a"`)
	})
	b.signal(syscall.SIGTERM)
	if code := b.exit(); code != exitOK {
		t.Errorf("broker: code %d, log\n%s", code, b.log.String())
	}
	if a := peer.Ask(protocol.NewRequest(protocol.GetBrokerClusterInfo, nil, nil)); strings.Contains(string(a.Body), `"broker-a"`) {
		t.Errorf("a broker that has stopped is still there: %s", a.Body)
	}
	n.signal(syscall.SIGTERM)
	if code := n.exit(); code != exitOK {
		t.Errorf("name server: code %d, log\n%s", code, n.log.String())
	}
}

// TestSecureProfileOwnFiles: accounts that are there are taken and never changed; a broker that can't sign says what lacks, and starts.
func TestSecureProfileOwnFiles(t *testing.T) {
	dir := t.TempDir()
	_, port := ports(t)
	const own = "accounts:\n- accessKey: ourAdmin\n  secretKey: ourSecret\n  admin: true\n"
	file := filepath.Join(dir, "home", "conf", "plain_acl.yml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir, "broker", "--profile", "secure", "-c",
		conf(t, fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\nstorePathRootDir=%s/store\nrocketmqHome=%s/home\nadminAllowedNetworks=127.0.0.1\n", port, dir, dir)))
	said := strings.Join(c.profileLines(), "\n")
	for _, want := range []string{"to do: write accessKey and secretKey of an administrator of " + file + " into " + dir + "/home/conf/tools.yml", "from 127.0.0.1 only"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if text, err := os.ReadFile(file); string(text) != own {
		t.Errorf("%v, the accounts are now\n%s", err, text)
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != exitOK {
		t.Errorf("code %d", code)
	}
}

// TestSecureProfileRefusals: a configuration that takes away what the profile is for is no start, which -p tells too.
func TestSecureProfileRefusals(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"aclEnable=false":               "aclEnable=false",
		"tls.server.mode=permissive":    "tls.server.mode=permissive",
		"tls.test.mode.enable=true":     "tls.test.mode.enable=true",
		"useTLS=false":                  "useTLS=false",
		"tls.enable=false":              "", // said as useTLS or tls.enable
		"tls.client.authServer=false":   "tls.client.authServer=false",
		"adminAllowedNetworks=10.1.2/8": "adminAllowedNetworks: 10.1.2/8",
	} {
		file := conf(t, text+"\nstorePathRootDir="+dir+"/store\nrocketmqHome="+dir+"/home\n")
		code, _, errs := invoke("rocketd", "broker", "--profile", "secure", "-c", file, "-p")
		if code != exitError || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", text, code, errs)
		}
	}
	// What requests changed in an earlier run without a file, which the broker reads over the profile's settings.
	if err := os.MkdirAll(dir+"/data/config", 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"aclEnable=false": "aclEnable=false", "useTLS=false": "useTLS=false", "adminAllowedNetworks=": "adminAllowedNetworks=", "tls.server.mode=permissive": "tls.server.mode=permissive",
	} {
		if err := os.WriteFile(dir+"/data/config/rocketd.properties", []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := invoke("rocketd", "standalone", "--profile", "secure", "--data", dir+"/data", "-p"); code != exitError || !strings.Contains(errs, "--profile secure: the configuration says "+want) {
			t.Errorf("earlier %s: code %d, %s", text, code, errs)
		}
	}
	if err := os.RemoveAll(dir + "/data"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"adminAccountsOnly=false": "adminAccountsOnly=false", "tls.server.mode=disabled": "tls.server.mode=disabled"} {
		code, _, errs := invoke("rocketd", "namesrv", "--profile", "secure", "-c", conf(t, text+"\nkvConfigPath="+dir+"/kv.json\nrocketmqHome="+dir+"/home\n"), "-p")
		if code != exitError || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", text, code, errs)
		}
	}
	for _, command := range []string{"standalone", "namesrv", "broker"} {
		if code, _, errs := invoke("rocketd", command, "--profile", "safe"); code != exitUsage || !strings.Contains(errs, "the only one is secure") {
			t.Errorf("%s: code %d, %s", command, code, errs)
		}
		if code, out, _ := invoke("rocketd", command, "--help"); code != exitOK || !strings.Contains(out, "--profile NAME") || !strings.Contains(out, "SECURITY.md") {
			t.Errorf("%s --help: code %d, %s", command, code, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "home" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCertificateOfProfile: the certificate that is made is for this machine, and for ten years.
func TestCertificateOfProfile(t *testing.T) {
	dir := t.TempDir()
	var s secured
	own := filepath.Join(dir, "rocketd-identity.pem")
	if err := s.identity(own, hostNames("192.0.2.7", "mq.example.org")); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(own, own)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "192.0.2.7", "mq.example.org"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if left := time.Until(cert.NotAfter); left < 9*365*24*time.Hour {
		t.Errorf("it counts for %v", left)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "rocketd-cert.pem")); err != nil || strings.Contains(string(text), "KEY") {
		t.Errorf("%v, the certificate for clients:\n%s", err, text)
	}
}
