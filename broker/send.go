package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
)

// Behaviour: SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE, as SendMessageProcessor of 4.9.8: its checks
// in its order with its remarks. All sends of a connection that came together are appended with one call, in
// their order; each is answered when its conditions are met: stored; with sync flush and WAIT durable; and the
// topic that it has just created in topics.json.
//
// A half message, one with TRAN_MSG=true, is stored where no consumer sees it (broker/transaction, endtransaction.go).

// rejectRemark is the official remark of a broker whose append lock is held too long.
const rejectRemark = "[REJECTREQUEST]system busy, start flow control for a while"

// send serves neighbouring sends of one connection.
func (b *Broker) send(calls []*remoting.Call, reqs []*header.SendMessageRequest) {
	if b.store.PageCacheBusy() {
		for _, c := range calls {
			c.ReplyError(protocol.Errorf(protocol.SystemBusy, rejectRemark))
		}
		return
	}
	r := sendRuns.Get().(*sendRun)
	r.b, r.env = b, b.sendEnv()
	start := b.clock()
	for i, c := range calls {
		s := r.next(c, reqs[i])
		if b.prepareSend(r, s, start) {
			r.puts, r.owed = append(r.puts, &s.put), append(r.owed, s)
		}
	}
	if len(r.puts) > 0 {
		b.store.Put(r.puts)
	}
	r.answer(start)
}

// refuse answers a send with an error: no header, but region and trace switch, as every answer of the handler.
func (r *sendRun) refuse(s *sending, code protocol.ResponseCode, remark string) {
	a := s.call.Answer(code, remark, nil)
	a.Fields = r.env.fields
	s.call.Reply(a)
}

// prepareSend checks a send and makes its Put; false: it has been answered.
func (b *Broker) prepareSend(r *sendRun, s *sending, now time.Time) bool {
	topic := b.admit(r, s, now)
	if topic == nil || r.env.cfg.EnableTopicMessageTypeCheck && !b.checkType(r, s, topic) {
		return false
	}
	if s.req.Batch {
		return b.prepareBatch(r, s, topic)
	}
	return b.prepareSingle(r, s, topic, now)
}

// admit makes the checks that sends and replies have alike, and chooses the queue; nil: the send has been answered.
func (b *Broker) admit(r *sendRun, s *sending, now time.Time) *topics.Config {
	if from := r.env.cfg.StartAcceptSendRequestTimeStamp; now.UnixMilli() < from {
		at := time.UnixMilli(from)
		r.refuse(s, protocol.SystemError, fmt.Sprintf("broker unable to service, until %s,%03d",
			at.Format("2006-01-02 15:04:05"), at.Nanosecond()/1_000_000))
		return nil
	}
	if err := b.mayDispatch(r.env.cfg, s.call, s.req.Properties); err != nil {
		s.call.ReplyError(err)
		return nil
	}
	topic := b.checkSend(r, s)
	if topic == nil {
		return nil
	}
	if s.req.Missing != "" { // an exception in 4.9.8
		s.call.ReplyError(&protocol.FieldError{Key: string(s.req.Missing)})
		return nil
	}
	s.queueId = s.req.QueueId
	if s.queueId < 0 {
		if topic.WriteQueueNums <= 0 { // 4.9.8 divides by it
			s.call.ReplyError(protocol.Errorf(protocol.SystemError, "topic[%s] has no write queues", topic.TopicName))
			return nil
		}
		s.queueId = rand.Int32N(topic.WriteQueueNums)
	}
	return topic
}

