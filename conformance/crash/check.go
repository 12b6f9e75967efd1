package crash

import (
	"cmp"
	"slices"
	"time"
)

// Codes of answers that the rules know.
const (
	codeSuccess      = 0
	codePullNotFound = 19
	codePullRetry    = 20
	codePullMoved    = 21
)

// checker judges one history.
type checker struct {
	h      *History
	v      *Verdict
	sends  map[Attempt]*Send
	first  map[Place]map[int64]*Record // each offset as it was seen first
	final  map[Place]map[int64]*Record // as it was read at the end
	stored map[Attempt]*Record         // where each attempt stands at the end
	copies map[Attempt][]*Record       // deliveries of delayed messages, in the order of their queue
}

// Check judges a history. It is complete when the load has ended and everything was read from the start (Final, Ends).
func Check(h *History) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := newChecker(h)
	for _, s := range h.Sends {
		c.sends[s.Attempt] = s
	}
	c.values()
	c.ends()
	c.contents()
	c.acknowledged()
	c.order()
	c.growth()
	c.delayed()
	c.commits()
	c.lookups()
	c.count()
	return c.v
}

func newChecker(h *History) *checker {
	return &checker{h: h, v: &Verdict{Broken: map[Rule]int{}}, sends: map[Attempt]*Send{}, first: map[Place]map[int64]*Record{},
		final: map[Place]map[int64]*Record{}, stored: map[Attempt]*Record{}, copies: map[Attempt][]*Record{}}
}

// values: each pull gives what was asked for, without gaps, and an offset never changes.
func (c *checker) values() {
	for _, text := range c.h.Garbled {
		c.v.fault(Wrong, "%s", text)
	}
	for _, p := range c.h.Pulls {
		c.v.Counts.Pulls++
		if c.first[p.Place] == nil {
			c.first[p.Place], c.final[p.Place] = map[int64]*Record{}, map[int64]*Record{}
		}
		for i := range p.Records {
			r := &p.Records[i]
			c.v.Counts.Records++
			if want := p.Asked + int64(i); r.Offset != want {
				c.v.fault(Gap, "%s: a pull from %d gives %d where %d should be", p.Place, p.Asked, r.Offset, want)
			}
			before := c.first[p.Place][r.Offset]
			switch {
			case before == nil:
				c.first[p.Place][r.Offset] = r
				if r.Damage != "" {
					c.v.fault(Wrong, "%s offset %d: %s", p.Place, r.Offset, r.Damage)
				}
			case before.Whole != r.Whole:
				c.v.fault(Changed, "%s offset %d was %s at %d and is %s at %d", p.Place, r.Offset, before.Attempt, before.PhyOffset, r.Attempt, r.PhyOffset)
			}
			if p.Final {
				c.final[p.Place][r.Offset] = r
			}
		}
	}
}

// ends: at the end every offset from 0 to the maximum can be read, and none that was ever seen lies beyond.
func (c *checker) ends() {
	ends := map[Place]End{}
	for _, e := range c.h.Ends {
		ends[e.Place] = e
		if e.Min != 0 {
			c.v.fault(Gap, "%s begins at %d", e.Place, e.Min)
		}
		for offset := int64(0); offset < e.Max; offset++ {
			if c.final[e.Place][offset] == nil {
				c.v.fault(Gap, "%s: nothing at %d, the end is %d", e.Place, offset, e.Max)
			}
		}
	}
	for p, seen := range c.first {
		for offset, r := range seen {
			if end := ends[p].Max; offset >= end {
				c.v.fault(Beyond, "%s: %s was seen at %d, the end is %d", p, r.Attempt, offset, end)
			}
		}
	}
}

