//go:build conformance

package badinput

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rocketd/conformance/target"
)

// server is one running process, as this file needs it.
type server interface {
	Pid() int
	Log() string
}

// live is what rocketd's processes hold: what the requests leave behind shows in it.
type live map[string]int

func servers(c *target.Target) map[string]server {
	return map[string]server{"broker": c.Brokers[0], "name server": c.NameServers[0]}
}

func liveOf(t *testing.T, c *target.Target) live {
	t.Helper()
	l := live{}
	if c.Kind != target.Rocketd {
		return l
	}
	for name, s := range servers(c) {
		l[name+" sockets"] = sockets(t, s.Pid())
		l[name+" goroutines"] = goroutines(t, s)
	}
	return l
}

// check looks for panics, and waits until goroutines and sockets are as many as before.
func (l live) check(t *testing.T, c *target.Target) {
	t.Helper()
	if c.Kind != target.Rocketd {
		return
	}
	for name, s := range servers(c) {
		text, err := os.ReadFile(s.Log())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "panic") {
				t.Errorf("%s: %.2000s", name, line)
			}
		}
	}
	var more []string
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-every.C {
		more = nil
		for name, n := range liveOf(t, c) {
			// The runtime and netpoll keep a few goroutines for the next work; a leak of one a request would be hundreds.
			if n > l[name]+8 {
				more = append(more, fmt.Sprintf("%s: %d before, %d now", name, l[name], n))
			}
		}
		if len(more) == 0 {
			return
		}
	}
	t.Errorf("left behind: %v", more)
}

func sockets(t *testing.T, pid int) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("no %s on this system: %v", dir, err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// goroutines asks a server for its stacks, which it writes to its log, and counts them.
func goroutines(t *testing.T, s server) int {
	t.Helper()
	start, err := os.Stat(s.Log())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.Pid(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	n := -1
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-every.C {
		text, err := os.ReadFile(s.Log())
		if err != nil {
			t.Fatal(err)
		}
		now := bytes.Count(text[start.Size():], []byte("\ngoroutine "))
		if now > 0 && now == n { // all written
			return n
		}
		n = now
	}
	t.Fatal("SIGQUIT shows no goroutines")
	return 0
}
