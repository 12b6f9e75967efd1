package longpoll

import "time"

// chain is a list of claimed pulls, linked by next.
type chain struct{ head, tail *Pull }

func (c *chain) add(p *Pull, why Reason) {
	p.why, p.next = why, nil
	if c.head == nil {
		c.head = p
	} else {
		c.tail.next = p
	}
	c.tail = p
}

// wake hands claimed pulls to the workers.
func (h *Holder) wake(c chain) {
	if c.head == nil {
		return
	}
	w := &h.woken
	w.Lock()
	if w.head == nil {
		w.head = c.head
	} else {
		w.tail.next = c.head
	}
	w.tail = c.tail
	w.Unlock()
	w.ready.Signal()
}

// work lets claimed pulls go on, one after the other, until Close and the list is empty.
func (h *Holder) work() {
	defer h.workers.Done()
	w := &h.woken
	for {
		w.Lock()
		for w.head == nil {
			if w.closed {
				w.Unlock()
				return
			}
			w.ready.Wait()
		}
		p := w.head
		w.head = p.next
		more := w.head != nil
		w.Unlock()
		if more {
			w.ready.Signal() // a chain wakes one worker; that one wakes the next
		}
		p.next = nil
		h.disown(p)
		p.Waiter.Wake(p.why)
	}
}

// scanLoop looks through all held pulls each period, as PullRequestHoldService of 4.9.8 does.
func (h *Holder) scanLoop() {
	defer h.scanning.Done()
	var keys []queueKey
	for {
		t := time.NewTimer(h.o.ScanPeriod())
		select {
		case <-h.scanStop:
			t.Stop()
			return
		case <-t.C:
		}
		keys = h.scan(keys[:0])
	}
}

// scan lets those pulls go on whose queue has grown past their offset (without a look at their filter) or
// whose time is over. The store is asked without a lock: its dispatcher may be inside Arrive.
func (h *Holder) scan(keys []queueKey) []queueKey {
	if h.count.Load() == 0 {
		return keys
	}
	for i := range h.shards {
		s := &h.shards[i]
		s.Lock()
		for k := range s.queues {
			keys = append(keys, k)
		}
		s.Unlock()
	}
	now := h.o.Clock().UnixMilli()
	for _, k := range keys {
		h.scanQueue(k, h.o.MaxOffset(k.topic, k.queueId), now)
	}
	clear(keys) // keep no topic names alive
	return keys
}

func (h *Holder) scanQueue(k queueKey, maxOffset, now int64) {
	s := h.shard(h.hash(k.topic, k.queueId))
	var c chain
	s.Lock()
	if first := s.queues[k]; first != nil {
		last := first.prev
		for p := first; ; {
			next, end := p.next, p == last
			switch {
			case maxOffset > p.Offset:
				h.remove(s, p)
				c.add(p, Grown)
			case now >= p.Deadline:
				h.remove(s, p)
				c.add(p, TimedOut)
			}
			if end {
				break
			}
			p = next
		}
	}
	s.Unlock()
	h.wake(c)
}
