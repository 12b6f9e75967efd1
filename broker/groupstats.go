package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rocketd/broker/pop"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// subscribes tells whether a topic in which a group has an offset counts as one of its: it does unless the group is
// online and subscribes others only.
func (b *Broker) subscribes(group, topic string) bool {
	g := b.consumers.Group(group)
	if g == nil {
		return true
	}
	_, ok := g.Subscription(topic)
	return ok || len(g.Subscriptions()) == 0
}

// maxStatsQueues is how many queues an answer is made for; each takes more than 110 bytes of a frame of 16 MiB.
const maxStatsQueues = 150_000

// brokerConsumeStats (317) tells where every group stands in the write queues of its topics; isOrder: in those of
// ordered topics only. As AdminBrokerProcessor#fetchAllConsumeStatsInBroker of 4.9.8: each group has a place, also
// without topics.
func (b *Broker) brokerConsumeStats(c *remoting.Call, req *header.GetConsumeStatsInBroker) (*protocol.Command, error) {
	all := &body.ConsumeStatsList{BrokerAddr: b.Addr(), ConsumeStatsList: []map[string][]body.ConsumeStats{}}
	topicsOf, queues := b.offsets.ByGroup(), 0
	for _, group := range slices.Sorted(maps.Keys(b.groups.Wrapper().SubscriptionGroupTable)) {
		list := []body.ConsumeStats{}
		for _, topic := range topicsOf[group] {
			config, ok := b.topics.Lookup(topic)
			if !ok || req.IsOrder && !config.Order || !b.subscribes(group, topic) {
				continue
			}
			stats := body.ConsumeStats{OffsetTable: make(map[body.MessageQueue]body.OffsetWrapper, config.WriteQueueNums)}
			for q := range config.WriteQueueNums {
				o := b.consumeOffset(group, topic, q)
				stats.OffsetTable[b.messageQueue(topic, q)] = o
				all.TotalDiff += o.BrokerOffset - o.ConsumerOffset
			}
			if queues += int(config.WriteQueueNums); queues > maxStatsQueues {
				return nil, protocol.Errorf(protocol.SystemError, "the groups stand in more than %d queues, and no frame holds the answer: ask for one group at a time", maxStatsQueues)
			}
			stats.ConsumeTps = b.traffic.GroupGetTps(b.statsNames(group, topic))
			list = append(list, stats)
		}
		all.ConsumeStatsList = append(all.ConsumeStatsList, map[string][]body.ConsumeStats{group: list})
	}
	return withBody(c.Success(nil), all)
}

// consumeTimeSpan (303) tells for each write queue of a topic when its first and last message were stored, when the
// last one was that a group has consumed, and how long the next one waits. As AdminBrokerProcessor#queryConsumeTimeSpan
// of 4.9.8, with its -1 for a message that is not there.
func (b *Broker) consumeTimeSpan(c *remoting.Call, req *header.QueryConsumeTimeSpanRequest) (*protocol.Command, error) {
	config, ok := b.topics.Lookup(req.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic[%s] not exist", req.Topic)
	}
	spans := make([]body.QueueTimeSpan, 0, config.WriteQueueNums)
	for q := range config.WriteQueueNums {
		end := b.store.MaxOffset(req.Topic, q)
		s := body.QueueTimeSpan{
			MessageQueue: b.messageQueue(req.Topic, q),
			MinTimeStamp: b.store.EarliestTime(req.Topic, q),
			MaxTimeStamp: b.store.TimeOf(req.Topic, q, end-1),
		}
		at, _ := b.offsets.Query(req.Group, req.Topic, q)
		if s.ConsumeTimeStamp = s.MinTimeStamp; at > 0 {
			s.ConsumeTimeStamp = b.store.TimeOf(req.Topic, q, at-1)
		}
		if at < end {
			s.DelayTime = b.clock().UnixMilli() - b.store.TimeOf(req.Topic, q, at)
		}
		s.MinTimeStampStr, s.MaxTimeStampStr = timeText(s.MinTimeStamp), timeText(s.MaxTimeStamp)
		s.ConsumeTimeStampStr = timeText(s.ConsumeTimeStamp)
		spans = append(spans, s)
	}
	return withBody(c.Success(nil), &body.QueryConsumeTimeSpanBody{ConsumeTimeSpanSet: spans})
}

// timeText is a time in UtilAll's YYYY_MM_DD_HH_MM_SS_SSS, of the server's time zone.
func timeText(millis int64) string {
	t := time.UnixMilli(millis)
	return fmt.Sprintf("%s:%03d", t.Format("2006-01-02#15:04:05"), t.Nanosecond()/int(time.Millisecond))
}

// correctionOffset (308) is the smallest offset that any group but some has in each queue of a topic, among those that
// the queue still has.
//
// compat: 4.9.8 looks the offsets of compareGroup up with topic and group exchanged and so never finds any; they have
// no effect here either. There the groups to leave out lose their offsets for good.
func (b *Broker) correctionOffset(c *remoting.Call, req *header.QueryCorrectionOffset) (*protocol.Command, error) {
	without := map[string]bool{}
	if strings.TrimSpace(req.FilterGroups) != "" {
		for group := range strings.SplitSeq(req.FilterGroups, ",") {
			without[group] = true
		}
	}
	least := map[int32]int64{}
	for _, group := range b.offsets.Groups(req.Topic) {
		if without[group] {
			continue
		}
		for q, offset := range b.offsets.Offsets(group, req.Topic) {
			if offset < b.store.MinOffset(req.Topic, q) {
				continue
			}
			if old, ok := least[q]; !ok || offset < old {
				least[q] = offset
			}
		}
	}
	return withBody(c.Success(nil), &body.QueryCorrectionOffsetBody{CorrectionOffsets: least})
}

// cloneGroupOffset (314) gives one group the offsets of another, in one topic or, without a name, in all; topics that
// the other does not subscribe while it is online are left out unless offline is set. 4.9.8 answers success without a
// topic too, and does nothing.
func (b *Broker) cloneGroupOffset(c *remoting.Call, req *header.CloneGroupOffsetRequest) (*protocol.Command, error) {
	of := []string{req.Topic}
	if strings.TrimSpace(req.Topic) == "" {
		of = b.offsets.Topics(req.SrcGroup)
	}
	for _, topic := range of {
		if _, ok := b.topics.Lookup(topic); !ok || !req.Offline && !b.subscribes(req.SrcGroup, topic) {
			b.log.Warn("consumer offsets not cloned", "srcGroup", req.SrcGroup, "topic", topic, "topicExists", ok)
			continue
		}
		before := b.offsets.Offsets(req.DestGroup, topic)
		b.offsets.Clone(req.SrcGroup, req.DestGroup, topic)
		for queueId, at := range b.offsets.Offsets(req.DestGroup, topic) {
			if at < before[queueId] {
				b.setBackPopped(pop.Key{Topic: topic, Group: req.DestGroup, QueueId: queueId}, at)
			}
		}
		b.log.Info("consumer offsets cloned", "srcGroup", req.SrcGroup, "destGroup", req.DestGroup, "topic", topic,
			"client", c.Conn().RemoteAddr())
	}
	return c.Success(nil), nil
}
