package broker

import (
	"bytes"
	"strings"

	"rocketd/broker/groups"
	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// updateGroup (200) creates or changes a subscription group. What the body does not say is as in a new group,
// as Java's field defaults.
func (b *Broker) updateGroup(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	config := groups.DefaultConfig("")
	if string(bytes.TrimSpace(c.Command().Body)) == "[]" {
		// compat: fastjson makes no object of an empty list, and 4.9.8 answers success for doing nothing.
		return c.Success(nil), nil
	}
	if err := b.decodeBody(c, config); err != nil {
		return nil, err
	}
	if config.GroupName == "" {
		// The official table throws a NullPointerException for it.
		return nil, protocol.Errorf(protocol.SystemError, "the subscription group has no groupName")
	}
	if config.RetryQueueNums > topics.MaxQueues {
		return nil, protocol.Errorf(protocol.SystemError, "retryQueueNums must not be larger than %d", topics.MaxQueues)
	}
	if err := b.groups.Put(config); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "%v", err)
	}
	b.log.Info("subscription group updated", "group", config.GroupName, "consumeEnable", config.ConsumeEnable,
		"consumeBroadcastEnable", config.ConsumeBroadcastEnable, "retryQueueNums", config.RetryQueueNums,
		"retryMaxTimes", config.RetryMaxTimes, "client", c.Conn().RemoteAddr())
	if err := b.saved(b.groups.Saved); err != nil {
		return nil, err
	}
	return c.Success(nil), nil
}

// allGroups (201) is the whole table of groups, for slaves and exports.
func (b *Broker) allGroups(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return withBody(c.Success(nil), b.groups.Wrapper())
}

// deleteGroup (207) removes a subscription group and, when asked to, its offsets.
func (b *Broker) deleteGroup(c *remoting.Call, req *header.DeleteSubscriptionGroupRequest) (*protocol.Command, error) {
	existed := b.groups.Delete(req.GroupName)
	b.log.Info("subscription group deleted", "group", req.GroupName, "existed", existed,
		"removeOffset", req.RemoveOffset, "client", c.Conn().RemoteAddr())
	if req.RemoveOffset {
		b.offsets.RemoveGroup(req.GroupName)
		b.forgetPopped(func(k pop.Key) bool { return k.Group == req.GroupName })
	}
	b.traffic.GroupDeleted(req.GroupName)
	if err := b.saved(b.groups.Saved); err != nil {
		return nil, err
	}
	return c.Success(nil), nil
}

// allOffsets (43) is the whole table of consumer offsets, for slaves.
func (b *Broker) allOffsets(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return withBody(c.Success(nil), b.offsets.Wrapper())
}

// allDelayOffsets (45) is how far each delay level has been delivered, for slaves.
func (b *Broker) allDelayOffsets(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	data, err := b.delayOffsets()
	if err != nil {
		return nil, err
	}
	answer := c.Success(nil)
	answer.Body = data
	return answer, nil
}

// consumeStats (208) tells where a group stands in each read queue of one topic, or of all in which it has an
// offset; topics that an online group does not subscribe are left out.
func (b *Broker) consumeStats(c *remoting.Call, req *header.GetConsumeStatsRequest) (*protocol.Command, error) {
	of := []string{req.Topic}
	if strings.TrimSpace(req.Topic) == "" {
		of = b.offsets.Topics(req.ConsumerGroup)
	}
	stats := &body.ConsumeStats{OffsetTable: make(map[body.MessageQueue]body.OffsetWrapper)}
	for _, topic := range of {
		config, ok := b.topics.Lookup(topic)
		if !ok || !b.subscribes(req.ConsumerGroup, topic) {
			continue
		}
		for q := range config.ReadQueueNums {
			o := b.consumeOffset(req.ConsumerGroup, topic, q)
			if c.Command().Version >= protocol.V5_0_0_SNAPSHOT {
				// compat: tools of 5.x take ConsumerOffset from it and call the rest in flight. What a group has pulled and
				// not committed is not known here: nothing is in flight, and not less than nothing.
				o.PullOffset = &o.ConsumerOffset
			}
			stats.OffsetTable[b.messageQueue(topic, q)] = o
		}
		stats.ConsumeTps += b.traffic.GroupGetTps(b.statsNames(req.ConsumerGroup, topic))
	}
	return withBody(c.Success(nil), stats)
}

func (b *Broker) consumeOffset(group, topic string, queueId int32) body.OffsetWrapper {
	w := body.OffsetWrapper{BrokerOffset: max(0, b.store.MaxOffset(topic, queueId))}
	if offset, ok := b.offsets.Query(group, topic, queueId); ok {
		w.ConsumerOffset = offset
	}
	if w.ConsumerOffset > 0 {
		w.LastTimestamp = max(0, b.store.TimeOf(topic, queueId, w.ConsumerOffset-1))
	}
	return w
}
