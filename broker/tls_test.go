package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/certtest"
	"rocketd/remoting/remotingtest"
)

// TestTLSSettings: whether name servers are dialled with TLS, as BrokerStartup of 4.9.8: useTLS, else tls.enable, else
// whether the mode is enforcing. A password is shown to nobody.
func TestTLSSettings(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "tls.server.mode=enforcing": true, "tls.server.mode=enforcing\nuseTLS=false": false,
		"tls.server.mode=enforcing\ntls.enable=false": false, "tls.enable=true": true, "useTLS=true": true, "tls.enable=true\nuseTLS=false": false,
	} {
		cfg, err := ReadConfig(writeConf(t, text), DefaultConfig("s"))
		if err != nil {
			t.Fatal(err)
		}
		if settings := cfg.tlsConfig(); settings.Dials() != want {
			t.Errorf("%q: dials with TLS %v", text, !want)
		}
	}
	cfg, err := ReadConfig(writeConf(t, "tls.server.keyPassword=hidden\ntls.client.keyPassword=hidden\ntls.server.keyPath=shown"), DefaultConfig("s"))
	if err != nil || cfg.TLS.Server.KeyPassword != "hidden" {
		t.Fatalf("%+v, %v", cfg.TLS, err)
	}
	var shown []string
	for _, kv := range cfg.Items() {
		shown = append(shown, kv.Key+"="+kv.Value)
	}
	if all := strings.Join(shown, "\n"); strings.Contains(all, "hidden") || strings.Contains(all, "keyPassword") || !strings.Contains(all, "tls.server.keyPath=shown") {
		t.Errorf("shown:\n%s", all)
	}
}

// TestTLSBroker: both ports of an enforcing broker speak TLS alone, it dials its name server with TLS, its keys
// can't be changed from outside, and SIGHUP loads new certificates.
func TestTLSBroker(t *testing.T) {
	a := certtest.NewAuthority(t)
	id := a.Issue("broker")
	file := filepath.Join(t.TempDir(), "tls.properties")
	text := "tls.test.mode.enable=false\ntls.server.certPath=" + id.CertPath + "\ntls.server.keyPath=" + id.KeyPath +
		"\ntls.client.authServer=true\ntls.client.trustCertPath=" + a.CertPath
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set := func(cfg *Config) {
		cfg.TLS.Set("tls.config.file", file)
		cfg.TLS.Set("tls.server.mode", "enforcing")
	}
	var settings remoting.TLSConfig
	settings.Set("tls.config.file", file)
	certificates, err := remoting.NewTLS(settings, remotingtest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	registered := make(chan *remoting.Call, 8)
	m := remoting.NewMux(func(c *remoting.Call) *remoting.Command {
		select {
		case registered <- c:
		default:
		}
		return c.Answer(protocol.Success, "", nil)
	})
	cfg := remotingtest.Config()
	cfg.TLS = certificates
	ns := remotingtest.StartWith(t, cfg, m, remoting.Events{})

	b := startPathBroker(t, func(cfg *Config) {
		set(cfg)
		cfg.NamesrvAddr = remotingtest.Addr(ns)
	})
	<-registered
	if ns.Stats().Handshakes == 0 {
		t.Error("registered without TLS")
	}
	clientConfig := remoting.DefaultClientConfig()
	plain := remoting.NewClient(clientConfig, nil, remotingtest.Log(t))
	t.Cleanup(plain.Close)
	clientConfig.TLS = certificates
	secure := remoting.NewClient(clientConfig, nil, remotingtest.Log(t))
	t.Cleanup(secure.Close)
	for _, port := range []*remoting.Server{b.server, b.fast} {
		ask := protocol.NewRequest(protocol.GetBrokerConfig, nil, nil)
		if answer, err := secure.Call(t.Context(), remotingtest.Addr(port), ask, remotingtest.Patience); err != nil || answer.Code != int32(protocol.Success) {
			t.Errorf("with TLS: %v, %v", answer, err)
		}
		if answer, err := plain.Call(t.Context(), remotingtest.Addr(port), ask, remotingtest.Patience); err == nil {
			t.Errorf("without TLS: %v", answer)
		}
	}
	update := protocol.NewRequest(protocol.UpdateBrokerConfig, nil, []byte("tls.server.mode=disabled"))
	answer, err := secure.Call(t.Context(), remotingtest.Addr(b.server), update, remotingtest.Patience)
	if err != nil || answer.Code != int32(protocol.NoPermission) {
		t.Errorf("update: %v, %v", answer, err)
	}
	read := b.Config()
	if err := os.Remove(id.KeyPath); err != nil {
		t.Fatal(err)
	}
	if err := b.Reload(read); err == nil || !strings.Contains(err.Error(), "tls.server.keyPath") {
		t.Errorf("reload without the key: %v", err)
	}
	a.Issue("broker")
	if err := b.Reload(read); err != nil {
		t.Error(err)
	}
	if answer, err := secure.Call(t.Context(), remotingtest.Addr(b.server), protocol.NewRequest(protocol.GetBrokerConfig, nil, nil), remotingtest.Patience); err != nil {
		t.Errorf("the open connection: %v, %v", answer, err)
	}
}
