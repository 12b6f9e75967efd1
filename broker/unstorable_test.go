package broker

import (
	"strings"
	"testing"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
)

// TestLongRetryTopic: a heartbeat makes a retry topic for any group; one longer than a record can hold takes no
// messages, delayed ones neither: in 4.9.8 too the store looks at the length of the real topic.
func TestLongRetryTopic(t *testing.T) {
	t.Parallel()
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

// TestBatchGrowth: what a batch becomes on disk is bounded by what it was, and refused before memory is taken for it.
func TestBatchGrowth(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MappedFileSizeCommitLog = 64 << 20 })
	b.send("T", 0, "", "x")
	elements := func(n int, properties string, size int) (data []byte) {
		for range n {
			data = message.AppendElement(data, message.Element{Body: make([]byte, size), Properties: []byte(text(properties))})
		}
		return data
	}
	key := "UNIQ_KEY=" + strings.Repeat("0", 32)
	for _, c := range []struct {
		name       string
		properties string
		data       []byte
		good       bool
	}{
		{"empty elements with large properties", "x=" + strings.Repeat("y", 30_000), elements(10_000, "", 0), false},
		{"a few of them", "x=" + strings.Repeat("y", 30_000), elements(100, "", 0), true},
		{"just too many", "x=" + strings.Repeat("y", 30_000), elements(150, "", 0), false},
		{"as a stock client sends, nearly empty", "WAIT=true", elements(60_000, key, 1), true},
		{"full", "WAIT=true", elements(38, key, 100<<10), true},
	} {
		h := sendHeader("T", 1, c.properties)
		h.Batch = true
		before := b.store.MaxPhyOffset()
		a := b.ask(protocol.SendBatchMessage, h, c.data)
		grown := b.store.MaxPhyOffset() - before
		if c.good {
			check(t, c.name, a, protocol.Success, "", sendFields...)
		} else {
			check(t, c.name, a, protocol.MessageIllegal, "the message is illegal, maybe msg body*", "MSG_REGION", "TRACE_ON")
		}
		if (grown > 0) != c.good || grown > max(4<<20+64<<10, 8*int64(len(c.data))) {
			t.Errorf("%s: %d bytes became %d", c.name, len(c.data), grown)
		}
	}
}

// TestHeartbeatOfManyGroups: one frame can't make groups and topics without bound.
func TestHeartbeatOfManyGroups(t *testing.T) {
	b := startPathBroker(t, nil)
	before, _ := b.topics.All()
	data := `{"clientID":"c","consumerDataSet":[` + strings.Repeat(`{"groupName":"g"},`, 10_001) + `]}`
	check(t, "heartbeat", b.ask(protocol.HeartBeat, &header.Empty{}, []byte(data)), protocol.SystemError, "the client has more groups than maxClientGroups allows")
	if after, _ := b.topics.All(); len(after) != len(before) {
		t.Errorf("%d topics became %d", len(before), len(after))
	}
}
