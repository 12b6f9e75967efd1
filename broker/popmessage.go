package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"rocketd/broker/filter"
	"rocketd/broker/groups"
	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/store"
)

// Behaviour: POP_MESSAGE, as PopMessageProcessor of 5.3.3: its checks in its order with its remarks. The broker decides
// of which queues the messages are. A pop that finds nothing and may wait is held and goes on when there may be
// something.

// maxPopMsgNums is the most messages that one pop takes.
const maxPopMsgNums = 32

// maxAttemptId is the longest attemptId: it is kept with each queue that is popped in order. Clients make UUIDs.
const maxAttemptId = 255

// latePop is how long after its time is over a pop is still served, ms.
const latePop = 500

// popping is one pop: the request and what its checks have found.
type popping struct {
	b      *Broker
	call   *remoting.Call
	req    *header.PopMessageRequest
	group  *groups.Config
	topic  *topics.Config
	filter filter.Filter // nil: every message
	retry  string        // the retry topic of group and topic
	born   int64         // ms
}

// popMessage (200050) gives messages of any queue, or one, that nobody of the group has been given.
func (b *Broker) popMessage(c *remoting.Call, req *header.PopMessageRequest) (*protocol.Command, error) {
	p := &popping{b: b, call: c, req: req}
	if r := p.check(); r != nil {
		return c.Answer(r.code, r.remark, &header.PopMessageResponse{}), nil
	}
	if b.path.cold.expects(p.coldPlace()) && b.path.cold.run(func() {
		defer b.recovered(c, req.Topic, req.ConsumerGroup)
		if answer := p.serve(true); answer != nil {
			c.Reply(answer)
		}
	}) {
		return nil, nil
	}
	return p.serve(true), nil
}

// coldPlace stands for the pops of one client, which do not say where they read.
func (p *popping) coldPlace() coldPlace {
	return coldPlace{p.call.Conn(), p.req.Topic, p.req.QueueId, -1}
}

// check makes the checks that come before the store is read.
func (p *popping) check() *refusal {
	b, req := p.b, p.req
	cfg := b.config()
	now := b.clock().UnixMilli()
	if p.born = req.BornTime; p.born == 0 {
		p.born = now
	}
	if now-p.born-req.PollTime > latePop {
		return &refusal{protocol.PollingTimeout, fmt.Sprintf("the broker[%s] pop message is timeout too much", cfg.BrokerIP1)}
	}
	if !topics.Readable(cfg.BrokerPermission) {
		return &refusal{protocol.NoPermission, fmt.Sprintf("the broker[%s] pop message is forbidden", cfg.BrokerIP1)}
	}
	if req.MaxMsgNums > maxPopMsgNums {
		return &refusal{protocol.InvalidParameter, fmt.Sprintf("the broker[%s] pop message's num is greater than 32", cfg.BrokerIP1)}
	}
	var r *refusal
	if p.topic, p.group, r = b.checkPopPlace(p.call, req.Topic, req.ConsumerGroup, req.QueueId); r != nil {
		return r
	}
	if len(req.AttemptId) > maxAttemptId {
		return &refusal{protocol.InvalidParameter, fmt.Sprintf("attemptId is longer than %d bytes", maxAttemptId)}
	}
	if req.MaxMsgNums < 0 || req.InvisibleTime < 0 { // 5.3.3 makes a list of that size; lets them come again at once
		return &refusal{protocol.InvalidParameter, "maxMsgNums and invisibleTime must not be negative"}
	}
	p.retry = pop.RetryTopic(req.ConsumerGroup, req.Topic)
	p.filter, r = b.popFilter(cfg, req)
	return r
}

// checkPopPlace makes the checks of topic, queue and group that the requests of POP share.
func (b *Broker) checkPopPlace(c *remoting.Call, topic, group string, queueId int32) (*topics.Config, *groups.Config, *refusal) {
	t, ok := b.topics.Lookup(topic)
	if !ok {
		return nil, nil, &refusal{protocol.TopicNotExist, "topic[" + topic + "] not exist, apply first please! " + faqSuffix5}
	}
	if !topics.Readable(t.Perm) {
		return nil, nil, &refusal{protocol.NoPermission, "the topic[" + topic + "] peeking message is forbidden"}
	}
	if queueId >= t.ReadQueueNums {
		return nil, nil, &refusal{protocol.InvalidParameter, popQueueRemark(c, t, queueId)}
	}
	g := b.groups.Find(group)
	if g == nil {
		return nil, nil, &refusal{protocol.SubscriptionGroupNotExist, "subscription group [" + group + "] does not exist, " + faqSuffix5}
	}
	if !g.ConsumeEnable {
		return nil, nil, &refusal{protocol.NoPermission, "subscription group no permission, " + group}
	}
	return t, g, nil
}

