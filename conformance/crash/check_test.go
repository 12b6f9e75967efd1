package crash

import (
	"maps"
	"testing"
	"time"
)

var (
	queue    = Place{"T", 0}
	late     = Place{"L", 1}
	schedule = Place{scheduleTopic, 0}
)

const ms = time.Millisecond

// at is what stands at an offset of a queue: the content of attempt a.
func at(offset int64, a Attempt, stored int64) Record {
	n := uint64(a.Message)
	return Record{Attempt: a, Offset: offset, PhyOffset: 1000*int64(a.Message) + int64(a.Try), StoreTimestamp: stored, Digest: Digest{n, n}, Whole: n<<8 + uint64(a.Try)}
}

// pulled is a pull from the first of the records on.
func pulled(p Place, sent, answered time.Duration, end int64, final bool, records ...Record) *Pull {
	pull := &Pull{Place: p, Min: 0, Max: end, Sent: sent, Answered: answered, Records: records, Final: final, Code: codePullNotFound, Asked: end}
	if len(records) > 0 {
		pull.Code, pull.Asked = codeSuccess, records[0].Offset
	}
	return pull
}

// goodHistory has what may happen and no fault. Message 1, 2 and 4 were acknowledged, 4 at its second try; its first, and 5, got
// no answer, and 5 is not there; 3 was refused; 6 is delayed by a second. The broker was killed at 500 ms, which is store
// time 1500.
func goodHistory() *History {
	acknowledged := func(a Attempt, p Place, offset int64, sent, answered time.Duration) *Send {
		return &Send{Attempt: a, Place: p, Digest: Digest{uint64(a.Message), uint64(a.Message)}, Outcome: Acknowledged, Sent: sent, Answered: answered, Offset: offset,
			PhyOffset: 1000*int64(a.Message) + int64(a.Try)}
	}
	delayed := acknowledged(Attempt{6, 1}, late, 0, 40*ms, 50*ms)
	delayed.Level, delayed.Delay = 1, time.Second
	again := delayed.Attempt
	second := at(1, again, 2600) // delivered again after the crash: another record
	second.PhyOffset, second.Whole = 7000, 7000
	first := at(0, again, 2050)
	first.PhyOffset, first.Whole = 6900, 6900
	return &History{
		Sends: []*Send{
			acknowledged(Attempt{1, 1}, queue, 0, 10*ms, 20*ms),
			acknowledged(Attempt{2, 1}, queue, 1, 30*ms, 40*ms),
			{Attempt: Attempt{3, 1}, Place: queue, Digest: Digest{3, 3}, Outcome: Refused, Code: 14, Sent: 40 * ms, Answered: 45 * ms},
			{Attempt: Attempt{4, 1}, Place: queue, Digest: Digest{4, 4}, Sent: 490 * ms},
			acknowledged(Attempt{4, 2}, queue, 3, 600*ms, 610*ms),
			{Attempt: Attempt{5, 1}, Place: queue, Digest: Digest{5, 5}, Sent: 495 * ms},
			delayed,
		},
		Pulls: []*Pull{
			pulled(queue, 20*ms, 25*ms, 1, false, at(0, Attempt{1, 1}, 1020)),
			pulled(queue, 60*ms, 70*ms, 2, false, at(0, Attempt{1, 1}, 1020), at(1, Attempt{2, 1}, 1040)),
			pulled(queue, 600*ms, 605*ms, 3, false),
			pulled(late, 1100*ms, 1110*ms, 1, false, first),
			pulled(queue, 5000*ms, 5001*ms, 4, true, at(0, Attempt{1, 1}, 1020), at(1, Attempt{2, 1}, 1040)),
			pulled(queue, 5002*ms, 5003*ms, 4, true, at(2, Attempt{4, 1}, 1490), at(3, Attempt{4, 2}, 1610)),
			pulled(schedule, 5004*ms, 5005*ms, 1, true, at(0, Attempt{6, 1}, 1050)),
			pulled(late, 5006*ms, 5007*ms, 2, true, first, second),
		},
		Commits:   []Commit{{queue, 1, 100 * ms}, {queue, 2, 200 * ms}},
		Standings: []Standing{{queue, true, 1, 3, 700 * ms}, {late, false, -1, 2, 700 * ms}},
		Ends:      []End{{queue, 0, 4}, {schedule, 0, 1}, {late, 0, 2}},
		Lookups:   []Lookup{{Attempt{1, 1}, true, true}},
		Kills:     []Kill{{At: 1200 * ms, Millis: 2200}},
	}
}

