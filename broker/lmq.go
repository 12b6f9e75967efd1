package broker

import (
	"strings"

	"rocketd/broker/topics"
)

// Behaviour: light message queues (enableLmq), as the Lmq… classes of 4.9.8. Topics and groups that begin with %LMQ% exist
// without being in a table (broker/topics, broker/groups), the groups have one offset a topic (broker/offsets), and all of
// them are counted under one name. Their messages come there by enableMultiDispatch (store/multidispatch.go).

// isLmq tells whether a name is that of a light message queue.
func isLmq(name string) bool { return strings.HasPrefix(name, topics.LmqPrefix) }

// statsNames are the names that a group and a topic are counted under.
func (b *Broker) statsNames(group, topic string) (string, string) {
	if b.config().EnableLmq {
		if isLmq(group) {
			group = topics.LmqPrefix
		}
		if isLmq(topic) {
			topic = topics.LmqPrefix
		}
	}
	return group, topic
}
