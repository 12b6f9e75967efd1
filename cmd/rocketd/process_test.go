package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asRocketd makes this test binary behave as rocketd.
const asRocketd = "ROCKETD_TEST_AS_ROCKETD"

// noPasswd makes it do as if the user had no entry in the password file, so that $HOME counts.
const noPasswd = "ROCKETD_TEST_NO_PASSWD"

func TestMain(m *testing.M) {
	if os.Getenv(asRocketd) != "" {
		if os.Getenv(noPasswd) != "" {
			lookupUser = func(uid string) (*user.User, error) { return nil, user.UnknownUserError(uid) }
		}
		main()
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// child is a running rocketd.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of its standard output
	log   syncBuffer  // its standard error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// unstarted is a process that is ready to be started.
func unstarted(t *testing.T, dir string, args ...string) *child {
	c := &child{t: t, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 16)}
	c.cmd.Dir = dir
	c.cmd.Env = append(os.Environ(), asRocketd+"=1", "BROKER_IP1=127.0.0.1", "NAMESRV_ADDR=", "HOME="+dir, noPasswd+"=1")
	return c
}

func start(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	c := unstarted(t, dir, args...)
	c.start()
	return c
}

// start starts what has been made ready.
func (c *child) start() {
	t := c.t
	t.Helper()
	c.cmd.Stderr = &c.log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
}

// line returns the next line of standard output.
func (c *child) line() string {
	c.t.Helper()
	select {
	case l, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("no line; log:\n%s", c.log.String())
		}
		return l
	case <-time.After(patience):
		c.t.Fatalf("no line in time; log:\n%s", c.log.String())
	}
	return ""
}

// exit waits for the end and returns the exit code.
func (c *child) exit() int {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	for range c.lines { // what comes until the end
	}
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// ports returns a free port for a name server and one for a broker whose neighbours, port-2 and port+1, are free.
func ports(t *testing.T) (namesrv, broker int) {
	t.Helper()
	free := func(port int) bool {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return false
		}
		return l.Close() == nil
	}
	for p := 29000; p < 29080; p += 6 {
		if free(p) && free(p+1) && free(p+3) && free(p+4) {
			return p, p + 3
		}
	}
	t.Fatal("no free ports between 29000 and 29080")
	return 0, 0
}

func TestStandalone(t *testing.T) {
	dir := t.TempDir()
	ns, port := ports(t)
	args := []string{"standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port)}
	c := start(t, dir, args...)
	if l := c.line(); !strings.HasPrefix(l, "rocketd namesrv ready in ") || !strings.Contains(l, fmt.Sprintf("listening on *:%d (all addresses", ns)) {
		t.Errorf("first line %q", l)
	}
	l := c.line()
	for _, want := range []string{"rocketd broker ", " ready in ", fmt.Sprintf("listening on *:%d and *:%d (fast), HA %d reserved, clients are told 127.0.0.1:%d", port, port-2, port+1, port),
		"store " + filepath.Join(dir, "data"), fmt.Sprintf("name servers 127.0.0.1:%d", ns)} {
		if !strings.Contains(l, want) {
			t.Errorf("second line %q has no %q", l, want)
		}
	}
	for _, p := range []int{ns, port, port - 2} {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", p), patience)
		if err != nil {
			t.Error(err)
			continue
		}
		defer conn.Close()
	}

	// A second one on the same store, on other ports.
	second := start(t, dir, "standalone", "--namesrvPort", "29091", "--listenPort", "29095")
	if code := second.exit(); code != exitError || !strings.Contains(second.log.String(), "another broker is running on the store") || !strings.Contains(second.log.String(), "--data") {
		t.Errorf("second start: code %d, log\n%s", code, second.log.String())
	}

	begin := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != exitOK {
		t.Errorf("code %d, log\n%s", code, c.log.String())
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("the stop took %v", took)
	}
	for _, want := range []string{"unregistered from name server", "msg=stopped"} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("no %q in the log\n%s", want, c.log.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "abort")); !os.IsNotExist(err) {
		t.Errorf("the abort file is left: %v", err)
	}

	again := start(t, dir, args...)
	again.line()
	again.line()
	if err := again.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := again.exit(); code != exitOK {
		t.Errorf("SIGINT: code %d, log\n%s", code, again.log.String())
	}
}

// mqnamesrv and mqbroker as two processes, found by the program's name, the flags of the official classes.
func TestOfficialNames(t *testing.T) {
	dir := t.TempDir()
	ns, port := ports(t)
	nsConf, conf := filepath.Join(dir, "namesrv.conf"), filepath.Join(dir, "broker.conf")
	for path, text := range map[string]string{
		nsConf: fmt.Sprintf("listenPort=%d\n", ns),
		conf:   fmt.Sprintf("brokerName=broker-x\nlistenPort=%d\nunknownKey=1\n", port),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) *child {
		link := filepath.Join(dir, name)
		if err := os.Symlink(os.Args[0], link); err != nil {
			t.Fatal(err)
		}
		old := os.Args[0]
		os.Args[0] = link
		defer func() { os.Args[0] = old }()
		return start(t, dir, args...)
	}
	n := run("mqnamesrv", "-c", nsConf)
	n.line()
	b := run("mqbroker", "-c", conf, "-n", fmt.Sprintf("127.0.0.1:%d", ns))
	if l := b.line(); !strings.Contains(l, "rocketd broker broker-x ready") || !strings.Contains(l, "store "+filepath.Join(dir, "store")) {
		t.Errorf("line %q", l)
	}
	for _, c := range []*child{b, n} {
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(); code != exitOK {
			t.Errorf("code %d, log\n%s", code, c.log.String())
		}
	}
	if log := b.log.String(); !strings.Contains(log, "unknownKey") || !strings.Contains(log, "registered at name server") {
		t.Errorf("log\n%s", log)
	}
}
