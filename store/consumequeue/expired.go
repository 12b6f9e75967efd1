package consumequeue

import "rocketd/protocol/message"

// Expired tells whether a queue holds nothing but entries of records that the commit log, which begins at minPhyOffset,
// no longer has, and no message of it is on its way (DefaultMessageStore#cleanExpiredConsumerQueue of 4.9.8). The queue
// of delayed messages never is, nor that of timer messages, whose places may not begin anew. Nothing may be appended to the log meanwhile.
func (q *Queue) Expired(minPhyOffset int64) bool {
	newest := q.MaxPhyOffset()
	return q.topic != message.TopicSchedule && q.topic != message.TopicTimer && newest > 0 && newest < minPhyOffset && q.next == q.max.Load()
}
