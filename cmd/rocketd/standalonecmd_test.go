package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// What an administrator changes in a name server or broker without configuration files is there after the next start.
func TestStandaloneKeepsUpdates(t *testing.T) {
	dir := t.TempDir()
	ns, port := ports(t)
	ask := func(port int, code protocol.RequestCode, body string) *protocol.Command {
		t.Helper()
		a := remotingtest.Dial(t, fmt.Sprintf("127.0.0.1:%d", port)).Ask(protocol.NewRequest(code, nil, []byte(body)))
		if a.Code != 0 {
			t.Fatalf("code %d, %q", a.Code, a.Remark)
		}
		return a
	}
	for round := range 2 {
		c := start(t, dir, "standalone", "--namesrvPort", fmt.Sprint(ns), "--listenPort", fmt.Sprint(port))
		c.line()
		c.line()
		if round == 0 {
			ask(ns, protocol.UpdateNamesrvConfig, "orderMessageEnable=true\n")
			ask(port, protocol.UpdateBrokerConfig, "fileReservedTime=71\n")
		}
		if got := string(ask(ns, protocol.GetNamesrvConfig, "").Body); !strings.Contains(got, "\norderMessageEnable=true\n") {
			t.Errorf("round %d: the name server has\n%s", round, got)
		}
		if got := string(ask(port, protocol.GetBrokerConfig, "").Body); !strings.Contains(got, "\nfileReservedTime=71\n") {
			t.Errorf("round %d: the broker has\n%s", round, got)
		}
		c.signal(syscall.SIGTERM)
		if code := c.exit(); code != exitOK {
			t.Fatalf("code %d, log\n%s", code, c.log.String())
		}
	}
}
