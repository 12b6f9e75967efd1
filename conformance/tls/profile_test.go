//go:build conformance

package tls

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// TestSecureProfile: mqadmin with the certificate and the account that the first start has made administrates both servers; without
// either it does not. (The stock clients with accounts of their own are in conformance/java and conformance/client.)
func TestSecureProfile(t *testing.T) {
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	if kind != target.Rocketd {
		t.Skip("the official servers have no profiles")
	}
	home := map[string]string{"rocketmqHome": t.TempDir()}
	c := target.Start(t, target.Options{Profile: "secure", Secure: showing(nil), NamesrvConf: home, Brokers: []target.BrokerOptions{{Conf: home}}})
	conf := filepath.Join(home["rocketmqHome"], "conf")
	certificate, err := os.ReadFile(filepath.Join(conf, "rocketd-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatal("no certificate")
	}
	for what, addr := range map[string]string{"name server": c.Namesrv, "broker": c.Brokers[0].Addr} {
		if !served(t, addr, &tls.Config{RootCAs: roots}) {
			t.Errorf("%s: a client that trusts its certificate is not served", what)
		}
		if served(t, addr, nil) {
			t.Errorf("%s: a plain connection is served", what)
		}
	}
	w, err := wire.DialTLS(c.Namesrv, showing(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	thief := wire.Request(103, "brokerName", "broker-a", "brokerAddr", "127.0.0.1:1", "clusterName", "DefaultCluster", "haServerAddr", "127.0.0.1:2", "brokerId", "0")
	if a, err := w.Call(thief, patience); err != nil || a.Code != 16 || !strings.Contains(a.Remark, "brokerAccountsOnly") {
		t.Errorf("another broker of the same name: %v, %v", a, err)
	}
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Log("CONFORMANCE_SKIP_JAVA=1: NO MQADMIN IS TESTED")
		return
	}
	tools, err := os.ReadFile(filepath.Join(conf, "tools.yml"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(c.Dir(), "mqadmin", "conf", "tools.yml")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	jvm := []string{"-Dtls.enable=true", "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true",
		"-Dtls.client.trustCertPath=" + filepath.Join(conf, "rocketd-cert.pem"), "-Dtls.config.file=" + filepath.Join(t.TempDir(), "none")}
	broker := c.Brokers[0].Addr
	for _, run := range []struct {
		signed bool
		args   []string
		want   string
	}{
		{true, []string{"updateTopic", "-b", broker, "-t", "SecureTopic"}, "create topic to " + broker + " success."},
		{true, []string{"updateKvConfig", "-s", "N", "-k", "k", "-v", "v"}, "create or update kv config to namespace success."},
		{true, []string{"updateAclConfig", "-b", broker, "-a", "shopOrders", "-s", "shopSecret", "-t", "SecureTopic=PUB"}, "create or update plain access config to " + broker + " success."},
		{false, []string{"updateTopic", "-b", broker, "-t", "OtherTopic"}, ""}, // it tells of failures elsewhere
	} {
		text := tools
		if !run.signed {
			text = nil
		}
		if err := os.WriteFile(own, text, 0o600); err != nil {
			t.Fatal(err)
		}
		done := func(out string) bool { return strings.Contains(out, run.want) }
		if !run.signed {
			done = func(string) bool {
				text, err := os.ReadFile(c.Brokers[0].Log())
				return err == nil && strings.Contains(string(text), "OtherTopic")
			}
		}
		out, err := patiently(t, c, jvm, done, run.args...)
		if err != nil || !strings.Contains(out, run.want) || !run.signed && strings.Contains(out, "success") {
			t.Errorf("mqadmin %v, signed %v: %v\n%s", run.args, run.signed, err, out)
		}
	}
	for log, lines := range map[string][]string{
		c.NameServers[0].Log(): {"audit.code=REGISTER_BROKER", "audit.result=NO_PERMISSION", "audit.code=PUT_KV_CONFIG"},
		c.Brokers[0].Log():     {`audit.arguments="topic=SecureTopic `, "audit.accessKey=rocketdAdmin", `audit.arguments="topic=OtherTopic `, "audit.result=SYSTEM_ERROR"},
	} {
		text, err := os.ReadFile(log)
		if err != nil || strings.Contains(string(text), "shopSecret") {
			t.Errorf("%s: %v\n%s", log, err, text)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has no %s", log, line)
			}
		}
	}
}
