//go:build conformance

package bugs

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// H26 (#8549): a broker with an IPv6 address stores it in 16 bytes, gives out message ids of 56 digits, and everything about
// the message can be asked for afterwards. The official 4.9 server does the same (5.x did not).
func TestIPv6Broker(t *testing.T) {
	t.Parallel()
	if !hasIPv6() {
		t.Skip("THIS MACHINE HAS NO IPv6: the case of the IPv6 broker does not run")
	}
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{"brokerIP1": "::1"}}}})
	b := c.Brokers[0]
	s := dial(t, net.JoinHostPort("::1", strconv.Itoa(b.Port())))
	topic := s.topic("H26", 1)
	answer := s.Done(message(topic, 0, wire.Properties("KEYS", "k"), "six"))
	m := s.stored(topic, 0, 0, 1)[0]
	id := answer.Ext["msgId"]
	if len(id) != 56 || id != m.MsgId() {
		t.Errorf("message id %s, by the record %s", id, m.MsgId())
	}
	if m.StoreHost.Addr().String() != "::1" || int(m.StoreHost.Port()) != b.Port() || m.BornHost.Addr().String() != "::1" || m.SysFlag != 0x30 {
		t.Errorf("store host %s, born host %s, sysFlag %#x", m.StoreHost, m.BornHost, m.SysFlag)
	}
	seen, err := wire.Messages(s.Done(wire.Request(33, "offset", text(m.PhyOffset))).Body)
	if err != nil || len(seen) != 1 || string(seen[0].Body) != "six" {
		t.Errorf("view by id: %v %v", seen, err)
	}
	if got := s.Number("timestamp", wire.Request(32, "topic", topic, "queueId", "0")); got != m.StoreTimestamp {
		t.Errorf("earliest time %d, the message was stored at %d", got, m.StoreTimestamp)
	}
	// -1 is the official server's word as long as the log has less than twice maxMessageSize.
	// For a moment after its start it answers with an exception.
	until(t, "runtime information", func() bool { return s.Ask(wire.Request(28)).Code == success })
	if info := string(s.Done(wire.Request(28)).Body); !strings.Contains(info, `"earliestMessageTimeStamp":"`+text(m.StoreTimestamp)+`"`) &&
		!(official() && strings.Contains(info, `"earliestMessageTimeStamp":"-1"`)) {
		t.Errorf("runtime information: %s", info)
	}
	n := dial(t, c.NameServers[0].Addr)
	if info := n.Done(wire.Request(106)); !strings.Contains(string(info.Body), "::1") {
		t.Errorf("cluster information: %s", info.Body)
	}
}
