package broker

import (
	"fmt"

	"rocketd/broker/pop"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// Behaviour: ACK_MESSAGE and BATCH_ACK_MESSAGE, as AckMessageProcessor of 5.3.3, but that the answer says so when an
// acknowledgement could not be stored.

// ackMessages (200051) acknowledges messages that were popped: neighbouring requests with one record.
func (b *Broker) ackMessages(calls []*remoting.Call, reqs []*header.AckMessageRequest) {
	var few [16]pop.Ack
	run, owed := few[:0], calls[:0]
	for i, req := range reqs {
		c := calls[i]
		req.Topic = pop.OwnTopic(req.Topic, req.ConsumerGroup)
		if r := b.checkAck(c, req); r != nil {
			c.Reply(c.Answer(r.code, r.remark, nil))
			continue
		}
		h, err := pop.ParseHandle(req.ExtraInfo)
		if err != nil {
			c.ReplyError(err)
			continue
		}
		a := pop.Ack{Key: pop.Key{Topic: req.Topic, Group: req.ConsumerGroup, QueueId: req.QueueId},
			StartOffset: h.StartOffset, PopTime: h.PopTime, Offset: req.Offset}
		if h.ReviveQid == pop.OrderRevive {
			if r := b.ackOrderly(c, a); r != nil {
				c.Reply(c.Answer(r.code, r.remark, nil))
				continue
			}
			c.Reply(c.Success(nil))
			continue
		}
		run, owed = append(run, a), append(owed, c)
	}
	if len(run) == 0 {
		return
	}
	err := b.path.pop.checkpoints.Acked(run)
	for _, c := range owed {
		if err != nil {
			code, remark := b.putError(err)
			c.Reply(c.Answer(code, remark, nil))
			continue
		}
		c.Reply(c.Success(nil))
	}
}

// checkAck makes the checks of an acknowledgement.
func (b *Broker) checkAck(c *remoting.Call, req *header.AckMessageRequest) *refusal {
	if r := b.checkPopped(c, req.Topic, req.QueueId); r != nil {
		return r
	}
	first, end := b.store.MinOffset(req.Topic, req.QueueId), b.store.MaxOffset(req.Topic, req.QueueId)
	if req.Offset < first || req.Offset > end {
		return &refusal{protocol.NoMessage, fmt.Sprintf("offset is illegal, key:%s@%d, commit:%d, store:%d~%d", req.Topic, req.QueueId, req.Offset, first, end)}
	}
	return nil
}

// checkPopped makes the checks of topic and queue of a request about a message that was popped.
func (b *Broker) checkPopped(c *remoting.Call, topic string, queueId int32) *refusal {
	t, ok := b.topics.Lookup(topic)
	if !ok {
		return &refusal{protocol.TopicNotExist, "topic[" + topic + "] not exist, apply first please! " + faqSuffix5}
	}
	if queueId < 0 || queueId >= t.ReadQueueNums {
		return &refusal{protocol.MessageIllegal, popQueueRemark(c, t, queueId)}
	}
	return nil
}

// ackOrderly acknowledges a message that was popped in order. The group's offset moves up to the first message that is
// not acknowledged.
func (b *Broker) ackOrderly(c *remoting.Call, a pop.Ack) *refusal {
	if at, ok := b.offsets.Query(a.Group, a.Topic, a.QueueId); ok && a.Offset < at {
		return nil
	}
	p := b.path.pop.checkpoints
	q := p.TakeKnown(a.Key)
	if q == nil {
		if at, ok := b.offsets.Query(a.Group, a.Topic, a.QueueId); !ok || a.Offset != at || !p.Room(a.Key) { // nothing of it can be under way
			return nil
		}
		q = p.Take(a.Key)
	}
	defer q.Release()
	at, ok := b.offsets.Query(a.Group, a.Topic, a.QueueId)
	if !ok {
		at = -1
	}
	if a.Offset < at {
		return nil
	}
	switch what, next := p.AckedOrderly(q, at, a.Offset, a.PopTime); what {
	case pop.OrderIllegal:
		return &refusal{protocol.MessageIllegal, fmt.Sprintf("offset is illegal, key:%s@%s@%d, old:%d, commit:%d, next:-1, /%s",
			a.Topic, a.Group, a.QueueId, at, a.Offset, c.Conn().RemoteAddr())}
	case pop.OrderAdvanced:
		if next > b.store.MaxOffset(a.Topic, a.QueueId) { // of a message that is not there: 5.3.3 skips the one that comes
			return nil
		}
		if next > at {
			b.popLogTopic()
			if err := p.Advanced(q, next); err != nil {
				code, remark := b.putError(err)
				return &refusal{code, remark}
			}
		}
		b.offsets.Commit(c.Conn(), a.Group, a.Topic, a.QueueId, next)
		if p.Busy(q, next, "", 0) == 0 {
			b.path.pop.held.Notify(q.Key)
		}
	}
	return nil
}

// ackRun is how many acknowledgements of a batch are taken at a time.
const ackRun = 4096

// batchAck (200151) acknowledges many messages. What is wrong with one of them is not told, as officially, unless it was popped in
// order. When some can't be stored the rest is not tried.
func (b *Broker) batchAck(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.BatchAckMessageRequestBody)
	if len(c.Command().Body) > 0 {
		if err := b.decodeBody(c, req); err != nil {
			return nil, err
		}
	}
	if len(req.Acks) == 0 {
		return c.Answer(protocol.NoMessage, "", nil), nil
	}
	var run []pop.Ack
	var wrong *refusal
	failed := false
	take := func() bool {
		if err := b.path.pop.checkpoints.Acked(run); err != nil {
			code, remark := b.putError(err)
			wrong, failed = &refusal{code, remark}, true
			return false
		}
		run = run[:0]
		return true
	}
	for i := 0; i < len(req.Acks) && !failed; i++ {
		a := &req.Acks[i]
		if r := checkBatchAck(a); r != nil { // an exception in 5.3.3; what came before it is taken
			wrong = r
			break
		}
		k := pop.Key{Topic: pop.RealTopic(a.Topic, a.ConsumerGroup, a.Retry), Group: a.ConsumerGroup, QueueId: a.QueueId}
		first, end := b.store.MinOffset(k.Topic, k.QueueId), b.store.MaxOffset(k.Topic, k.QueueId)
		a.Each(func(offset int64) bool {
			one := pop.Ack{Key: k, StartOffset: a.StartOffset, PopTime: a.PopTime, Offset: offset}
			switch {
			case offset > end:
				return false
			case offset < first:
			case a.ReviveQueueId == pop.OrderRevive:
				if b.groups.Find(k.Group) == nil {
					return false
				}
				if r := b.ackOrderly(c, one); r != nil {
					wrong = r
				}
			default:
				run = append(run, one)
			}
			return len(run) < ackRun || take()
		})
	}
	if len(run) > 0 && !failed {
		take()
	}
	if wrong != nil {
		return c.Answer(wrong.code, wrong.remark, nil), nil
	}
	return c.Success(nil), nil
}

