package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// Behaviour: enableMultiDispatch, as MultiDispatch and ConsumeQueue#multiDispatchLmqQueue of 4.9.8. A message whose
// property INNER_MULTI_DISPATCH names further queues, parted by commas, enters each of them beside its own: it is stored
// once, with the queue offsets that it has there in INNER_MULTI_QUEUE_OFFSET. A name that begins with %LMQ% is a light
// message queue: with enableLmq it has one queue, 0; all other names have a queue of the message's own id. The further
// entries have no unit in consumequeue_ext. Batches are not dispatched so, as in 4.9.8, nor are messages that wait or are copies
// of what was dispatched already: as 5.x, and half messages too.

// ErrQueueName is the refusal of a message for a queue whose name could be no topic, or to which clients may not send: what
// lies in the queues of delayed, half and popped messages would be taken for the broker's word. 4.9.8 takes any name.
var ErrQueueName = errors.New("store: INNER_MULTI_DISPATCH names a queue that it can't be put into")

// isBlank is StringUtils.isBlank: nothing but white space.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// furtherQueue is the queue of a name.
func (c *Config) furtherQueue(name string, queueId int32) commitlog.QueueName {
	if c.EnableLmq && strings.HasPrefix(name, message.LmqTopicPrefix) {
		queueId = 0
	}
	return commitlog.QueueName{Topic: name, QueueId: queueId}
}

// dispatchesLater tells whether the messages of a topic wait until they get to their own, or, in retry and dead-letter topics, have been
// there.
func dispatchesLater(topic string) bool {
	return message.HoldsOthers(topic) || message.IsRetryTopic(topic) || message.IsDLQTopic(topic)
}

// takeOffsets takes out of a message what would have it dispatched.
func takeOffsets(m *message.Message) {
	if _, ok := m.Property(message.PropertyInnerMultiQueueOffset); ok {
		m.Properties = message.RemoveProperty(m.Properties, message.PropertyInnerMultiQueueOffset)
	}
}

// nameQueues prepares the multi-dispatch of a run and returns those that can be appended.
func (s *Store) nameQueues(cfg *Config, run []*Put) (good []*Put) {
	for _, p := range run {
		if p.Message == nil {
			for _, m := range p.Batch { // what a client has made up would else be dispatched
				takeOffsets(m)
			}
			good = append(good, p)
			continue
		}
		p.Queues, p.Err = nil, nil
		names, ok := p.Message.Property(message.PropertyInnerMultiDispatch)
		names = strings.TrimRight(names, ",") // as String.split
		if !ok || isBlank(names) {
			good = append(good, p)
			continue
		}
		for _, name := range strings.Split(names, ",") {
			if !message.LegalName(name) || name == "" || len(name) > message.MaxFolderName || message.IsNotAllowedSendTopic(name) {
				p.Err = fmt.Errorf("%w: %.300q", ErrQueueName, name)
				break
			}
			p.Queues = append(p.Queues, cfg.furtherQueue(name, p.Message.QueueId))
		}
		if p.Err != nil {
			continue
		}
		if dispatchesLater(p.Message.Topic) {
			takeOffsets(p.Message)
			p.Queues = nil
		}
		good = append(good, p)
	}
	return good
}

// eachFurtherQueue calls f for each further queue of a record that entered its own, until f returns false.
func (c *Config) eachFurtherQueue(properties string, queueId int32, f func(q commitlog.QueueName, queueOffset int64) bool) {
	names, ok := message.Property(properties, message.PropertyInnerMultiDispatch)
	if !ok || isBlank(names) {
		return
	}
	list, ok := message.Property(properties, message.PropertyInnerMultiQueueOffset)
	if !ok || isBlank(list) {
		return
	}
	names, list = strings.TrimRight(names, ","), strings.TrimRight(list, ",") // as String.split
	if strings.Count(names, ",") != strings.Count(list, ",") {
		return
	}
	for more := true; more; {
		var name, text string
		name, names, more = strings.Cut(names, ",")
		text, list, _ = strings.Cut(list, ",")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !f(c.furtherQueue(name, queueId), n) {
			return
		}
	}
}

// enqueueFurther puts the entry of a record into those of its further queues that are wanted.
func (s *Store) enqueueFurther(cfg *Config, properties string, queueId int32, e consumequeue.Entry, wanted func(consumequeue.Name) bool) {
	cfg.eachFurtherQueue(properties, queueId, func(q commitlog.QueueName, queueOffset int64) bool {
		if wanted(consumequeue.Name{Topic: q.Topic, QueueId: q.QueueId}) {
			if err := s.queues.Append(q.Topic, q.QueueId, queueOffset, e); err != nil {
				s.dispatchError("light consume queue", e.PhyOffset, err)
			}
		}
		return true
	})
}

// arriveFurther tells who waits for messages of a record's further queues.
func (s *Store) arriveFurther(cfg *Config, a Arrival) {
	cfg.eachFurtherQueue(a.Properties, a.QueueId, func(q commitlog.QueueName, queueOffset int64) bool {
		b := a
		b.Topic, b.QueueId, b.QueueOffset = q.Topic, q.QueueId, queueOffset
		s.o.Arrive(b)
		return true
	})
}

// isOf tells whether a record has an entry at an offset of a queue. What enters further queues has been configured when the
// record was dispatched, perhaps otherwise than now.
func isOf(r message.Record, q *consumequeue.Queue, queueOffset int64) bool {
	if r.Topic() == q.Topic() && r.QueueId() == q.QueueId() {
		return r.QueueOffset() == queueOffset
	}
	found := false
	for _, lmq := range []bool{true, false} {
		(&Config{EnableLmq: lmq}).eachFurtherQueue(r.Properties(), r.QueueId(), func(name commitlog.QueueName, at int64) bool {
			found = found || name.Topic == q.Topic() && name.QueueId == q.QueueId() && at == queueOffset
			return !found
		})
	}
	return found
}

// TooManyLmqQueues tells whether there are more light message queues than maxLmqConsumeQueueNum: then nothing is read
// from any (DefaultMessageStore#isLmqConsumeQueueNumExceeded of 4.9.8, whose check of sends never takes hold).
func (s *Store) TooManyLmqQueues(topic string) bool {
	cfg := s.Config()
	return cfg.EnableLmq && cfg.EnableMultiDispatch && strings.HasPrefix(topic, message.LmqTopicPrefix) &&
		s.queues.LmqQueues() > int64(cfg.MaxLmqConsumeQueueNum)
}

// DeleteLmq removes a light message queue, as DefaultMessageStore#cleanUnusedLmqTopic of 4.9.8.
func (s *Store) DeleteLmq(topic string) error {
	q := s.queues.Find(topic, 0)
	if q == nil {
		return nil
	}
	s.o.Log.Info("a light message queue is removed", "topic", topic)
	return s.queues.Destroy(q)
}
