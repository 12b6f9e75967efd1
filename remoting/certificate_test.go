package remoting_test

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/certtest"
	"rocketd/remoting/remotingtest"
)

// identitySettings are the settings of a server that shows an identity.
func identitySettings(t *testing.T, id certtest.Identity, more ...string) remoting.TLSConfig {
	t.Helper()
	return settings(t, append([]string{"tls.test.mode.enable", "false", "tls.server.certPath", id.CertPath, "tls.server.keyPath", id.KeyPath}, more...)...)
}

// served tells whether a peer with this certificate (nil = none) is served.
func served(t *testing.T, s *remoting.Server, pair *tls.Certificate) bool {
	t.Helper()
	cfg := insecure(nil)
	if pair != nil { // shown whatever the server trusts
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	p, nc := dialTLS(t, s, cfg)
	if _, err := nc.Write(protocol.AppendFrame(nil, req(echo, 1, "T", nil))); err != nil {
		return false
	}
	_, err := p.TryReceive(remotingtest.Patience)
	if os.IsTimeout(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestClientCertificates: which of no certificate, one of the trusted authority and one of another are let in. The
// official server: SslHandler's ClientAuth, and a trust manager that takes all unless tls.server.authClient is set.
func TestClientCertificates(t *testing.T) {
	trusted, other := certtest.NewAuthority(t), certtest.NewAuthority(t)
	id, mine, foreign := trusted.Issue("server"), trusted.Issue("client"), other.Issue("client")
	for _, test := range []struct {
		need, auth           string
		none, known, unknown bool
	}{
		{"none", "false", true, true, true}, {"none", "true", true, true, true}, {"", "true", true, true, true},
		{"optional", "false", true, true, true}, {"optional", "true", true, true, false},
		{"require", "false", false, true, true}, {"REQUIRE", "true", false, true, false},
	} {
		cfg := identitySettings(t, id, "tls.server.need.client.auth", test.need, "tls.server.authClient", test.auth, "tls.server.trustCertPath", trusted.CertPath)
		s := startTLS(t, newTLS(t, cfg), nil, nil)
		if got := served(t, s, nil); got != test.none {
			t.Errorf("%s, %s: without certificate %v", test.need, test.auth, got)
		}
		if got := served(t, s, &mine.Pair); got != test.known {
			t.Errorf("%s, %s: known %v", test.need, test.auth, got)
		}
		if got := served(t, s, &foreign.Pair); got != test.unknown {
			t.Errorf("%s, %s: unknown %v", test.need, test.auth, got)
		}
	}
}

// TestTLSClient: our client with each other's certificates, and towards servers that it may not trust.
func TestTLSClient(t *testing.T) {
	trusted, other := certtest.NewAuthority(t), certtest.NewAuthority(t)
	id, mine, foreign := trusted.Issue("server"), trusted.Issue("client"), other.Issue("client")
	mutual := identitySettings(t, id, "tls.server.need.client.auth", "require", "tls.server.authClient", "true", "tls.server.trustCertPath", trusted.CertPath)
	plain := settings(t, "tls.server.mode", "disabled")
	for _, test := range []struct {
		name           string
		server, client remoting.TLSConfig
		good           bool
	}{
		{"test mode", settings(t), settings(t), true},
		{"mutual", mutual, settings(t, "tls.test.mode.enable", "false", "tls.client.authServer", "true", "tls.client.trustCertPath", trusted.CertPath, "tls.client.certPath", mine.CertPath, "tls.client.keyPath", mine.KeyPath), true},
		{"no certificate", mutual, settings(t), false},
		{"foreign certificate", mutual, settings(t, "tls.test.mode.enable", "false", "tls.client.certPath", foreign.CertPath, "tls.client.keyPath", foreign.KeyPath), false},
		{"foreign server", identitySettings(t, id), settings(t, "tls.test.mode.enable", "false", "tls.client.authServer", "true", "tls.client.trustCertPath", other.CertPath), false},
		{"no TLS", plain, settings(t), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startTLS(t, newTLS(t, test.server), nil, nil)
			c := newClient(t, func(cfg *remoting.ClientConfig) { cfg.TLS = newTLS(t, test.client) }, nil)
			a, err := c.Call(t.Context(), remotingtest.Addr(s), req(echo, 0, "T", make([]byte, 1<<20)), remotingtest.Patience)
			if test.good != (err == nil) || err == nil && len(a.Body) != 1<<20 {
				t.Errorf("answer %v, %v", a, err)
			}
			if err == nil && s.Stats().Handshakes != 1 {
				t.Error("not with TLS")
			}
		})
	}
	// A server that says nothing.
	s := startTLS(t, newTLS(t, settings(t)), nil, nil)
	c := newClient(t, func(cfg *remoting.ClientConfig) { cfg.TLS = newTLS(t, settings(t)) }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(ctx, remotingtest.Addr(s), req(echo, 0, "T", nil), remotingtest.Patience); err == nil {
		t.Error("a call that was given up has an answer")
	}
}

// TestReloadCertificates: changed files are loaded, a pair that does not fit is not, and open connections go on.
func TestReloadCertificates(t *testing.T) {
	a := certtest.NewAuthority(t)
	id := a.Issue("before")
	secure := newTLS(t, identitySettings(t, id, "tls.server.need.client.auth", "require", "tls.server.authClient", "true", "tls.server.trustCertPath", a.CertPath))
	s := startTLS(t, secure, nil, nil)
	client := a.Issue("client")
	open, _ := dialTLS(t, s, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{client.Pair}})
	open.Ask(req(echo, 1, "T", nil))

	next := a.Issue("after")
	replace(t, next.CertPath, id.CertPath)
	if err := secure.Reload(); err == nil {
		t.Error("a certificate with the key of another is taken")
	}
	if name := certName(t, s, a.Pool()); name != "before" {
		t.Errorf("certificate of %q", name)
	}
	replace(t, next.KeyPath, id.KeyPath)
	remotingtest.Eventually(t, "the files are seen", func() bool { return certName(t, s, a.Pool()) == "after" })

	other := certtest.NewAuthority(t)
	foreign := other.Issue("client")
	if !served(t, s, &client.Pair) || served(t, s, &foreign.Pair) {
		t.Error("trusts other clients than before")
	}
	replace(t, other.CertPath, a.CertPath)
	remotingtest.Eventually(t, "the trusted authority has changed", func() bool { return served(t, s, &foreign.Pair) && !served(t, s, &client.Pair) })
	if got := open.Ask(req(echo, 2, "T", nil)); got.Remark != "T" {
		t.Errorf("the open connection: %+v", got)
	}
}

// TestTicketsEndWithTheAuthority: who connected with a certificate that is not trusted any more does not come in by what he has
// kept of the session.
func TestTicketsEndWithTheAuthority(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		a := certtest.NewAuthority(t)
		secure := newTLS(t, identitySettings(t, a.Issue("server"), "tls.server.need.client.auth", "require", "tls.server.authClient", "true", "tls.server.trustCertPath", a.CertPath))
		s := startTLS(t, secure, nil, nil)
		client := &tls.Config{InsecureSkipVerify: true, MaxVersion: version, ServerName: "server", ClientSessionCache: tls.NewLRUClientSessionCache(4), Certificates: []tls.Certificate{a.Issue("client").Pair}}
		for i, resumed := range []bool{false, true} {
			p, nc := dialTLS(t, s, client)
			p.Ask(req(echo, int32(i), "T", nil)) // tickets come before the answer
			if nc.ConnectionState().DidResume != resumed {
				t.Fatalf("version %x, connection %d: resumed %v", version, i, !resumed)
			}
		}
		replace(t, certtest.NewAuthority(t).CertPath, a.CertPath)
		if err := secure.Reload(); err != nil {
			t.Fatal(err)
		}
		nc := tls.Client(rawDial(t, s), client)
		err := nc.Handshake()
		if err == nil { // with TLS 1.3 the server's refusal comes behind it
			_, err = nc.Read(make([]byte, 1))
		}
		if err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("version %x: %v", version, err)
		}
	}
}

