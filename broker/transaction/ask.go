package transaction

import (
	"strconv"

	"rocketd/protocol/header"
	"rocketd/protocol/message"
)

// ask has the producer of a half message asked. The check names the copy, which the producer is to commit or roll back,
// and carries it as a message of its real topic and queue (AbstractTransactionalMessageCheckListener of 4.9.8). One
// that belongs to nobody, or nowhere, is not asked about; it is given up after as many rounds as any other.
func (c *Checks) ask(s *step) {
	m := s.msg
	group, _ := message.Property(m.Properties, message.PropertyProducerGroup)
	topic, queueId, ok := Real(m.Properties)
	if group == "" || !ok {
		c.o.Log.Warn("half message without a producer group, topic or queue", "queueOffset", s.at)
		return
	}
	id, _ := message.Property(m.Properties, message.PropertyUniqKey)
	h := &header.CheckTransactionStateRequest{
		TranStateTableOffset: s.put.QueueOffset, CommitLogOffset: s.put.PhyOffset,
		MsgId: id, TransactionId: id, OffsetMsgId: message.OffsetMsgId(m.StoreHost, s.put.PhyOffset),
	}
	m.Topic, m.QueueId, m.QueueOffset, m.PhyOffset, m.StoreTimestamp = topic, queueId, s.put.QueueOffset, s.put.PhyOffset, s.storeTime
	if message.CheckSizes(&m) != nil {
		return
	}
	body := message.AppendRecord(nil, &m)
	for c.o.Ask(group, h, body) && c.patience > 0 {
		c.patience--
		if !c.pause(askPause) {
			return
		}
	}
}

// Real is the topic and queue that the properties of a half message name; false: they name none that a message can be
// in.
func Real(properties string) (topic string, queueId int32, ok bool) {
	topic, _ = message.Property(properties, message.PropertyRealTopic)
	text, _ := message.Property(properties, message.PropertyRealQueueId)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || topic == "" || len(topic) > message.MaxTopicLength || !message.LegalName(topic) {
		return "", 0, false
	}
	return topic, int32(n), true
}
