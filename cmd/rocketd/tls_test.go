package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rocketd/remoting/certtest"
)

// TestTLSOptions: settings of TLS come from the JVM's options in the environment, the configuration file, -D and
// tls.properties; the later goes before the earlier.
func TestTLSOptions(t *testing.T) {
	a := certtest.NewAuthority(t)
	id := a.Issue("from the file")
	file := filepath.Join(t.TempDir(), "tls.properties")
	text := "tls.test.mode.enable=false\ntls.server.certPath=" + id.CertPath + "\ntls.server.keyPath=" + id.KeyPath + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, env, conf string
		flags           []string
		secure          bool
	}{
		{"environment", `-Xmx1g "-Dtls.server.mode=enforcing" -Dtls.config.file=` + file, "", nil, true},
		{"configuration file", "-Dtls.server.mode=disabled", "tls.server.mode=enforcing\ntls.config.file=" + file, nil, true},
		{"flags", "", "tls.server.mode=disabled", []string{"-Dtls.server.mode=enforcing", "-D", "tls.config.file=" + file}, true},
		{"flags that disable", "-Dtls.server.mode=enforcing", "", []string{"-Dtls.server.mode=disabled"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns, _ := ports(t)
			dir := t.TempDir()
			t.Setenv("JAVA_OPT_EXT", tt.env)
			c := start(t, dir, append([]string{"namesrv", "-c", conf(t, fmt.Sprintf("listenPort=%d\nkvConfigPath=%s/kv.json\n%s\n", ns, dir, tt.conf))}, tt.flags...)...)
			if line := c.line(); !strings.Contains(line, " ready in ") {
				t.Fatal(line)
			}
			nc, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ns), &tls.Config{RootCAs: a.Pool(), ServerName: "localhost"})
			if tt.secure != (err == nil) {
				t.Errorf("TLS: %v", err)
			}
			if err == nil {
				nc.Close()
			}
			c.signal(syscall.SIGTERM)
			if code := c.exit(); code != exitOK {
				t.Errorf("code %d", code)
			}
		})
	}
	for _, args := range [][]string{{"broker", "-Dtls.nothing=1"}, {"namesrv", "-Dtls.server.mode"}, {"standalone", "-Duser.home=/"},
		{"broker", "-Drocketmq.client.logLevel=WARN"}, {"namesrv", "-Dtls.server.mod=enforcing"}} {
		if code, _, errs := invoke(append([]string{"rocketd"}, args...)...); code != exitUsage || !strings.Contains(errs, "-D") {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
}
