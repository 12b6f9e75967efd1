package broker

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
)

// sendBack (36) takes back a message that a consumer could not deal with: a copy waits at a delay level for the
// group's retry topic, or goes to its dead-letter topic when it has had its tries or the level is negative. The
// copy's body stays as it is, compressed or not. Its answer does not wait for the disk, but for the file of a
// topic that it has created. As SendMessageProcessor#asyncConsumerSendMsgBack of 4.9.8.
func (b *Broker) sendBack(c *remoting.Call, req *header.ConsumerSendMsgBackRequest) (answer *protocol.Command, err error) {
	if b.store.PageCacheBusy() {
		return nil, protocol.Errorf(protocol.SystemBusy, rejectRemark)
	}
	cfg := b.config()
	group := b.groups.Find(req.Group)
	if group == nil {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "%s", "subscription group not exist, "+req.Group+" "+faqSuffix)
	}
	if !topics.Writeable(cfg.BrokerPermission) {
		return nil, protocol.Errorf(protocol.NoPermission, "the broker[%s] sending message is forbidden", cfg.BrokerIP1)
	}
	if group.RetryQueueNums <= 0 {
		return c.Success(nil), nil
	}
	var sysFlag int32
	if req.UnitMode {
		sysFlag = topics.FlagUnitSub
	}
	var saved waits
	defer func() {
		if err != nil {
			saved.unheard()
		}
	}()
	create := func(topic string, queues, sysFlag int32) *topics.Config {
		t, created := b.topics.CreateBySendBack(topic, queues, topics.PermRead|topics.PermWrite, sysFlag)
		if created {
			saved.add(b.topics.Saved)
		}
		return t
	}
	retry := topics.RetryTopic(req.Group)
	t := create(retry, group.RetryQueueNums, sysFlag)
	if t == nil {
		return nil, protocol.Errorf(protocol.SystemError, "topic[%s] not exist", retry)
	}
	if !topics.Writeable(t.Perm) {
		return nil, protocol.Errorf(protocol.NoPermission, "the topic[%s] sending message is forbidden", retry)
	}
	m, err := b.store.Message(req.Offset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "look message by offset failed, %d", req.Offset)
	}
	if err := b.mayRead(c, &m); err != nil {
		return nil, err
	}
	limit := group.RetryMaxTimes
	if req.MaxReconsumeTimes.Set && c.Command().Version >= version349 {
		limit = req.MaxReconsumeTimes.Value
	}
	level := int(req.DelayLevel)
	queueId := rand.Int32N(group.RetryQueueNums)
	if m.ReconsumeTimes >= limit || level < 0 {
		dead := topics.DLQTopic(req.Group)
		if t = create(dead, dlqQueues, 0); t == nil {
			return nil, protocol.Errorf(protocol.SystemError, "topic[%s] not exist", dead)
		}
		level, queueId = 0, 0
	} else if level == 0 {
		level = 3 + int(m.ReconsumeTimes)
	}
	from := m.Topic
	if v, ok := message.Property(m.Properties, message.PropertyRetryTopic); ok {
		from = strings.Clone(v)
	}
	b.sentBack(&m, t.TopicName, queueId, level)
	if len(t.TopicName) > message.MaxTopicLength || len(m.Properties) > message.MaxPropertiesLength {
		return nil, protocol.Errorf(protocol.SystemError, "MESSAGE_ILLEGAL")
	}
	p := store.Put{Message: &m}
	start := b.clock()
	b.store.Put([]*store.Put{&p})
	if p.Err != nil {
		b.stats.putFailed.Add(1)
		return nil, protocol.Errorf(protocol.SystemError, "%s", putStatus(p.Err))
	}
	b.stats.put(1, 1, int64(p.Size), b.clock().Sub(start))
	b.countSentBack(req.Group, from, &p)
	return saved.answer(c, c.Success(nil))
}

// sentBack makes the message that was read the copy to be stored: for topic and queue, waiting at a level (0: not).
func (b *Broker) sentBack(m *message.Message, topic string, queueId int32, level int) {
	text := m.Properties
	if _, ok := message.Property(text, message.PropertyRetryTopic); !ok {
		text = message.SetProperty(text, message.PropertyRetryTopic, m.Topic)
	}
	if id, _ := message.Property(text, message.PropertyOriginMessageId); strings.TrimSpace(id) == "" {
		text = message.SetProperty(text, message.PropertyOriginMessageId, message.OffsetMsgId(m.StoreHost, m.PhyOffset))
	}
	text = message.SetProperty(text, message.PropertyWaitStoreMsgOK, "false")
	m.Topic, m.QueueId = topic, queueId
	m.ReconsumeTimes++
	m.PreparedTransactionOffset, m.QueueOffset, m.PhyOffset = 0, 0, 0
	level = min(level, b.path.levels.Max())
	text = message.SetProperty(text, message.PropertyDelayTimeLevel, strconv.Itoa(level))
	if level > 0 && message.Queued(m.SysFlag) {
		text = message.SetProperty(text, message.PropertyRealTopic, m.Topic)
		text = message.SetProperty(text, message.PropertyRealQueueId, fmt.Sprint(m.QueueId))
		m.Topic, m.QueueId = topics.Schedule, int32(level-1)
	}
	m.Properties = text
}
