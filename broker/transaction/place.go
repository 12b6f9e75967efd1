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
	c.moved = c.ends.reset()
	c.passed = c.half
	c.loaded = c.findCopies()
}

// findCopies looks through the half messages that wait for the copies among them: a kill takes the places back, behind
// half messages that have been stored again. Who has a copy is passed over, and an op for it counts for the copy. False:
// the broker stops, or they can't be read.
func (c *Checks) findCopies() bool {
	first, end := c.half, c.o.Store.MaxOffset(message.TopicTransHalf, 0)
	next := make(map[origin]copyOf) // of each, the first copy behind where we are
	immune := make(map[int64]int64) // the first copy of one that was immune, which may be passed
	for at := end - 1; at >= first; at-- {
		if at%runCount == 0 && c.stopped() {
			return false
		}
		e, ok := c.o.Store.Entry(message.TopicTransHalf, 0, at)
		if !ok && at >= c.o.Store.MinOffset(message.TopicTransHalf, 0) { // damaged, and about to be made again from the log
			return false
		} else if !ok {
			continue
		}
		r, err := c.o.Store.Record(e.PhyOffset)
		if err != nil {
			continue // the round will say so
		}
		o, times := originOf(r)
		if n, ok := next[o]; ok && n.of(at, times) {
			c.move(at, n.at)
		}
		if times.copy() && o.uniqKey != "" && len(next) < moveBound {
			next[o] = copyOf{at, times}
		}
		if times.immune >= 0 && len(immune) < moveBound {
			immune[times.immune] = at
		}
	}
	for from, to := range immune {
		if from < first {
			c.move(from, to)
		}
	}
	return true
}

// origin tells a half message and its copies from others: what a producer gives to it and no copy changes. Two half
// messages of one origin would be the same to their producer.
type origin struct {
	uniqKey, group, topic string
	born                  int64
	bodySize              int
	bodyCRC               uint32
}

// counted is what a half message says of its own copying: how often it has been stored for a check, and of which it
// was the first copy while it was immune (-1: it was not).
type counted struct{ checks, immune int64 }

// copyOf is a copy of a half message and its place.
type copyOf struct {
	at int64
	counted
}

func originOf(r message.Record) (o origin, n counted) {
	o.uniqKey, _ = r.Property(message.PropertyUniqKey)
	o.group, _ = r.Property(message.PropertyProducerGroup)
	o.topic, _ = r.Property(message.PropertyRealTopic)
	o.born, o.bodySize, o.bodyCRC = r.BornTimestamp(), len(r.Body()), r.BodyCRC()
	n.immune = -1
	if text, ok := r.Property(message.PropertyTransactionCheckTimes); ok {
		n.checks = max(0, checkTimes(text))
	}
	if text, ok := r.Property(message.PropertyTransactionPreparedQueueOffset); ok {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			n.immune = at
		}
		if o.uniqKey == "" { // no client sends such a one
			o.uniqKey = "immune " + text
		}
	}
	return o, n
}

// copy tells whether it was stored by a round and not by a producer.
func (n counted) copy() bool { return n.checks > 0 || n.immune >= 0 }

// of tells whether this copy, which lies behind a half message of the same origin, was made of that or of a copy of it.
func (n copyOf) of(at int64, before counted) bool {
	return n.checks > before.checks || n.checks == before.checks && n.immune >= 0 && (n.immune == at || n.immune == before.immune)
}

// move notes that a half message was stored again. Past the bound it is forgotten: its producer may then be asked
// about a transaction that it has ended, as by the official broker.
func (c *Checks) move(from, to int64) {
	if from >= 0 && from < to && len(c.moved) < moveBound {
		c.ends.move(from, to)
	}
}

// forgetMoves drops what leads to copies that the round before has passed: until then somebody may end one by an earlier copy.
func (c *Checks) forgetMoves() {
	for dropped := true; dropped; {
		dropped = false
		for from, to := range c.moved {
			if _, on := c.moved[to]; !on && to < c.passed {
				c.ends.unmove(from)
				dropped = true
			}
		}
	}
	c.ends.drop(c.passed)
	c.passed = c.half
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
