package broker

import (
	"fmt"
	"math"
	"strings"

	"rocketd/broker/filter"
	"rocketd/broker/groups"
	"rocketd/broker/longpoll"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/store"
)

// Behaviour: PULL_MESSAGE, as PullMessageProcessor of 4.9.8: its checks in its order with its remarks. A pull that
// finds nothing and may be suspended is held (broker/longpoll); a held pull goes on as a second pass, which neither
// holds nor commits an offset.
//
// Not yet: slaves don't serve.

// Bits of a pull's sysFlag (PullSysFlag of 4.9.8).
const (
	pullCommitOffset int32 = 1
	pullSuspend      int32 = 2
	pullSubscription int32 = 4
)

// pull serves a pull, here or, when it will be cold, elsewhere.
func (b *Broker) pull(c *remoting.Call, req *header.PullMessageRequest) (*protocol.Command, error) {
	if b.takeCold(c, req) {
		return nil, nil
	}
	return b.firstPull(c, req)
}

// firstPull serves the first pass of a pull.
func (b *Broker) firstPull(c *remoting.Call, req *header.PullMessageRequest) (*protocol.Command, error) {
	p, err := b.checkPull(c, req)
	if err != nil {
		return err.answer(c), nil
	}
	got := b.readPull(req, p)
	if (got.Cold || got.BehindBytes > b.path.cold.behind) && got.Status <= store.MessageWasRemoving {
		b.path.cold.note(coldPlace{c.Conn(), req.Topic, req.QueueId, got.NextBeginOffset})
	}
	if req.MaxMsgNums < 0 && got.Status <= store.MessageWasRemoving { // 4.9.8 makes a list of that size
		return nil, protocol.Errorf(protocol.SystemError, "header field maxMsgNums: %d is negative", req.MaxMsgNums)
	}
	var answer *protocol.Command
	code := pullCode(got.Status, req.QueueOffset)
	waits := code == protocol.PullNotFound && req.SysFlag&pullSuspend != 0
	switch {
	case waits && b.hold(c, req, p, got.Status == store.Mending): // its answer follows
	case waits && b.path.stopping.Load():
		// Its client has just been told 19 and asks again at once. Another 19 would keep it asking until a pull is
		// lost with its connection, which a Java client notices after 30 s; after this it waits 3 s.
		stop := refusal{protocol.ServiceNotAvailable, "the broker is stopping"}
		answer = stop.answer(c)
	default:
		answer = b.answerPull(c, req, p, &got, code)
	}
	if req.SysFlag&pullCommitOffset != 0 {
		b.offsets.Take(c.Conn(), p.group.GroupName, p.topic.TopicName, req.QueueId, req.CommitOffset)
	}
	return answer, nil
}

// pullAgain serves the second pass of a pull that was held.
func (b *Broker) pullAgain(c *remoting.Call, req *header.PullMessageRequest) *protocol.Command {
	p, err := b.checkPull(c, req)
	if err != nil {
		return err.answer(c)
	}
	got := b.readPull(req, p)
	return b.answerPull(c, req, p, &got, pullCode(got.Status, req.QueueOffset))
}

// checkedPull is what the checks of a pull find out.
type checkedPull struct {
	group  *groups.Config
	topic  *topics.Config
	filter filter.Filter // nil: every message
}

// refusal is the error of a pull or of a request of POP. A pull's is answered with empty ext fields, for the official answer has
// its header class.
type refusal struct {
	code   protocol.ResponseCode
	remark string
}

func (r *refusal) answer(c *remoting.Call) *protocol.Command {
	return c.Answer(r.code, r.remark, &header.Empty{})
}

