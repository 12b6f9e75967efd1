package broker

import (
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

func typed(topic, change string) *header.CreateTopicRequest {
	return &header.CreateTopicRequest{Topic: topic, ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: change}
}

// Attributes come by code 17, stay when a later one does not speak of them, and are in topics.json and code 351.
func TestTopicAttributes(t *testing.T) {
	b := startPathBroker(t, nil)
	check(t, "create", b.ask(protocol.UpdateAndCreateTopic, typed("T", "+message.type=FIFO"), nil), protocol.Success, unsetRemark)
	check(t, "change of queues", b.ask(protocol.UpdateAndCreateTopic, typed("T", ""), nil), protocol.Success, unsetRemark)
	check(t, "wrong value", b.ask(protocol.UpdateAndCreateTopic, typed("T", "+message.type=ANY"), nil), protocol.SystemError, "value is not in set: *")
	a := b.ask(protocol.GetTopicConfig, &header.GetTopicConfigRequest{Topic: "T"}, nil)
	if !strings.HasPrefix(string(a.Body), `{"attributes":{"message.type":"FIFO"},"order":false,`) {
		t.Errorf("351 answers %s", a.Body)
	}
	if data, err := b.files.ReadFile("/store/config/topics.json"); err != nil || strings.Count(string(data), `"attributes"`) != 1 || !strings.Contains(string(data), `"message.type":"FIFO"`) {
		t.Errorf("topics.json, error %v:\n%s", err, data)
	}
	b.send("T", 0, "DELAY=1", "nobody checks")
	check(t, "delete", b.ask(protocol.UpdateAndCreateTopic, typed("T", "-message.type"), nil), protocol.Success, unsetRemark)
	if c, _ := b.topics.Lookup("T"); c.Attributes != nil {
		t.Errorf("attributes %v", c.Attributes)
	}
}

// With enableTopicMessageTypeCheck messages of another type are refused, in the words of the 5.x proxy.
func TestMessageTypeCheck(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.EnableTopicMessageTypeCheck = true })
	for topic, change := range map[string]string{"Plain": "", "Normal": "+message.type=NORMAL", "Fifo": "+message.type=FIFO", "Delay": "+message.type=DELAY",
		"Tran": "+message.type=TRANSACTION", "Mixed": "+message.type=MIXED", "Unspecified": "+message.type=UNSPECIFIED"} {
		check(t, topic, b.ask(protocol.UpdateAndCreateTopic, typed(topic, change), nil), protocol.Success, unsetRemark)
	}
	properties := map[string]string{"NORMAL": "TAGS=x", "FIFO": "__SHARDINGKEY=k", "DELAY": "DELAY=1", "TRANSACTION": "TRAN_MSG=true|PGROUP=g"}
	for topic, want := range map[string]string{"Plain": "NORMAL", "Normal": "NORMAL", "Fifo": "FIFO", "Delay": "DELAY", "Tran": "TRANSACTION", "Mixed": "", "Unspecified": "UNSPECIFIED"} {
		for got, text := range properties {
			a := b.ask(protocol.SendMessageV2, sendHeader(topic, 0, text), []byte("x"))
			if topic == "Mixed" || got == want {
				check(t, topic+" "+got, a, protocol.Success, "", sendFields...)
				continue
			}
			check(t, topic+" "+got, a, protocol.MessageIllegal, "TopicMessageType validate failed, the expected type is "+want+", but actual type is "+got, "MSG_REGION", "TRACE_ON")
		}
	}
	b.send("Normal", 0, "DELAY=1|TRANSFER_FLAG=true", "x")
}
