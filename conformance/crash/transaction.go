package crash

import (
	"fmt"

	"rocketd/conformance/wire"
)

// halfPlace is where half messages lie, each copy for a check behind the others.
var halfPlace = Place{wire.HalfTopic, 0}

// Plan is what the producer of a transaction does about it.
type Plan int

// The plans. An Undecided one is answered with "unknown" as long as the broker may still be killed, so that it has to be
// checked again after each restart; then it is committed.
const (
	CommitAtOnce Plan = iota
	RollbackAtOnce
	CommitAsked
	RollbackAsked
	Undecided
	plans
)

// commits tells whether the transaction is committed in the end.
func (p Plan) commits() bool { return p == CommitAtOnce || p == CommitAsked || p == Undecided }

// TransactionEnd is one END_TRANSACTION that was sent, with commit or rollback.
type TransactionEnd struct {
	Commit            bool
	Offset, PhyOffset int64 // of the half message that it names, the first or a copy
	Outcome           Outcome
	Code              int
	Answered          int64 // ms
}

// TransactionCheck is one check that a producer got.
type TransactionCheck struct {
	At                int64 // ms
	Offset, PhyOffset int64 // of the copy that it names
}

// Transaction is one transaction as its producers know it. Its half message is Attempt{Id, 1}.
type Transaction struct {
	Id     int
	Plan   Plan
	Place  Place // where its message goes
	Digest Digest

	Outcome           Outcome // of the half message
	Offset, PhyOffset int64   // acknowledged: where that is
	Ends              []*TransactionEnd
	Checks            []TransactionCheck
}

// ended tells whether an end was acknowledged.
func (t *Transaction) ended() bool {
	for _, e := range t.Ends {
		if e.Outcome == Acknowledged {
			return true
		}
	}
	return false
}

// TransactionHistory is all that producers and consumers have seen of transactions.
type TransactionHistory struct {
	*History
	Transactions []*Transaction // guarded by the history's lock
	Restarted    int64          // ms: when the broker served again after the last kill
	// At the kills: half messages without an answer, open transactions, ends without an answer. What a kill has met.
	HalfSent, Open, EndSent int
}

// slack is how long after the acknowledgement of its end a half message may still be stored again: a round that had begun
// before may do so, on a busy machine late.
const slack = 3000 // ms

// transactionChecker judges a history of transactions.
type transactionChecker struct {
	*checker
	h      *TransactionHistory
	byId   map[int]*Transaction
	halves map[int][]*Record         // of each transaction, in the order of their queue
	finals map[int]map[int64]int     // messages of a transaction at the end, by the half message that was committed
	copies map[int]map[int64]*Record // half messages of a transaction by their log offsets
}

// CheckTransactions judges a history of transactions that has been read to its end:
//
//   - an acknowledged half message lies where its answer says;
//   - an acknowledged commit has just one message, with its content; none without an answer has more;
//   - nothing can be consumed that nobody committed, before, between and after the kills;
//   - a transaction that nobody has ended is checked again after the last restart;
//   - one whose end was acknowledged is not: no copy of its half message is made any more;
//   - a half message is stored again for each of its checks once: its copies have no two of a number;
//   - a check names a half message that is there; no end of such a one is refused.
func CheckTransactions(h *TransactionHistory) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &transactionChecker{checker: newChecker(h.History), h: h, byId: map[int]*Transaction{}, halves: map[int][]*Record{},
		finals: map[int]map[int64]int{}, copies: map[int]map[int64]*Record{}}
	for _, t := range h.Transactions {
		c.byId[t.Id] = t
	}
	c.values()
	c.ends()
	c.stored()
	committed, again := 0, 0
	for _, t := range h.Transactions {
		c.half(t)
		c.committed(t)
		c.asked(t)
		c.askedAgain(t)
		c.doubled(t)
		for _, n := range c.finals[t.Id] {
			committed += n
			again += n - 1
		}
		again += max(0, len(c.finals[t.Id])-1)
	}
	c.count()
	c.figures(committed, again)
	return c.v
}

// stored sorts what lies in the queues at the end.
func (c *transactionChecker) stored() {
	for p, records := range c.final {
		for _, offset := range sorted(records) {
			r := records[offset]
			t := c.byId[r.Message]
			switch {
			case t == nil || r.Try != 1:
				c.v.fault(Phantom, "%s offset %d: %s", p, offset, r.Attempt)
			case t.Digest != r.Digest:
				c.v.fault(Wrong, "%s offset %d: the content of transaction %d is another", p, offset, t.Id)
			case p == halfPlace:
				c.halves[t.Id] = append(c.halves[t.Id], r)
				if c.copies[t.Id] == nil {
					c.copies[t.Id] = map[int64]*Record{}
				}
				c.copies[t.Id][r.PhyOffset] = r
			default:
				if p != t.Place {
					c.v.fault(Wrong, "%s offset %d: transaction %d was for %s", p, offset, t.Id, t.Place)
				}
				if c.finals[t.Id] == nil {
					c.finals[t.Id] = map[int64]int{}
				}
				c.finals[t.Id][r.Prepared]++
			}
		}
	}
}

