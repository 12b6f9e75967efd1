package broker

import (
	"math/rand/v2"

	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store"
)

// taking is the messages that one pass of a pop takes.
type taking struct {
	p         *popping
	popTime   int64
	reviveQid int32
	max       int

	body    []byte
	count   int
	rest    int64 // messages left behind in the queues looked at
	starts  []byte
	offsets []byte
	counts  []byte
	full    bool  // what comes next would make the answer larger than a frame
	busy    int64 // ms: when the first batch of an orderly pop that bars this one comes free
	cold    bool
	moved   bool // past messages that the filter refuses
	err     error
	list    [maxPopMsgNums]int64
}

// popBytes is the most bytes of messages in one answer: with its header, and what messages of a retry topic grow by, it has to fit a
// frame. What could not be sent would be under way all the same, and come again, and be lost in the end.
const popBytes = protocol.MaxFrame - 256<<10

// take takes messages of the queues that the request means, and of the retry topic: now and then first, so that a busy
// topic does not keep them waiting for ever, else last.
func (t *taking) take() {
	req := t.p.req
	retryFirst := !req.Order && rand.IntN(100) < t.p.b.config().PopFromRetryProbability
	if retryFirst {
		t.takeRetry()
	}
	popQueues(t.p.topic, req.QueueId, func(queueId int32) bool {
		t.queue(t.p.topic.TopicName, queueId, false)
		return t.err == nil
	})
	if !retryFirst && !req.Order && t.count < t.max && t.err == nil {
		t.takeRetry()
	}
}

func (t *taking) takeRetry() {
	if retry, ok := t.p.b.topics.Lookup(t.p.retry); ok {
		popQueues(retry, -1, func(queueId int32) bool {
			t.queue(retry.TopicName, queueId, true)
			return t.err == nil
		})
	}
}

// queue takes messages of one queue. Where 5.3.3 passes over a queue of which another pop is just taking, this one
// waits for it: it takes microseconds.
func (t *taking) queue(topic string, queueId int32, isRetry bool) {
	b, req, c := t.p.b, t.p.req, t.p.b.path.pop.checkpoints
	k := pop.Key{Topic: topic, Group: req.ConsumerGroup, QueueId: queueId}
	if !c.Room(k) {
		return
	}
	q := c.Take(k)
	defer q.Release()
	offset := b.popOffset(t, q)
	if req.Order {
		if until := c.Busy(q, offset, req.AttemptId, req.InvisibleTime); until > 0 {
			if t.busy == 0 || until < t.busy {
				t.busy = until
			}
			return
		}
	} else if b.popBarred(q) {
		t.rest += b.store.MaxOffset(topic, queueId) - offset
		return
	}
	if t.count >= t.max || t.full {
		t.rest += b.store.MaxOffset(topic, queueId) - offset
		return
	}
	got := t.get(q, offset)
	switch got.Status {
	case store.OffsetTooSmall, store.OffsetOverflowBadly, store.OffsetFoundNull:
		b.log.Warn("pop offset corrected", "group", q.Group, "topic", q.Topic, "queueId", q.QueueId, "offset", offset, "newOffset", got.NextBeginOffset)
		offset = got.NextBeginOffset
		b.offsets.Commit(t.p.call.Conn(), q.Group, q.Topic, q.QueueId, offset)
		got = t.get(q, offset)
	}
	t.cold = t.cold || got.Cold || got.BehindBytes > b.path.cold.behind
	if t.count > 0 && len(t.body)+len(got.Body) > popBytes { // the next pop begins with these
		t.full = true
		store.RecycleBody(got.Body)
		t.rest += got.MaxOffset - offset
		return
	}
	if got.Count > 0 {
		if !t.found(q, offset, &got, isRetry) {
			return
		}
	} else if got.Status == store.NoMatchedMessage || got.Status == store.OffsetFoundNull || got.Status == store.MessageWasRemoving {
		b.offsets.Commit(t.p.call.Conn(), q.Group, q.Topic, q.QueueId, got.NextBeginOffset)
		t.moved = t.moved || got.NextBeginOffset > offset
	}
	t.rest += got.MaxOffset - got.NextBeginOffset
}

