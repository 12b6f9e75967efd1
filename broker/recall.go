package broker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
)

// recallTag is the tag of a message that recalls another (RecallMessageProcessor of 5.3.3).
const recallTag = "_RECALL_TAG_"

// recall (370) takes a timer message back before it is due, as RecallMessageProcessor of 5.3.3: its checks in its order with
// its remarks. A message that names the other one waits beside it, and neither is delivered. Success is answered whether
// or not there is such a message.
func (b *Broker) recall(c *remoting.Call, req *header.RecallMessageRequest) (*protocol.Command, error) {
	refuse := func(code protocol.ResponseCode, format string, args ...any) (*protocol.Command, error) {
		return b.recallAnswer(c.Answer(code, fmt.Sprintf(format, args...), nil)), nil
	}
	const unavailable = "recall failed, broker service not available"
	cfg, now := b.config(), b.clock()
	switch {
	case b.path.timer.Load() == nil: // as 4.9.8
		return unsupported(c), nil
	case !cfg.RecallMessageEnable:
		return refuse(protocol.NoPermission, "recall failed, operation is forbidden")
	case cfg.BrokerRole == store.Slave:
		return refuse(protocol.SlaveNotAvailable, unavailable)
	case now.UnixMilli() < cfg.StartAcceptSendRequestTimeStamp:
		return refuse(protocol.ServiceNotAvailable, unavailable)
	}
	topic, ok := b.topics.Lookup(req.Topic)
	if !ok {
		return refuse(protocol.TopicNotExist, "recall failed, the topic[%s] not exist", req.Topic)
	}
	h, ok := message.ParseRecallHandle(req.RecallHandle)
	switch {
	case !ok || strings.ContainsAny(h.UniqKey+req.ProducerGroup, "\x01\x02"): // they would be further properties
		return refuse(protocol.IllegalOperation, "recall handle is invalid")
	case h.Topic != req.Topic:
		return refuse(protocol.IllegalOperation, "recall failed, topic not match")
	case h.BrokerName != cfg.BrokerName:
		return refuse(protocol.IllegalOperation, unavailable)
	}
	at, err := strconv.ParseInt(h.Timestamp, 10, 64)
	if left := at - now.UnixMilli(); err != nil || at < 0 || left <= 0 || left > cfg.timerMaxDelay() {
		return refuse(protocol.IllegalOperation, "recall failed, timestamp invalid")
	}
	m := b.recallMessage(c, req, h, topic.TopicName, at, now)
	if len(m.Properties) > message.MaxPropertiesLength-timerRoom {
		return refuse(protocol.SystemError, "recall failed, execute error")
	}
	b.ownTimerTopic()
	p := store.Put{Message: m}
	if b.putOne(&p, now) != nil {
		return refuse(protocol.SystemError, "recall failed, execute error")
	}
	a := b.recallAnswer(c.Answer(protocol.Success, unsetRemark, &header.RecallMessageResponse{MsgId: h.UniqKey}))
	if !b.store.SyncFlush() {
		return a, nil
	}
	b.store.WaitFlushed(p.End, compat.Millis(cfg.SyncFlushTimeout), func(error) { c.Reply(a) })
	return nil, nil
}

// recallAnswer is an answer with the region, which all of them have.
func (b *Broker) recallAnswer(a *protocol.Command) *protocol.Command {
	a.Fields = []protocol.Field{{Key: message.PropertyMsgRegion, Value: b.config().RegionId}}
	return a
}

// recallMessage is the message that recalls another one: due when that is.
func (b *Broker) recallMessage(c *remoting.Call, req *header.RecallMessageRequest, h message.RecallHandle, topic string, at int64, now time.Time) *message.Message {
	born := strconv.FormatInt(now.UnixMilli(), 10)
	var text []byte
	for _, p := range [][2]string{
		{message.PropertyTags, recallTag},
		{message.PropertyTimerDelUniqKey, message.RecallKey(topic, h.UniqKey)},
		{message.PropertyUniqKey, h.UniqKey},
		{message.PropertyTimerDeliverMs, h.Timestamp},
		{message.PropertyBornTimestamp, born},
		{message.PropertyProducerGroup, req.ProducerGroup},
	} {
		if p[1] != "" {
			text = message.AppendProperty(text, p[0], p[1])
		}
	}
	m := &message.Message{Topic: topic, Body: []byte("0"), BornTimestamp: now.UnixMilli(), BornHost: c.Conn().RemoteAddr(), StoreHost: b.storeHost()}
	m.Properties = string(appendTimerText(nil, m, string(text), b.config().BrokerClusterName, at-1)) // the handle has a ms more
	m.Topic = topics.Timer
	return m
}
