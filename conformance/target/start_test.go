//go:build conformance

package target

import (
	"strings"
	"testing"
)

// A broker must be found again under its address after each way of going down.
func TestStopKillStart(t *testing.T) {
	c := Start(t, Options{NameServers: 2, Brokers: []BrokerOptions{{}, {Conf: map[string]string{"brokerPermission": "4"}}}})
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"stop", c.Brokers[0].Stop}, {"start after stop", c.Brokers[0].Start},
		{"kill", c.Brokers[1].Kill}, {"start after kill", c.Brokers[1].Start},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	out, err := c.Mqadmin(t, "clusterList")
	if err != nil {
		t.Fatal(err)
	}
	// #Cluster Name  #Broker Name  #BID  #Addr …
	rows := map[string]bool{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 4 {
			rows[strings.Join(f[:4], " ")] = true
		}
	}
	for _, b := range c.Brokers {
		if want := b.Cluster + " " + b.Name + " 0 " + b.Addr; !rows[want] {
			t.Errorf("clusterList lacks %q:\n%s", want, out)
		}
	}
}
