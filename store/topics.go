package store

import (
	"errors"
	"strings"

	"rocketd/protocol/message"
)

// Topics lists the topics that have consume queues, in order.
func (s *Store) Topics() []string { return s.queues.Topics() }

// Queues lists the queue ids of a topic, in order.
func (s *Store) Queues(topic string) []int32 { return s.queues.Queues(topic) }

// DeleteTopics removes the queues of every topic for which alive is false (codes 215 and 316), but not those of
// delayed messages, transaction operations and light message queues. What the commit log has of them stays.
func (s *Store) DeleteTopics(alive func(topic string) bool) error {
	var errs []error
	for _, topic := range s.queues.Topics() {
		if topic == message.TopicSchedule || topic == message.TopicTransOpHalf ||
			strings.HasPrefix(topic, message.LmqTopicPrefix) || alive(topic) {
			continue
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
	return errors.Join(errs...)
}

// CleanExpired removes the queues whose last message is no longer in the commit log (code 306), but not those of
// delayed messages.
func (s *Store) CleanExpired() error {
	var errs []error
	minimum := s.log.MinOffset()
	for _, q := range s.queues.All() {
		newest := q.MaxPhyOffset()
		if q.Topic() == message.TopicSchedule || newest <= 0 || newest >= minimum {
			continue
		}
		s.o.Log.Info("an expired queue is removed", "topic", q.Topic(), "queueId", q.QueueId(), "newest", newest, "minPhyOffset", minimum)
		if err := s.queues.Destroy(q); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
