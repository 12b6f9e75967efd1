package broker

import (
	"strings"
	"testing"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/message"
)

// TestLongRetryTopic: a heartbeat makes a retry topic for any group; one longer than a record can hold takes no
// messages, delayed ones neither: in 4.9.8 too the store looks at the length of the real topic.
func TestLongRetryTopic(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MessageDelayLevel = "1s 2s" })
	long, longest := strings.Repeat("g", 125), strings.Repeat("g", 120)
	for _, group := range []string{long, longest} { // as a heartbeat
		b.groups.FindOrCreate(group)
		b.topics.CreateBySendBack(topics.RetryTopic(group), 1, topics.PermRead|topics.PermWrite, 0)
	}
	b.send("T", 0, "", "x")
	phyOffset := b.stored("T", 0, 0, 1)[0].PhyOffset
	before := b.store.MaxPhyOffset()
	for _, properties := range []string{"", "DELAY=1"} {
		check(t, "send with "+properties, b.ask(protocol.SendMessageV2, sendHeader("%RETRY%"+long, 0, properties), []byte("x")),
			protocol.MessageIllegal, "the message is illegal, maybe msg body*", "MSG_REGION", "TRACE_ON")
	}
	for _, level := range []int32{0, 1, -1} { // at a delay level and to the dead-letter topic
		h := sendBackHeader(long, phyOffset)
		h.DelayLevel = level
		check(t, "send back", b.ask(protocol.ConsumerSendMsgBack, h, nil), protocol.SystemError, "MESSAGE_ILLEGAL")
	}
	if b.store.MaxPhyOffset() != before {
		t.Error("something was stored")
	}
	b.send("%RETRY%"+longest, 0, "DELAY=1", "fits")
	if m := b.stored("%RETRY%"+longest, 0, 0, 1)[0]; string(m.Body) != "fits" || len(m.Topic) != message.MaxTopicLength {
		t.Errorf("delivered %+v", m)
	}
}
