package crash

import (
	"testing"
)

var transactionPlace = Place{"T", 0}

// goodTransactions has a commit at once (1), a rollback at once (2), one that is committed when it is checked (3), one whose
// commit has no answer and was carried out (4), and one whose half message has no answer and is not there (5). The broker
// was killed at 2000 ms and serves again at 2500.
func goodTransactions() *TransactionHistory {
	half := func(offset int64, id, checks int, stored int64) Record {
		r := at(offset, Attempt{id, 1}, stored)
		r.PhyOffset, r.Whole, r.Checks = 100*offset, uint64(100+offset), checks
		return r
	}
	final := func(offset int64, id int, prepared int64) Record {
		r := at(offset, Attempt{id, 1}, 1900)
		r.Prepared, r.Whole = prepared, uint64(offset)
		return r
	}
	tx := func(id int, plan Plan, outcome Outcome, offset int64, ends ...*TransactionEnd) *Transaction {
		return &Transaction{Id: id, Plan: plan, Place: transactionPlace, Digest: Digest{uint64(id), uint64(id)}, Outcome: outcome, Offset: offset, PhyOffset: 100 * offset, Ends: ends}
	}
	asked := tx(3, CommitAsked, Acknowledged, 2, &TransactionEnd{Commit: true, Offset: 4, PhyOffset: 400, Outcome: Acknowledged, Answered: 2900})
	asked.Checks = []TransactionCheck{{2800, 4, 400}}
	return &TransactionHistory{
		History: &History{
			Pulls: []*Pull{
				pulled(halfPlace, 0, 1, 5, true, half(0, 1, 0, 1000), half(1, 2, 0, 1000), half(2, 3, 0, 1000), half(3, 4, 0, 1100), half(4, 3, 1, 2800)),
				pulled(transactionPlace, 0, 1, 3, true, final(0, 1, 0), final(1, 4, 300), final(2, 3, 400)),
			},
			Ends:  []End{{halfPlace, 0, 5}, {transactionPlace, 0, 3}},
			Kills: []Kill{{Millis: 2000}},
		},
		Transactions: []*Transaction{
			tx(1, CommitAtOnce, Acknowledged, 0, &TransactionEnd{Commit: true, Outcome: Acknowledged, Answered: 1200}),
			tx(2, RollbackAtOnce, Acknowledged, 1, &TransactionEnd{Offset: 1, PhyOffset: 100, Outcome: Acknowledged, Answered: 1200}),
			asked,
			tx(4, CommitAtOnce, Acknowledged, 3, &TransactionEnd{Commit: true, Offset: 3, PhyOffset: 300, Answered: 2000}),
			tx(5, CommitAtOnce, Unanswered, 0),
		},
		Restarted: 2500,
	}
}

func TestGoodTransactions(t *testing.T) {
	v := CheckTransactions(goodTransactions())
	for _, c := range v.Cases {
		t.Errorf("%s: %s", c.Rule, c.Text)
	}
	want := []int{5, 4, 3, 1, 1, 0, 0, 0, 3, 0}
	for i, f := range v.Figures {
		if f.N != want[i] {
			t.Errorf("%s: %d, want %d", f.Name, f.N, want[i])
		}
	}
}

// TestEachTransactionRule: each rule fails for a history that breaks it.
func TestEachTransactionRule(t *testing.T) {
	seen := tally{}
	for _, c := range []struct {
		name  string
		spoil func(h *TransactionHistory)
		want  []Rule
	}{
		{"the message of a commit is gone", func(h *TransactionHistory) {
			h.Pulls[1].Records, h.Ends[1].Max = h.Pulls[1].Records[:2], 2
		}, []Rule{Lost}},
		{"a half message is gone", func(h *TransactionHistory) { h.Pulls[0].Records[1] = h.Pulls[0].Records[2] }, []Rule{Lost, Gap, Gap}},
		{"a half message is another", func(h *TransactionHistory) { h.Pulls[0].Records[1].Digest.Body++ }, []Rule{Wrong, Lost}},
		{"what was rolled back is there", func(h *TransactionHistory) {
			r := h.Pulls[1].Records[2]
			r.Attempt, r.Digest, r.Prepared, r.Offset = Attempt{2, 1}, Digest{2, 2}, 100, 3
			h.Pulls[1].Records, h.Ends[1].Max = append(h.Pulls[1].Records, r), 4
		}, []Rule{Visible}},
		{"what is open is there", func(h *TransactionHistory) { h.Transactions[2].Ends, h.Transactions[2].Checks[0].At = nil, 2600 }, []Rule{Visible}},
		{"a commit has two messages", func(h *TransactionHistory) {
			r := h.Pulls[1].Records[2]
			r.Offset = 3
			h.Pulls[1].Records, h.Ends[1].Max = append(h.Pulls[1].Records, r), 4
		}, []Rule{Twice}},
		{"sent by nobody", func(h *TransactionHistory) { h.Pulls[1].Records[1].Message = 77 }, []Rule{Phantom, NotAsked}},
		{"a commit in another queue", func(h *TransactionHistory) { h.Transactions[0].Place.Queue = 5 }, []Rule{Wrong}},
		{"not asked after the restart", func(h *TransactionHistory) {
			h.Transactions[2].Ends, h.Transactions[2].Checks[0].At = nil, 1900
			h.Pulls[1].Records, h.Ends[1].Max = h.Pulls[1].Records[:2], 2
		}, []Rule{NotAsked}},
		{"a commit without an answer has no effect, and nobody asks", func(h *TransactionHistory) {
			h.Pulls[1].Records[1].Attempt, h.Pulls[1].Records[1].Digest = Attempt{1, 1}, Digest{1, 1}
			h.Pulls[1].Records[1].Prepared = 0
			h.Transactions[0].Ends = append(h.Transactions[0].Ends, h.Transactions[0].Ends[0])
		}, []Rule{NotAsked}},
		{"asked again", func(h *TransactionHistory) {
			h.Transactions[2].Ends[0].Answered, h.Transactions[2].Ends[0].Offset = -500, 2
		}, []Rule{AskedAgain}},
		{"two copies for one check", func(h *TransactionHistory) { h.Pulls[0].Records[4].Checks = 0 }, []Rule{Doubled}},
		{"a check of something else", func(h *TransactionHistory) { h.Transactions[2].Checks[0].PhyOffset = 300 }, []Rule{Wrong}},
		{"an end is refused", func(h *TransactionHistory) {
			h.Transactions[1].Ends[0].Outcome, h.Transactions[1].Ends[0].Code = Refused, 1
			h.Transactions[1].Checks = []TransactionCheck{{2600, 1, 100}}
		}, []Rule{EndRefused}},
	} {
		h := goodTransactions()
		c.spoil(h)
		seen.check(t, c.name, CheckTransactions(h), c.want)
	}
	seen.whole(t, TransactionRules)
}