// checkPull makes the checks that come before the store is read.
func (b *Broker) checkPull(c *remoting.Call, req *header.PullMessageRequest) (checkedPull, *refusal) {
	var p checkedPull
	cfg := b.config()
	if !topics.Readable(cfg.BrokerPermission) {
		return p, &refusal{protocol.NoPermission, "the broker[" + cfg.BrokerIP1 + "] pulling message is forbidden"}
	}
	if p.group = b.groups.Find(req.ConsumerGroup); p.group == nil {
		return p, &refusal{protocol.SubscriptionGroupNotExist,
			"subscription group [" + req.ConsumerGroup + "] does not exist, " + faqSuffix}
	}
	if !p.group.ConsumeEnable {
		return p, &refusal{protocol.NoPermission, "subscription group no permission, " + req.ConsumerGroup}
	}
	var ok bool
	if p.topic, ok = b.topics.Lookup(req.Topic); !ok {
		return p, &refusal{protocol.TopicNotExist, "topic[" + req.Topic + "] not exist, apply first please! " + faqSuffix}
	}
	if !topics.Readable(p.topic.Perm) {
		return p, &refusal{protocol.NoPermission, "the topic[" + req.Topic + "] pulling message is forbidden"}
	}
	if req.QueueId < 0 || req.QueueId >= p.topic.ReadQueueNums {
		return p, &refusal{protocol.SystemError, fmt.Sprintf(
			"queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[/%s]",
			req.QueueId, req.Topic, p.topic.ReadQueueNums, c.Conn().RemoteAddr())}
	}
	if b.store.TooManyLmqQueues(p.topic.TopicName) {
		return p, &refusal{protocol.SystemError, "store getMessage return null"}
	}
	var r *refusal
	if req.SysFlag&pullSubscription != 0 {
		p.filter, r = b.inlineFilter(cfg, req)
	} else {
		p.filter, r = b.subscribedFilter(cfg, req, p.group)
	}
	return p, r
}

// readPull reads the store for a pull that has passed its checks.
func (b *Broker) readPull(req *header.PullMessageRequest, p checkedPull) store.GetResult {
	start := b.clock()
	got := b.store.Get(p.topic.TopicName, req.QueueId, req.QueueOffset, int(req.MaxMsgNums), p.filter)
	took := b.clock().Sub(start)
	b.stats.get(got.Count, took)
	if got.Status == store.Found {
		group, topic := b.statsNames(p.group.GroupName, p.topic.TopicName)
		b.traffic.Get(group, topic, int64(got.Count), int64(len(got.Body)))
		b.traffic.Latency(group, topic, req.QueueId, took)
		if b.config().DiskFallRecorded {
			b.traffic.Behind(group, topic, req.QueueId, got.BehindBytes)
		}
	}
	return got
}

// pullCode is the response code of what a Get found, as PullMessageProcessor of 4.9.8.
func pullCode(s store.GetStatus, offset int64) protocol.ResponseCode {
	switch s {
	case store.Found:
		return protocol.Success
	case store.NoMatchedMessage, store.MessageWasRemoving:
		return protocol.PullRetryImmediately
	case store.OffsetOverflowOne, store.OffsetFoundNull, store.Mending:
		return protocol.PullNotFound
	case store.NoMatchedLogicQueue, store.NoMessageInQueue:
		if offset == 0 {
			return protocol.PullNotFound
		}
	}
	return protocol.PullOffsetMoved
}

// statusNames are the remarks of a pull's answers: the names of GetMessageStatus.
var statusNames = [...]string{
	store.Found:               "FOUND",
	store.NoMatchedMessage:    "NO_MATCHED_MESSAGE",
	store.MessageWasRemoving:  "MESSAGE_WAS_REMOVING",
	store.OffsetFoundNull:     "OFFSET_FOUND_NULL",
	store.OffsetOverflowBadly: "OFFSET_OVERFLOW_BADLY",
	store.OffsetOverflowOne:   "OFFSET_OVERFLOW_ONE",
	store.OffsetTooSmall:      "OFFSET_TOO_SMALL",
	store.NoMatchedLogicQueue: "NO_MATCHED_LOGIC_QUEUE",
	store.NoMessageInQueue:    "NO_MESSAGE_IN_QUEUE",
	store.Mending:             "OFFSET_FOUND_NULL", // clients read the code, people the remark
}

