package broker

import (
	"fmt"

	"rocketd/broker/groups"
	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/store"
)

// Behaviour: NOTIFICATION, POLLING_INFO and PEEK_MESSAGE, as their processors of 5.3.3.

// checkPeek makes the checks that these requests share.
func (b *Broker) checkPeek(c *remoting.Call, topic, group string, queueId int32) (*topics.Config, *groups.Config, *refusal) {
	if cfg := b.config(); !topics.Readable(cfg.BrokerPermission) {
		return nil, nil, &refusal{protocol.NoPermission, fmt.Sprintf("the broker[%s] peeking message is forbidden", cfg.BrokerIP1)}
	}
	return b.checkPopPlace(c, topic, group, queueId)
}

// notifying is a request NOTIFICATION that waits.
type notifying struct {
	b    *Broker
	call *remoting.Call
}

// notification (200054) answers as soon as there is something to pop, or when its time is over.
func (b *Broker) notification(c *remoting.Call, req *header.NotificationRequest) (*protocol.Command, error) {
	t, g, r := b.checkPeek(c, req.Topic, req.ConsumerGroup, req.QueueId)
	if r != nil {
		return c.Answer(r.code, r.remark, &header.NotificationResponse{}), nil
	}
	available := func() bool { return b.popAvailable(t, g.GroupName, req.QueueId, req.Order, req.AttemptId) }
	if available() {
		return c.Answer(protocol.Success, unsetRemark, &header.NotificationResponse{HasMsg: true}), nil
	}
	born := req.BornTime
	if born == 0 {
		born = b.clock().UnixMilli()
	}
	h := &pop.Held{Key: pop.Key{Topic: t.TopicName, Group: g.GroupName, QueueId: req.QueueId},
		Deadline: compat.Later(born, max(0, req.PollTime)), Owner: c.Conn(), Waiter: &notifying{b, c}}
	if !req.Order {
		h.Retry = pop.RetryTopic(g.GroupName, t.TopicName)
	}
	c.Command().Fields = nil
	out := pop.HeldLate
	if req.PollTime > 0 {
		out = b.path.pop.notices.Hold(h)
	}
	switch {
	case out != pop.HeldNow:
		return c.Answer(protocol.Success, unsetRemark, &header.NotificationResponse{PollingFull: out == pop.HeldFull}), nil
	case !c.Conn().Active():
		b.path.pop.notices.OwnerGone(c.Conn())
	case available():
		b.path.pop.notices.Now(h)
	}
	return nil, nil
}

// Wake answers.
func (n *notifying) Wake(why pop.Reason) {
	if !n.call.Conn().Active() {
		n.call.Drop()
		return
	}
	n.call.Reply(n.call.Answer(protocol.Success, unsetRemark, &header.NotificationResponse{HasMsg: why == pop.Arrived}))
}

// pollingInfo (200055) tells how many pops of a group wait for a queue.
func (b *Broker) pollingInfo(c *remoting.Call, req *header.PollingInfoRequest) (*protocol.Command, error) {
	if _, _, r := b.checkPeek(c, req.Topic, req.ConsumerGroup, req.QueueId); r != nil {
		return c.Answer(r.code, r.remark, &header.PollingInfoResponse{}), nil
	}
	n := b.path.pop.held.Count(pop.Key{Topic: req.Topic, Group: req.ConsumerGroup, QueueId: req.QueueId})
	return c.Answer(protocol.Success, unsetRemark, &header.PollingInfoResponse{PollingNum: int32(n)}), nil
}

// peekBytes is after how many bytes of messages a peek looks at no further queue: the answer has to fit a frame.
const peekBytes = 8 << 20

// peekMessage (200052) shows messages that a pop would give, and takes none.
func (b *Broker) peekMessage(c *remoting.Call, req *header.PeekMessageRequest) (*protocol.Command, error) {
	t, g, r := b.checkPeek(c, req.Topic, req.ConsumerGroup, req.QueueId)
	if r != nil {
		return c.Answer(r.code, r.remark, &header.PopMessageResponse{}), nil
	}
	var h header.PopMessageResponse
	var all []byte
	count, most := 0, int(max(0, req.MaxMsgNums))
	peek := func(topic string, queueId int32) bool {
		offset, ok := b.offsets.Query(g.GroupName, topic, queueId)
		if !ok {
			offset = b.store.MinOffset(topic, queueId)
		}
		left := b.store.MaxOffset(topic, queueId) - offset
		if count < most && len(all) < peekBytes {
			got := b.store.Get(topic, queueId, offset, most-count, nil)
			if got.Status == store.OffsetTooSmall || got.Status == store.OffsetOverflowBadly {
				got = b.store.Get(topic, queueId, got.NextBeginOffset, most-count, nil)
			}
			all, count = append(all, got.Body...), count+got.Count
		}
		h.RestNum += left
		return true
	}
	popQueues(t, req.QueueId, func(queueId int32) bool { return peek(t.TopicName, queueId) })
	if retry, ok := b.topics.Lookup(pop.RetryTopic(g.GroupName, t.TopicName)); ok {
		popQueues(retry, -1, func(queueId int32) bool { return peek(retry.TopicName, queueId) })
	}
	if count == 0 {
		return c.Answer(protocol.PullNotFound, "NO_MESSAGE_IN_QUEUE", &h), nil
	}
	a := c.Answer(protocol.Success, "FOUND", &h)
	a.Body = all
	return a, nil
}

// popRollback (200056) exports the records of 5.3.3's other way to keep checkpoints, of which there are none.
func (b *Broker) popRollback(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return c.Answer(protocol.Success, unsetRemark, nil), nil
}