// checkSend is AbstractSendMessageProcessor#msgCheck of 4.9.8; nil: the send has been answered.
func (b *Broker) checkSend(r *sendRun, s *sending) *topics.Config {
	req, cfg := s.req, r.env.cfg
	topic, ok := b.topics.Lookup(req.Topic)
	if !topics.Writeable(cfg.BrokerPermission) && ok && topic.Order {
		r.refuse(s, protocol.NoPermission, "the broker["+cfg.BrokerIP1+"] sending message is forbidden")
		return nil
	}
	if !ok || !topics.IsLegal(req.Topic) { // what the table has is otherwise valid
		if err := topics.Validate(req.Topic); err != nil {
			r.refuse(s, protocol.SystemError, err.Error())
			return nil
		}
	}
	if topics.SendForbidden(req.Topic) {
		r.refuse(s, protocol.NoPermission, "Sending message to topic["+req.Topic+"] is forbidden.")
		return nil
	}
	if !ok {
		if req.DefaultTopic == "" && !namesDefaultTopic(s.call.Command()) { // an exception in 4.9.8; an empty one is none
			s.call.ReplyError(&protocol.FieldError{Key: "defaultTopic"})
			return nil
		}
		if topic = b.createTopic(r, s); topic == nil {
			r.refuse(s, protocol.TopicNotExist, "topic["+req.Topic+"] not exist, apply first please!"+faqSuffix)
			return nil
		}
	}
	if b.topics.Unsaved(topic.TopicName) { // by this send, or by one that still waits or has failed
		s.created, r.created = true, true
	}
	if req.QueueId >= max(topic.WriteQueueNums, topic.ReadQueueNums) {
		r.refuse(s, protocol.SystemError, fmt.Sprintf("request queueId[%d] is illegal, %s Producer: %s",
			req.QueueId, topicText(topic), s.call.Conn().RemoteAddr()))
		return nil
	}
	return topic
}

// namesDefaultTopic tells whether a send has the field at all, in either spelling.
func namesDefaultTopic(cmd *protocol.Command) bool {
	_, short := cmd.Field("c")
	_, long := cmd.Field("defaultTopic")
	return short || long
}

// createTopic makes the topic of a send that does not exist; nil when it may not be made.
func (b *Broker) createTopic(r *sendRun, s *sending) *topics.Config {
	req, retry := s.req, topics.IsRetry(s.req.Topic)
	var sysFlag int32
	if req.UnitMode {
		sysFlag = topics.FlagUnit
		if retry {
			sysFlag = topics.FlagUnitSub
		}
	}
	name := strings.Clone(req.Topic) // the table keeps it; the request's would keep its whole header
	c, created := b.topics.CreateBySend(name, req.DefaultTopic, req.DefaultTopicQueueNums, sysFlag)
	if c == nil && retry {
		c, created = b.topics.CreateBySendBack(name, 1, topics.PermRead|topics.PermWrite, sysFlag)
	}
	s.created, r.created = s.created || created, r.created || created
	return c
}

// prepareSingle makes the Put of a single message.
func (b *Broker) prepareSingle(r *sendRun, s *sending, topic *topics.Config, now time.Time) bool {
	req := s.req
	m := &s.msg
	m.Topic, m.QueueId = topic.TopicName, s.queueId
	if topics.IsRetry(m.Topic) && !b.deadLetter(r, s, &topic) {
		return false
	}
	if len(m.Topic) > message.MaxTopicLength { // a group's retry topic; here, before the message is put off by a delay
		r.refuse(s, protocol.MessageIllegal, illegalRemark(r.env.cfg))
		return false
	}
	b.fillMessage(s, m, topic)
	m.Body = s.call.Command().Body

	at := len(r.text)
	var t sendText
	r.text, t = appendSendText(r.text, req.Properties, r.env.cfg.BrokerClusterName, true)
	half := t.transaction()
	if half && r.env.cfg.RejectTransactionMessage {
		r.refuse(s, protocol.NoPermission, "the broker["+r.env.cfg.BrokerIP1+"] sending transaction message is forbidden")
		return false
	}
	level := 0
	if half || message.Queued(req.SysFlag) { // others are stored as they are
		var ok bool
		if level, ok = b.delayLevel(s, t); !ok {
			return false
		}
	}
	switch {
	case half:
		if t.timer.set() && level <= 0 && b.path.timer.Load() != nil {
			if _, err := t.timer.due(now, r.env.cfg); err != nil { // it counts from the commit on, but is looked at now
				r.refuse(s, protocol.MessageIllegal, timerRemark(r.env.cfg))
				return false
			}
		}
		r.text = appendHalfText(r.text[:at], m, req.Properties, r.env.cfg.BrokerClusterName)
		m.Topic, m.QueueId = topics.TransHalf, 0
		m.SysFlag = message.ResetTransactionValue(m.SysFlag, message.TransactionNot)
	case level > 0 && message.Queued(req.SysFlag):
		// The official broker writes the text of a delayed message anew, from a map that has WAIT again.
		own := req.Properties
		if t.timer.set() && b.path.timer.Load() != nil { // the level counts
			own = withoutTimer(own)
		}
		r.text = appendDelayedText(r.text[:at], m, own, r.env.cfg.BrokerClusterName, level, t)
		m.Topic, m.QueueId = topics.Schedule, int32(level-1)
	case t.timer.set() && level <= 0 && message.Queued(req.SysFlag) && b.path.timer.Load() != nil:
		if !b.putOff(r, s, t, at, now) {
			return false
		}
	}
	m.Properties = r.textFrom(at)
	if len(m.Properties) > message.MaxPropertiesLength {
		r.refuse(s, protocol.MessageIllegal, illegalRemark(r.env.cfg))
		return false
	}
	s.flush = t.waits()
	s.put.Message = m
	return true
}