// faqSuffix5 is faqSuffix of 5.3.3.
const faqSuffix5 = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

func popQueueRemark(c *remoting.Call, t *topics.Config, queueId int32) string {
	return fmt.Sprintf("queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[/%s]",
		queueId, t.TopicName, t.ReadQueueNums, c.Conn().RemoteAddr())
}

// popFilter makes the filter of a pop; nil takes every message.
func (b *Broker) popFilter(cfg *Config, req *header.PopMessageRequest) (filter.Filter, *refusal) {
	if req.Exp == "" {
		return nil, nil
	}
	if filter.IsTag(req.ExpType) {
		tags, err := filter.Parse(req.Exp)
		if err != nil {
			return nil, &refusal{protocol.SubscriptionParseFailed, parseFailed}
		}
		if tags == nil {
			return nil, nil
		}
		return tags, nil
	}
	f, err := b.compile(req.ExpType, req.Exp)
	if err != nil {
		return nil, &refusal{protocol.SubscriptionParseFailed, parseFailed}
	}
	return f, nil
}

// serve looks for messages, and holds the pop when there are none; nil: it is answered later. first is false for a pop
// that was held already.
func (p *popping) serve(first bool) *protocol.Command {
	b := p.b
	t := taking{p: p, popTime: b.clock().UnixMilli(), max: int(p.req.MaxMsgNums)}
	t.reviveQid = pop.OrderRevive
	if !p.req.Order {
		t.reviveQid = int32((b.path.pop.turn.Add(1) - 1) % reviveQueueNum)
	}
	t.take()
	h := &header.PopMessageResponse{PopTime: t.popTime, InvisibleTime: p.req.InvisibleTime, ReviveQid: t.reviveQid, RestNum: t.rest,
		StartOffsetInfo: string(t.starts), MsgOffsetInfo: string(t.offsets), OrderCountInfo: string(t.counts)}
	if t.cold {
		b.path.cold.note(p.coldPlace())
	}
	if t.count > 0 {
		if t.rest > 0 {
			b.path.pop.held.Notify(p.key())
		}
		a := p.call.Answer(protocol.Success, "FOUND", h)
		a.Body, a.Recycle = t.body, store.RecycleBody
		return a
	}
	if t.err != nil && !errors.Is(t.err, pop.ErrFull) && !errors.Is(t.err, pop.ErrSame) {
		code, remark := b.putError(t.err)
		return p.call.Answer(code, remark, &header.PopMessageResponse{})
	}
	code := protocol.PollingTimeout
	switch p.hold(t.busy, first, t.moved) {
	case pop.HeldNow:
		return nil
	case pop.HeldFull:
		code = protocol.PollingFull
	default:
		if first && p.req.PollTime > 0 && b.path.stopping.Load() { // as for pulls: its client would ask again at once, and again
			return p.call.Answer(protocol.ServiceNotAvailable, "the broker is stopping", &header.PopMessageResponse{})
		}
	}
	a := p.call.Answer(code, "NO_MESSAGE_IN_QUEUE", h)
	if len(a.Fields) == 0 { // there, and empty
		a.Fields = []protocol.Field{{Key: "startOffsetInfo"}, {Key: "msgOffsetInfo"}}
		if p.req.Order {
			a.Fields = append(a.Fields, protocol.Field{Key: "orderCountInfo"})
		}
	}
	return a
}

func (p *popping) key() pop.Key {
	return pop.Key{Topic: p.req.Topic, Group: p.req.ConsumerGroup, QueueId: p.req.QueueId}
}

// lookAgain is how long a held pop waits, ms, that was woken, found nothing, and could not say why.
const lookAgain = 20

