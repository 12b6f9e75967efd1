//go:build conformance

package pop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// consumer is a stock Java push consumer of 5.3.3 or 5.5.0 in a process of its own.
type consumer struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{}
	all    *deliveries
}

// deliveries is what all consumers of a test have got.
type deliveries struct {
	sync.Mutex
	lines   map[string][]string // consumer to "body reconsumeTimes topic", in order
	started map[string]bool
}

func (d *deliveries) note(name, line string) {
	d.Lock()
	defer d.Unlock()
	if rest, ok := strings.CutPrefix(line, "got "); ok {
		d.lines[name] = append(d.lines[name], rest)
	} else if line == "started" {
		d.started[name] = true
	}
}

// of counts the lines that begin with a prefix, of one consumer or, "", of all.
func (d *deliveries) of(name, prefix string) (n int) {
	d.Lock()
	defer d.Unlock()
	for consumer, lines := range d.lines {
		for _, l := range lines {
			if (name == "" || consumer == name) && strings.HasPrefix(l, prefix) {
				n++
			}
		}
	}
	return n
}

// failed counts the messages that a consumer has failed with.
func (d *deliveries) failed(name string) (n int) {
	d.Lock()
	defer d.Unlock()
	for _, l := range d.lines[name] {
		if f := strings.Fields(l); strings.HasPrefix(f[0], "fail") && f[1] == "0" {
			n++
		}
	}
	return n
}

func (d *deliveries) String() string {
	d.Lock()
	defer d.Unlock()
	return fmt.Sprint(d.lines)
}

// javaConsumer starts one.
func (s *session) javaConsumer(ctx context.Context, all *deliveries, client, name string) *consumer {
	s.Helper()
	cmd, err := target.Java(ctx, client, filepath.Join(server.Dir(), "consumer-"+name), nil, "rocketd.conformance.PopConsumer",
		server.Namesrv, s.group, s.topic, name)
	if err != nil {
		s.Fatal(err)
	}
	c := &consumer{name: name, cmd: cmd, exited: make(chan struct{}), all: all}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		s.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	go func() {
		_ = target.Run(cmd)
		_ = w.Close()
		close(c.exited)
	}()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.note(name, lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	return c
}

// until waits for a condition.
func (s *session) until(what string, within time.Duration, all *deliveries, ok func() bool) {
	s.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for deadline := time.Now().Add(within); !ok(); <-every.C {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within %s; got %v", what, within, all)
		}
	}
}

// Stock push consumers in POP mode share one queue, get again what they failed with, and what another one had when it was
// killed. What is never consumed becomes a dead letter, where 5.3.3 gives it again and again. The group's progress shows.
func TestJavaConsumers(t *testing.T) {
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: NO JAVA CLIENT IS TESTED")
	}
	s := open(t, "Java", 1)
	s.want(wire.Request(200).WithBody([]byte(`{"groupName":"`+s.group+`","consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,`+
		`"retryQueueNums":1,"retryMaxTimes":1}`)), 0)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	admin, err := target.Java(ctx, target.Client5, filepath.Join(server.Dir(), "admin"), nil, "org.apache.rocketmq.tools.command.MQAdminStartup",
		"setConsumeMode", "-b", server.Brokers[0].Addr, "-t", s.topic, "-g", s.group, "-m", "POP", "-q", "0", "-n", server.Namesrv)
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	admin.Stdout, admin.Stderr = &told, &told
	if err := target.Run(admin); err != nil || !strings.Contains(told.String(), "success") {
		t.Fatalf("setConsumeMode: %v\n%s", err, told.String())
	}
	all := &deliveries{lines: map[string][]string{}, started: map[string]bool{}}
	one, two := s.javaConsumer(ctx, all, target.Client53, "one"), s.javaConsumer(ctx, all, target.Client5, "two")
	s.until("the consumers have started", time.Minute, all, func() bool {
		all.Lock()
		defer all.Unlock()
		return all.started["one"] && all.started["two"]
	})

	sent := 0
	s.until("both take messages of the one queue", time.Minute, all, func() bool {
		if all.of("", "m") == sent { // the next wave
			for range 16 {
				s.send(0, "", fmt.Sprintf("m%d", sent))
				sent++
			}
		}
		return all.of("one", "m") > 0 && all.of("two", "m") > 0
	})
	s.until("all is consumed", time.Minute, all, func() bool { return all.of("", "m") >= sent })
	for i := range sent {
		if n := all.of("", fmt.Sprintf("m%d 0 %s", i, s.topic)); n != 1 {
			t.Errorf("m%d was consumed %d times", i, n)
		}
	}

	s.send(0, "", "dead")
	failing := 0
	s.until("both fail", time.Minute, all, func() bool {
		if all.failed("one")+all.failed("two") == failing { // the next wave
			for range 4 {
				s.send(0, "", fmt.Sprintf("fail%d.", failing))
				failing++
			}
		}
		return all.failed("one") > 0 && all.failed("two") > 0
	})
	for i := range failing {
		body := fmt.Sprintf("fail%d. ", i)
		s.until("what failed comes again", comeback, all, func() bool { return all.of("", body+"1 "+s.topic) == 1 })
		if n := all.of("", body+"0 "); n != 1 {
			t.Errorf("%s came %d times before", body, n)
		}
	}

	s.send(0, "", "hang")
	s.until("somebody hangs", time.Minute, all, func() bool { return all.of("", "hang 0 ") == 1 })
	dead, alive := one, two
	if all.of("two", "hang 0 ") == 1 {
		dead, alive = two, one
	}
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.until("the other one gets it", comeback, all, func() bool { return all.of(alive.name, "hang 1 "+s.topic) == 1 })

	s.until("the second failure", comeback, all, func() bool { return all.of("", "dead 1 "+s.topic) >= 1 })
	if server.Kind == target.Rocketd {
		s.until("a dead letter", comeback, all, func() bool {
			return s.want(wire.Request(30, "topic", "%DLQ%"+s.group, "queueId", "0"), 0).Ext["offset"] == "1"
		})
		if n := all.of("", "dead "); n != 2 {
			t.Errorf("given %d times before it became a dead letter", n)
		}
	}
	s.stands("0", fmt.Sprint(sent+failing+2))
	_ = alive.stdin.Close()
	select {
	case <-alive.exited:
	case <-time.After(time.Minute):
		t.Error("the consumer does not end")
	}
}
