package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rocketd/remoting/remotingtest"
)

// What keeps a standalone server from starting is said with the flag that changes it, and nothing is made.
func TestStandaloneHints(t *testing.T) {
	ns, port := ports(t)
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().(*net.TCPAddr).Port
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		flags []string
		code  int
		want  []string
	}{
		"name server's port": {[]string{"--namesrvPort", fmt.Sprint(busy)}, exitError, []string{"--namesrvPort", fmt.Sprint(busy)}},
		"broker's port":      {[]string{"--listenPort", fmt.Sprint(busy)}, exitError, []string{"--listenPort", fmt.Sprint(busy)}},
		"fast port":          {[]string{"--listenPort", fmt.Sprint(busy + 2)}, exitError, []string{"--listenPort", "listenPort-2", fmt.Sprint(busy)}},
		"no folder":          {[]string{"--data", ""}, exitUsage, []string{"--data"}},
		"tilde":              {[]string{"--data=~/rocketd"}, exitError, []string{"~", "not expanded"}},
		"name server list":   {[]string{"-n", "http://x:1"}, exitUsage, []string{"http://", "127.0.0.1:9876;192.168.0.1:9876"}},
		"port":               {[]string{"--listenPort", "70000"}, exitUsage, []string{"--listenPort"}},
		"a file":             {[]string{"--data", file}, exitError, []string{"--data", file, "no folder", "uid"}},
	} {
		dir := t.TempDir()
		args := append([]string{"standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port)}, tt.flags...)
		c := start(t, dir, args...)
		if code := c.exit(); code != tt.code {
			t.Errorf("%s: code %d", name, code)
		}
		for _, want := range tt.want {
			if !strings.Contains(c.log.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, c.log.String())
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
	for _, list := range []string{"http://x:1", "x", "x:y"} {
		if code, _, errs := invoke("rocketd", "broker", "-n", list, "-p"); code != exitUsage || !strings.Contains(errs, "illegal") {
			t.Errorf("-n %s: code %d, %s", list, code, errs)
		}
	}
}

// A store that its user may not write to. (root may.)
func TestForbiddenStore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	dir := t.TempDir()
	binary := filepath.Join(os.TempDir(), fmt.Sprintf("rocketd-test-%d", os.Getpid()))
	if err := os.Link(os.Args[0], binary); err != nil {
		if data, rerr := os.ReadFile(os.Args[0]); rerr != nil || os.WriteFile(binary, data, 0o755) != nil {
			t.Skip("the test binary can't be put where another user can start it")
		}
	}
	defer os.Remove(binary)
	_, port := ports(t)
	file := binary + ".conf"
	if err := os.WriteFile(file, fmt.Appendf(nil, "listenPort=%d\nstorePathRootDir=%s/store\n", port, dir), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	c := unstarted(t, "/", "broker", "-c", file)
	c.cmd.Path, c.cmd.Args[0] = binary, binary
	c.cmd.Stderr = &c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if err := c.cmd.Start(); err != nil {
		t.Skip(err)
	}
	_ = c.cmd.Wait()
	for _, want := range []string{dir + "/store", "storePathRootDir", "uid 65533", "chown"} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("no %q in\n%s", want, c.log.String())
		}
	}
}

// Standard output and error in one place: the line that says that it is ready is there once.
func TestReadyOnce(t *testing.T) {
	dir := t.TempDir()
	ns, _ := ports(t)
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := unstarted(t, dir, "namesrv", "-c", conf(t, fmt.Sprintf("listenPort=%d\n", ns)))
	c.cmd.Stdout, c.cmd.Stderr = out, out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	remotingtest.Eventually(t, "it is ready", func() bool {
		text, err := os.ReadFile(out.Name())
		return err == nil && strings.Contains(string(text), " ready in ")
	})
	c.signal(syscall.SIGTERM)
	_ = c.cmd.Wait()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), " ready in "); n != 1 {
		t.Errorf("%d times\n%s", n, text)
	}
}
