package crash

import (
	"cmp"
	"slices"
)

// PopSend is a message that was sent to be popped.
type PopSend struct {
	Id      int // it is Attempt{Id, 1}
	Place   Place
	Digest  Digest
	Outcome Outcome
}

// PopAck is an acknowledgement, or a change of the invisible time, of a delivery.
type PopAck struct {
	Change   bool
	Outcome  Outcome
	Code     int
	Sent     int64 // ms
	Answered int64 // ms
}

// Delivery is a message that an answered pop has brought.
type Delivery struct {
	Id      int
	Place   Place // of the record, which may be in the retry topic
	Offset  int64
	Times   int // how often it had come before, by its reconsumeTimes
	Stored  int64
	Digest  Digest
	Asked   int64 // ms: when the pop was sent
	Got     int64 // ms: when it was answered
	PopTime int64 // ms, as answered
	Due     int64 // ms: when it comes again, unless it is acknowledged; the earliest time that it can be
	Orderly bool
	Batch   int // number of the pop
	Acks    []*PopAck
}

// acknowledged is when the acknowledgement was answered that came in time; 0: none did.
func (d *Delivery) acknowledged() int64 {
	for _, a := range d.Acks {
		if !a.Change && a.Outcome == Acknowledged && a.Answered < d.Due {
			return a.Answered
		}
	}
	return 0
}

// given tells whether an acknowledgement was sent before a time, whatever has become of it.
func (d *Delivery) given(before int64) bool {
	return slices.ContainsFunc(d.Acks, func(a *PopAck) bool { return !a.Change && a.Sent <= before })
}

// PopHistory is all that producers and consumers of popped messages have seen.
type PopHistory struct {
	*History
	Messages   []*PopSend  // guarded by the history's lock
	Deliveries []*Delivery // likewise
	// At the kills: deliveries that were neither acknowledged nor due, acknowledgements and pops without an answer.
	Held, AcksSent, PopsSent int
}

// popChecker judges a history of pops.
type popChecker struct {
	*checker
	h        *PopHistory
	sent     map[int]*PopSend
	came     map[int][]*Delivery // of each message, in the order of their pops
	twice    map[int]bool        // messages of which a kill has left two copies
	doubled  int
	orderly  map[Place][]*Delivery // in the order of their pops
	consumed int
	late     bool
}

// CheckPops judges a history of pops at whose end everything was acknowledged:
//
//   - a message that was sent comes, and comes again until an acknowledgement is answered in time;
//   - a record whose acknowledgement was answered in time does not come to a pop that is sent afterwards, after a kill neither;
//   - a message comes again at the time that was asked for last, or later;
//   - it is copied to the retry topic once for each time, unless the broker died just then;
//   - in order: no message passes one of its queue that nobody has acknowledged, and none is given beside a batch that is
//     neither acknowledged nor over, but for a kill between them;
//   - contents are those that were sent, and no acknowledgement in time is refused.
//
// late: the server takes acknowledgements after their time too, until it has looked, as 5.3.3 does.
func CheckPops(h *PopHistory, late bool) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &popChecker{checker: newChecker(h.History), h: h, sent: map[int]*PopSend{}, came: map[int][]*Delivery{}, twice: map[int]bool{},
		orderly: map[Place][]*Delivery{}, late: late}
	for _, s := range h.Messages {
		c.sent[s.Id] = s
	}
	c.values()
	c.deliveries()
	c.copied()
	for _, s := range h.Messages {
		c.comes(s)
	}
	c.again()
	for p := range c.orderly {
		c.order(p)
	}
	c.count()
	c.figures()
	return c.v
}

