//go:build conformance

package ordering

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rocketd/conformance/target"
)

// quick makes rebalancing and the renewing of locks quick; how long a lock lives is the broker's: 60 s.
var quick = []string{"-Drocketmq.client.rebalance.waitInterval=2000", "-Drocketmq.client.rebalance.lockInterval=2000"}

// member is one consumer's process.
type member struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan error
}

// join starts a member and waits until it runs.
func (r *run) join(name string) *member {
	t := r.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd, err := target.Java(ctx, target.Client4, filepath.Join(r.target.Dir(), "member-"+name), quick, "rocketd.conformance.OrderlyMember",
		"namesrv="+r.target.Namesrv, "group=G-ordering", "member="+name, "topics="+parted+","+global, "history="+r.path)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{name: name, cmd: cmd, ended: make(chan error, 1)}
	if m.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	r.mark("D %s comes", name)
	go func() {
		err := target.Run(cmd)
		_ = w.Close()
		m.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-m.ended
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "READY" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return m
		}
	}
	t.Fatalf("member %s has not started", name)
	return nil
}

// leave ends a member in order.
func (r *run) leave(m *member) {
	r.mark("D %s goes", m.name)
	_ = m.stdin.Close()
	m.over()
	r.mark("D %s is gone", m.name)
}

// kill ends a member without any order; nobody unlocks its queues.
func (r *run) kill(m *member) {
	_ = m.cmd.Process.Kill()
	m.over()
	r.mark("K %s", m.name)
}

// over waits for the process to end, and leaves word of it for the clean-up.
func (m *member) over() {
	err := <-m.ended
	m.ended <- err
}

// mark adds a line to the history.
func (r *run) mark(format string, args ...any) {
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(fmt.Sprintf(format, args...) + "\n")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	_ = f.Close()
}

// consumed is how many deliveries the history has.
func (r *run) consumed() int {
	f, err := os.Open(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(r.readTo, io.SeekStart); err != nil {
		r.t.Fatal(err)
	}
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return r.read
		}
		if r.readTo += int64(len(line)); strings.HasPrefix(line, "M ") {
			r.read++
		}
	}
}
