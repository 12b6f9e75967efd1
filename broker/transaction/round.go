package transaction

import (
	"errors"
	"strconv"
	"time"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

// fate is what becomes of a half message that has no op.
type fate int

const (
	young  fate = iota // nothing yet; those behind it are younger
	check              // its producer is asked
	immune             // it is moved out of the way: its producer does not want to be asked yet
	give               // it is given up
)

// step is a half message that a round has decided on; reused.
type step struct {
	at        int64 // its queue offset
	fate      fate
	storeTime int64 // its own, ms
	text      string
	put       store.Put
	msg       message.Message // the copy
}

// round goes once over the half messages that were there when it began.
func (c *Checks) round() {
	c.load()
	if !c.loaded {
		return
	}
	c.o.Topic(message.TopicTransHalf) // as the official broker does
	c.patience = askPatience
	end := c.o.Store.MaxOffset(message.TopicTransHalf, 0)
	now, settings := c.o.Clock(), c.o.Settings()
	for more := true; more && !c.stopped(); {
		if !c.readOps() {
			break
		}
		var n int
		var next int64
		n, next, more = c.collect(end, now, settings)
		if !c.carryOut(n, next) {
			more = false
		}
		c.resolved.drop(c.half)
		c.passOps()
	}
	c.forgetMoves()
	c.publish()
	c.tell()
}

// collect decides on half messages from the place on, at most one run of them. n of batch are to be carried out; then
// the place is next. more is false when the round ends there.
func (c *Checks) collect(end int64, now time.Time, s Settings) (n int, next int64, more bool) {
	size := 0
	for next = c.half; next < end && n < runCount && size < runBytes; next++ {
		if c.resolved.has(next) {
			continue
		}
		if _, copied := c.moved[next]; copied { // before a kill; the copy is what counts
			continue
		}
		e, ok := c.o.Store.Entry(message.TopicTransHalf, 0, next)
		if !ok {
			if first := c.o.Store.MinOffset(message.TopicTransHalf, 0); next < first {
				c.o.Log.Error("half messages are gone: their log file was deleted", "queueOffset", next, "minOffset", first)
				next = first - 1
				continue
			}
			return n, next, false // perhaps just appended, perhaps a lost file
		}
		r, err := c.o.Store.Record(e.PhyOffset)
		if store.IsGone(err) {
			c.o.Log.Error("half message is damaged", "queueOffset", next, "phyOffset", e.PhyOffset, "err", err)
			continue
		}
		if err != nil {
			c.o.Log.Error("half message can't be read", "queueOffset", next, "phyOffset", e.PhyOffset, "err", err)
			return n, next, false
		}
		c.halfRead.add(r)
		fate := decide(r, now, s)
		if fate == young {
			return n, next, false
		}
		if n == len(c.batch) {
			c.batch = append(c.batch, new(step))
		}
		c.batch[n].prepare(fate, next, r)
		n++
		size += r.Size()
	}
	return n, next, next < end
}

// decide is the rule of TransactionalMessageServiceImpl#check of 4.9.8, but that a half message is not given up, nor
// its checks counted, while it is immune.
func decide(r message.Record, now time.Time, s Settings) fate {
	age := now.Sub(time.UnixMilli(r.BornTimestamp()))
	if age > s.Reserved {
		return give
	}
	limit, immunity := s.TimeOut, false
	if text, ok := r.Property(message.PropertyCheckImmunityTimeInSeconds); ok {
		immunity = true
		if seconds, ok := immunityTime(text); ok {
			limit = seconds
		}
	}
	switch {
	case immunity && age < limit:
		return immune
	case spent(r, s):
		return give
	case !immunity && age >= 0 && age < limit: // a negative age: the clocks differ
		return young
	}
	return check
}

// immunityTime reads CHECK_IMMUNITY_TIME_IN_SECONDS; false: the time-out of all counts, as with -1.
func immunityTime(text string) (time.Duration, bool) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds == -1 {
		return 0, false
	}
	return compat.Span(seconds, time.Second), true
}

