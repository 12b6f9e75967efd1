package crash

import (
	"testing"
)

// goodTimers has a message that is delivered (1), one that was recalled (2), one that a kill at 3000 has delivered again (3),
// one whose send and one whose recall had no answer (4, 5), and one that was recalled too late (6).
func goodTimers() *TimerHistory {
	p := Place{"W", 0}
	record := func(offset int64, id int, stored, due int64) Record {
		r := at(offset, Attempt{id, 1}, stored)
		r.Due, r.Whole = due, uint64(offset)
		return r
	}
	sent := func(id int, outcome Outcome, due int64, recall *TimerRecall) *TimerSend {
		return &TimerSend{Id: id, Place: p, Digest: Digest{uint64(id), uint64(id)}, Outcome: outcome, Earliest: due, Due: due, Recall: recall}
	}
	return &TimerHistory{
		History: &History{
			Pulls: []*Pull{pulled(p, 0, 1, 5, true, record(0, 1, 2000, 2000), record(1, 3, 2500, 2400), record(2, 3, 3100, 2400),
				record(3, 4, 4000, 4000), record(4, 6, 5000, 5000))},
			Ends:  []End{{p, 0, 5}},
			Kills: []Kill{{Millis: 3000}},
		},
		Messages: []*TimerSend{sent(1, Acknowledged, 2000, nil), sent(2, Acknowledged, 2000, &TimerRecall{Outcome: Acknowledged, Answered: 1990}),
			sent(3, Acknowledged, 2400, nil), sent(4, Unanswered, 3900, nil), sent(5, Acknowledged, 2000, &TimerRecall{Answered: 1500}),
			sent(6, Acknowledged, 5000, &TimerRecall{Outcome: Refused, Code: 604, Answered: 5001})},
	}
}

func TestGoodTimers(t *testing.T) {
	v := CheckTimers(goodTimers())
	for _, c := range v.Cases {
		t.Errorf("%s: %s", c.Rule, c.Text)
	}
	want := []int{5, 1, 1, 5, 1, 0, 0, 0}
	for i, f := range v.Figures {
		if f.N != want[i] {
			t.Errorf("%s: %d, want %d", f.Name, f.N, want[i])
		}
	}
}

// TestEachTimerRule: each rule fails for a history that breaks it.
func TestEachTimerRule(t *testing.T) {
	seen := tally{}
	for _, c := range []struct {
		name  string
		spoil func(h *TimerHistory)
		want  []Rule
	}{
		{"not delivered", func(h *TimerHistory) { h.Pulls[0].Records, h.Ends[0].Max = h.Pulls[0].Records[:4], 4 }, []Rule{Undelivered}},
		{"a ms too early", func(h *TimerHistory) { h.Pulls[0].Records[0].StoreTimestamp-- }, []Rule{Early}},
		{"a ms too early, by what the record says", func(h *TimerHistory) { h.Pulls[0].Records[3].StoreTimestamp-- }, []Rule{Early}},
		{"twice without a kill", func(h *TimerHistory) { h.Kills[0].Millis = 2300 }, []Rule{CopiedAgain}},
		{"recalled and delivered", func(h *TimerHistory) {
			h.Messages[5].Recall.Outcome, h.Messages[5].Recall.Answered = Acknowledged, 4999
		}, []Rule{RecalledSeen}},
		{"a recall is refused", func(h *TimerHistory) { h.Messages[5].Recall.Answered = 4999 }, []Rule{RecallRefused}},
		{"in another queue", func(h *TimerHistory) { h.Messages[0].Place.Queue = 3 }, []Rule{Wrong}},
		{"sent by nobody", func(h *TimerHistory) { h.Messages[3].Id = 7 }, []Rule{Phantom}},
		{"another content", func(h *TimerHistory) { h.Pulls[0].Records[0].Digest.Body++ }, []Rule{Wrong}},
	} {
		h := goodTimers()
		c.spoil(h)
		seen.check(t, c.name, CheckTimers(h), c.want)
	}
	seen.whole(t, TimerRules)
}
