package pop

import (
	"errors"
	"slices"

	"rocketd/compat"
	"rocketd/store"
)

// ErrSame says that the same messages were popped in the same millisecond, as after their group's offset was set back.
var ErrSame = errors.New("pop: the same messages were popped in this millisecond")

// Popped notes that messages of a queue were taken, at ascending offsets, and that the group stands at next now. When it
// fails nothing was taken. The queue is taken.
func (c *Checkpoints) Popped(q *Queue, start, popTime, invisible int64, offsets []int64, next int64) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	c.mu.Lock()
	if c.mu.total >= c.o.Limit {
		c.mu.Unlock()
		return ErrFull
	}
	if c.mu.open[spot{q, start, popTime}] != nil {
		c.mu.Unlock()
		return ErrSame
	}
	i := image{id: id{q.Key, start, popTime}, invisible: invisible, next: next, offsets: offsets}
	n := c.reserveLocked(q, &i)
	c.mu.Unlock()
	p := c.record(appendCheckpoint(make([]byte, 0, 160), &i))
	err := c.put(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.cancelLocked(n)
		return err
	}
	c.enter(n, p)
	q.stood(p)
	return nil
}

// reserveLocked makes the checkpoint of an image and gives it a pop time that no other of its start has; nobody can
// acknowledge it before it is entered.
func (c *Checkpoints) reserveLocked(q *Queue, i *image) *checkpoint {
	for c.mu.open[spot{q, i.start, i.popTime}] != nil {
		i.popTime++
	}
	n := c.make(q, i)
	c.mu.open[spot{q, n.start, n.popTime}] = n
	q.open++
	return n
}

// cancelLocked gives up a reserved checkpoint whose record could not be stored.
func (c *Checkpoints) cancelLocked(n *checkpoint) {
	delete(c.mu.open, spot{n.queue, n.start, n.popTime})
	n.queue.open--
}

// make makes the checkpoint of an image.
func (c *Checkpoints) make(q *Queue, i *image) *checkpoint {
	n := &checkpoint{queue: q, start: i.start, popTime: i.popTime, due: compat.Later(i.popTime, max(0, i.invisible)), invisible: i.invisible, acked: i.acked, heapAt: -1}
	if len(i.offsets) > 1 || i.offsets[0] != i.start {
		n.offsets = slices.Clone(i.offsets)
	}
	return n
}

// enter adds a checkpoint whose record was stored. Locked.
func (c *Checkpoints) enter(n *checkpoint, p *store.Put) {
	n.record = p.QueueOffset
	c.mu.end = max(c.mu.end, p.End)
	c.addLocked(n)
}

// addLocked adds a checkpoint to everything.
func (c *Checkpoints) addLocked(n *checkpoint) {
	c.mu.open[spot{n.queue, n.start, n.popTime}] = n
	n.queue.inflight += n.size() - count(n.acked)
	c.mu.total++
	c.mu.segments.add(n)
	c.dueLocked(n)
}

// dueLocked puts a checkpoint into the heap, and wakes the reviver when it is the first there.
func (c *Checkpoints) dueLocked(n *checkpoint) {
	c.mu.due.push(n)
	if n.heapAt == 0 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// dropLocked takes out a checkpoint that is acknowledged whole.
func (c *Checkpoints) dropLocked(n *checkpoint) {
	delete(c.mu.open, spot{n.queue, n.start, n.popTime})
	if n.heapAt >= 0 {
		c.mu.due.remove(n)
	}
	c.settleLocked(n)
}

// settleLocked gives up the record of a checkpoint.
func (c *Checkpoints) settleLocked(n *checkpoint) {
	c.mu.segments.remove(n)
	c.mu.total--
	n.queue.open--
}

// Ack is the acknowledgement of one message.
type Ack struct {
	Key
	StartOffset, PopTime, Offset int64
}

// pending is the acknowledgements of one checkpoint in a run.
type pending struct {
	n    *checkpoint
	bits uint32
}

// Acked takes a run of acknowledgements, with one record. One of a message that is not under way, because it was
// acknowledged before or has come again meanwhile, changes nothing. When it fails none is taken.
func (c *Checkpoints) Acked(run []Ack) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	var few [8]pending
	taken := few[:0]
	queues := c.queuesOf(run)
	c.mu.Lock()
	for i := range run {
		a := &run[i]
		n := c.mu.open[spot{queues(i), a.StartOffset, a.PopTime}]
		if n == nil || n.newer == nil {
			continue
		}
		if bit := n.bit(a.Offset) &^ (n.acked | n.taking); bit != 0 {
			n.taking |= bit
			if last := len(taken) - 1; last >= 0 && taken[last].n == n {
				taken[last].bits |= bit
			} else {
				taken = append(taken, pending{n, bit})
			}
		}
	}
	c.mu.Unlock()
	for len(taken) > 0 { // a record of moderate size
		part := taken[:min(len(taken), 128)]
		taken = taken[len(part):]
		if err := c.ackPart(part); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, t := range taken {
				t.n.taking &^= t.bits
			}
			return err
		}
	}
	return nil
}