func TestGoodHistory(t *testing.T) {
	v := Check(goodHistory())
	for _, c := range v.Cases {
		t.Errorf("%s: %s", c.Rule, c.Text)
	}
	want := Counts{Kills: 1, Attempts: 7, Acknowledged: 4, Unanswered: 2, Refused: 1, StoredUnanswered: 1, StoredAgain: 1, Delayed: 1, CopiesAgain: 1,
		Pulls: 8, Records: 11, FinalTotal: 7, Commits: 2, Standings: 2, CommitsBack: 1, Lookups: 1}
	if v.Counts != want {
		t.Errorf("counted %+v\nwant    %+v", v.Counts, want)
	}
}

// Each rule fails for a history that breaks it.
func TestEachRule(t *testing.T) {
	seen := map[Rule]bool{}
	for _, c := range []struct {
		name  string
		spoil func(h *History)
		want  []Rule
	}{
		{"the last message is gone", func(h *History) {
			h.Pulls[5].Records = h.Pulls[5].Records[:1]
			h.Ends[0].Max, h.Pulls[4].Max, h.Pulls[5].Max = 3, 3, 3
		}, []Rule{Lost}},
		{"a message that was acknowledged has become another that was sent", func(h *History) {
			h.Pulls[5].Records[1] = at(3, Attempt{5, 1}, 1610)
		}, []Rule{Lost}},
		{"a message is gone that was read", func(h *History) {
			h.Pulls[5].Records, h.Ends[0].Max = nil, 1
			h.Pulls[4].Records = h.Pulls[4].Records[:1]
			h.Pulls[4].Max, h.Pulls[5].Max, h.Pulls[5].Asked = 1, 1, 1
		}, []Rule{Lost, Lost, Beyond, WentBack, WentBack}},
		{"the body is another", func(h *History) { h.Pulls[5].Records[1].Digest.Body = 99 }, []Rule{Wrong}},
		{"the properties are others", func(h *History) { h.Pulls[5].Records[1].Digest.Properties++ }, []Rule{Wrong}},
		{"the checksum is wrong", func(h *History) { h.Pulls[5].Records[1].Damage = "checksum" }, []Rule{Wrong}},
		{"the answer could not be read", func(h *History) { h.Garbled = []string{"a pull"} }, []Rule{Wrong}},
		{"another offset than acknowledged", func(h *History) { h.Sends[4].Offset = 2 }, []Rule{Wrong}},
		{"another id than acknowledged", func(h *History) { h.Sends[4].PhyOffset++ }, []Rule{Wrong}},
		{"in another queue", func(h *History) { h.Sends[4].Place.Queue = 7 }, []Rule{Wrong}},
		{"an offset has changed", func(h *History) { h.Pulls[4].Records[1].Whole++ }, []Rule{Changed}},
		{"an offset has changed before the end", func(h *History) { h.Pulls[1].Records[0].Whole++ }, []Rule{Changed}},
		{"a pull leaves one out", func(h *History) {
			h.Pulls[5].Records[0] = h.Pulls[5].Records[1]
			h.Pulls[5].Records = h.Pulls[5].Records[:1]
		}, []Rule{Gap, Gap}},
		{"the queue does not begin at 0", func(h *History) { h.Ends[0].Min = 1 }, []Rule{Gap}},
		{"the end is beyond the data", func(h *History) { h.Ends[0].Max = 5 }, []Rule{Gap}},
		{"more data than the end says", func(h *History) { h.Ends[0].Max = 3 }, []Rule{Beyond}},
		{"a queue is missing", func(h *History) { h.Ends = h.Ends[:2] }, []Rule{Beyond, Beyond}},
		{"a pull finds an earlier end", func(h *History) { h.Pulls[2].Max = 1 }, []Rule{WentBack}},
		{"a pull finds less than was read", func(h *History) { h.Pulls[2].Asked, h.Pulls[2].Max = 1, 2 }, []Rule{Unreadable}},
		{"one attempt twice", func(h *History) {
			r := at(2, Attempt{4, 2}, 1490)
			h.Pulls[5].Records[0], h.Sends[4].PhyOffset = r, r.PhyOffset
		}, []Rule{Twice, Wrong}},
		{"a refused one is there", func(h *History) { h.Pulls[5].Records[0] = at(2, Attempt{3, 1}, 1490) }, []Rule{RefusedStored}},
		{"nobody sent it", func(h *History) { h.Pulls[5].Records[0] = at(2, Attempt{77, 1}, 1490) }, []Rule{Phantom}},
		{"delivered, but it does not wait", func(h *History) {
			h.Pulls[6].Records, h.Ends[1].Max, h.Pulls[6].Max = nil, 0, 0
			h.Sends[6].Outcome = Unanswered
		}, []Rule{Phantom}},
		{"in front of an earlier one", func(h *History) { h.Sends[1].Sent, h.Sends[1].Answered = 2*ms, 5*ms }, []Rule{Disorder}},
		{"not delivered", func(h *History) {
			h.Pulls[3], h.Pulls[7] = pulled(late, 0, ms, 0, false), pulled(late, 0, ms, 0, true)
			h.Ends[2].Max = 0
		}, []Rule{Undelivered}},
		{"delivered too early", func(h *History) {
			h.Pulls[3].Records[0].StoreTimestamp, h.Pulls[7].Records[0].StoreTimestamp = 2049, 2049
		}, []Rule{Early}},
		{"delivered twice without a crash", func(h *History) { h.Kills[0].Millis = 1999 }, []Rule{CopiedAgain}},
		{"delivered otherwise than it waits", func(h *History) { h.Pulls[7].Records[1].Digest.Body++ }, []Rule{Wrong}},
		{"committed beyond the end", func(h *History) { h.Standings[0].Max = 0 }, []Rule{CommitBeyond}},
		{"committed by nobody", func(h *History) { h.Standings[0].Committed = 3 }, []Rule{CommitFalse}},
		{"committed later", func(h *History) { h.Standings[0] = Standing{queue, true, 2, 3, 150 * ms} }, []Rule{CommitFalse}},
		{"not found by key", func(h *History) { h.Lookups[0].ByKey = false }, []Rule{Unfound}},
		{"not found by id", func(h *History) { h.Lookups[0].ById = false }, []Rule{Unfound}},
	} {
		h := goodHistory()
		c.spoil(h)
		v := Check(h)
		want := map[Rule]int{}
		for _, r := range c.want {
			want[r]++
			seen[r] = true
		}
		if !maps.Equal(v.Broken, want) {
			t.Errorf("%s: broken are %v, want %v\n%v", c.name, v.Broken, want, v.Cases)
		}
	}
	for _, r := range Rules {
		if !seen[r] {
			t.Errorf("no history breaks the rule %q", r)
		}
	}
}