// contents: what is there was sent, not refused, as it was sent, where its acknowledgement says, and once.
func (c *checker) contents() {
	for p, records := range c.final {
		for _, offset := range sorted(records) {
			r := records[offset]
			c.v.Counts.FinalTotal++
			s := c.sends[r.Attempt]
			switch {
			case s == nil:
				c.v.fault(Phantom, "%s offset %d: %s", p, offset, r.Attempt)
				continue
			case s.Outcome == Refused:
				c.v.fault(RefusedStored, "%s offset %d: %s, refused with %d", p, offset, r.Attempt, s.Code)
			case s.Digest != r.Digest:
				c.v.fault(Wrong, "%s offset %d: the content of %s (%s) is another: body %t, properties %t", p, offset, r.Attempt, s.Outcome,
					s.Digest.Body != r.Digest.Body, s.Digest.Properties != r.Digest.Properties)
			}
			if s.Level > 0 && s.Place == p {
				c.copies[r.Attempt] = append(c.copies[r.Attempt], r)
				continue
			}
			if at := s.StoredAt(); at != p {
				c.v.fault(Wrong, "%s offset %d: %s was sent to %s", p, offset, r.Attempt, at)
			}
			if other := c.stored[r.Attempt]; other != nil {
				c.v.fault(Twice, "%s: %s stands at %d and at %d", p, r.Attempt, other.Offset, offset)
				continue
			}
			c.stored[r.Attempt] = r
			if s.Outcome == Acknowledged && (s.Offset != offset || s.PhyOffset != r.PhyOffset) {
				c.v.fault(Wrong, "%s: %s was acknowledged at %d (%d) and stands at %d (%d)", p, r.Attempt, s.Offset, s.PhyOffset, offset, r.PhyOffset)
			}
		}
	}
}

func sorted(records map[int64]*Record) []int64 {
	offsets := make([]int64, 0, len(records))
	for o := range records {
		offsets = append(offsets, o)
	}
	slices.Sort(offsets)
	return offsets
}

func (c *checker) acknowledged() {
	for _, s := range c.h.Sends {
		if s.Outcome == Acknowledged && c.stored[s.Attempt] == nil {
			c.v.fault(Lost, "%s, acknowledged at %s offset %d", s.Attempt, s.StoredAt(), s.Offset)
		}
	}
}

// order: two sends to one queue, the second after the acknowledgement of the first, are stored in that order.
func (c *checker) order() {
	queues := map[Place][]*Send{}
	for a := range c.stored {
		s := c.sends[a]
		queues[s.StoredAt()] = append(queues[s.StoredAt()], s)
	}
	for p, sends := range queues {
		slices.SortFunc(sends, func(a, b *Send) int { return cmp.Compare(c.stored[a.Attempt].Offset, c.stored[b.Attempt].Offset) })
		var latest *Send // of those before, the one that was sent last
		for _, s := range sends {
			if latest != nil && s.Outcome == Acknowledged && s.Answered < latest.Sent {
				c.v.fault(Disorder, "%s: %s (%d) was acknowledged before %s (%d) was sent", p, s.Attempt, c.stored[s.Attempt].Offset,
					latest.Attempt, c.stored[latest.Attempt].Offset)
			}
			if latest == nil || s.Sent > latest.Sent {
				latest = s
			}
		}
	}
}

// growth: a pull that begins after another has ended finds at least the same end, and can read what lies before it.
func (c *checker) growth() {
	queues := map[Place][]*Pull{}
	for _, p := range c.h.Pulls {
		switch p.Code {
		case codeSuccess, codePullNotFound, codePullRetry, codePullMoved:
			queues[p.Place] = append(queues[p.Place], p)
		}
	}
	for place, pulls := range queues {
		answered := slices.Clone(pulls)
		slices.SortFunc(answered, func(a, b *Pull) int { return cmp.Compare(a.Answered, b.Answered) })
		slices.SortFunc(pulls, func(a, b *Pull) int { return cmp.Compare(a.Sent, b.Sent) })
		known := int64(0) // end of the queue as known when p was sent
		for _, p := range pulls {
			for len(answered) > 0 && answered[0].Answered < p.Sent {
				known = max(known, answered[0].Max, answered[0].Asked+int64(len(answered[0].Records)))
				answered = answered[1:]
			}
			switch {
			case p.Max < known:
				c.v.fault(WentBack, "%s: the end was %d, at %s it is %d", place, known, p.Sent, p.Max)
			case p.Code != codePullRetry && len(p.Records) == 0 && p.Asked >= p.Min && p.Asked < known:
				c.v.fault(Unreadable, "%s: a pull from %d is answered %d, the end was %d", place, p.Asked, p.Code, known)
			}
		}
	}
}

