package broker

import (
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// uniqueKeyFlag is an ext field of a query by unique key ("true"), MixAll#UNIQUE_MSG_QUERY_FLAG.
const uniqueKeyFlag = "_UNIQUE_KEY_QUERY"

// queryMessage (12) finds messages by topic and key within a time. As QueryMessageProcessor of 4.9.8; its answer's
// header form is the request's here.
func (b *Broker) queryMessage(c *remoting.Call, req *header.QueryMessageRequest) (*protocol.Command, error) {
	count := int(req.MaxNum)
	if v, _ := c.Command().Field(uniqueKeyFlag); v == "true" {
		count = b.config().DefaultQueryMaxNum
	}
	found := b.store.Query(req.Topic, req.Key, count, req.BeginTimestamp, req.EndTimestamp)
	h := &header.QueryMessageResponse{
		IndexLastUpdateTimestamp: found.IndexLastUpdateTimestamp,
		IndexLastUpdatePhyoffset: found.IndexLastUpdatePhyOffset,
	}
	if len(found.Records) == 0 {
		return c.Answer(protocol.QueryNotFound, "can not find message, maybe time range not correct", h), nil
	}
	a := c.Success(h)
	a.Body = found.Body
	return a, nil
}

// viewMessage (33) reads the message at a commit-log offset, which an offset message id holds.
func (b *Broker) viewMessage(c *remoting.Call, req *header.ViewMessageRequest) (*protocol.Command, error) {
	r, err := b.store.Record(req.Offset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "can not find message by the offset, %d", req.Offset)
	}
	if b.acl != nil {
		m := r.Message()
		if err := b.mayRead(c, &m); err != nil {
			return nil, err
		}
	}
	a := c.Success(nil)
	a.Body = r[:r.Size()]
	return a, nil
}
