package broker

import (
	"time"

	"rocketd/broker/stats"
	"rocketd/broker/timer"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
)

// Behaviour: what is counted by topic and group, where the processors of 4.9.8 call BrokerStatsManager, and code 315,
// which shows it.

// sample takes what the statistics sample by the clock. Called by housekeeping, once a second.
func (b *Broker) sample() {
	now := b.clock()
	var timers timer.Standing
	if t := b.path.timer.Load(); t != nil {
		timers = t.Standing()
	}
	b.stats.tick(now, timers.Entered, timers.Delivered)
	b.traffic.Sample(now)
}

// protectPeriod is the time between two looks for slow consumers.
const protectPeriod = 3 * time.Minute

// protect forbids groups to consume that are further behind than consumerFallbehindThreshold, where that is asked for, as
// BrokerController#protectBroker. An administrator allows them again (code 200).
func (b *Broker) protect() {
	cfg := b.config()
	if !cfg.DisableConsumeIfConsumerReadSlowly {
		return
	}
	changed := false
	for group, bytes := range b.traffic.TooFarBehind(cfg.ConsumerFallbehindThreshold) {
		if b.groups.DisableConsume(group) {
			changed = true
			b.log.Warn("consumer group disabled: it is too far behind (disableConsumeIfConsumerReadSlowly)", "group", group, "bytes", bytes)
		}
	}
	if changed {
		b.groups.Saved(nil)
	}
}

// tally adds up the stored sends of a run while they are for one topic.
type tally struct {
	b                      *Broker
	topic                  string
	calls, messages, bytes int64
}

// add counts a stored send.
func (t *tally) add(s *sending) {
	m, n := &s.msg, int64(1)
	if len(s.batch) > 0 {
		m, n = &s.batch[0], int64(len(s.batch))
	}
	size := int64(s.put.Size)
	if m.Topic != t.topic {
		t.flush()
		t.topic = m.Topic
	}
	t.calls, t.messages, t.bytes = t.calls+1, t.messages+n, t.bytes+size
	if m.Topic == topics.Schedule {
		t.b.traffic.QueuePut(m.Topic, m.QueueId, n, size)
	}
}

// flush hands over what has been added up.
func (t *tally) flush() {
	if t.calls > 0 {
		t.b.traffic.Put(t.topic, t.calls, t.messages, t.bytes)
	}
	t.calls, t.messages, t.bytes = 0, 0, 0
}

// countSentBack counts a copy of a message of topic that a group has sent back.
func (b *Broker) countSentBack(group, topic string, p *store.Put) {
	if m := p.Message; m.Topic == topics.Schedule {
		b.traffic.PutBack(m.Topic, int64(p.Size))
		b.traffic.QueuePut(m.Topic, m.QueueId, 1, int64(p.Size))
	}
	b.traffic.SendBack(b.statsNames(group, topic))
}

// countDelivered counts a delayed message that has gone to its real topic.
func (b *Broker) countDelivered(level int, p *store.Put) {
	b.stats.put(1, 1, int64(p.Size), 0)
	if b.config().EnableScheduleMessageStats {
		b.traffic.Delivered(message.GroupSchedule, topics.Schedule, int32(level-1), p.Message.Topic, int64(p.Size))
	}
}

// statsData (315) tells what was counted under a name and a key in the last minute, hour and day.
func (b *Broker) statsData(c *remoting.Call, req *header.ViewBrokerStatsDataRequest) (*protocol.Command, error) {
	d, ok := b.traffic.View(req.StatsName, req.StatsKey)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "The stats <%s> <%s> not exist", req.StatsName, req.StatsKey)
	}
	return withBody(c.Success(nil), &body.BrokerStatsData{
		StatsMinute: statsItem(d.Minute), StatsHour: statsItem(d.Hour), StatsDay: statsItem(d.Day),
	})
}

func statsItem(s stats.Snapshot) body.BrokerStatsItem {
	return body.BrokerStatsItem{Sum: s.Sum, Tps: s.Tps, Avgpt: s.Avgpt}
}