// half: an acknowledged half message is there.
func (c *transactionChecker) half(t *Transaction) {
	if t.Outcome != Acknowledged {
		return
	}
	if r := c.copies[t.Id][t.PhyOffset]; r == nil || r.Offset != t.Offset {
		c.v.fault(Lost, "the half message of transaction %d, acknowledged at %d (%d)", t.Id, t.Offset, t.PhyOffset)
	}
	for _, k := range t.Checks {
		if r := c.copies[t.Id][k.PhyOffset]; r == nil || r.Offset != k.Offset {
			c.v.fault(Wrong, "a check of transaction %d names %d (%d), which is no half message of it", t.Id, k.Offset, k.PhyOffset)
		}
	}
}

// committed: there is a message for each acknowledged commit, at most one for each that was sent, and no other.
func (c *transactionChecker) committed(t *Transaction) {
	sent, acknowledged := map[int64]int{}, map[int64]int{}
	for _, e := range t.Ends {
		if e.Outcome == Refused {
			c.v.fault(EndRefused, "transaction %d, half message %d (%d): %d", t.Id, e.Offset, e.PhyOffset, e.Code)
		}
		if e.Commit {
			sent[e.PhyOffset]++
			if e.Outcome == Acknowledged {
				acknowledged[e.PhyOffset]++
			}
		}
	}
	for at, n := range acknowledged {
		if c.finals[t.Id][at] < n {
			c.v.fault(Lost, "transaction %d: %d commits of the half message at %d acknowledged, %d messages", t.Id, n, at, c.finals[t.Id][at])
		}
	}
	for at, n := range c.finals[t.Id] {
		switch {
		case sent[at] == 0:
			c.v.fault(Visible, "transaction %d, by the half message at %d", t.Id, at)
		case n > sent[at]:
			c.v.fault(Twice, "transaction %d: %d commits of the half message at %d, %d messages", t.Id, sent[at], at, n)
		}
	}
}

// asked: a half message that is there and open is asked about after the last restart. An end without an answer may have
// been carried out; a commit is seen by its message.
func (c *transactionChecker) asked(t *Transaction) {
	if t.ended() || len(c.halves[t.Id]) == 0 {
		return
	}
	for _, e := range t.Ends {
		if !e.Commit || c.finals[t.Id][e.PhyOffset] > 0 {
			return
		}
	}
	for _, k := range t.Checks {
		if k.At >= c.h.Restarted {
			return
		}
	}
	ends := ""
	for _, e := range t.Ends {
		ends += fmt.Sprintf(", commit of %d %s", e.Offset, e.Outcome)
	}
	c.v.fault(NotAsked, "transaction %d, half message %d %s, %d checks before%s", t.Id, t.Offset, t.Outcome, len(t.Checks), ends)
}

// askedAgain: after the end of a half message was acknowledged no copy of it is made.
func (c *transactionChecker) askedAgain(t *Transaction) {
	for _, e := range t.Ends {
		if e.Outcome != Acknowledged {
			continue
		}
		for _, r := range c.halves[t.Id] {
			if r.Offset <= e.Offset {
				continue
			}
			if late := r.StoreTimestamp - e.Answered; late > slack {
				c.v.fault(AskedAgain, "transaction %d: the end of half message %d was acknowledged, %d ms later it was stored again at %d", t.Id, e.Offset, late, r.Offset)
			}
			break // the next copy is one of that
		}
	}
}

// doubled: no two copies have the same number.
func (c *transactionChecker) doubled(t *Transaction) {
	seen := map[int]int64{}
	for _, r := range c.halves[t.Id] {
		if other, ok := seen[r.Checks]; ok {
			c.v.fault(Doubled, "transaction %d: both %d and %d are for check %d", t.Id, other, r.Offset, r.Checks)
		}
		seen[r.Checks] = r.Offset
	}
}

// figures are what the verdict rests on.
func (c *transactionChecker) figures(committed, again int) {
	acknowledged, ends, unanswered, checks := 0, 0, 0, 0
	var by [plans]int
	for _, t := range c.h.Transactions {
		by[t.Plan]++
		if t.Outcome == Acknowledged {
			acknowledged++
		}
		checks += len(t.Checks)
		for _, e := range t.Ends {
			switch e.Outcome {
			case Acknowledged:
				ends++
			case Unanswered:
				unanswered++
			}
		}
	}
	c.v.Figures = []Figure{{"transactions", len(c.h.Transactions)}, {"half messages acknowledged", acknowledged},
		{"ends acknowledged", ends}, {"ends without an answer", unanswered}, {"checks", checks},
		{"kills met: half messages without an answer", c.h.HalfSent}, {"open transactions", c.h.Open}, {"ends under way", c.h.EndSent},
		{"messages", committed}, {"of these again, by another commit", again}}
}
