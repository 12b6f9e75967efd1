package broker

import (
	"cmp"
	"errors"
	"slices"

	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// Behaviour: QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE and GET_ALL_MESSAGE_REQUEST_MODE, as QueryAssignmentProcessor of
// 5.3.3. The broker shares out the queues of a topic among the clients of a group, and says whether they pull or pop.

// queryAssignment (400) tells a client which queues it takes messages from. What cannot be shared out now is answered
// without a list: the client keeps what it has.
func (b *Broker) queryAssignment(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.QueryAssignmentRequestBody)
	if err := b.decodeBody(c, req); err != nil {
		return nil, err
	}
	mode := b.requestMode(req.Topic, req.ConsumerGroup)
	answer := new(body.QueryAssignmentResponseBody)
	if queues, ok := b.shareOut(req, mode); ok {
		slices.SortFunc(queues, compareQueues)
		list := []body.MessageQueueAssignment{}
		for _, q := range slices.Compact(queues) {
			list = append(list, body.MessageQueueAssignment{MessageQueue: q, Mode: mode.Mode})
		}
		answer.MessageQueueAssignments = &list
	}
	return withBody(c.Success(nil), answer)
}

// requestMode is how a group takes messages of a topic.
func (b *Broker) requestMode(topic, group string) *body.SetMessageRequestModeRequestBody {
	if mode := b.path.pop.modes.Find(topic, group); mode != nil {
		return mode
	}
	cfg := b.config()
	if !topics.IsRetry(topic) && cfg.DefaultMessageRequestMode == string(body.ModePop) {
		return &body.SetMessageRequestModeRequestBody{Mode: body.ModePop, PopShareQueueNum: cfg.DefaultPopShareQueueNum}
	}
	return &body.SetMessageRequestModeRequestBody{Mode: body.ModePull}
}

// compareQueues is the order of MessageQueue in Java.
func compareQueues(a, b body.MessageQueue) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueId, b.QueueId))
}

// shareOut is the queues of one client; false: that can't be told now.
func (b *Broker) shareOut(req *body.QueryAssignmentRequestBody, mode *body.SetMessageRequestModeRequestBody) ([]body.MessageQueue, bool) {
	if req.MessageModel != body.Clustering && req.MessageModel != body.Broadcasting {
		return nil, false
	}
	queues := slices.Clone(b.subscribeQueues(req.Topic))
	if len(queues) == 0 {
		return nil, false
	}
	if req.MessageModel == body.Broadcasting || !b.config().ServerLoadBalancerEnable {
		return queues, true
	}
	group := b.consumers.Group(req.ConsumerGroup)
	if group == nil {
		return nil, false
	}
	slices.SortFunc(queues, compareQueues)
	ids := group.ClientIds()
	if mode.Mode == body.ModePop {
		return pop.AllocatePop(req.StrategyName, req.ClientId, queues, ids, mode.PopShareQueueNum)
	}
	return pop.Allocate(req.StrategyName, req.ClientId, queues, ids)
}

// setRequestMode (401) sets how a group takes messages of a topic. The answer waits for the file.
func (b *Broker) setRequestMode(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.SetMessageRequestModeRequestBody)
	if err := b.decodeBody(c, req); err != nil {
		return nil, err
	}
	if topics.IsRetry(req.Topic) {
		return c.Answer(protocol.NoPermission, "retry topic is not allowed to set mode", nil), nil
	}
	if req.Topic == "" || req.ConsumerGroup == "" { // exceptions in 5.3.3
		return nil, protocol.Errorf(protocol.SystemError, "topic and consumerGroup must be given")
	}
	if _, ok := b.topics.Lookup(req.Topic); !ok {
		return c.Answer(protocol.TopicNotExist, "topic["+req.Topic+"] not exist", nil), nil
	}
	if b.groups.Find(req.ConsumerGroup) == nil {
		return c.Answer(protocol.SubscriptionGroupNotExist, "subscription group does not exist", nil), nil
	}
	b.path.pop.modes.Set(req, func(err error) {
		if errors.Is(err, pop.ErrModes) {
			c.ReplyError(protocol.Errorf(protocol.SystemError, "%v", err))
			return
		}
		if err != nil {
			c.ReplyError(unsaved(err))
			return
		}
		b.log.Info("message request mode set", "topic", req.Topic, "group", req.ConsumerGroup, "mode", req.Mode,
			"popShareQueueNum", req.PopShareQueueNum, "client", c.Conn().RemoteAddr())
		c.Reply(c.Success(nil))
	})
	return nil, nil
}

// allRequestModes (402) tells how all groups take messages that were set.
func (b *Broker) allRequestModes(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return withBody(c.Success(nil), b.path.pop.modes.All())
}
