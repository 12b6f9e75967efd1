package broker

import (
	"time"

	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// namesrvPatience is how long an administrator's answer waits for name servers to learn of a topic. mqadmin
// gives up after 5 s.
const namesrvPatience = 3 * time.Second

// unsetRemark is the remark that the official broker leaves in some successful answers.
const unsetRemark = "not set any response code"

// checkTopicName answers illegal names and the server's own topics.
func (b *Broker) checkTopicName(topic string) error {
	if err := topics.Validate(topic); err != nil {
		return protocol.Errorf(protocol.SystemError, "%s", err)
	}
	if b.topics.IsSystem(topic) {
		return protocol.Errorf(protocol.SystemError, "The topic[%s] is conflict with system topic.", topic)
	}
	return nil
}

// updateTopic (17) creates or changes a topic. The answer waits for the file and for the name servers, so the
// administrator's next look at the route shows it. As AdminBrokerProcessor#updateAndCreateTopic of 4.9.8: the
// order flag of the request is ignored, and the answer bears a remark though it is a success.
func (b *Broker) updateTopic(c *remoting.Call, req *header.CreateTopicRequest) (*protocol.Command, error) {
	if err := b.checkTopicName(req.Topic); err != nil {
		return nil, err
	}
	if req.Missing != "" { // an exception in 4.9.8
		return nil, &protocol.FieldError{Key: string(req.Missing)}
	}
	switch req.TopicFilterType {
	case topics.SingleTag, topics.MultiTag:
	default:
		return nil, protocol.Errorf(protocol.SystemError, "topicFilterType = [%s] value invalid", req.TopicFilterType)
	}
	for _, n := range []int32{req.ReadQueueNums, req.WriteQueueNums} {
		if n < 0 || n > topics.MaxQueues {
			return nil, protocol.Errorf(protocol.SystemError,
				"readQueueNums and writeQueueNums must be between 0 and %d", topics.MaxQueues)
		}
	}
	config := &topics.Config{
		TopicName: req.Topic, ReadQueueNums: req.ReadQueueNums, WriteQueueNums: req.WriteQueueNums,
		Perm: req.Perm, TopicFilterType: req.TopicFilterType, TopicSysFlag: req.TopicSysFlag.Value,
	}
	if err := b.topics.Alter(config, req.Attributes); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "%v", err)
	}
	b.log.Info("topic updated", "topic", config.TopicName, "readQueueNums", config.ReadQueueNums,
		"writeQueueNums", config.WriteQueueNums, "perm", config.Perm, "client", c.Conn().RemoteAddr())
	// Nobody waits here: with many requests at once, all of them share a write of the file and a registration.
	b.topics.Saved(func(err error) {
		if err != nil {
			c.ReplyError(unsaved(err))
			return
		}
		b.registrar.told(namesrvPatience, func() { c.Reply(c.Answer(protocol.Success, unsetRemark, nil)) })
	})
	return nil, nil
}

// saved waits for a table's file. Only in the admin lane, or on a goroutine of the broker's own.
func (b *Broker) saved(by func(done func(error))) error {
	done := make(chan error, 1)
	by(func(err error) { done <- err })
	if err := <-done; err != nil {
		return unsaved(err)
	}
	return nil
}

// unsaved is the answer to a change that is not in its file.
func unsaved(err error) error {
	return protocol.Errorf(protocol.SystemError, "the change could not be stored: %v", err)
}

// deleteTopic (215) removes a topic and its queues. Name servers are told by the administrator (216).
func (b *Broker) deleteTopic(c *remoting.Call, req *header.DeleteTopicRequest) (*protocol.Command, error) {
	if err := b.checkTopicName(req.Topic); err != nil {
		return nil, err
	}
	if isLmq(req.Topic) {
		b.forgetPopped(func(k pop.Key) bool { return k.Topic == req.Topic })
		if err := b.store.DeleteLmq(req.Topic); err != nil {
			return nil, protocol.Errorf(protocol.SystemError, "the topic's queue could not be removed: %v", err)
		}
		b.traffic.TopicDeleted(req.Topic)
		return c.Success(nil), nil
	}
	if !b.topics.Delete(req.Topic) {
		b.log.Warn("topic to delete does not exist", "topic", req.Topic, "client", c.Conn().RemoteAddr())
	} else {
		b.log.Info("topic deleted", "topic", req.Topic, "client", c.Conn().RemoteAddr())
	}
	gone := map[string]bool{req.Topic: true}
	b.traffic.TopicDeleted(req.Topic)
	for _, group := range b.offsets.Groups(req.Topic) { // as 5.3.3: what was to come again does not, to a new topic of that name
		if retry := pop.RetryTopic(group, req.Topic); b.topics.Delete(retry) {
			gone[retry] = true
			b.traffic.TopicDeleted(retry)
			b.log.Info("retry topic deleted", "topic", retry, "client", c.Conn().RemoteAddr())
		}
	}
	b.forgetPopped(func(k pop.Key) bool { return gone[k.Topic] })
	if err := b.saved(b.topics.Saved); err != nil {
		return nil, err
	}
	// compat: 4.9.8 destroys the queues of every topic that is not in its table, not only of this one.
	if err := b.store.DeleteTopics(b.topicExists); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the topic's queues could not be removed: %v", err)
	}
	return c.Success(nil), nil
}