// spent tells whether a half message has had as many checks as it may. The first is always given, as by 4.9.8.
func spent(r message.Record, s Settings) bool {
	text, there := r.Property(message.PropertyTransactionCheckTimes)
	return there && checkTimes(text) >= int64(s.CheckMax)
}

// checkTimes is the number of checks that a half message has had; a text that is none counts as -1.
func checkTimes(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// prepare makes the copy that is stored for a half message.
func (s *step) prepare(f fate, at int64, r message.Record) {
	m := r.Message()
	s.at, s.fate, s.storeTime, s.text, s.msg = at, f, m.StoreTimestamp, m.Properties, m
	c := &s.msg
	c.Topic, c.QueueId, c.PreparedTransactionOffset, c.QueueOffset, c.PhyOffset = message.TopicTransHalf, 0, 0, 0, 0
	switch f {
	case check:
		next := 1
		if text, ok := message.Property(m.Properties, message.PropertyTransactionCheckTimes); ok {
			next = int(checkTimes(text)) + 1
		}
		c.Properties = message.SetProperty(m.Properties, message.PropertyTransactionCheckTimes, strconv.Itoa(next))
	case immune:
		if _, ok := message.Property(m.Properties, message.PropertyTransactionPreparedQueueOffset); !ok {
			c.Properties = message.SetProperty(m.Properties, message.PropertyTransactionPreparedQueueOffset, strconv.FormatInt(at, 10))
		}
	}
	if f == give || len(c.Properties) > message.MaxPropertiesLength { // nor can it be checked when there is no room to count
		s.giveUp()
	}
	s.put = store.Put{Message: c, Copy: true}
}

// giveUp makes the copy one for TRANS_CHECK_MAX_TIME_TOPIC.
func (s *step) giveUp() {
	s.fate = give
	s.msg.Topic, s.msg.Properties = message.TopicTransCheckMaxTime, s.text
}

// carryOut stores the first n steps of the batch, sends their checks and moves the place to next. False: some could not
// be stored; the place stands at the first of them.
func (c *Checks) carryOut(n int, next int64) bool {
	defer func() {
		for _, s := range c.batch[:n] {
			*s = step{} // keep no bodies alive
		}
		clear(c.puts)
		c.puts = c.puts[:0]
	}()
	for _, s := range c.batch[:n] {
		if s.fate == give {
			c.o.Topic(message.TopicTransCheckMaxTime)
		}
		c.puts = append(c.puts, &s.put)
	}
	if n > 0 {
		c.o.Store.Put(c.puts)
	}
	for _, s := range c.batch[:n] {
		switch {
		case errors.Is(s.put.Err, commitlog.ErrTooLarge):
			// No later try can end otherwise, and the others may not wait for it.
			c.o.Log.Error("half message that can't be stored again put aside", "err", s.put.Err, "queueOffset", s.at)
		case s.put.Err != nil:
			c.o.Log.Error("half message can't be stored again", "err", s.put.Err, "queueOffset", s.at)
			c.half = s.at
			return false
		default:
			c.stored(s)
		}
		c.half = s.at + 1
	}
	c.half = next
	return true
}

// stored deals with a half message whose copy is stored.
func (c *Checks) stored(s *step) {
	if c.o.Stored != nil {
		c.o.Stored(&s.put)
	}
	if s.fate == give {
		topic, _ := message.Property(s.text, message.PropertyRealTopic)
		c.o.Log.Warn("half message given up: it is now in "+message.TopicTransCheckMaxTime+"; code 323 has it checked again",
			"realTopic", topic, "offsetMsgId", message.OffsetMsgId(s.msg.StoreHost, s.put.PhyOffset), "queueOffset", s.at)
		return
	}
	c.move(s.at, s.put.QueueOffset)
	if s.fate == check && !c.ends.ending(s.put.QueueOffset) { // else its op is on the way
		c.ask(s)
	}
}