// deliveries sorts what came.
func (c *popChecker) deliveries() {
	all := slices.Clone(c.h.Deliveries)
	slices.SortStableFunc(all, func(a, b *Delivery) int {
		return cmp.Or(cmp.Compare(a.PopTime, b.PopTime), cmp.Compare(a.Batch, b.Batch))
	})
	for _, d := range all {
		s := c.sent[d.Id]
		switch {
		case s == nil || s.Outcome == Refused:
			c.v.fault(Phantom, "%s offset %d: message %d", d.Place, d.Offset, d.Id)
		case s.Digest != d.Digest:
			c.v.fault(Wrong, "%s offset %d: the content of message %d is another", d.Place, d.Offset, d.Id)
		}
		c.came[d.Id] = append(c.came[d.Id], d)
		if d.Orderly {
			c.orderly[d.Place] = append(c.orderly[d.Place], d)
		}
		for _, a := range d.Acks {
			if a.Outcome == Refused && a.Answered < d.Due {
				c.v.fault(AckRefused, "%s offset %d, message %d: %d", d.Place, d.Offset, d.Id, a.Code)
			}
		}
	}
}

// copied: there are no two copies of a message for one time, unless the broker died between.
func (c *popChecker) copied() {
	type time struct{ id, times int }
	seen := map[time]*Delivery{}
	for _, d := range c.h.Deliveries {
		k := time{d.Id, d.Times}
		other := seen[k]
		switch {
		case other == nil:
			seen[k] = d
		case other.Place == d.Place && other.Offset == d.Offset:
		case c.killedBetween(min(other.Stored, d.Stored), max(other.Stored, d.Stored)):
			c.twice[d.Id] = true
			c.doubled++
		default:
			c.v.fault(CopiedTwice, "message %d: %s offset %d and %s offset %d", d.Id, other.Place, other.Offset, d.Place, d.Offset)
			c.twice[d.Id] = true
		}
	}
}

// comes: an acknowledged send is consumed; and nothing comes too early.
func (c *popChecker) comes(s *PopSend) {
	all := c.came[s.Id]
	if slices.ContainsFunc(all, c.taken) {
		c.consumed++
	} else if s.Outcome == Acknowledged {
		c.v.fault(Unconsumed, "message %d to %s came %d times", s.Id, s.Place, len(all))
	}
	if c.twice[s.Id] {
		return
	}
	for i := 1; i < len(all); i++ {
		before, d := all[i-1], all[i]
		if !d.Orderly && d.Got < before.Due {
			c.v.fault(TooEarly, "message %d, popped from %s offset %d, came %d ms too early, from %s offset %d", d.Id, before.Place, before.Offset,
				before.Due-d.Got, d.Place, d.Offset)
		}
	}
}

// taken tells whether the broker may have taken an acknowledgement of a delivery: its answer may be late or lost.
func (c *popChecker) taken(d *Delivery) bool {
	return slices.ContainsFunc(d.Acks, func(a *PopAck) bool { return !a.Change && a.Outcome != Refused && (c.late || a.Sent < d.Due) })
}

// record is one stored message as one group gets it.
type record struct {
	Place
	offset int64
}

// again: a record that was acknowledged in time does not come again.
func (c *popChecker) again() {
	acknowledged := map[record]int64{} // since when
	for _, d := range c.h.Deliveries {
		if at := d.acknowledged(); at > 0 && !d.Orderly {
			k := record{d.Place, d.Offset}
			if was, ok := acknowledged[k]; !ok || at < was {
				acknowledged[k] = at
			}
		}
	}
	for p := range c.orderly {
		c.passed(p, acknowledged)
	}
	for _, d := range c.h.Deliveries {
		if at, ok := acknowledged[record{d.Place, d.Offset}]; ok && d.Asked > at {
			c.v.fault(AckedAgain, "message %d at %s offset %d: acknowledged, popped again %d ms later", d.Id, d.Place, d.Offset, d.Asked-at)
		}
	}
}

