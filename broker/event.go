package broker

import (
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store"
)

// offsetMoved stores a message about a pull whose offset was corrected, in OFFSET_MOVED_EVENT, for tools that
// watch it. As PullMessageProcessor#generateOffsetMovedEvent of 4.9.8; nobody waits for it.
func (b *Broker) offsetMoved(req *header.PullMessageRequest, to int64) {
	cfg := b.config()
	data, err := compat.Marshal(&body.OffsetMovedEvent{
		ConsumerGroup: req.ConsumerGroup,
		MessageQueue:  body.MessageQueue{Topic: req.Topic, BrokerName: cfg.BrokerName, QueueId: req.QueueId},
		OffsetRequest: req.QueueOffset,
		OffsetNew:     to,
	})
	if err != nil {
		b.log.Error("offset-moved event not written", "err", err)
		return
	}
	host := b.storeHost()
	text := message.AppendProperty(nil, message.PropertyTags, req.ConsumerGroup)
	text = message.AppendProperty(text, message.PropertyDelayTimeLevel, "0")
	text = message.AppendProperty(text, message.PropertyKeys, req.ConsumerGroup)
	if len(text) > message.MaxPropertiesLength {
		return
	}
	m := message.Message{Topic: topics.OffsetMovedEvent, BornTimestamp: b.clock().UnixMilli(), BornHost: host, StoreHost: host,
		Body: data, Properties: string(text)}
	p := store.Put{Message: &m}
	b.store.Put([]*store.Put{&p})
	if p.Err != nil {
		b.log.Warn("offset-moved event not stored", "err", p.Err)
	}
}
