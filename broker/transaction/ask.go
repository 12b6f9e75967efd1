package transaction

import (
	"rocketd/protocol/header"
	"rocketd/protocol/message"
)

// ask has the producer of a half message asked. The check names the copy, which the producer is to commit or roll back,
// and carries it as a message of its real topic and queue (AbstractTransactionalMessageCheckListener of 4.9.8). One
// that belongs to nobody, or nowhere, is not asked about; it is given up after as many rounds as any other.
func (c *Checks) ask(s *step) {
	m := s.msg
	group, _ := message.Property(m.Properties, message.PropertyProducerGroup)
	topic, queueId, ok := message.RealPlace(m.Properties)
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