// fillMessage takes from the request what single messages and elements of batches have alike.
func (b *Broker) fillMessage(s *sending, m *message.Message, topic *topics.Config) {
	req := s.req
	m.Flag, m.SysFlag, m.BornTimestamp = req.Flag, req.SysFlag, req.BornTimestamp
	if topic.TopicFilterType == topics.MultiTag {
		m.SysFlag |= message.MultiTags
	}
	m.BornHost, m.StoreHost = s.call.Conn().RemoteAddr(), b.storeHost()
	m.ReconsumeTimes = req.ReconsumeTimes.Value
}

// delayLevel reads DELAY, at most the highest level; false: the send has been answered.
func (b *Broker) delayLevel(s *sending, t sendText) (int, bool) {
	if t.delay == "" {
		return 0, true
	}
	level, err := strconv.ParseInt(t.delay, 10, 32)
	if err != nil { // an exception in 4.9.8
		s.call.ReplyError(protocol.Errorf(protocol.SystemError, "property DELAY: %q is not a number", t.delay))
		return 0, false
	}
	return min(int(level), b.path.levels.Max()), true
}

// appendDelayedText appends the text of a message that is to wait in SCHEDULE_TOPIC_XXXX: with WAIT, and with its
// real topic and queue.
func appendDelayedText(dst []byte, m *message.Message, text, cluster string, level int, t sendText) []byte {
	at := len(dst)
	except := []string{message.PropertyCluster, message.PropertyRealTopic, message.PropertyRealQueueId, ""}
	value := strconv.Itoa(level)
	if value != t.delay {
		except[3] = message.PropertyDelayTimeLevel
	}
	own := message.AppendProperties(nil, text, except...)
	own = message.AppendProperty(own, message.PropertyCluster, cluster)
	own = message.AppendProperty(own, message.PropertyRealTopic, m.Topic)
	own = message.AppendProperty(own, message.PropertyRealQueueId, strconv.Itoa(int(m.QueueId)))
	if value != t.delay {
		own = message.AppendProperty(own, message.PropertyDelayTimeLevel, value)
	}
	return append(dst[:at], own...)
}

// appendHalfText appends the text of a half message: with WAIT, as that of a delayed one, and with its real topic and
// queue. A delay counts from the commit on; 4.9.8 loses such messages.
func appendHalfText(dst []byte, m *message.Message, text, cluster string) []byte {
	at := len(dst)
	own := message.AppendProperties(dst[at:], text, message.PropertyCluster, message.PropertyRealTopic, message.PropertyRealQueueId)
	own = message.AppendProperty(own, message.PropertyCluster, cluster)
	own = message.AppendProperty(own, message.PropertyRealTopic, m.Topic)
	own = message.AppendProperty(own, message.PropertyRealQueueId, "")
	own = strconv.AppendInt(own, int64(m.QueueId), 10)
	return append(dst, own...) // own begins where dst ends, or lies elsewhere
}

