package transaction

import (
	"errors"
	"strconv"

	"rocketd/protocol/message"
	"rocketd/store"
)

// opTag is the tag of an op message that resolves a half message: the only kind there is.
const opTag = "d"

// opText is the properties text of an op message as the official broker writes it.
const opText = message.PropertyWaitStoreMsgOK + "\x01true\x02" + message.PropertyTags + "\x01" + opTag

func opBody(halfOffset int64) []byte { return strconv.AppendInt(nil, halfOffset, 10) }

// ops is where we are in the op queue.
//
//	     place        place+len(list)      seen
//	       ▼                 ▼               ▼
//	───────[ list ........... ]··············[ not read yet
//
// An op may be passed when the half message that it resolves has been passed. What list has no room for is read again
// when there is.
type ops struct {
	place int64   // queue offset of the first op that can't be passed yet
	list  []int64 // the half messages that those from place on resolve
	seen  int64   // queue offset of the first op that is not noted in resolved yet
}

// errNoEntry says that the op queue has no entry where one must be: it is damaged, and about to be made again from the log. Whoever
// took that for the queue's end would ask about transactions that have ended, and have them committed twice.
var errNoEntry = errors.New("transaction: the op queue has no entry there")

// readOps notes all ops that have come; false: some can't be read, so nobody can say which half messages are open.
func (c *Checks) readOps() bool {
	for n := 0; ; n++ {
		if n%runCount == runCount-1 && c.stopped() {
			return false
		}
		half, found, err := c.readOp(&c.ops.seen)
		if err != nil {
			c.o.Log.Error("transaction op can't be read; no half message is checked until it can", "err", err, "queueOffset", c.ops.seen)
			return false
		}
		if !found {
			return true
		}
		half = c.resolve(half)
		if c.ops.seen == c.ops.place+int64(len(c.ops.list)) && len(c.ops.list) < c.listBound {
			c.ops.list = append(c.ops.list, half)
		}
		c.ops.seen++
	}
}

// readOp reads the op at a place, which it moves into the queue; found is false at its end. An op that is none
// resolves -1.
func (c *Checks) readOp(at *int64) (half int64, found bool, err error) {
	end := c.o.Store.MaxOffset(message.TopicTransOpHalf, 0) // before the entry is looked for, which may come just then
	e, ok := c.o.Store.Entry(message.TopicTransOpHalf, 0, *at)
	if !ok {
		first := c.o.Store.MinOffset(message.TopicTransOpHalf, 0)
		switch {
		case *at >= end:
			return -1, false, nil
		case *at >= first:
			return -1, false, errNoEntry
		}
		c.o.Log.Warn("transaction ops are gone: their log file was deleted", "queueOffset", *at, "minOffset", first)
		if at == &c.ops.seen {
			c.ops.place, c.ops.list = first, nil
		}
		*at = first
		if e, ok = c.o.Store.Entry(message.TopicTransOpHalf, 0, first); !ok && first < end {
			return -1, false, errNoEntry
		} else if !ok {
			return -1, false, nil
		}
	}
	r, err := c.o.Store.Record(e.PhyOffset)
	switch {
	case store.IsGone(err):
		c.o.Log.Error("transaction op is damaged", "queueOffset", *at, "phyOffset", e.PhyOffset, "err", err)
		return -1, true, nil
	case err != nil:
		return -1, false, err
	}
	c.opsRead.add(r)
	if tag, _ := r.Property(message.PropertyTags); tag != opTag {
		c.o.Log.Error("transaction op with a strange tag", "queueOffset", *at, "phyOffset", e.PhyOffset)
		return -1, true, nil
	}
	half, err = strconv.ParseInt(string(r.Body()), 10, 64)
	if err != nil || half < 0 || half >= c.o.Store.MaxOffset(message.TopicTransHalf, 0) {
		c.o.Log.Error("transaction op of no half message", "queueOffset", *at, "phyOffset", e.PhyOffset)
		return -1, true, nil
	}
	return half, true, nil
}

// passOps moves the place in the op queue behind the ops whose half messages are passed.
func (c *Checks) passOps() {
	for {
		n := 0
		for n < len(c.ops.list) && c.ops.list[n] < c.half {
			n++
		}
		c.ops.place += int64(n)
		if c.ops.list = c.ops.list[n:]; len(c.ops.list) == 0 {
			c.ops.list = nil // it may have been large
		}
		if n == 0 || !c.listAgain() {
			return
		}
	}
}

// listAgain fills the list with ops that it had no room for; false: there are none.
func (c *Checks) listAgain() bool {
	at := c.ops.place + int64(len(c.ops.list))
	any := false
	for at < c.ops.seen && len(c.ops.list) < c.listBound && !c.stopped() {
		half, found, err := c.readOp(&at)
		if err != nil || !found {
			return any
		}
		if at != c.ops.place+int64(len(c.ops.list)) { // the ops between were deleted
			c.ops.place, c.ops.list = at, nil
		}
		half = c.resolve(half)
		c.ops.list = append(c.ops.list, half)
		at, any = at+1, true
	}
	return any
}

// resolve notes that a half message has ended, with all its copies, and returns the newest of them. After a kill the
// places may be old, so that a half message is still in front of them and so are its copies. Where it meets one that has
// been noted it ends: those behind it have been, too.
func (c *Checks) resolve(half int64) (newest int64) {
	for {
		if half >= c.half {
			if c.resolved.has(half) {
				return half
			}
			c.resolved.set(half)
		}
		next, ok := c.moved[half]
		if !ok || next <= half {
			return half
		}
		half = next
	}
}
