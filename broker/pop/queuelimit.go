package pop

// QueueLimit is the most queues of groups that are kept, some 250 bytes each; those that nobody uses are forgotten. At the limit a
// group gets nothing from a queue that is not among them.
const QueueLimit = 1_000_000

// Room tells, and counts, whether a queue is kept, or may be.
func (c *Checkpoints) Room(k Key) bool {
	c.queues.RLock()
	defer c.queues.RUnlock()
	if len(c.queues.m) < c.o.QueueLimit || c.queues.m[k] != nil {
		return true
	}
	c.refused.Add(1)
	return false
}

// Refused is how often a queue was refused since the start because there were too many.
func (c *Checkpoints) Refused() int64 { return c.refused.Load() }
