package broker

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"rocketd/broker/groups"
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
	queueId, level := rand.Int32N(group.RetryQueueNums), int(req.DelayLevel)
	if m.ReconsumeTimes >= b.retryLimit(c, group, req.MaxReconsumeTimes) || level < 0 {
		dead := topics.DLQTopic(req.Group)
		if t = create(dead, dlqQueues, 0); t == nil {
			return nil, protocol.Errorf(protocol.SystemError, "topic[%s] not exist", dead)
		}
		queueId, level = 0, 0
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
	if err := b.putOne(&p, b.clock()); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "%s", putStatus(err))
	}
	b.countSentBack(req.Group, from, &p)
	return saved.answer(c, c.Success(nil))
}

// retryLimit is how often a message may come again to a group before it is a dead letter: newer clients say so themselves.
func (b *Broker) retryLimit(c *remoting.Call, group *groups.Config, asked protocol.Optional[int32]) int32 {
	if asked.Set && c.Command().Version >= protocol.V3_4_9 {
		return asked.Value
	}
	return group.RetryMaxTimes
}

// sentBack makes the message that was read the copy to be stored: for topic and queue, waiting at a level (0: not).
func (b *Broker) sentBack(m *message.Message, topic string, queueId int32, level int) {
	text := message.SetProperty(withOrigin(m, m.Topic), message.PropertyWaitStoreMsgOK, "false")
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

// withOrigin is the properties of a message that comes again, or is a dead letter, with the topic that it was sent to and its offset
// message id. Those that it has from an earlier time stay.
func withOrigin(m *message.Message, topic string) string {
	text := m.Properties
	if _, ok := message.Property(text, message.PropertyRetryTopic); !ok {
		text = message.SetProperty(text, message.PropertyRetryTopic, topic)
	}
	if id, _ := message.Property(text, message.PropertyOriginMessageId); strings.TrimSpace(id) == "" {
		text = message.SetProperty(text, message.PropertyOriginMessageId, message.OffsetMsgId(m.StoreHost, m.PhyOffset))
	}
	return text
}
