package broker

import (
	"rocketd/broker/pop"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// queryConsumerOffset (14) tells where a group stands in a queue. A group that is new starts at 0 where the queue
// is young: it starts at 0 and its first message is not "on disk"; else the client decides. As
// ConsumerManageProcessor of 4.9.8.
func (b *Broker) queryConsumerOffset(c *remoting.Call, req *header.QueryConsumerOffsetRequest) (*protocol.Command, error) {
	if offset, ok := b.offsets.Query(req.ConsumerGroup, req.Topic, req.QueueId); ok && offset >= 0 {
		return c.Success(&header.QueryConsumerOffsetResponse{Offset: offset}), nil
	}
	if b.store.MinOffset(req.Topic, req.QueueId) <= 0 && !b.store.OnDisk(req.Topic, req.QueueId, 0) {
		return c.Success(&header.QueryConsumerOffsetResponse{}), nil
	}
	return c.Answer(protocol.QueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", &header.Empty{}), nil
}

// updateConsumerOffset (15) notes where a group stands, whatever it says. Without group or topic, as an old
// client may be tricked into sending, it answers the same and notes nothing.
func (b *Broker) updateConsumerOffset(c *remoting.Call, req *header.UpdateConsumerOffsetRequest) (*protocol.Command, error) {
	at, ok := b.offsets.Query(req.ConsumerGroup, req.Topic, req.QueueId)
	if !b.offsets.Take(c.Conn(), req.ConsumerGroup, req.Topic, req.QueueId, req.CommitOffset) {
		return nil, protocol.Errorf(protocol.SystemError, "the offset is not kept: maxConsumerOffsets allows no more, or a name is too long")
	}
	if ok && req.CommitOffset < at {
		b.setBackPopped(pop.Key{Topic: req.Topic, Group: req.ConsumerGroup, QueueId: req.QueueId}, req.CommitOffset)
	}
	return c.Success(&header.Empty{}), nil
}

// searchOffset (29) finds the offset of the first message at or behind a time.
func (b *Broker) searchOffset(c *remoting.Call, req *header.SearchOffsetRequest) (*protocol.Command, error) {
	return c.Success(&header.SearchOffsetResponse{Offset: b.store.OffsetByTime(req.Topic, req.QueueId, req.Timestamp)}), nil
}

// maxOffset (30) is the offset that a queue's next message gets; 0 for a queue that does not exist.
func (b *Broker) maxOffset(c *remoting.Call, req *header.GetMaxOffsetRequest) (*protocol.Command, error) {
	return c.Success(&header.GetMaxOffsetResponse{Offset: b.store.MaxOffset(req.Topic, req.QueueId)}), nil
}

// minOffset (31) is the offset of a queue's first message; 0 for a queue that does not exist.
func (b *Broker) minOffset(c *remoting.Call, req *header.GetMinOffsetRequest) (*protocol.Command, error) {
	return c.Success(&header.GetMinOffsetResponse{Offset: b.store.MinOffset(req.Topic, req.QueueId)}), nil
}

// earliestTime (32) is the store time of a queue's first message; -1 when it has none.
func (b *Broker) earliestTime(c *remoting.Call, req *header.GetEarliestMsgStoretimeRequest) (*protocol.Command, error) {
	return c.Success(&header.GetEarliestMsgStoretimeResponse{Timestamp: b.store.EarliestTime(req.Topic, req.QueueId)}), nil
}