// passed notes since when a group that pops in order is past each offset of a queue: since it was acknowledged with all
// before it, or since a batch began behind it. An acknowledgement before those before it counts for its batch only, and one by
// a handle from before a kill, which forgets the batch, may not count.
func (c *popChecker) passed(p Place, since map[record]int64) {
	acks, begins, end := map[int64][]int64{}, map[int64]int64{}, int64(0)
	firsts := map[int]int64{}
	for _, d := range c.orderly[p] {
		if at := d.acknowledged(); at > 0 && !c.killedBetween(d.PopTime, at) {
			acks[d.Offset] = append(acks[d.Offset], at)
		}
		if first, ok := firsts[d.Batch]; !ok || d.Offset < first {
			firsts[d.Batch] = d.Offset
		}
		end = max(end, d.Offset+1)
	}
	for _, d := range c.orderly[p] {
		if got, ok := begins[d.Offset]; d.Offset == firsts[d.Batch] && (!ok || d.Got < got) {
			begins[d.Offset] = d.Got
		}
	}
	behind := make([]int64, end+1) // when the first batch came that begins behind an offset
	behind[end] = 1<<63 - 1
	for offset := end - 1; offset >= 0; offset-- {
		behind[offset] = behind[offset+1]
		if got, ok := begins[offset+1]; ok {
			behind[offset] = min(behind[offset], got)
		}
	}
	before := int64(0) // since when everything before is passed
	for offset := range end {
		at := behind[offset]
		for _, ack := range acks[offset] {
			if ack >= before {
				at = min(at, ack)
			}
		}
		if before = max(before, at); before == 1<<63-1 {
			return
		}
		since[record{p, offset}] = before
	}
}

// order: what an orderly pop gives of a queue begins where all before has been acknowledged, has no gap, and is not given
// beside a batch that is neither acknowledged nor over.
func (c *popChecker) order(p Place) {
	given := map[int64]int64{} // offset → when an acknowledgement was first sent
	for _, d := range c.orderly[p] {
		for _, a := range d.Acks {
			if was, ok := given[d.Offset]; !a.Change && (!ok || a.Sent < was) {
				given[d.Offset] = a.Sent
			}
		}
	}
	var before, batch []*Delivery
	flush := func() {
		if len(batch) == 0 {
			return
		}
		slices.SortFunc(batch, func(a, b *Delivery) int { return cmp.Compare(a.Offset, b.Offset) })
		first := batch[0]
		for offset := int64(0); offset < first.Offset; offset++ {
			if at, ok := given[offset]; !ok || at > first.Got {
				c.v.fault(Overtaken, "%s: a batch begins at %d, and %d is not acknowledged", p, first.Offset, offset)
				break
			}
		}
		for i, d := range batch {
			if d.Offset != first.Offset+int64(i) {
				c.v.fault(Overtaken, "%s: a batch has %d behind %d", p, d.Offset, batch[max(0, i-1)].Offset)
				break
			}
		}
		for _, d := range before {
			if first.Asked > d.Got && first.Got < d.Due && !d.given(first.Got) && !c.killedBetween(d.PopTime, first.Got) {
				c.v.fault(BesideOrderly, "%s: a batch from %d on, %d ms before %d comes again", p, first.Offset, d.Due-first.Got, d.Offset)
				break
			}
		}
		before, batch = batch, nil
	}
	for _, d := range c.orderly[p] {
		if len(batch) > 0 && batch[0].Batch != d.Batch {
			flush()
		}
		batch = append(batch, d)
	}
	flush()
}

// figures are what the verdict rests on.
func (c *popChecker) figures() {
	sent, acks, changes, unanswered, again := 0, 0, 0, 0, 0
	for _, s := range c.h.Messages {
		if s.Outcome == Acknowledged {
			sent++
		}
		again += max(0, len(c.came[s.Id])-1)
	}
	for _, d := range c.h.Deliveries {
		for _, a := range d.Acks {
			switch {
			case a.Outcome == Unanswered:
				unanswered++
			case a.Change:
				changes++
			default:
				acks++
			}
		}
	}
	c.v.Figures = []Figure{{"sends acknowledged", sent}, {"consumed", c.consumed}, {"deliveries", len(c.h.Deliveries)}, {"of these again", again},
		{"acknowledgements", acks}, {"changes of the invisible time", changes}, {"of both without an answer", unanswered},
		{"kills met: messages under way", c.h.Held}, {"acknowledgements under way", c.h.AcksSent}, {"pops under way", c.h.PopsSent},
		{"copied twice by a kill", c.doubled}}
}
