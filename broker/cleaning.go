package broker

import (
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// cleanExpiredQueues (306) removes the queues whose last message has left the commit log.
func (b *Broker) cleanExpiredQueues(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	b.log.Warn("expired queues are removed by request", "client", c.Conn().RemoteAddr())
	if err := b.store.CleanExpired(); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "an expired queue could not be removed: %v", err)
	}
	return c.Success(nil), nil
}

// cleanUnusedTopics (316) removes the queues of topics that are not in the table of topics.
func (b *Broker) cleanUnusedTopics(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	b.log.Warn("queues of unknown topics are removed by request", "client", c.Conn().RemoteAddr())
	if err := b.store.DeleteTopics(b.topicExists); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "queues of an unknown topic could not be removed: %v", err)
	}
	return c.Success(nil), nil
}

// deleteExpiredLog (329) lets the next runs of cleaning delete expired log files at any hour; the answer does not wait.
func (b *Broker) deleteExpiredLog(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	b.log.Warn("expired log files are deleted by request", "client", c.Conn().RemoteAddr())
	b.store.DeleteExpiredLog()
	return c.Success(nil), nil
}