// answerPull makes the answer of a pull.
func (b *Broker) answerPull(c *remoting.Call, req *header.PullMessageRequest, p checkedPull, got *store.GetResult, code protocol.ResponseCode) *protocol.Command {
	h := &header.PullMessageResponse{NextBeginOffset: got.NextBeginOffset, MinOffset: got.MinOffset, MaxOffset: got.MaxOffset}
	if b.config().SlaveReadEnable {
		h.SuggestWhichBrokerId = p.group.BrokerId
		if got.SuggestSlave {
			h.SuggestWhichBrokerId = p.group.WhichBrokerWhenConsumeSlowly
		}
	}
	a := c.Answer(code, statusNames[got.Status], h)
	if code == protocol.Success {
		a.Body, a.Recycle = got.Body, store.RecycleBody
	}
	if code == protocol.PullOffsetMoved {
		b.log.Warn("pull offset corrected", "group", req.ConsumerGroup, "topic", req.Topic, "queueId", req.QueueId,
			"requestOffset", req.QueueOffset, "newOffset", got.NextBeginOffset, "reason", statusNames[got.Status], "client", c.Conn().RemoteAddr())
		b.offsetMoved(req, got.NextBeginOffset)
	}
	return a
}

// heldPull is a pull that waits: what the second pass needs, and its place in the holder.
type heldPull struct {
	longpoll.Pull
	b    *Broker
	call *remoting.Call
	req  *header.PullMessageRequest
}

// hold makes a pull wait; false: it can't be held and is answered now. mending: its place in the queue is being made again from
// the log; it waits until the next look at all held pulls, and no arrival lets it go on before.
func (b *Broker) hold(c *remoting.Call, req *header.PullMessageRequest, p checkedPull, mending bool) bool {
	cfg := b.config()
	patience := req.SuspendTimeoutMillis
	if !cfg.LongPollingEnable {
		patience = cfg.ShortPollingTimeMills
	}
	now := b.clock().UnixMilli()
	h := &heldPull{b: b, call: c, req: req}
	h.Pull = longpoll.Pull{Topic: p.topic.TopicName, QueueId: req.QueueId, Offset: req.QueueOffset,
		Deadline: compat.Later(now, patience), Owner: c.Conn(), Waiter: h}
	h.Filter = p.filter
	if mending {
		h.Offset, h.Deadline = math.MaxInt64, now
	}
	// What is held for long is small: the header's text goes, and with it all that is not needed again.
	req.ConsumerGroup, req.Topic, req.BrokerName = p.group.GroupName, p.topic.TopicName, ""
	req.Subscription, req.ExpressionType = strings.Clone(req.Subscription), strings.Clone(req.ExpressionType)
	c.Command().Fields = nil
	if !b.path.held.Hold(&h.Pull) {
		return false
	}
	if !c.Conn().Active() {
		b.path.held.Drop(&h.Pull) // the end of the connection may have been dealt with before
	}
	return true
}

// Wake goes on with a held pull.
func (h *heldPull) Wake(why longpoll.Reason) {
	b := h.b
	defer b.recovered(h.call, h.req.Topic, h.req.ConsumerGroup)
	if !h.call.Conn().Active() {
		h.call.Drop()
		return
	}
	if why == longpoll.Stopped {
		h.call.Reply(h.call.Answer(protocol.PullNotFound, statusNames[store.OffsetOverflowOne], &header.PullMessageResponse{
			NextBeginOffset: h.req.QueueOffset,
			MinOffset:       b.store.MinOffset(h.Topic, h.QueueId),
			MaxOffset:       b.store.MaxOffset(h.Topic, h.QueueId),
		}))
		return
	}
	h.call.Reply(b.pullAgain(h.call, h.req))
}
