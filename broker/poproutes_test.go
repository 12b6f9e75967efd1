package broker

import (
	"errors"
	"testing"
	"time"
)

// A name server that does not answer is not waited for by each request.
func TestSilentNameServer(t *testing.T) {
	n, now := new(nameServer), time.UnixMilli(1_800_000_000_000)
	want := func(what string, at time.Duration, silent bool) {
		t.Helper()
		if n.silent(now.Add(at)) != silent {
			t.Errorf("%s, %v later: silent is %t", what, at, !silent)
		}
	}
	want("never asked", 0, false)
	n.asked(now, errors.New("time-out"))
	want("no answer", 0, true)
	want("no answer", routeSilence-time.Millisecond, true)
	want("no answer", routeSilence, false)
	want("no answer, and the clock was set back", -time.Millisecond, false)
	n.asked(now, nil)
	want("an answer", 0, false)

	b := startPathBroker(t, func(c *Config) { c.NamesrvAddr = "127.0.0.1:1" }) // where nobody listens
	b.send("T", 0, "", "x")
	for range 2 {
		if queues := b.subscribeQueues("T"); len(queues) != 4 || queues[0].BrokerName != "broker-a" {
			t.Errorf("without a name server the queues are %v", queues)
		}
	}
	if s := b.registrar.servers(); len(s) != 1 || !s[0].silent(b.clock()) {
		t.Error("the name server is asked again at once")
	}
}