// deadLetter applies the rule for sends to a retry topic: one that has had its tries goes to the dead-letter topic.
// It replaces *topic then. False: the send has been answered. As SendMessageProcessor#handleRetryAndDLQ of 4.9.8.
func (b *Broker) deadLetter(r *sendRun, s *sending, topic **topics.Config) bool {
	group := s.msg.Topic[len(topics.RetryPrefix):]
	g := b.groups.Find(group)
	if g == nil {
		r.refuse(s, protocol.SubscriptionGroupNotExist, "subscription group not exist, "+group+" "+faqSuffix)
		return false
	}
	if s.req.ReconsumeTimes.Value < b.retryLimit(s.call, g, s.req.MaxReconsumeTimes) {
		return true
	}
	c, created := b.topics.CreateBySendBack(topics.DLQTopic(group), dlqQueues, topics.PermRead|topics.PermWrite, 0)
	if c == nil { // its name can be no topic's, or there are too many
		r.refuse(s, protocol.SystemError, "topic["+topics.DLQTopic(group)+"] not exist")
		return false
	}
	s.created, r.created = s.created || created, r.created || created
	s.msg.Topic, s.msg.QueueId = c.TopicName, 0
	*topic = c
	return true
}

// dlqQueues is the number of queues of a dead-letter topic.
const dlqQueues = 1

// Bounds of the records that a batch becomes. Each gets the properties of the whole batch, up to 32 KB, so elements
// of 22 bytes could be made to take a thousand times their size. Batches of stock clients, whose elements have a
// unique key, grow less than fivefold, and those with less in all than one message may have are let through.
const (
	batchSlack  = 64 << 10 // beside maxMessageSize, what a record may have besides its body
	batchGrowth = 8        // times the size of the request's body
)

// errBatchSize: the records of a batch, or the properties of one, would be too large.
var errBatchSize = errors.New("batch too large when stored")

// prepareBatch makes the Put of a batch: one record an element, the batch's properties behind each element's own.
func (b *Broker) prepareBatch(r *sendRun, s *sending, topic *topics.Config) bool {
	req, cfg, data := s.req, r.env.cfg, s.call.Command().Body
	if len(data) == 0 { // an exception in 4.9.8
		s.call.ReplyError(protocol.Errorf(protocol.SystemError, "batch without a body"))
		return false
	}
	at := len(r.text)
	var t sendText
	r.text, t = appendSendText(r.text, req.Properties, cfg.BrokerClusterName, false)
	own := r.textFrom(at)
	level, ok := b.delayLevel(s, t)
	if !ok {
		return false
	}
	if len(data) > cfg.MaxMessageSize || level > 0 || t.timer.set() && b.path.timer.Load() != nil || message.TransactionValue(req.SysFlag) != message.TransactionNot {
		r.refuse(s, protocol.MessageIllegal, illegalRemark(cfg))
		return false
	}
	var m message.Message
	m.Topic, m.QueueId = topic.TopicName, s.queueId
	b.fillMessage(s, &m, topic)
	room := max(cfg.MaxMessageSize+batchSlack, batchGrowth*len(data))
	err := message.EachElement(data, func(e message.Element) error {
		n := len(e.Properties)
		separate := n > 0 && e.Properties[n-1] != '\x02'
		total := n + len(own)
		if separate {
			total++
		}
		m.Flag, m.Body, m.Properties = e.Flag, e.Body, ""
		if room -= message.RecordSize(&m) + total; room < 0 || total > message.MaxPropertiesLength {
			return errBatchSize // before the text is there
		}
		at := len(r.text)
		r.text = append(r.text, e.Properties...)
		if separate {
			r.text = append(r.text, '\x02')
		}
		r.text = append(r.text, own...)
		m.Properties = r.textFrom(at)
		s.batch = append(s.batch, m)
		return nil
	})
	switch {
	case errors.Is(err, errBatchSize): // 4.9.8 writes a record whose length field has overflowed
		r.refuse(s, protocol.MessageIllegal, illegalRemark(cfg))
		return false
	case err != nil: // an exception in 4.9.8
		s.call.ReplyError(protocol.Errorf(protocol.SystemError, "%v", err))
		return false
	}
	for i := range s.batch {
		s.members = append(s.members, &s.batch[i])
	}
	s.put.Batch = s.members
	s.flush = t.waits()
	return true
}