// What is allowed: records of attempts without an answer, an attempt whose flush was late, offsets that go back to what was
// saved.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(h *History)
	}{
		{"no answer and not stored", func(h *History) { h.Sends[5].Sent = 1 }},
		{"a flush that was late, stored", func(h *History) { h.Sends[3].Outcome, h.Sends[3].Answered = Uncertain, 498*ms }},
		{"a flush that was late, not stored", func(h *History) { h.Sends[5].Outcome, h.Sends[5].Answered = Uncertain, 498*ms }},
		{"a committed offset lost", func(h *History) { h.Standings[0].Committed = 0 }},
		{"two at once in any order", func(h *History) { h.Sends[0].Answered = 35 * ms }},
		{"a pull that has to be repeated", func(h *History) { h.Pulls[2].Asked, h.Pulls[2].Code = 1, codePullRetry }},
	} {
		h := goodHistory()
		c.do(h)
		if v := Check(h); v.Faults() > 0 {
			t.Errorf("%s: %v", c.name, v.Cases)
		}
	}
}

func TestCasesAreBounded(t *testing.T) {
	h := goodHistory()
	h.Ends[0].Max = 1000
	v := Check(h)
	if v.Broken[Gap] != 996 || len(v.Cases) != mostTexts {
		t.Errorf("%d gaps, %d told", v.Broken[Gap], len(v.Cases))
	}
	if v.Faults() != 996 {
		t.Errorf("%d faults", v.Faults())
	}
}
