package pop

import (
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
)

// farBehind and longAgo are when a checkpoint is recorded anew: a start would have to read too many records for it, or
// the commit log could be cleaned of it.
const (
	farBehind = 200_000 // records
	longAgo   = 10 * time.Minute
)

// flushTimeout bounds the wait for the log before the place is moved.
const flushTimeout = 5 * time.Second

// readAtOnce is how many records are read with one Get.
const readAtOnce = 255

// replay makes the table from the log.
func (c *Checkpoints) replay() {
	first, end := c.o.Store.MinOffset(LogTopic, 0), c.o.Store.MaxOffset(LogTopic, 0)
	at, ok := c.o.Place()
	if !ok {
		at = first
	}
	at = max(first, min(at, end))
	c.safe = at
	records, broken := 0, 0
	stands := make(map[Key]int64) // by the last record of each queue: a group may have been set back
	note := func(k Key, next, record int64) {
		q := c.queue(k)
		q.recorded = max(q.recorded, record+1)
		stands[k] = next
	}
	for at < end {
		got := c.o.Store.Get(LogTopic, 0, at, readAtOnce, nil)
		if got.Status == store.Mending && c.o.Store.MendNow() == nil {
			got = c.o.Store.Get(LogTopic, 0, at, readAtOnce, nil)
		}
		for rest, n := got.Body, 0; len(rest) > 0; n, records = n+1, records+1 {
			r := message.Record(rest[:message.Record(rest).Size()])
			rest = rest[len(r):]
			offset := got.QueueOffset(n, r)
			err := readRecord(r.Body(), func(i *image) {
				if i.next > 0 {
					note(i.Key, i.next, offset)
				}
				c.replayCheckpoint(i, offset)
			}, c.replayAck, func(k Key, next int64) { note(k, next, offset) })
			if err != nil {
				broken++
			}
		}
		store.RecycleBody(got.Body)
		if got.NextBeginOffset <= at { // nothing can be read there
			at++
			continue
		}
		at = got.NextBeginOffset
	}
	for k, next := range stands {
		if next > 0 {
			c.o.Advance(k, next)
		}
	}
	if records > 0 || broken > 0 {
		c.o.Log.Info("popped messages that are not acknowledged", "checkpoints", c.mu.total, "records", records, "broken", broken)
	}
}

func (c *Checkpoints) replayCheckpoint(i *image, record int64) {
	q := c.queue(i.Key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.mu.open[spot{q, i.start, i.popTime}]; old != nil { // recorded anew
		q.inflight -= old.size() - count(old.acked)
		c.dropLocked(old)
	}
	n := c.make(q, i)
	n.record = record
	if !n.done() {
		q.open++
		c.addLocked(n)
	}
}

func (c *Checkpoints) replayAck(a *ack) {
	q := c.Known(a.Key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.mu.open[spot{q, a.start, a.popTime}]; n != nil {
		c.ackLocked(n, a.bits&all(n.size())&^n.acked)
	}
}

// keepPlace moves the place each period, until Close, and then once more.
func (c *Checkpoints) keepPlace() {
	defer c.wg.Done()
	t := time.NewTicker(max(c.o.SavePeriod, 10*time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			c.movePlace()
			return
		case <-t.C:
			c.renew()
			c.movePlace()
			c.forgetIdle()
		}
	}
}

// movePlace moves the place to the first record that is needed, once the file of offsets has what the records before it
// tell of offsets, and all of that is durable. That the place itself is in that file is known when it was written once more: the next
// time, and then once for a place that stays.
func (c *Checkpoints) movePlace() {
	c.gate.Lock()
	c.mu.Lock()
	needed := c.mu.segments.needed(c.o.Store.MaxOffset(LogTopic, 0))
	c.mu.Unlock()
	c.gate.Unlock()
	at, ok := c.o.Place()
	moves := needed > 0 && (!ok || needed > at)
	if !moves && (!ok || at == c.safe) {
		return
	}
	done := make(chan error, 1)
	c.o.Store.WaitFlushed(c.o.Store.MaxPhyOffset(), flushTimeout, func(err error) { done <- err })
	err := <-done
	if err == nil {
		err = c.o.Save()
	}
	if err != nil {
		c.o.Log.Warn("the place of the popped messages is not moved", "error", err)
		return
	}
	if ok {
		c.safe = at
	}
	if moves {
		c.o.SetPlace(needed)
	}
}

// renewRun is how many checkpoints are recorded anew with one append.
const renewRun = 256

// renew records checkpoints anew that keep the log from long ago. While it does nobody pops or acknowledges, so that
// no acknowledgement can lie before the new record and be missing in it.
func (c *Checkpoints) renew() {
	for c.renewSome() {
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

func (c *Checkpoints) renewSome() (more bool) {
	c.gate.Lock()
	defer c.gate.Unlock()
	end := c.o.Store.MaxOffset(LogTopic, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	var chosen []*checkpoint
	var run []*store.Put
	for len(run) < renewRun {
		n := c.mu.segments.oldest(end)
		if n == nil || end-n.record < farBehind && c.now()-c.recordTime(n) < longAgo.Milliseconds() {
			break
		}
		if n.revived { // its copies are being stored
			break
		}
		c.mu.segments.remove(n)
		chosen, run = append(chosen, n), append(run, c.record(appendCheckpoint(nil, n.image())))
	}
	if len(run) == 0 {
		return false
	}
	err := c.put(run...)
	for i, n := range chosen {
		if run[i].Err == nil {
			n.record = run[i].QueueOffset
			n.recorded = run[i].StoreTimestamp
			c.mu.end = max(c.mu.end, run[i].End)
		}
		c.mu.segments.add(n)
	}
	if err != nil {
		c.o.Log.Warn("checkpoints of popped messages can't be recorded anew", "error", err)
	}
	return err == nil && len(run) == renewRun
}

// recordTime is when a checkpoint was recorded, ms.
func (c *Checkpoints) recordTime(n *checkpoint) int64 {
	if n.recorded == 0 {
		return n.popTime
	}
	return n.recorded
}
