//go:build conformance

package java

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"rocketd/conformance/target"
)

// TestSecureProfile: stock clients with accounts and TLS, which trust the certificate that the first start has made, against servers
// of the profile; their operator has given the accounts.
func TestSecureProfile(t *testing.T) {
	t.Parallel()
	needJava(t)
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	if kind != target.Rocketd {
		t.Skip("the official servers have no profiles")
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	accounts := aclAccounts + "  topicPerms:\n"
	for _, prefix := range []string{"p4", "p5"} {
		accounts += "  - " + prefix + "-acl-push=SUB\n"
	}
	accounts += "  groupPerms:\n  - G-p4-acl-push-c=SUB\n  - G-p5-acl-push-c=SUB\n"
	for name, text := range map[string]string{"plain_acl.yml": accounts, "tools.yml": "accessKey: theAdmin\nsecretKey: adminSecret\n"} {
		if err := os.WriteFile(filepath.Join(home, "conf", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := map[string]string{"rocketmqHome": home}
	c := target.Start(t, target.Options{Profile: "secure", Secure: &tls.Config{InsecureSkipVerify: true}, NamesrvConf: conf,
		Brokers: []target.BrokerOptions{{Name: "broker-a", Conf: conf}}})
	client := []string{"-Dtls.enable=true", "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true", "-Dtls.config.file=" + filepath.Join(t.TempDir(), "none"),
		"-Dtls.client.trustCertPath=" + filepath.Join(home, "conf", "rocketd-cert.pem")}
	for name, version := range map[string]string{"client-4.9.8": target.Client4, "client-5.5.0": target.Client5} {
		t.Run(name, func(t *testing.T) {
			run(t, c, version, client, "prefix=p"+version[:1], "accessKey=theAdmin", "secretKey=adminSecret", "only="+selected("acl-push|acl-refusals"), "skip=(?!acl-).*")
		})
	}
}
