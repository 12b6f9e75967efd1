package offsets

// Limit takes back the offsets that lie beyond the end of their queue. end is where a queue ends; ok is false when nobody
// knows the topic: then its offsets stay as they are.
func (t *Table) Limit(end func(topic string, queueId int32) (offset int64, ok bool)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for k, q := range t.mu.m {
		q.Lock()
		for queueId, offset := range q.m {
			if last, ok := end(k.topic, queueId); ok && offset > last {
				q.m[queueId] = last
				t.dirty.Store(true)
				t.o.Log.Warn("consumer offset was beyond its queue", "group", k.group, "topic", k.topic, "queueId", queueId,
					"offset", offset, "corrected", last)
			}
		}
		q.Unlock()
	}
}
