package broker

import (
	"fmt"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// maxDumpedEntries bounds an answer of queryConsumeQueue: more would not fit a frame, which no client could read.
const maxDumpedEntries = 100_000

// queryConsumeQueue (321) shows entries of a consume queue, at most those of one file. As
// AdminBrokerProcessor#queryConsumeQueue of 4.9.8: an index without an entry is a success with a remark and no body;
// filterData is the text `null` for a group that filters by tags.
func (b *Broker) queryConsumeQueue(c *remoting.Call, req *header.QueryConsumeQueueRequest) (*protocol.Command, error) {
	entries, ok, err := b.store.Entries(req.Topic, req.QueueId, req.Index, int(min(max(req.Count, 1), maxDumpedEntries)))
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "%d@%s is not exist!", req.QueueId, req.Topic)
	}
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the queue could not be read: %v", err)
	}
	if len(entries) == 0 {
		return c.Answer(protocol.Success, fmt.Sprintf("Index %d of %d@%s is not exist!", req.Index, req.QueueId, req.Topic), nil), nil
	}
	dump := &body.QueryConsumeQueueResponseBody{
		MinQueueIndex: b.store.MinOffset(req.Topic, req.QueueId),
		MaxQueueIndex: b.store.MaxOffset(req.Topic, req.QueueId),
		QueueData:     []body.ConsumeQueueData{},
	}
	if req.ConsumerGroup != "" {
		dump.FilterData = req.ConsumerGroup + "@" + req.Topic + " is not online!"
		if g := b.consumers.Group(req.ConsumerGroup); g != nil {
			if s, ok := g.Subscription(req.Topic); ok {
				dump.SubscriptionData, dump.FilterData = s, "null"
			}
		}
	}
	if req.Count > 0 {
		for _, e := range entries {
			dump.QueueData = append(dump.QueueData, body.ConsumeQueueData{PhysicOffset: e.PhyOffset, PhysicSize: e.Size, TagsCode: e.TagsCode})
		}
	}
	return withBody(c.Answer(protocol.Success, unsetRemark, nil), dump)
}