// delayed: each waiting message was delivered, not too early, and again only when the broker died after the delivery.
func (c *checker) delayed() {
	for a, s := range c.sends {
		if s.Level == 0 {
			continue
		}
		waiting, copies := c.stored[a], c.copies[a]
		if waiting == nil {
			if len(copies) > 0 {
				c.v.fault(Phantom, "%s: %s was delivered to %d and does not wait anywhere", s.Place, a, copies[0].Offset)
			}
			continue
		}
		c.v.Counts.Delayed++
		if len(copies) == 0 {
			c.v.fault(Undelivered, "%s, delayed by %s, waits at %d", a, s.Delay, waiting.Offset)
			continue
		}
		c.v.Counts.CopiesAgain += len(copies) - 1
		for i, r := range copies {
			if due := waiting.StoreTimestamp + s.Delay.Milliseconds(); r.StoreTimestamp < due {
				c.v.fault(Early, "%s: %s (%s) waited from %d on for %s and was delivered %d ms too early, to %d", s.Place, a, s.Outcome,
					waiting.StoreTimestamp, s.Delay, due-r.StoreTimestamp, r.Offset)
			}
			if i > 0 && !c.killedBetween(copies[i-1].StoreTimestamp, r.StoreTimestamp) {
				c.v.fault(CopiedAgain, "%s: %s was delivered to %d and %d", s.Place, a, copies[i-1].Offset, r.Offset)
			}
		}
	}
}

func (c *checker) killedBetween(from, to int64) bool {
	return slices.ContainsFunc(c.h.Kills, func(k Kill) bool { return from <= k.Millis && k.Millis <= to })
}

// commits: what a broker says of a group's offset was committed (or is 0) and lies in the queue.
func (c *checker) commits() {
	sent := map[Place]map[int64]time.Duration{} // when an offset was first committed
	for _, k := range c.h.Commits {
		if sent[k.Place] == nil {
			sent[k.Place] = map[int64]time.Duration{}
		}
		if _, known := sent[k.Place][k.Offset]; !known {
			sent[k.Place][k.Offset] = k.Sent
		}
	}
	for _, s := range c.h.Standings {
		if !s.Known {
			continue
		}
		if s.Committed > s.Max {
			c.v.fault(CommitBeyond, "%s: committed %d, the end is %d", s.Place, s.Committed, s.Max)
		}
		at, known := sent[s.Place][s.Committed]
		if s.Committed != 0 && (!known || at > s.Answered) {
			c.v.fault(CommitFalse, "%s: committed %d", s.Place, s.Committed)
		}
		if newest := newestCommit(sent[s.Place], s.Answered); s.Committed < newest {
			c.v.Counts.CommitsBack++
		}
	}
}

func newestCommit(sent map[int64]time.Duration, before time.Duration) (newest int64) {
	for offset, at := range sent {
		if at < before {
			newest = max(newest, offset)
		}
	}
	return newest
}

func (c *checker) lookups() {
	for _, l := range c.h.Lookups {
		c.v.Counts.Lookups++
		if !l.ByKey || !l.ById {
			c.v.fault(Unfound, "%s: by key %t, by id %t", l.Attempt, l.ByKey, l.ById)
		}
	}
}

func (c *checker) count() {
	n := &c.v.Counts
	for _, k := range c.h.Kills {
		n.Kills++
		if k.InStart {
			n.KillsInStart++
		}
	}
	stored := map[int]int{}
	for _, s := range c.h.Sends {
		n.Attempts++
		there := c.stored[s.Attempt] != nil
		if there {
			stored[s.Message]++
		}
		switch s.Outcome {
		case Acknowledged:
			n.Acknowledged++
		case Uncertain:
			n.Uncertain++
		case Refused:
			n.Refused++
		case Unanswered:
			n.Unanswered++
			if there {
				n.StoredUnanswered++
			}
		}
	}
	for _, k := range stored {
		if k > 1 {
			n.StoredAgain++
		}
	}
	n.Commits, n.Standings = len(c.h.Commits), len(c.h.Standings)
}