// hold makes the pop wait. busy is when (ms) a batch of an orderly pop that bars this one comes free, 0: none does; first
// and moved say whether it is at once worth another look.
func (p *popping) hold(busy int64, first, moved bool) pop.Outcome {
	b := p.b
	if p.req.PollTime <= 0 || p.req.MaxMsgNums == 0 {
		return pop.HeldLate
	}
	if !first && !moved && busy == 0 && p.available() {
		busy = b.clock().UnixMilli() + lookAgain
	}
	if first { // what is held for long is small
		p.req.Topic, p.req.ConsumerGroup = p.topic.TopicName, p.group.GroupName
		p.req.Exp, p.req.ExpType, p.req.AttemptId = strings.Clone(p.req.Exp), strings.Clone(p.req.ExpType), strings.Clone(p.req.AttemptId)
		p.req.BrokerName = ""
		p.call.Command().Fields = nil
	}
	h := &pop.Held{Key: p.key(), Deadline: compat.Later(p.born, p.req.PollTime), Next: busy, Owner: p.call.Conn(), Waiter: p}
	if p.filter != nil {
		h.Filter = p.filter.(pop.Filter)
	}
	if !p.req.Order {
		h.Retry = p.retry
	}
	topic := p.topic // once it is held, somebody else may go on with it and look again
	out := b.path.pop.held.Hold(h)
	if out != pop.HeldNow {
		return out
	}
	switch {
	case !p.call.Conn().Active():
		b.path.pop.held.OwnerGone(p.call.Conn()) // the end of the connection may have been dealt with before
	case (first || moved || h.Next == 0) && p.availableIn(topic):
		b.path.pop.held.Now(h) // it has arrived meanwhile
	}
	return out
}

// Wake goes on with a held pop.
func (p *popping) Wake(why pop.Reason) {
	defer p.b.recovered(p.call, p.req.Topic, p.req.ConsumerGroup)
	if !p.call.Conn().Active() {
		p.call.Drop()
		return
	}
	if why == pop.Stopped {
		p.call.Reply(p.call.Answer(protocol.PollingTimeout, "NO_MESSAGE_IN_QUEUE", &header.PopMessageResponse{
			PopTime: p.b.clock().UnixMilli(), InvisibleTime: p.req.InvisibleTime}))
		return
	}
	if r := p.checkAgain(); r != nil {
		p.call.Reply(p.call.Answer(r.code, r.remark, &header.PopMessageResponse{}))
		return
	}
	if answer := p.serve(false); answer != nil {
		p.call.Reply(answer)
	}
}

// checkAgain looks again at what may have changed while the pop was held.
func (p *popping) checkAgain() (r *refusal) {
	p.topic, p.group, r = p.b.checkPopPlace(p.call, p.req.Topic, p.req.ConsumerGroup, p.req.QueueId)
	return r
}

// popQueues calls f for the queues that a request for a topic and queue id means, all of them from a random one on for -1,
// until f returns false.
func popQueues(t *topics.Config, queueId int32, f func(queueId int32) bool) {
	if queueId >= 0 {
		f(queueId)
		return
	}
	if n := t.ReadQueueNums; n > 0 {
		for i, start := int32(0), rand.Int32N(n); i < n; i++ {
			if !f((start + i) % n) {
				return
			}
		}
	}
}

// available tells whether a pop would find something now.
func (p *popping) available() bool { return p.availableIn(p.topic) }

// availableIn is available for a topic's configuration that is still the caller's; the request does not change any more.
func (p *popping) availableIn(topic *topics.Config) bool {
	return p.b.popAvailable(topic, p.req.ConsumerGroup, p.req.QueueId, p.req.Order, p.req.AttemptId)
}

// popAvailable tells whether there is a message that a group has not been given, and may be.
func (b *Broker) popAvailable(t *topics.Config, group string, queueId int32, ordered bool, attemptId string) (found bool) {
	c := b.path.pop.checkpoints
	look := func(topic string, queueId int32) bool {
		k := pop.Key{Topic: topic, Group: group, QueueId: queueId}
		if !c.Room(k) {
			return true
		}
		q := c.Known(k) // nil: nothing of it is under way
		offset, ok := b.offsets.Query(group, topic, queueId)
		if ordered && q != nil && c.Busy(q, offset, attemptId, 0) > 0 || !ordered && b.popBarred(q) {
			return true
		}
		if !ok {
			offset = b.store.MinOffset(topic, queueId)
		}
		found = b.store.MaxOffset(topic, queueId) > offset
		return !found
	}
	popQueues(t, queueId, func(queueId int32) bool { return look(t.TopicName, queueId) })
	if retry, ok := b.topics.Lookup(pop.RetryTopic(group, t.TopicName)); !found && ok && !ordered {
		popQueues(retry, -1, func(queueId int32) bool { return look(retry.TopicName, queueId) })
	}
	return found
}

// popBarred tells whether a group has to acknowledge messages of a queue, nil for one that it has never popped, before it gets
// more.
func (b *Broker) popBarred(q *pop.Queue) bool {
	cfg := b.config()
	c := b.path.pop.checkpoints
	return c.Open() >= pop.Limit || q != nil && cfg.EnablePopMessageThreshold && c.Inflight(q) > cfg.PopInflightMessageThreshold
}