// get reads the store.
func (t *taking) get(q *pop.Queue, offset int64) store.GetResult {
	b := t.p.b
	start := b.clock()
	got := b.store.Get(q.Topic, q.QueueId, offset, min(t.max-t.count, len(t.list)), t.p.filter)
	took := b.clock().Sub(start)
	b.stats.get(got.Count, took)
	if got.Status == store.Found {
		group, topic := b.statsNames(q.Group, q.Topic)
		b.traffic.Get(group, topic, int64(got.Count), int64(len(got.Body)))
		b.traffic.Latency(group, topic, q.QueueId, took)
	}
	return got
}

// found notes the messages of one queue as under way and adds them to the answer. False: they could not be noted, and
// are not taken.
func (t *taking) found(q *pop.Queue, offset int64, got *store.GetResult, isRetry bool) bool {
	b, req, c := t.p.b, t.p.req, t.p.b.path.pop.checkpoints
	list := t.list[:0]
	for rest := got.Body; len(rest) > 0 && len(list) < len(t.list); {
		r := message.Record(rest)
		list = append(list, got.QueueOffset(len(list), r))
		rest = rest[r.Size():]
	}
	if req.Order {
		t.counts = c.PoppedOrderly(q, req.AttemptId, t.popTime, req.InvisibleTime, list, t.counts)
		b.offsets.Commit(t.p.call.Conn(), q.Group, q.Topic, q.QueueId, offset)
	} else {
		b.popLogTopic()
		if err := c.Popped(q, offset, t.popTime, req.InvisibleTime, list, got.NextBeginOffset); err != nil {
			t.err = err
			return false
		}
		b.offsets.Commit(t.p.call.Conn(), q.Group, q.Topic, q.QueueId, got.NextBeginOffset)
	}
	t.starts = pop.AppendStartOffset(t.starts, q.Topic, q.QueueId, offset)
	t.offsets = pop.AppendMsgOffsets(t.offsets, q.Topic, q.QueueId, list)
	t.count += got.Count
	if isRetry && !b.config().PopResponseReturnActualRetryTopic {
		t.addRetried(q, offset, got.Body, list)
	} else if t.body == nil {
		t.body = got.Body
	} else {
		t.body = append(t.body, got.Body...)
	}
	return true
}

// addRetried adds messages of the retry topic, which stand at the offsets of list, under the topic that they were sent to and with
// their receipt handles. One whose text has no room for that stays under the retry topic's name: then its client makes the
// handle, as for all others.
func (t *taking) addRetried(q *pop.Queue, offset int64, body []byte, list []int64) {
	h := pop.Handle{StartOffset: offset, PopTime: t.popTime, InvisibleTime: t.p.req.InvisibleTime, ReviveQid: t.reviveQid}
	name := t.p.b.config().BrokerName
	for n := 0; len(body) > 0; n++ {
		r := message.Record(body)
		body = body[r.Size():]
		m := r.Message()
		m.QueueOffset = list[n]
		if _, ok := message.Property(m.Properties, message.PropertyPopCk); !ok {
			handle := pop.AppendHandle(nil, h, q.Topic, name, q.QueueId, m.QueueOffset)
			text := message.AppendProperty([]byte(m.Properties), message.PropertyPopCk, string(handle))
			if len(text) > message.MaxPropertiesLength {
				t.body = message.AppendRecord(t.body, &m)
				continue
			}
			m.Properties = string(text)
		}
		m.Topic = t.p.topic.TopicName
		t.body = message.AppendRecord(t.body, &m)
	}
}

// popOffset is where a pop of a queue begins: where the group stands, or, for a new one, where it wants to begin, which
// is committed at once. The queue is locked.
func (b *Broker) popOffset(t *taking, q *pop.Queue) int64 {
	if offset, ok := b.offsets.Query(q.Group, q.Topic, q.QueueId); ok {
		return offset
	}
	offset := b.store.MinOffset(q.Topic, q.QueueId)
	if t.p.req.InitMode == popFromLast && !topics.IsRetry(q.Topic) &&
		!(b.config().InitPopOffsetByCheckMsgInMem && offset <= 0 && b.store.MaxOffset(q.Topic, q.QueueId) > 0 && !b.store.OnDisk(q.Topic, q.QueueId, 0)) {
		offset = max(0, b.store.MaxOffset(q.Topic, q.QueueId)-1) // the last one
	}
	b.offsets.Commit(t.p.call.Conn(), q.Group, q.Topic, q.QueueId, offset)
	return offset
}

// popFromLast is the initMode of groups that begin at the end.
const popFromLast = 1
