//go:build conformance

package pop

import (
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// An official 4.9 broker on the directory, for a while: it shows nothing of what rocketd has noted about popped messages
// to clients, and serves the topics; back at rocketd what was not acknowledged comes again, and nothing else.
func TestOfficial4InBetween(t *testing.T) {
	if server.Kind != target.Rocketd {
		t.Skip("the directory is rocketd's")
	}
	c := target.Start(t, target.Options{Kind: target.Rocketd})
	b := c.Brokers[0]
	s := openAt(t, b, "Turns", 1)
	s.send(0, "", "a", "b", "c")
	_, got := s.take(s.pop(0, 2, 2*time.Second))
	s.want(s.about(200051, got[0]), 0)
	retried := s.await(1, comeback, func() *wire.Frame { return s.pop(0, 1, 5*time.Second) }) // "c", or "b" by its retry topic
	for bodies(retried) != "b" {
		s.want(s.about(200051, retried[0]), 0)
		retried = s.await(1, comeback, func() *wire.Frame { return s.pop(0, 1, 5*time.Second) })
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}

	b.RunAs(target.Official)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s.connect()
	pull := func(topic string) *wire.Frame {
		return wire.Request(11, "consumerGroup", s.group+"4", "topic", topic, "queueId", "0", "queueOffset", "0", "maxMsgNums", "32", "sysFlag", "4",
			"commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG")
	}
	const log = "rmq_sys_ROCKETD_POP_LOG"
	s.want(pull(log), 16)
	if route, err := wire.CallOnce(c.NameServers[0].Addr, wire.Request(105, "topic", log), patience); err != nil || !strings.Contains(string(route.Body), `"perm":0`) {
		t.Errorf("clients are told %s, %v", route.Body, err)
	}
	if got := bodies(s.messages(s.want(pull(s.topic), 0))); got != "a,b,c" {
		t.Errorf("the topic has %s", got)
	}
	if got := bodies(s.messages(s.want(pull("%RETRY%"+s.group+"_"+s.topic), 0))); got != "b" {
		t.Errorf("the retry topic has %s", got)
	}
	s.send(0, "", "d")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}

	b.RunAs(target.Rocketd)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s.connect()
	again := map[string]int{}
	for deadline := time.Now().Add(comeback); again["b"] == 0 || again["d"] == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("come again: %v", again)
		}
		_, more := s.take(s.pop(0, 32, time.Minute, "pollTime", "2000"))
		for _, m := range more {
			again[string(m.Body)]++
			s.want(s.about(200051, m), 0)
		}
	}
	if len(again) != 2 || again["b"] != 1 || again["d"] != 1 {
		t.Errorf("come again: %v", again)
	}
}
