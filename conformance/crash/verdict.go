package crash

import "fmt"

// Rule is one promise; its text says how it was broken.
type Rule string

// The rules.
const (
	Lost          Rule = "acknowledged and lost"
	Wrong         Rule = "other content or another place than acknowledged"
	Changed       Rule = "one offset with two values"
	Gap           Rule = "a gap in the offsets"
	Beyond        Rule = "an offset beyond the data"
	WentBack      Rule = "the end of a queue went back"
	Unreadable    Rule = "an offset before the end was not readable"
	Twice         Rule = "one send stored twice"
	RefusedStored Rule = "refused and stored"
	Phantom       Rule = "sent by nobody"
	Disorder      Rule = "sent after an acknowledgement, stored before it"
	Undelivered   Rule = "a delayed message was not delivered"
	Early         Rule = "a delayed message was delivered too early"
	CopiedAgain   Rule = "a delayed message was delivered again without a crash"
	CommitBeyond  Rule = "a committed offset beyond the end of its queue"
	CommitFalse   Rule = "a committed offset that nobody committed"
	Unfound       Rule = "an acknowledged message is not found by key or id"
)

// The rules of transactions.
const (
	Visible    Rule = "visible though nobody committed it"
	NotAsked   Rule = "an open transaction was not checked after the restart"
	AskedAgain Rule = "a transaction was checked although its end was acknowledged"
	Doubled    Rule = "a half message was stored twice for one check"
	EndRefused Rule = "the end of a half message was refused"
)

// TransactionRules are the rules of transactions beside those for all messages.
var TransactionRules = []Rule{Visible, NotAsked, AskedAgain, Doubled, EndRefused}

// The rules of popped messages.
const (
	Unconsumed    Rule = "a popped message that was not acknowledged did not come again"
	AckedAgain    Rule = "an acknowledged message was popped again"
	TooEarly      Rule = "a popped message came again before its time"
	CopiedTwice   Rule = "a popped message was copied twice without a crash"
	Overtaken     Rule = "an orderly pop passed over a message that was not acknowledged"
	BesideOrderly Rule = "an orderly pop beside a batch that was not acknowledged"
	AckRefused    Rule = "an acknowledgement was refused"
)

// PopRules are the rules of popped messages.
var PopRules = []Rule{Unconsumed, AckedAgain, TooEarly, CopiedTwice, Overtaken, BesideOrderly, AckRefused}

// The rules of messages with a time of their own; others are those of delayed messages.
const (
	RecalledSeen  Rule = "a recalled message was delivered"
	RecallRefused Rule = "the recall of a message that waits was refused"
)

// TimerRules are the rules of messages with a time of their own.
var TimerRules = []Rule{RecalledSeen, RecallRefused}

// Rules are those for all messages, in the order of the report.
var Rules = []Rule{Lost, Wrong, Changed, Gap, Beyond, WentBack, Unreadable, Twice, RefusedStored, Phantom, Disorder, Undelivered,
	Early, CopiedAgain, CommitBeyond, CommitFalse, Unfound}

// Counts says how much a verdict rests on, and what happened that is allowed.
type Counts struct {
	Kills, KillsInStart        int
	Attempts                   int // sends, those that were tried again included
	Acknowledged               int
	Unanswered                 int // attempts without an answer
	Uncertain, Refused         int
	StoredUnanswered           int // attempts without an answer that are stored: allowed
	StoredAgain                int // messages stored more than once because they were sent again: allowed
	Delayed                    int // delayed messages that were stored
	CopiesAgain                int // deliveries of a delayed message beyond the first: allowed after a crash
	Pulls, Records, FinalTotal int // answered pulls, records in them, records at the end
	Commits, Standings         int
	CommitsBack                int // standings after a crash that were behind an earlier commit: allowed
	Lookups                    int
}

// Add adds the counts of another run.
func (c *Counts) Add(o Counts) {
	for _, p := range []struct{ to, from *int }{
		{&c.Kills, &o.Kills}, {&c.KillsInStart, &o.KillsInStart}, {&c.Attempts, &o.Attempts}, {&c.Acknowledged, &o.Acknowledged},
		{&c.Unanswered, &o.Unanswered}, {&c.Uncertain, &o.Uncertain}, {&c.Refused, &o.Refused},
		{&c.StoredUnanswered, &o.StoredUnanswered}, {&c.StoredAgain, &o.StoredAgain}, {&c.Delayed, &o.Delayed},
		{&c.CopiesAgain, &o.CopiesAgain}, {&c.Pulls, &o.Pulls}, {&c.Records, &o.Records}, {&c.FinalTotal, &o.FinalTotal},
		{&c.Commits, &o.Commits}, {&c.Standings, &o.Standings}, {&c.CommitsBack, &o.CommitsBack}, {&c.Lookups, &o.Lookups},
	} {
		*p.to += *p.from
	}
}

// Violation is one case of a broken promise.
type Violation struct {
	Rule Rule
	Text string
}

// Figure is a number with its name.
type Figure struct {
	Name string
	N    int
}

// mostTexts is how many cases of a rule are told in full.
const mostTexts = 8

// Verdict is what a history says of a broker.
type Verdict struct {
	Counts  Counts
	Figures []Figure // of transactions, pops and timers: what the verdict rests on
	Broken  map[Rule]int
	Cases   []Violation // the first of each rule
}

func (v *Verdict) fault(r Rule, format string, args ...any) {
	v.Broken[r]++
	if v.Broken[r] <= mostTexts {
		v.Cases = append(v.Cases, Violation{r, fmt.Sprintf(format, args...)})
	}
}

// Faults is the number of broken promises.
func (v *Verdict) Faults() (n int) {
	for _, k := range v.Broken {
		n += k
	}
	return n
}
