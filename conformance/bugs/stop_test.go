//go:build conformance

package bugs

import (
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// H13 (#8801): without automatic creation a send still makes a topic after the model of the cluster's own topic, when it names that
// as its createTopicKey. The official server does that, and there are producers that count on it: so do we.
//
// H06 (#1843), of a group that is not there and may not be made: a send to its retry topic is answered 26. The official server
// does the same.
//
// H32 (rust#113), of a broker: its end, in order or not, takes it off routes and clusters at once. The official server does the same.
func TestStrictBrokerAndItsEnd(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{"autoCreateTopicEnable": "false",
		"autoCreateSubscriptionGroup": "false"}}}})
	b := c.Brokers[0]
	s, names := dial(t, b.Addr), dial(t, c.NameServers[0].Addr)
	for _, m := range []struct {
		model string
		want  int
	}{{"TBW102", topicNotExist}, {"broker-a", success}, {"DefaultCluster", success}} {
		topic := "H13-" + m.model
		if answer := s.Ask(message(topic, 0, "", "x").Set("c", m.model)); answer.Code != m.want {
			t.Errorf("after the model of %s: %d %q, want %d", m.model, answer.Code, answer.Remark, m.want)
		}
	}
	s.topic("%RETRY%H06-nobody", 1)
	if answer := s.Ask(resend("H06-nobody", "0", "")); answer.Code != groupNotExist || !strings.HasPrefix(answer.Remark, "subscription group not exist, H06-nobody ") {
		t.Errorf("a send to the retry topic of no group: %d %q", answer.Code, answer.Remark)
	}
	routed := func() bool {
		r, ok := names.route("H13-DefaultCluster")
		return ok && slices.Equal(r.brokers(), []string{b.Name})
	}
	inCluster := func() bool { return strings.Contains(string(names.Ask(wire.Request(106)).Body), b.Addr) }
	until(t, "the broker is routed", routed)
	for what, end := range map[string]func() error{"SIGTERM": b.Stop, "SIGKILL": b.Kill} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		until(t, "the broker has left routes and clusters after "+what, func() bool { return !routed() && !inCluster() })
		start(t, b)
		until(t, "the broker is routed again after "+what, func() bool { return routed() && inCluster() })
	}
}
