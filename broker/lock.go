package broker

import (
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// lockBatch (41) locks queues for a client of a group that consumes in order, and answers those that it has now.
func (b *Broker) lockBatch(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.LockBatchRequestBody)
	if err := b.decodeBody(c, req); err != nil {
		return nil, err
	}
	held := b.locks.Lock(req.ConsumerGroup, req.ClientId, req.MqSet)
	return withBody(c.Success(nil), &body.LockBatchResponseBody{LockOKMQSet: held})
}

// unlockBatch (42) releases queues.
func (b *Broker) unlockBatch(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.LockBatchRequestBody)
	if err := b.decodeBody(c, req); err != nil {
		return nil, err
	}
	if req.ConsumerGroup == "" { // an exception in 4.9.8
		return nil, protocol.Errorf(protocol.SystemError, "the request's body has no consumerGroup")
	}
	b.locks.Unlock(req.ConsumerGroup, req.ClientId, req.MqSet)
	return c.Success(nil), nil
}
