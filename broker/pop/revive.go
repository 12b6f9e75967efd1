package pop

import (
	"fmt"
	"time"

	"rocketd/compat"
	"rocketd/store"
)

// backoff are the waits after copies that failed, as the official broker's (ckRewriteIntervalsInSeconds of 5.3.3), s.
var backoff = [...]int64{10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200}

// takingPause is how long a checkpoint waits that is due while something of it is being recorded.
const takingPause = 10 * time.Millisecond

// revive lets the messages come again that were not acknowledged in time, until Close.
func (c *Checkpoints) revive() {
	defer c.wg.Done()
	for {
		wait := compat.Forever
		c.mu.Lock()
		n, ok := c.mu.due.first()
		if ok {
			wait = compat.Until(n.due, c.now())
		}
		switch {
		case wait > 0 || !ok:
		case n.taking != 0: // what came in time counts; soon it is known whether it could be recorded
			c.mu.due.remove(n)
			n.due = c.now() + takingPause.Milliseconds()
			c.dueLocked(n)
			wait = takingPause
		default:
			// From here on an acknowledgement is too late; the record stays needed until the copies are stored.
			c.mu.due.remove(n)
			delete(c.mu.open, spot{n.queue, n.start, n.popTime})
			n.revived = true
		}
		c.mu.Unlock()
		if wait > 0 {
			if !c.sleep(wait) {
				return
			}
			continue
		}
		c.again(n)
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

// sleep waits for a time, or until something is due earlier; false: the table is closed.
func (c *Checkpoints) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.stop:
		return false
	case <-c.wake:
	case <-t.C:
	}
	return true
}

// again stores copies of the messages of a checkpoint that were not acknowledged, and behind them the record that they
// need not come again: one run, so that a kill leaves all of it or a beginning.
func (c *Checkpoints) again(n *checkpoint) {
	var run []*store.Put
	var bits []uint32 // of each put of the run
	var settled uint32
	failed := false
	for i := range n.size() {
		bit := uint32(1) << uint(i)
		if n.acked&bit != 0 {
			continue
		}
		p, err := c.copy(n, n.offset(i))
		switch {
		case err != nil:
			failed = true
			c.o.Log.Warn("a popped message cannot come again yet", "group", n.queue.Group, "topic", n.queue.Topic,
				"queueId", n.queue.QueueId, "offset", n.offset(i), "tries", n.tries, "error", err)
		case p == nil: // its file has been deleted
			settled |= bit
		default:
			run, bits, settled = append(run, p), append(bits, bit), settled|bit
		}
	}
	if settled != 0 {
		note := c.record(appendAcks(nil, []ack{{n.id(), settled}}))
		run = append(run, note)
		c.o.Store.Put(run)
		if note.Err != nil {
			failed = true // the copies are there: they may come twice
		}
		for i, bit := range bits {
			if run[i].Err != nil {
				settled &^= bit
				failed = true
				c.o.Log.Warn("a popped message cannot come again yet", "group", n.queue.Group, "topic", n.queue.Topic,
					"queueId", n.queue.QueueId, "tries", n.tries, "error", run[i].Err)
			} else if c.o.Copied != nil {
				c.o.Copied(n.queue.Key, run[i])
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.queue.inflight -= count(settled)
	n.acked |= settled
	if !failed || n.done() {
		c.settleLocked(n)
		return
	}
	n.revived = false
	n.due = c.now() + backoff[min(int(n.tries), len(backoff)-1)]*1000
	n.tries += 1 - n.tries>>7
	c.mu.open[spot{n.queue, n.start, n.popTime}] = n
	c.dueLocked(n)
}

// copy makes the copy of a message; nil without an error when the message is gone.
func (c *Checkpoints) copy(n *checkpoint, offset int64) (*store.Put, error) {
	k := n.queue.Key
	e, ok := c.o.Store.Entry(k.Topic, k.QueueId, offset)
	if !ok {
		if s := c.o.Store; offset >= s.MinOffset(k.Topic, k.QueueId) && offset < s.MaxOffset(k.Topic, k.QueueId) && n.tries < uint8(len(backoff)) {
			return nil, fmt.Errorf("no entry at offset %d", offset)
		}
		c.o.Log.Warn("a popped message is gone", "group", k.Group, "topic", k.Topic, "queueId", k.QueueId, "offset", offset)
		return nil, nil
	}
	m, err := c.o.Store.Message(e.PhyOffset)
	if err != nil {
		if offset < c.o.Store.MinOffset(k.Topic, k.QueueId) || n.tries >= uint8(len(backoff)) {
			c.o.Log.Warn("a popped message is gone", "group", k.Group, "topic", k.Topic, "queueId", k.QueueId, "offset", offset, "error", err)
			return nil, nil
		}
		return nil, err
	}
	if err := c.o.Copy(k, n.popTime, &m); err != nil {
		return nil, err
	}
	host := c.o.Host()
	m.BornHost, m.StoreHost = host, host
	m.PreparedTransactionOffset, m.QueueOffset, m.PhyOffset = 0, 0, 0
	return &store.Put{Message: &m, Copy: true}, nil
}