// replace copies a file over another in one step, as those who renew certificates do.
func replace(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// TestEncryptedKey: keys as openssl 3 encrypts them; the errors never tell the password.
func TestEncryptedKey(t *testing.T) {
	const cert, key = "testdata/encrypted.pem", "testdata/encrypted.key"
	load := func(key, password string) error {
		_, err := remoting.NewTLS(identitySettings(t, certtest.Identity{CertPath: cert, KeyPath: key}, "tls.server.mode", "enforcing", "tls.server.keyPassword", password), remotingtest.Log(t))
		return err
	}
	if err := load(key, "secret"); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ key, password, want string }{
		{key, "", "no keyPassword"}, {key, "wrong-secret", "wrong keyPassword"}, {"testdata/oldform.key", "secret", "openssl pkcs8"}, {cert, "", "private key"},
	} {
		err := load(test.key, test.password)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s with %q: %v", test.key, test.password, err)
		}
	}
}

// TestTLSSettings: the properties file goes before everything but mode and tls.enable; words that mean nothing are refused.
func TestTLSSettings(t *testing.T) {
	a := certtest.NewAuthority(t)
	id := a.Issue("from the file")
	file := filepath.Join(t.TempDir(), "tls.properties")
	text := "tls.test.mode.enable=false\ntls.server.mode=disabled\ntls.server.certPath=" + id.CertPath + "\ntls.server.keyPath=" + id.KeyPath + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var cfg remoting.TLSConfig
	cfg.SetOptions([]string{"-Xmx1g", "-Dtls.config.file=" + file, "-Dtls.server.mode=enforcing", "-Dtls.test.mode.enable=true", "-Duser.home=/"})
	if !cfg.Dials() {
		t.Error("an enforcing broker dials without TLS")
	}
	s := startTLS(t, newTLS(t, cfg), nil, nil)
	if name := certName(t, s, a.Pool()); name != "from the file" {
		t.Errorf("certificate of %q", name)
	}
	for _, bad := range [][2]string{
		{"tls.server.mode", "strict"}, {"tls.server.need.client.auth", "yes"}, {"tls.config.file", "/nowhere/tls.properties"},
	} {
		cfg := settings(t, bad[0], bad[1])
		if cfg.Set("tls.enable", "true"); cfg.Mode == "" {
			cfg.Set("tls.server.mode", "enforcing")
		}
		if _, err := remoting.NewTLS(cfg, remotingtest.Log(t)); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// Without enforcing, what can't be loaded leaves plain connections, as in the official server; and is taken when it is there.
	missing := filepath.Join(t.TempDir(), "late.pem")
	late := newTLS(t, settings(t, "tls.test.mode.enable", "false", "tls.server.certPath", missing, "tls.server.keyPath", id.KeyPath))
	s = startTLS(t, late, nil, nil)
	remotingtest.Dial(t, remotingtest.Addr(s)).Ask(req(echo, 1, "T", nil))
	_, nc := dialTLS(t, s, nil)
	nc.SetDeadline(time.Now().Add(remotingtest.Patience))
	if err := nc.Handshake(); err == nil || os.IsTimeout(err) {
		t.Errorf("a handshake without a certificate: %v", err)
	}
	replace(t, id.CertPath, missing)
	remotingtest.Eventually(t, "the certificate has come", func() bool { return served(t, s, nil) })
}
