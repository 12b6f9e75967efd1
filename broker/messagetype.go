package broker

import (
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/message"
)

// checkType refuses a message of another type than its topic is for (enableTopicMessageTypeCheck), as the proxy of 5.x:
// SendMessageActivity and DefaultTopicMessageTypeValidator, with their exceptions for retry and dead-letter topics and for
// messages with TRANSFER_FLAG. False: the send has been answered. No official broker checks it.
func (b *Broker) checkType(r *sendRun, s *sending, topic *topics.Config) bool {
	want := topics.TypeOf(topic)
	if want == topics.TypeMixed || topics.IsRetry(topic.TopicName) || topics.IsDLQ(topic.TopicName) {
		return true
	}
	got := topics.TypeOfMessage(s.req.Properties)
	if got == want {
		return true
	}
	if _, ok := message.Property(s.req.Properties, message.PropertyTransferFlag); ok {
		return true
	}
	r.refuse(s, protocol.MessageIllegal, "TopicMessageType validate failed, the expected type is "+want+", but actual type is "+got)
	return false
}
