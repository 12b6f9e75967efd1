//go:build conformance

package tls

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/remoting/certtest"
)

// TestSecondHandshake: a peer that updates its keys (1.3) is served on. To let it renegotiate (1.2), as the official
// server does, is to let it have the server work for nothing: that ends its connection (compat).
func TestSecondHandshake(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: NO SECOND HANDSHAKE IS TESTED")
	}
	id := certtest.NewAuthority(t).Issue("server")
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{}, Properties: []string{"-Dtls.test.mode.enable=false",
		"-Dtls.server.certPath=" + id.CertPath, "-Dtls.server.keyPath=" + id.KeyPath}})
	host, port, err := net.SplitHostPort(c.Namesrv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd, err := target.Java(ctx, target.Client4, t.TempDir(), nil, "rocketd.conformance.Handshakes", host, port)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := target.Run(cmd); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	want := "1.2 refused\n1.3 served\n"
	if c.Kind == target.Official {
		want = "1.2 served\n1.3 served\n"
	}
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
