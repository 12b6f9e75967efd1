//go:build conformance

package timer

import (
	"os"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// TestTurns: an official 4.9 broker on the directory shows nobody what waits, also after it has made the queue again, and rocketd
// delivers it afterwards.
func TestTurns(t *testing.T) {
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: THE WAY TO THE OFFICIAL BROKER IS NOT TESTED")
	}
	c := target.Start(t, target.Options{Kind: target.Rocketd, Brokers: []target.BrokerOptions{{Name: "broker-a"}}})
	b := c.Brokers[0]
	s := connect(t, b)
	topic := s.topic("TimerTurns")
	began := time.Now()
	s.want(message(topic, "soon", "TIMER_DELAY_MS", "1500"), 0)
	s.want(message(topic, "later", "TIMER_DELAY_MS", "25000"), 0)
	if err := b.Kill(); err != nil { // so that the official broker makes the end of the queue again
		t.Fatal(err)
	}
	b.RunAs(target.Official)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s = connect(t, b)
	s.want(message(topic, "by the official one"), 0)
	if got := s.stored(topic, 1); string(got[0].Body) != "by the official one" {
		t.Errorf("delivered %s", got[0].Body)
	}
	waiting := s.ask(wire.Request(11, "consumerGroup", "TimerReader", "topic", "rmq_sys_wheel_timer", "queueId", "0", "queueOffset", "0", "maxMsgNums", "32",
		"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG"))
	if waiting.Code != 16 || !strings.Contains(waiting.Remark, "forbidden") {
		t.Errorf("a pull of what waits: %d %q", waiting.Code, waiting.Remark)
	}
	s.want(wire.Request(215, "topic", s.topic("TimerGone")), 0) // which removes the queues that have no topic
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	b.RunAs(target.Rocketd)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s = connect(t, b)
	got := s.stored(topic, 3)
	if string(got[1].Body) != "soon" || string(got[2].Body) != "later" {
		t.Errorf("delivered %s, %s", got[1].Body, got[2].Body)
	}
	if d := got[2].StoreTimestamp - began.UnixMilli(); d < 25_000 {
		t.Errorf("the later one came after %d ms", d)
	}
}
