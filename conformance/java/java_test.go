//go:build conformance

package java

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
)

// A run has some fifty cases, twelve at a time; a hanging case ends itself after 100 s.
const runDeadline = 6 * time.Minute

// onA lets transactions be checked soon, and given up soon (TransactionCases.java), serves SQL92 (SqlCases.java), and has the
var onA = map[string]string{"traceTopicEnable": "true", "regionId": "RegionA", "enablePropertyFilter": "true", "transactionCheckInterval": "1000", "transactionTimeOut": "1500", "transactionCheckMax": "3"}

// The brokers have the names that Servers.java knows them by.
var brokers = []target.BrokerOptions{
	{Name: "broker-a", Conf: onA},
	{Name: "room-1@broker-b", Conf: map[string]string{
		"autoCreateTopicEnable": "false",
		// Nothing counts as "in memory", so that a new group's first offset is the client's choice.
		"accessMessageInMemoryMaxRatio": "0",
		"traceOn":                       "false",
	}},
	{Name: "broker-c", Conf: map[string]string{"autoCreateTopicEnable": "false"}},
}

func TestJava(t *testing.T) {
	t.Parallel()
	needJava(t)
	c := target.Start(t, target.Options{Brokers: brokers})
	skip5 := "restart-.*|acl-.*"
	if c.Kind == target.Official {
		skip5 += "|lite-pull-.*|ask-topic-config|timer-.*" // a 4.9 broker refuses the 5.x client's codes
	}
	for _, r := range []struct {
		name, client, prefix, skip string
		jvm                        []string
	}{
		{"client-4.9.8", target.Client4, "j4", "restart-.*|acl-.*", nil},
		{"client-5.5.0", target.Client5, "j5", skip5, nil},
		// The header form matters to nothing behind the codec: the slow cases need not run again.
		{"client-4.9.8-binary", target.Client4, "j4b", "restart-.*|acl-.*|failover-.*|retry-default-delay|request-cluster|start-.*|allocate-.*",
			[]string{"-Drocketmq.serialize.type=ROCKETMQ"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			for _, b := range c.Brokers {
				if b.Pid() == 0 {
					if err := b.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
			run(t, c, r.client, r.jvm, "prefix="+r.prefix, "skip="+r.skip, "only="+selected(".*"))
		})
	}
}

// TestRestart runs the cases that stop and kill brokers on which others would depend. It waits more than it works.
func TestRestart(t *testing.T) {
	t.Parallel()
	needJava(t)
	patient := map[string]string{"transactionCheckInterval": "1000", "transactionTimeOut": "1500", "transactionCheckMax": "1000"}
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{brokers[0], brokers[2], {Name: "broker-d", Conf: patient}}})
	run(t, c, target.Client4, nil, "prefix=r4", "only="+selected("restart-.*"), "skip=(?!restart-).*")
}

// TestTimer runs the cases of timer messages against the official broker that knows them; TestJava does against rocketd.
func TestTimer(t *testing.T) {
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	if kind != target.Official5 {
		t.Skip("TestJava has these cases")
	}
	t.Parallel()
	needJava(t)
	c := target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Name: "broker-a", Conf: map[string]string{"recallMessageEnable": "true"}}}})
	run(t, c, target.Client5, nil, "prefix=t5", "only="+selected("timer-.*"), "skip=(?!timer-).*")
}

func selected(all string) string {
	if only := os.Getenv("CONFORMANCE_JAVA_ONLY"); only != "" {
		return only
	}
	return all
}

// needJava fetches and compiles first, so that it does not look like a slow case.
func needJava(t *testing.T) {
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: NO JAVA CLIENT IS TESTED")
	}
	for _, client := range []string{target.Client4, target.Client5} {
		if _, err := target.Java(context.Background(), client, t.TempDir(), nil, "none"); err != nil {
			t.Fatal(err)
		}
	}
}

// run starts the JVM and makes a subtest of each line that it prints about a case.
func run(t *testing.T, c *target.Target, client string, jvm []string, options ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), runDeadline)
	defer cancel()
	var addrs []string
	for _, b := range c.Brokers {
		addrs = append(addrs, b.Name+"="+b.Addr)
	}
	args := append([]string{"namesrv=" + c.Namesrv, "brokers=" + strings.Join(addrs, ",")}, options...)
	cmd, err := target.Java(ctx, client, filepath.Join(c.Dir(), "client-"+strings.TrimPrefix(options[0], "prefix=")), jvm, "rocketd.conformance.Main", args...)
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	exited := make(chan error, 1)
	go func() {
		err := target.Run(cmd)
		_ = w.Close()
		exited <- err
	}()
	ended := false
	said := map[string][]string{} // by case; "" = what belongs to none
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		f := strings.Split(line, "\t")
		switch {
		case f[0] == "CASE" && len(f) == 5:
			report(t, f[1], f[2], f[3], f[4], said[f[1]])
		case f[0] == "LOG" && len(f) == 3:
			said[f[1]] = append(said[f[1]], f[2])
		case f[0] == "ASK" && len(f) == 3:
			answer := "done"
			if err := obey(c, f[1], f[2]); err != nil {
				answer = strings.ReplaceAll(err.Error(), "\n", " ")
			}
			fmt.Fprintln(stdin, answer)
		case line == "END":
			ended = true
		case !strings.HasPrefix(line, "SLF4J") && !strings.HasPrefix(line, "RocketMQLog:WARN"):
			said[""] = append(said[""], line)
		}
	}
	if err := <-exited; err != nil || !ended {
		t.Errorf("the run did not end well: %v (context: %v)\n%s", err, ctx.Err(), strings.Join(said[""], "\n"))
	}
}

func report(t *testing.T, name, result, millis, reason string, said []string) {
	t.Run(name, func(t *testing.T) {
		ms, _ := strconv.Atoi(millis)
		if result != "ok" {
			t.Errorf("%s (after %d ms)\n%s", reason, ms, strings.Join(said, "\n"))
			return
		}
		t.Logf("%d ms", ms)
	})
}

func obey(c *target.Target, what, broker string) error {
	for _, b := range c.Brokers {
		if b.Name != broker {
			continue
		}
		switch what {
		case "stop":
			return b.Stop()
		case "kill":
			return b.Kill()
		case "start":
			return b.Start()
		}
	}
	return fmt.Errorf("cannot %s %s", what, broker)
}