// checkBatchAck refuses what does not say which messages it means.
func checkBatchAck(a *body.BatchAck) *refusal {
	switch {
	case a.Topic == "" || a.ConsumerGroup == "":
		return &refusal{protocol.SystemError, "an acknowledgement without a topic or group"}
	case !pop.IsTopicFlag(a.Retry):
		return &refusal{protocol.SystemError, "getRetry fail, format is wrong"}
	case a.BitSet == nil:
		return &refusal{protocol.SystemError, "an acknowledgement without a bit set"}
	}
	return nil
}

// changeInvisibleTime (200053) changes when a message that was popped comes again: invisibleTime from now. As
// ChangeInvisibleTimeProcessor of 5.3.3, but that a message which was acknowledged, or has come again already, stays so.
func (b *Broker) changeInvisibleTime(c *remoting.Call, req *header.ChangeInvisibleTimeRequest) (*protocol.Command, error) {
	req.Topic = pop.OwnTopic(req.Topic, req.ConsumerGroup)
	if r := b.checkPopped(c, req.Topic, req.QueueId); r != nil {
		return c.Answer(r.code, r.remark, &header.ChangeInvisibleTimeResponse{}), nil
	}
	if req.Offset < b.store.MinOffset(req.Topic, req.QueueId) || req.Offset >= b.store.MaxOffset(req.Topic, req.QueueId) {
		return c.Answer(protocol.NoMessage, unsetRemark, &header.ChangeInvisibleTimeResponse{}), nil
	}
	h, err := pop.ParseHandle(req.ExtraInfo)
	if err != nil {
		return nil, err
	}
	a := pop.Ack{Key: pop.Key{Topic: req.Topic, Group: req.ConsumerGroup, QueueId: req.QueueId},
		StartOffset: h.StartOffset, PopTime: h.PopTime, Offset: req.Offset}
	if h.ReviveQid == pop.OrderRevive {
		return c.Answer(protocol.Success, unsetRemark, b.changeOrderly(a, req.InvisibleTime)), nil
	}
	popTime, _, err := b.path.pop.checkpoints.Changed(a, req.InvisibleTime)
	if err != nil {
		code, remark := b.putError(err)
		return c.Answer(code, remark, &header.ChangeInvisibleTimeResponse{}), nil
	}
	return c.Answer(protocol.Success, unsetRemark, &header.ChangeInvisibleTimeResponse{
		PopTime: popTime, InvisibleTime: req.InvisibleTime, ReviveQid: h.ReviveQid}), nil
}

// changeOrderly changes when a message that was popped in order becomes visible: its pop time stays.
func (b *Broker) changeOrderly(a pop.Ack, invisible int64) *header.ChangeInvisibleTimeResponse {
	p := b.path.pop.checkpoints
	visible := compat.Later(b.clock().UnixMilli(), max(0, invisible))
	q := p.TakeKnown(a.Key)
	if q != nil {
		defer q.Release()
	}
	if at, ok := b.offsets.Query(a.Group, a.Topic, a.QueueId); ok && a.Offset < at {
		return &header.ChangeInvisibleTimeResponse{}
	}
	if q != nil { // else nothing of it is under way
		p.ChangedOrderly(q, a.Offset, a.PopTime, visible)
		b.path.pop.held.Notify(q.Key) // who waits looks again at when it is free
	}
	return &header.ChangeInvisibleTimeResponse{PopTime: a.PopTime, InvisibleTime: visible - a.PopTime, ReviveQid: pop.OrderRevive}
}
