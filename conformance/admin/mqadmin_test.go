//go:build conformance

package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
)

const (
	runDeadline = 12 * time.Minute
	endMark     = "\x01END"
)

// mqadmin is the JVM that runs the subcommands, one at a time.
type mqadmin struct {
	stdin io.Writer
	lines *bufio.Scanner
	ended bool // the JVM is gone: the tool exits when it cannot read its options
}

// startMqadmin starts the JVM with the stock tools of that generation; it ends with the test. home is its folder.
func startMqadmin(t *testing.T, c *target.Target, client, home string) *mqadmin {
	t.Helper()
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: MQADMIN IS NOT TESTED")
	}
	ctx, cancel := context.WithTimeout(context.Background(), runDeadline)
	cmd, err := target.Java(ctx, client, home, nil, "rocketd.conformance.Admin", c.Namesrv)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout = w
	exited := make(chan struct{})
	go func() {
		err := target.Run(cmd)
		_ = w.CloseWithError(fmt.Errorf("the JVM ended: %v", err))
		close(exited)
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20) // a printed body is one line
	t.Cleanup(func() {
		_ = stdin.Close()
		cancel()
		_ = out.Close()
		<-exited
	})
	return &mqadmin{stdin: stdin, lines: lines}
}

// run runs one subcommand and returns what it prints.
func (m *mqadmin) run(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := fmt.Fprintln(m.stdin, strings.Join(args, "\t")); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for m.lines.Scan() {
		line := m.lines.Text()
		if line == endMark {
			return strings.TrimRight(b.String(), "\n") + "\n"
		}
		if !strings.HasPrefix(line, "SLF4J") && !strings.HasPrefix(line, "RocketMQLog:WARN") {
			b.WriteString(line + "\n")
		}
	}
	m.ended = true
	t.Fatalf("%v: %v\n%s", args, m.lines.Err(), b.String())
	return ""
}

// prints runs a subcommand that must print just this.
func (m *mqadmin) prints(t *testing.T, want string, args ...string) {
	t.Helper()
	if got := m.run(t, args...); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%v prints\n%s\nwant\n%s", args, got, want)
	}
}

// fails runs a subcommand that must end with an exception whose message holds this text.
func (m *mqadmin) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if got := m.run(t, args...); !strings.Contains(got, "Exception") || !strings.Contains(got, want) {
		t.Errorf("%v prints\n%s\nwant an exception with %q", args, got, want)
	}
}

// eventually runs a subcommand until its output is as wanted: what a broker changes, the name server learns a moment later.
func (m *mqadmin) eventually(t *testing.T, ok func(out string) bool, args ...string) string {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		out := m.run(t, args...)
		if ok(out) {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v still prints\n%s", args, out)
		}
	}
}

// table is printed rows as fields, without the heading.
func table(out string) [][]string {
	var rows [][]string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(line, "#") {
			rows = append(rows, f)
		}
	}
	return rows
}

// sorted puts rows in order; what comes from a hash map of the server has none.
func sorted(rows [][]string) [][]string {
	slices.SortFunc(rows, slices.Compare)
	return rows
}

// pairs reads "name : value" or "name = value" lines.
func pairs(out string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if p := pairPattern.FindStringSubmatch(line); p != nil {
			m[p[1]] = strings.TrimSpace(p[2])
		}
	}
	return m
}

var pairPattern = regexp.MustCompile(`^(\S[^:=]*?)\s*[:=]\s?(.*)$`)
