package pop

import "rocketd/store"

// Forget acknowledges everything that is under way in the queues that a func names: their topic or group has been
// deleted, and where their groups stand. Another topic of that name may get other messages at the same offsets. It may be called at any time.
func (c *Checkpoints) Forget(of func(Key) bool) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	var gone []pending
	c.mu.Lock()
	for _, n := range c.mu.open {
		if n.newer != nil && of(n.queue.Key) {
			bits := all(n.size()) &^ (n.acked | n.taking)
			n.taking |= bits
			gone = append(gone, pending{n, bits})
		}
	}
	c.mu.Unlock()
	var failed error
	for len(gone) > 0 {
		part := gone[:min(len(gone), 128)]
		gone = gone[len(part):]
		if err := c.ackPart(part); err != nil {
			failed = err
		}
	}
	var run []*store.Put
	var queues []*Queue
	c.queues.RLock()
	c.mu.Lock()
	for k, q := range c.queues.m {
		if !of(k) {
			continue
		}
		q.held.Add(1)
		queues = append(queues, q)
		run = append(run, c.record(appendOffset(nil, k, 0)))
		if q.order != nil {
			q.order = nil
			c.mu.dirty = true
		}
	}
	c.mu.Unlock()
	c.queues.RUnlock()
	for len(run) > 0 {
		part := run[:min(len(run), renewRun)]
		of := queues[:len(part)]
		run, queues = run[len(part):], queues[len(part):]
		if err := c.put(part...); err != nil {
			failed = err
		}
		c.mu.Lock()
		for i, q := range of {
			if part[i].Err == nil {
				q.stood(part[i])
			}
		}
		c.mu.Unlock()
		for _, q := range of {
			q.held.Add(-1)
		}
	}
	return failed
}