// topicExists tells which topics keep their queues; those of others may be removed. The queue of half messages'
// outcomes has no topic of its own.
func (b *Broker) topicExists(topic string) bool {
	if topic == topics.Schedule || topic == topics.Timer || topic == topics.TransHalf || topic == topics.TransOpHalf {
		return true
	}
	_, ok := b.topics.Lookup(topic)
	return ok
}

// allTopics (21) is the whole table of topics, for slaves and exports.
func (b *Broker) allTopics(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return withBody(c.Success(&header.Empty{}), b.topics.Wrapper())
}

// topicConfig (351) is the configuration of one topic. Administrators of 5.x ask every broker for it; 4.9.8 refuses
// the code. The answer is that of a 5.3.3 broker.
func (b *Broker) topicConfig(c *remoting.Call, req *header.GetTopicConfigRequest) (*protocol.Command, error) {
	t, ok := b.topics.Lookup(req.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "No topic in this broker. topic: %s", req.Topic)
	}
	attributes := t.Attributes
	if attributes == nil {
		attributes = map[string]string{}
	}
	return withBody(c.Success(nil), &body.TopicConfigAndQueueMapping{
		Attributes: attributes, Order: t.Order, Perm: t.Perm, ReadQueueNums: t.ReadQueueNums,
		TopicFilterType: t.TopicFilterType, TopicName: t.TopicName, TopicSysFlag: t.TopicSysFlag, WriteQueueNums: t.WriteQueueNums,
	})
}

// systemTopics (305) names the server's own topics.
func (b *Broker) systemTopics(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return withBody(c.Success(nil), &body.TopicList{TopicList: b.topics.System()})
}

// topicStats (202) tells the bounds of each write queue of a topic.
func (b *Broker) topicStats(c *remoting.Call, req *header.GetTopicStatsInfoRequest) (*protocol.Command, error) {
	config, ok := b.topics.Lookup(req.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic[%s] not exist", req.Topic)
	}
	stats := &body.TopicStatsTable{OffsetTable: make(map[body.MessageQueue]body.TopicOffset, config.WriteQueueNums)}
	for q := range config.WriteQueueNums {
		o := body.TopicOffset{
			MinOffset: max(0, b.store.MinOffset(req.Topic, q)),
			MaxOffset: max(0, b.store.MaxOffset(req.Topic, q)),
		}
		if o.MaxOffset > 0 {
			o.LastUpdateTimestamp = b.store.TimeOf(req.Topic, q, o.MaxOffset-1)
		}
		stats.OffsetTable[b.messageQueue(req.Topic, q)] = o
	}
	return withBody(c.Success(nil), stats)
}

func (b *Broker) messageQueue(topic string, queueId int32) body.MessageQueue {
	return body.MessageQueue{Topic: topic, BrokerName: b.config().BrokerName, QueueId: queueId}
}

// topicConsumers (300) names the groups that subscribe a topic now or have an offset in it.
func (b *Broker) topicConsumers(c *remoting.Call, req *header.QueryTopicConsumeByWhoRequest) (*protocol.Command, error) {
	groups := b.consumers.Subscribers(req.Topic)
	seen := make(map[string]bool, len(groups))
	for _, g := range groups {
		seen[g] = true
	}
	for _, g := range b.offsets.Groups(req.Topic) {
		if !seen[g] {
			groups = append(groups, g)
		}
	}
	if groups == nil {
		groups = []string{}
	}
	return withBody(c.Success(nil), &body.GroupList{GroupList: groups})
}
