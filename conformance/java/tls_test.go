//go:build conformance

package java

import (
	"testing"

	"rocketd/conformance/target"
	"rocketd/remoting/certtest"
)

// TestTLS runs some cases of every kind against servers that speak nothing but TLS and want to see certificates. Those that count what
// was sent without waiting are not among them: with TLS the official server may let a busy client wait until it sends again.
func TestTLS(t *testing.T) {
	t.Parallel()
	needJava(t)
	a := certtest.NewAuthority(t)
	id, mine := a.Issue("server"), a.Issue("client")
	client := []string{"-Dtls.config.file=" + a.NothingPath, "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true", "-Dtls.client.trustCertPath=" + a.CertPath,
		"-Dtls.client.certPath=" + mine.CertPath, "-Dtls.client.keyPath=" + mine.KeyPath}
	secure := a.Client(mine)
	c := target.Start(t, target.Options{Brokers: brokers[:1], Secure: secure, Properties: append([]string{"-Dtls.server.mode=enforcing",
		"-Dtls.server.need.client.auth=require", "-Dtls.server.authClient=true", "-Dtls.server.trustCertPath=" + a.CertPath,
		"-Dtls.server.certPath=" + id.CertPath, "-Dtls.server.keyPath=" + id.KeyPath}, client...)})
	const cases = "send-sync|send-big-and-compressed|push-concurrent|push-orderly|pull-long-poll|transaction-ended"
	for name, version := range map[string]string{"client-4.9.8": target.Client4, "client-5.5.0": target.Client5} {
		t.Run(name, func(t *testing.T) {
			run(t, c, version, append([]string{"-Dtls.enable=true"}, client...), "prefix=s"+version[:1], "only="+selected(cases), "skip=restart-.*")
		})
	}
}
