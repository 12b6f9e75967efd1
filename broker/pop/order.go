package pop

import (
	"slices"
	"strings"

	"rocketd/compat"
)

// order is the batch of an orderly pop that is under way in one queue: the group gets no other of that queue until it
// is acknowledged whole, or its time is over (OrderInfo of 5.3.3). Guarded by the table's lock.
type order struct {
	popTime   int64   // ms
	invisible int64   // ms
	consumed  int64   // ms: when it was popped, for the file
	attemptId string  // "" = none
	offsets   []int64 // ascending
	acked     uint64  // bits
	counts    map[int64]int32
	visible   map[int64]int64 // ms, of messages whose time was changed
}

// sameAttempt tells whether a pop is the one that took the batch, tried again.
func (o *order) sameAttempt(attemptId string) bool {
	return o.attemptId != "" && o.attemptId == attemptId
}

// busyUntil is when the first message that is not acknowledged becomes visible, as far as that lies ahead; 0: the batch
// keeps nobody from the next.
func (o *order) busyUntil(attemptId string, now int64) (until int64) {
	if o.sameAttempt(attemptId) {
		return 0
	}
	for i, offset := range o.offsets {
		if o.acked>>uint(i)&1 != 0 {
			continue
		}
		at, changed := o.visible[offset]
		if !changed {
			at = compat.Later(o.popTime, o.invisible)
		}
		if at > now {
			until = max(until, at) // every one of them has to become visible
		}
	}
	return until
}

// stands marks what lies before where the group stands as acknowledged: after a kill the batch is as the file has it.
func (o *order) stands(at int64) {
	for i, offset := range o.offsets {
		if offset < at {
			o.acked |= 1 << uint(i)
		}
	}
}

// next is where the group stands: at the first message that is not acknowledged.
func (o *order) next() int64 {
	for i, offset := range o.offsets {
		if o.acked>>uint(i)&1 == 0 {
			return offset
		}
	}
	return o.offsets[len(o.offsets)-1] + 1
}

// follow takes over from the batch before how often each message was popped.
func (o *order) follow(old *order) {
	if old == nil {
		return
	}
	if old.attemptId != "" && old.attemptId == o.attemptId {
		o.counts = old.counts
		return
	}
	for _, offset := range o.offsets {
		if slices.Contains(old.offsets, offset) {
			if o.counts == nil {
				o.counts = make(map[int64]int32)
			}
			o.counts[offset] = old.counts[offset] + 1
		}
	}
}

// appendCounts appends what orderCountInfo says of the batch: how often each message was popped before, and, for old
// clients, the least of that for the queue.
func (o *order) appendCounts(dst []byte, k Key) []byte {
	least := int32(1<<31 - 1)
	for _, offset := range o.offsets {
		n, ok := o.counts[offset]
		if ok {
			dst = appendOffsetCount(dst, k.Topic, k.QueueId, offset, n)
		}
		least = min(least, n)
	}
	return appendQueueCount(dst, k.Topic, k.QueueId, least)
}

// Busy tells until when (ms) an orderly pop of a queue has to wait for the batch before; 0: it need not. The group
// stands at an offset, -1: nowhere yet. A batch without an invisible time gets that of the first pop which would have its messages,
// as in 5.3.3.
func (c *Checkpoints) Busy(q *Queue, at int64, attemptId string, invisible int64) int64 {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	o := q.order
	if o == nil {
		return 0
	}
	o.stands(at)
	if invisible > 0 && o.invisible <= 0 && !o.sameAttempt(attemptId) {
		o.invisible = invisible
		c.mu.dirty = true
	}
	return o.busyUntil(attemptId, now)
}

// PoppedOrderly notes that a batch was taken in order, and appends to dst what the client is told of its earlier pops.
// The queue is taken.
func (c *Checkpoints) PoppedOrderly(q *Queue, attemptId string, popTime, invisible int64, offsets []int64, dst []byte) []byte {
	o := &order{popTime: popTime, invisible: invisible, consumed: c.now(), attemptId: strings.Clone(attemptId), offsets: slices.Clone(offsets)}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.follow(q.order)
	q.order = o
	c.mu.dirty = true
	return o.appendCounts(dst, q.Key)
}

// OrderAck is what becomes of the acknowledgement of a message that was popped in order.
type OrderAck int

// The outcomes.
const (
	OrderNone     OrderAck = iota // of an earlier pop: nothing changes
	OrderIllegal                  // no such message was popped
	OrderAdvanced                 // the group stands at the offset returned
)

// AckedOrderly acknowledges a message that was popped in order; the group stands at an offset, -1: nowhere yet. The queue is
// taken.
func (c *Checkpoints) AckedOrderly(q *Queue, at, offset, popTime int64) (OrderAck, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := q.order
	if o == nil { // the batch is forgotten; where 5.3.3 passes over what lies before, and loses it, that comes again
		if offset != at {
			return OrderNone, 0
		}
		return OrderAdvanced, offset + 1
	}
	o.stands(at)
	if popTime != o.popTime {
		return OrderNone, 0
	}
	i := slices.Index(o.offsets, offset)
	if i < 0 {
		return OrderIllegal, 0
	}
	o.acked |= 1 << uint(i)
	c.mu.dirty = true
	return OrderAdvanced, o.next()
}

// ChangedOrderly changes when a message that was popped in order becomes visible (ms since 1970). The queue is taken.
func (c *Checkpoints) ChangedOrderly(q *Queue, offset, popTime, visible int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := q.order
	if o == nil || popTime != o.popTime || !slices.Contains(o.offsets, offset) {
		return
	}
	if o.visible == nil {
		o.visible = make(map[int64]int64)
	}
	o.visible[offset] = visible
	c.mu.dirty = true
}

// SetBack records that a group was set back to an offset of a queue that it pops: else a start after a kill would bring it
// to where its earlier pops had brought it, past what it was to get again. 0: what was recorded does not count.
func (c *Checkpoints) SetBack(k Key, offset int64) error {
	q := c.hold(k) // not locked: the caller may have taken it
	if q == nil {
		return nil
	}
	defer q.held.Add(-1)
	return c.Advanced(q, offset)
}

// Unblock forgets the batch of a queue that is under way in order. The queue is taken.
func (c *Checkpoints) Unblock(q *Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.order != nil {
		q.order = nil
		c.mu.dirty = true
	}
}

// Advanced records where a group stands after an orderly acknowledgement, which is in no file yet.
func (c *Checkpoints) Advanced(q *Queue, next int64) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	p := c.record(appendOffset(nil, q.Key, next))
	if err := c.put(p); err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.end = max(c.mu.end, p.End)
	q.stood(p)
	c.mu.Unlock()
	return nil
}
