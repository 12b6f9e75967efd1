package transaction

import (
	"strconv"

	"rocketd/protocol/message"
)

// topics of the two places, in the order in which they are told: an op must not look passed while its half message
// does not.
var topics = [2]string{message.TopicTransHalf, message.TopicTransOpHalf}

// load takes the places from the table of offsets at the first round, and when somebody else has set them. What is
// known in memory is made anew then.
func (c *Checks) load() {
	var at [2]int64
	same := c.loaded
	for i, topic := range topics {
		offset, ok := c.o.Place(topic)
		if ok && offset != c.published[i] {
			same = false
		}
		first, end := c.o.Store.MinOffset(topic, 0), c.o.Store.MaxOffset(topic, 0)
		if !ok {
			offset = first
		}
		if at[i] = max(min(offset, end), first); ok && offset > end {
			c.o.Log.Warn("transaction place beyond its queue", "topic", topic, "offset", offset, "maxOffset", end)
		}
		if !same && ok {
			c.published[i] = offset
		} else if !same {
			c.published[i] = at[i] // as in 4.9.8 nothing is told before it moves
		}
	}
	if same {
		return
	}
	c.half = at[0]
	c.ops = ops{place: at[1], seen: at[1]}
	c.resolved.reset(c.half)
	c.moved = make(map[int64]int64)
	c.loaded = c.findCopies()
}

// findCopies looks through the half messages that wait for copies that say which one they were at first: an op for
// that one counts for the copy. False: the broker stops.
func (c *Checks) findCopies() bool {
	newest := make(map[int64]int64)
	for at, end := c.half, c.o.Store.MaxOffset(message.TopicTransHalf, 0); at < end; at++ {
		if at%runCount == 0 && c.stopped() {
			return false
		}
		e, ok := c.o.Store.Entry(message.TopicTransHalf, 0, at)
		if !ok {
			continue
		}
		r, err := c.o.Store.Record(e.PhyOffset)
		if err != nil {
			continue // the round will say so
		}
		if text, ok := r.Property(message.PropertyTransactionPreparedQueueOffset); ok {
			if first, err := strconv.ParseInt(text, 10, 64); err == nil {
				before, ok := newest[first] // each of several copies names the first
				if !ok {
					before = first
				}
				c.move(before, at)
				newest[first] = at
			}
		}
	}
	return true
}

// move notes that a half message was stored again. Past the bound it is forgotten: its producer may then be asked
// about a transaction that it has ended, as by the official broker.
func (c *Checks) move(from, to int64) {
	if from >= 0 && from < to && len(c.moved) < moveBound {
		c.moved[from] = to
	}
}

// forgetMoves drops what leads to copies that are passed.
func (c *Checks) forgetMoves() {
	for from, to := range c.moved {
		if _, on := c.moved[to]; !on && to < c.half {
			delete(c.moved, from)
		}
	}
}

// publish tells the places to the table of offsets once everything that they pass, and every copy that was stored for
// it, is durable. Else a power failure could leave a place behind a half message whose copy is lost.
func (c *Checks) publish() {
	at := [2]int64{c.half, c.ops.place}
	if at == c.published {
		return
	}
	done := make(chan error, 1)
	c.o.Store.WaitFlushed(c.o.Store.MaxPhyOffset(), flushTimeout, func(err error) { done <- err })
	if err := <-done; err != nil {
		c.o.Log.Warn("transaction places not saved: the log is not durable", "err", err)
		return
	}
	for i, topic := range topics {
		if at[i] != c.published[i] {
			c.o.SetPlace(topic, at[i])
		}
		c.published[i] = at[i]
	}
}
