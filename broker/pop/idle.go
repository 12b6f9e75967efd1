package pop

import "rocketd/store"

// A queue is forgotten that nobody uses: groups come and go, and a client may make them up. It may be when it says nothing that a
// start would not find without it:
//
//   - no checkpoint is open, and no batch is under way in order;
//   - the records that tell where its group stands are all before the place that is durable: no start reads them any more, so
//     that nobody needs to know that they are to be taken back (Forget, SetBack);
//   - nobody has taken it, and nobody did since it was looked at before.
//
// The spots of checkpoints name a Queue itself. A new one of the same key is another, but then no checkpoint of the old one is open.

// idleRun is how many queues are looked at while nobody can find one.
const idleRun = 512

// forgetIdle looks at every queue once, and forgets those that may be.
func (c *Checkpoints) forgetIdle() {
	c.queues.RLock()
	left := len(c.queues.list)
	c.queues.RUnlock()
	for ; left > 0; left -= idleRun {
		c.forgetSome(min(left, idleRun))
	}
}

// forgetSome looks at the next n queues.
func (c *Checkpoints) forgetSome(n int) {
	now := c.now()
	c.queues.Lock()
	defer c.queues.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.queues
	for ; n > 0 && len(s.list) > 0; n-- {
		if s.hand >= len(s.list) {
			s.hand = 0
		}
		q := s.list[s.hand]
		if q.order != nil && now-q.order.consumed > orderSpan {
			q.order = nil
			c.mu.dirty = true
		}
		if q.used.Swap(false) || q.held.Load() > 0 || q.open > 0 || q.order != nil || q.recorded > c.safe {
			s.hand++
			continue
		}
		delete(s.m, q.Key)
		last := len(s.list) - 1
		s.list[s.hand], s.list[last] = s.list[last], nil
		s.list = s.list[:last]
	}
	if len(s.list) == 0 { // neither a map nor a slice grows smaller by itself
		s.m, s.list = make(map[Key]*Queue), nil
	}
}

// stood notes a record that tells where the group stands. The table is locked.
func (q *Queue) stood(p *store.Put) { q.recorded = max(q.recorded, p.QueueOffset+1) }
