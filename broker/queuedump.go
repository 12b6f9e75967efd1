package broker

import (
	"encoding/base64"
	"fmt"
	"strings"

	"rocketd/broker/filter"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// maxDumpedEntries bounds an answer of queryConsumeQueue: more would not fit a frame, which no client could read.
const maxDumpedEntries = 100_000

// queryConsumeQueue (321) shows entries of a consume queue, at most those of one file. As
// AdminBrokerProcessor#queryConsumeQueue of 4.9.8: an index without an entry is a success with a remark and no body;
// filterData is the text `null` for a group that filters by tags, else what consumerFilter.json has of it.
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
	var expression *filter.Consumer
	if req.ConsumerGroup != "" {
		dump.FilterData = req.ConsumerGroup + "@" + req.Topic + " is not online!"
		if g := b.consumers.Group(req.ConsumerGroup); g != nil {
			if s, ok := g.Subscription(req.Topic); ok {
				dump.SubscriptionData, dump.FilterData = s, "null"
				if expression = b.filters.Find(req.Topic, req.ConsumerGroup); expression != nil {
					dump.FilterData = expression.Text()
				}
			}
		}
	}
	if req.Count > 0 {
		for _, e := range entries {
			d := body.ConsumeQueueData{PhysicOffset: e.PhyOffset, PhysicSize: e.Size, TagsCode: e.TagsCode}
			if e.IsExtAddress() {
				b.dumpUnit(&d, req, dump.SubscriptionData, expression)
			}
			dump.QueueData = append(dump.QueueData, d)
		}
	}
	return withBody(c.Answer(protocol.Success, unsetRemark, nil), dump)
}

// dumpUnit adds what the unit in consumequeue_ext says, to which an entry leads.
func (b *Broker) dumpUnit(d *body.ConsumeQueueData, req *header.QueryConsumeQueueRequest, s *body.SubscriptionData, e *filter.Consumer) {
	u, ok := b.store.Unit(req.Topic, req.QueueId, d.TagsCode)
	if !ok {
		d.Msg = fmt.Sprintf("Cq extend not exist!addr: %d", d.TagsCode)
		return
	}
	bitMap := ""
	if len(u.BitMap) > 0 {
		bitMap = `"filterBitMap":"` + base64.StdEncoding.EncodeToString(u.BitMap) + `",`
		d.BitMap = bitText(u.BitMap)
	}
	d.ExtendDataJson = fmt.Sprintf(`{%s"msgStoreTime":%d,"size":%d,"tagsCode":%d}`, bitMap, u.StoreTimestamp, u.Size(), u.TagsCode)
	switch {
	case s == nil:
	case s.ClassFilterMode:
		d.Eval = true
	case filter.IsTag(s.ExpressionType):
		d.Eval = filter.FromCodes(s.SubString, s.CodeSet).MatchQueue(u.TagsCode)
	default:
		d.Eval = e == nil || e.MatchUnit(u.StoreTimestamp, u.BitMap)
	}
}

// bitText is a bit map as text, the last byte first and a line for each eight (BitsArray#toString of 4.9.8).
func bitText(bits []byte) string {
	var text strings.Builder
	for i := len(bits) - 1; i >= 0; i-- {
		fmt.Fprintf(&text, "%08b", bits[i])
		if i%8 == 0 {
			text.WriteByte('\n')
		}
	}
	return text.String()
}
