package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// standalone starts everything on free ports and waits until it is ready.
func standalone(t *testing.T, dir string) *child {
	t.Helper()
	ns, port := ports(t)
	c := start(t, dir, "standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port))
	c.line()
	c.line()
	return c
}

func (c *child) signal(sig os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// Whoever sends a signal often sends it twice: the stop is orderly still. A closed terminal stops in order too.
func TestStopSignals(t *testing.T) {
	for name, sent := range map[string][]os.Signal{
		"TERM TERM": {syscall.SIGTERM, syscall.SIGTERM},
		"INT INT":   {os.Interrupt, os.Interrupt, os.Interrupt},
		"HUP TERM":  {syscall.SIGHUP, syscall.SIGTERM},
		"HUP":       {syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := standalone(t, dir)
			c.signal(sent[0])
			for _, sig := range sent[1:] {
				_ = c.cmd.Process.Signal(sig) // it may have ended already
			}
			if code := c.exit(); code != exitOK || !strings.Contains(c.log.String(), "msg=stopped") {
				t.Errorf("code %d, log\n%s", code, c.log.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "data", "abort")); !os.IsNotExist(err) {
				t.Errorf("the abort file is left: %v", err)
			}
		})
	}
}

// SIGQUIT shows what every goroutine does, and nothing else happens.
func TestStacks(t *testing.T) {
	c := standalone(t, t.TempDir())
	c.signal(syscall.SIGQUIT)
	remotingtest.Eventually(t, "stacks in the log", func() bool {
		return strings.Contains(c.log.String(), "housekeeping") && strings.Contains(c.log.String(), "going on")
	})
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != exitOK {
		t.Errorf("code %d, log\n%s", code, c.log.String())
	}
}

// The reader of standard output and error is gone: the server does not care.
func TestNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ns, port := ports(t)
	c := unstarted(t, dir, "standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port))
	c.cmd.Stdout, c.cmd.Stderr = w, w
	r.Close() // before anything is written
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	remotingtest.Eventually(t, "the broker runs", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port-2))
		return err == nil && conn.Close() == nil
	})
	c.signal(syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
}

// A second Ctrl-C that is no slip gives up, a second SIGTERM does not.
func TestGiveUp(t *testing.T) {
	var log syncBuffer
	p := &process{stderr: &log}
	given := make(chan struct{}, 1)
	s := newSignals()
	var late atomic.Int64
	begin := time.Now()
	s.clock = func() time.Time { return begin.Add(time.Duration(late.Load())) }
	go s.run(p.logger(), &log, func() { given <- struct{}{} })
	s.come <- syscall.SIGTERM
	<-s.stop
	s.come <- os.Interrupt
	remotingtest.Eventually(t, "it is taken", func() bool { return len(s.come) == 0 })
	s.come <- syscall.SIGQUIT // so the one before has been dealt with when this shows
	remotingtest.Eventually(t, "stacks", func() bool { return strings.Contains(log.String(), "going on") })
	late.Store(int64(repeatWindow))
	s.come <- syscall.SIGTERM
	remotingtest.Eventually(t, "a line", func() bool { return strings.Contains(log.String(), "under way") })
	select {
	case <-given:
		t.Error("given up")
	default:
	}
	s.come <- os.Interrupt
	<-given
	close(s.come)
	<-s.done
}

func TestLogLevel(t *testing.T) {
	t.Setenv("ROCKETD_LOG_LEVEL", "bogus")
	var log syncBuffer
	(&process{stderr: &log}).logger()
	if !strings.Contains(log.String(), "bogus") {
		t.Errorf("log %q", log.String())
	}
}

// SIGHUP reads the configuration file again: what is right counts, what is not is said with its line and changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "broker.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("brokerName=broker-a\n")
	ns, port := ports(t)
	c := start(t, dir, "standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port), "-c", conf)
	c.line()
	c.line()
	says := func(texts ...string) {
		t.Helper()
		remotingtest.Eventually(t, fmt.Sprint("the log says ", texts), func() bool {
			for _, text := range texts {
				if !strings.Contains(c.log.String(), text) {
					return false
				}
			}
			return true
		})
	}
	write("brokerName=broker-a\n# more\nmaxMessageSize=4321\n")
	c.signal(syscall.SIGHUP)
	says("configuration updated", "4321", "configuration file read again")
	write("brokerName=broker-a\nfileReservedTme=4\nmaxMessageSize=4321\n") // a slip is told of as at the start
	c.signal(syscall.SIGHUP)
	says("key=fileReservedTme perhaps=fileReservedTime")
	write("brokerName=broker-a\nmaxMessageSize=4321\nadminAllowedNetworks=10.0.0.0/8\n") // it bounds both servers
	c.signal(syscall.SIGHUP)
	for port, code := range map[int]protocol.RequestCode{ns: protocol.UpdateNamesrvConfig, port: protocol.UpdateBrokerConfig} {
		peer := remotingtest.Dial(t, fmt.Sprintf("127.0.0.1:%d", port))
		remotingtest.Eventually(t, code.String()+" is refused", func() bool {
			return peer.Ask(protocol.NewRequest(code, nil, []byte("noSuchKey=1\n"))).Code == int32(protocol.NoPermission)
		})
	}
	write("brokerName=broker-a\n\nmaxMessageSize=large\n")
	c.signal(syscall.SIGHUP)
	says("not taken", "line 3: maxMessageSize=large")
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != exitOK {
		t.Errorf("code %d, log\n%s", code, c.log.String())
	}
}

// Who was started by nohup does not stop by SIGHUP, and reads its file again as everybody else.
func TestNohup(t *testing.T) {
	for name, conf := range map[string]string{"with a file": "brokerName=broker-a\n", "without": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ns, port := ports(t)
			args := []string{"standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port)}
			file := filepath.Join(dir, "broker.conf")
			if conf != "" {
				if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
					t.Fatal(err)
				}
				args = append(args, "-c", file)
			}
			c := unstarted(t, dir, args...)
			c.cmd.Path, c.cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, c.cmd.Path}, args...)
			c.start()
			c.line()
			c.line()
			c.signal(syscall.SIGHUP)
			if conf != "" {
				remotingtest.Eventually(t, "the file is read again", func() bool { return strings.Contains(c.log.String(), "configuration file read again") })
			}
			c.signal(syscall.SIGQUIT) // so that what came before has been dealt with
			remotingtest.Eventually(t, "stacks", func() bool { return strings.Contains(c.log.String(), "going on") })
			c.signal(syscall.SIGTERM)
			if code := c.exit(); code != exitOK || !strings.Contains(c.log.String(), "signal=terminated") {
				t.Errorf("code %d, log\n%s", code, c.log.String())
			}
		})
	}
}

// SIGHUP because the terminal is gone stops.
func TestTerminalGone(t *testing.T) {
	var log syncBuffer
	p := &process{stderr: &log}
	s := newSignals()
	var gone atomic.Bool
	s.hungUp = gone.Load
	s.files.Store(true)
	go s.run(p.logger(), &log, func() {})
	s.come <- syscall.SIGHUP
	<-s.reload
	gone.Store(true)
	s.come <- syscall.SIGHUP
	if sig := <-s.stop; sig != syscall.SIGHUP {
		t.Errorf("stopped by %v", sig)
	}
	close(s.come)
	<-s.done
}
