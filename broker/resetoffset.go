package broker

import (
	"rocketd/broker/clients"
	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// resetOffset (222) moves an online group in one topic to where it stood at a time, timestamp -1: to the end. Each
// member is told its new offsets (220); it forgets what it holds, and commits them itself. The broker's own table is
// left alone: an online member would overwrite it, and for a group that is offline the administrator commits (15)
// what he finds.
//
// As Broker2Client#resetOffset of 4.9.8, but that a member too old for it is looked for before any member is told.
func (b *Broker) resetOffset(c *remoting.Call, req *header.ResetOffsetRequest) (*protocol.Command, error) {
	b.log.Info("reset of offsets asked for", "topic", req.Topic, "group", req.Group, "timestamp", req.Timestamp,
		"force", req.IsForce, "client", c.Conn().RemoteAddr())
	config, ok := b.topics.Lookup(req.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "[reset-offset] reset offset failed, no topic in this broker. topic=%s", req.Topic)
	}
	if b.requestMode(req.Topic, req.Group).Mode == body.ModePop {
		return b.resetPopped(c, req, config)
	}
	table := make(map[body.MessageQueue]int64, config.WriteQueueNums)
	list := make([]body.MessageQueueForC, 0, config.WriteQueueNums)
	for q := range config.WriteQueueNums {
		now, ok := b.offsets.Query(req.Group, req.Topic, q)
		if !ok {
			return nil, protocol.Errorf(protocol.SystemError, "THe consumer group <%s> not exist", req.Group)
		}
		to := b.resetTarget(req.Topic, q, req.Timestamp)
		if !req.IsForce && to >= now { // forwards only by force
			to = now
		}
		mq := b.messageQueue(req.Topic, q)
		table[mq] = to
		list = append(list, body.MessageQueueForC{Topic: mq.Topic, BrokerName: mq.BrokerName, QueueId: q, Offset: to})
	}
	var members []clients.Member
	if group := b.consumers.Group(req.Group); group != nil {
		members = group.Members()
	}
	if len(members) == 0 {
		return nil, protocol.Errorf(protocol.ConsumerNotOnline, "Consumer not online, so can not reset offset, Group: %s Topic: %s Timestamp: %d",
			req.Group, req.Topic, req.Timestamp)
	}
	for _, m := range members {
		if err := mayAskOffsets(m.Version); err != nil {
			return nil, err
		}
	}
	answer, err := withBody(c.Answer(protocol.Success, unsetRemark, nil), &body.ResetOffsetBody{OffsetTable: table})
	if err != nil {
		return nil, err
	}
	tell := protocol.NewRequest(protocol.ResetConsumerClientOffset,
		&header.ResetOffsetRequest{Topic: req.Topic, Group: req.Group, Timestamp: req.Timestamp}, answer.Body)
	if c.Command().Language == protocol.Cpp { // compat: the form goes by the administrator, whatever the members are
		if _, err := withBody(tell, &body.ResetOffsetBodyForC{OffsetTable: list}); err != nil {
			return nil, err
		}
	}
	for _, m := range members {
		if err := m.Conn.Oneway(tell); err != nil {
			b.log.Error("consumer not told of the reset", "topic", req.Topic, "group", req.Group, "clientId", m.ClientId, "err", err)
			continue
		}
		b.log.Info("consumer told of the reset", "topic", req.Topic, "group", req.Group, "clientId", m.ClientId)
	}
	return answer, nil
}

// resetPopped is resetOffset for a group that takes the topic by pop. Where such a group stands the broker alone knows, its
// members would make nothing of 220: so the broker moves it, whoever is online, as AdminBrokerProcessor#resetOffsetInner of
// 5.3.3. What is under way stays so, but a batch in order no longer keeps its queue.
func (b *Broker) resetPopped(c *remoting.Call, req *header.ResetOffsetRequest, t *topics.Config) (*protocol.Command, error) {
	table := make(map[body.MessageQueue]int64, t.ReadQueueNums)
	for queueId := range t.ReadQueueNums {
		k := pop.Key{Topic: t.TopicName, Group: req.Group, QueueId: queueId}
		if !b.path.pop.checkpoints.Room(k) {
			return nil, protocol.Errorf(protocol.SystemError, "the broker keeps no more queues that are popped")
		}
		q := b.path.pop.checkpoints.Take(k)
		to := b.resetTarget(req.Topic, queueId, req.Timestamp)
		at, ok := b.offsets.Query(req.Group, req.Topic, queueId)
		if ok && to >= at && !req.IsForce { // forwards only by force
			to = at
		}
		b.offsets.Commit(c.Conn(), req.Group, req.Topic, queueId, to)
		b.path.pop.checkpoints.Unblock(q)
		if ok && to < at {
			b.setBackPopped(q.Key, to)
		}
		q.Release()
		b.path.pop.held.Notify(q.Key)
		table[b.messageQueue(req.Topic, queueId)] = to
	}
	return withBody(c.Answer(protocol.Success, unsetRemark, nil), &body.ResetOffsetBody{OffsetTable: table})
}

// resetTarget is the offset that a queue had at a time, its end for -1.
func (b *Broker) resetTarget(topic string, queueId int32, timestamp int64) int64 {
	if timestamp == -1 {
		return max(0, b.store.MaxOffset(topic, queueId))
	}
	return max(0, b.store.OffsetByTime(topic, queueId, timestamp))
}

// mayAskOffsets refuses what a consumer of that version does not understand.
func mayAskOffsets(version int32) error {
	if version < protocol.V3_0_7_SNAPSHOT {
		return protocol.Errorf(protocol.SystemError, "the client does not support this feature. version=%s",
			protocol.OldVersionName(version))
	}
	return nil
}
