//go:build conformance

package tls

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/remoting/certtest"
)

const patience = 20 * time.Second

// served tells whether a connection gets an answer: with TLS, or with nil without it.
func served(t *testing.T, addr string, secure *tls.Config) bool {
	t.Helper()
	var c *wire.Conn
	var err error
	if secure == nil {
		c, err = wire.Dial(addr, nil)
	} else {
		c, err = wire.DialTLS(addr, secure)
	}
	if err != nil {
		return false
	}
	defer c.Close()
	answer, err := c.Call(route(), patience)
	if err == nil && !answer.IsResponse() {
		t.Errorf("answer %+v", answer)
	}
	return err == nil
}

func route() *wire.Frame { return wire.Request(105, "topic", "TBW102") }

// showing is a client that shows a certificate to whoever asks, and believes every server.
func showing(id *certtest.Identity) *tls.Config {
	cfg := &tls.Config{InsecureSkipVerify: true}
	if id != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &id.Pair, nil }
	}
	return cfg
}

// TestDisabled: TLS is closed, plain connections are served.
func TestDisabled(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{}, Properties: []string{"-Dtls.server.mode=disabled"}})
	if !served(t, c.Namesrv, nil) {
		t.Error("a plain connection is not served")
	}
	if served(t, c.Namesrv, showing(nil)) {
		t.Error("TLS is served")
	}
}

// TestEnforcing: servers that speak nothing but TLS, among themselves too, with clients of one authority only.
func TestEnforcing(t *testing.T) {
	t.Parallel()
	trusted, other := certtest.NewAuthority(t), certtest.NewAuthority(t)
	id, mine, foreign := trusted.Issue("server"), trusted.Issue("client"), other.Issue("foreign")
	client := []string{"-Dtls.config.file=" + trusted.NothingPath, "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true", "-Dtls.client.trustCertPath=" + trusted.CertPath,
		"-Dtls.client.certPath=" + mine.CertPath, "-Dtls.client.keyPath=" + mine.KeyPath}
	c := target.Start(t, target.Options{Secure: showing(&mine), Properties: append([]string{"-Dtls.server.mode=enforcing",
		"-Dtls.server.need.client.auth=require", "-Dtls.server.authClient=true", "-Dtls.server.trustCertPath=" + trusted.CertPath,
		"-Dtls.server.certPath=" + id.CertPath, "-Dtls.server.keyPath=" + id.KeyPath}, client...)})

	// That it has started says that the broker has registered with TLS and its own certificate.
	for what, addr := range map[string]string{"name server": c.Namesrv, "broker": c.Brokers[0].Addr} {
		if !served(t, addr, showing(&mine)) {
			t.Errorf("%s: a client with a certificate is not served", what)
		}
		if served(t, addr, nil) {
			t.Errorf("%s: a plain connection is served", what)
		}
		if served(t, addr, showing(nil)) {
			t.Errorf("%s: a client without certificate is served", what)
		}
		if served(t, addr, showing(&foreign)) {
			t.Errorf("%s: a client of another authority is served", what)
		}
		garbage(t, addr)
	}
	mqadmin(t, c, append([]string{"-Dtls.enable=true"}, client...))
	reload(t, c, trusted, id, mine)
}

// garbage begins like TLS, and is none.
func garbage(t *testing.T, addr string) {
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("\x16GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	nc.SetReadDeadline(time.Now().Add(patience))
	if b, err := io.ReadAll(nc); os.IsTimeout(err) || len(b) > 100 {
		t.Errorf("garbage: %d bytes, %v", len(b), err)
	}
}

// mqadmin finds the broker, and changes a topic of it.
func mqadmin(t *testing.T, c *target.Target, jvm []string) {
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Log("CONFORMANCE_SKIP_JAVA=1: NO MQADMIN IS TESTED")
		return
	}
	for _, run := range []struct {
		args []string
		want string
	}{
		{[]string{"clusterList"}, c.Brokers[0].Addr},
		{[]string{"updateTopic", "-c", "DefaultCluster", "-t", "SecureTopic"}, "create topic to " + c.Brokers[0].Addr + " success."},
	} {
		out, err := patiently(t, c, jvm, func(out string) bool { return strings.Contains(out, run.want) }, run.args...)
		if err != nil || !strings.Contains(out, run.want) {
			t.Errorf("mqadmin %v: %v\n%s", run.args, err, out)
		}
	}
}

// patiently runs mqadmin until it has done what it should, three times at most: on a busy machine a JVM's handshake takes longer
// than the tool waits for a connection.
func patiently(t *testing.T, c *target.Target, jvm []string, done func(out string) bool, args ...string) (out string, err error) {
	t.Helper()
	for range 3 {
		if out, err = c.MqadminWith(t, jvm, args...); err != nil || done(out) {
			break
		}
	}
	return out, err
}

// reload gives the servers a new certificate: new connections see it, the open one goes on.
func reload(t *testing.T, c *target.Target, a *certtest.Authority, id, mine certtest.Identity) {
	addrs := []string{c.Namesrv, c.Brokers[0].Addr}
	var open []*wire.Conn
	for _, addr := range addrs {
		w, err := wire.DialTLS(addr, showing(&mine))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		open = append(open, w)
	}
	next := a.Issue("renewed")
	for from, to := range map[string]string{next.CertPath: id.CertPath, next.KeyPath: id.KeyPath} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(patience)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for i, addr := range addrs {
		for shown(t, addr, &mine) != "renewed" {
			select {
			case <-look.C:
			case <-deadline:
				t.Fatalf("%s shows its old certificate", addr)
			}
		}
		if answer, err := open[i].Call(route(), patience); err != nil {
			t.Errorf("%s: the open connection: %v, %v", addr, answer, err)
		}
	}
}

// shown is the name in the certificate of a server.
func shown(t *testing.T, addr string, mine *certtest.Identity) string {
	nc, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, showing(mine))
	if err != nil {
		return err.Error()
	}
	defer nc.Close()
	return nc.ConnectionState().PeerCertificates[0].Subject.CommonName
}
