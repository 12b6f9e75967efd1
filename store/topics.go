package store

import (
	"errors"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
)

// Topics lists the topics that have consume queues, in order.
func (s *Store) Topics() []string { return s.queues.Topics() }

// Queues lists the queue ids of a topic, in order.
func (s *Store) Queues(topic string) []int32 { return s.queues.Queues(topic) }

// DeleteTopics removes the queues of every topic for which alive is false (codes 215 and 316), but not those of
// delayed messages, transaction operations and light message queues. What the commit log has of them stays.
func (s *Store) DeleteTopics(alive func(topic string) bool) error {
	var errs []error
	removed := false
	for _, topic := range s.queues.Topics() {
		if topic == message.TopicSchedule || topic == message.TopicTimer || topic == message.TopicTransOpHalf ||
			strings.HasPrefix(topic, message.LmqTopicPrefix) || alive(topic) {
			continue
		}
		if !removed {
			removed = true
			errs = append(errs, s.dropHint())
		}
		n := 0
		for _, queueId := range s.queues.Queues(topic) {
			if q := s.queues.Find(topic, queueId); q != nil {
				if err := s.queues.Destroy(q); err != nil {
					errs = append(errs, err)
				}
				n++
			}
		}
		s.o.Log.Info("the queues of a topic were removed", "topic", topic, "queues", n)
	}
	if removed { // a checkpoint in between has brought a new one
		errs = append(errs, s.dropHint())
	}
	return errors.Join(errs...)
}

// CleanExpired removes the queues whose last message is no longer in the commit log (code 306), but not those of
// delayed messages.
func (s *Store) CleanExpired() error {
	var errs []error
	minimum := s.log.MinOffset()
	for _, q := range s.queues.All() {
		if newest := q.MaxPhyOffset(); newest > 0 && newest < minimum {
			errs = append(errs, s.cleanExpired(q, minimum))
		}
	}
	if err := s.dropHint(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// cleanExpired removes a queue that has expired. It keeps writers out, so that no message enters the log with an offset of
// a queue that is just going: the offsets begin at 0 again afterwards.
func (s *Store) cleanExpired(q *consumequeue.Queue, minimum int64) error {
	s.putting.Lock()
	defer s.putting.Unlock()
	if !q.Expired(minimum) {
		return nil
	}
	s.o.Log.Info("an expired queue is removed", "topic", q.Topic(), "queueId", q.QueueId(), "newest", q.MaxPhyOffset(), "minPhyOffset", minimum)
	return s.queues.Destroy(q)
}