// queuesOf finds the queues of a run; neighbours mostly have the same.
func (c *Checkpoints) queuesOf(run []Ack) func(i int) *Queue {
	c.queues.RLock()
	defer c.queues.RUnlock()
	if len(run) == 1 {
		q := c.queues.m[run[0].Key]
		return func(int) *Queue { return q }
	}
	list := make([]*Queue, len(run))
	for i := range run {
		if i > 0 && run[i].Key == run[i-1].Key {
			list[i] = list[i-1]
		} else {
			list[i] = c.queues.m[run[i].Key]
		}
	}
	return func(i int) *Queue { return list[i] }
}

// ackPart records acknowledgements that are marked as being taken, and applies them. The gate is held.
func (c *Checkpoints) ackPart(part []pending) error {
	var few [8]ack
	acks := few[:0]
	for _, t := range part {
		acks = append(acks, ack{t.n.id(), t.bits})
	}
	err := c.put(c.record(appendAcks(make([]byte, 0, 96*len(acks)), acks)))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range part {
		t.n.taking &^= t.bits
		if err == nil {
			c.ackLocked(t.n, t.bits)
		}
	}
	return err
}

// ackLocked marks messages of a checkpoint as acknowledged.
func (c *Checkpoints) ackLocked(n *checkpoint, bits uint32) {
	if n.revived || n.newer == nil { // it comes again already, or has gone
		return
	}
	before := count(n.acked)
	n.acked |= bits
	n.queue.inflight -= count(n.acked) - before
	if n.done() {
		c.dropLocked(n)
	}
}

// Changed lets a message come again at another time: invisible ms from now. It returns the message's new pop time. ok is
// false when the message is not under way any more: acknowledged, or come again; nothing changes then.
func (c *Checkpoints) Changed(a Ack, invisible int64) (popTime int64, ok bool, err error) {
	q := c.Known(a.Key)
	popTime = c.now()
	if q == nil {
		return popTime, false, nil
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	c.mu.Lock()
	old := c.mu.open[spot{q, a.StartOffset, a.PopTime}]
	var bit uint32
	if old != nil && old.newer != nil {
		bit = old.bit(a.Offset) &^ (old.acked | old.taking)
	}
	if bit == 0 {
		c.mu.Unlock()
		return popTime, false, nil
	}
	i := image{id: id{q.Key, a.Offset, popTime}, invisible: invisible, offsets: []int64{a.Offset}}
	n := c.reserveLocked(q, &i)
	old.taking |= bit
	c.mu.Unlock()
	p := c.record(appendCheckpoint(nil, &i))
	was := c.record(appendAcks(nil, []ack{{old.id(), bit}}))
	err = c.put(p, was)
	c.mu.Lock()
	defer c.mu.Unlock()
	old.taking &^= bit
	if err != nil {
		c.cancelLocked(n)
		return 0, false, err
	}
	c.enter(n, p)
	c.ackLocked(old, bit)
	return n.popTime, true, nil
}
