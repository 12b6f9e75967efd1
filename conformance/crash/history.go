package crash

import (
	"fmt"
	"sync"
	"time"
)

// Place is one queue.
type Place struct {
	Topic string
	Queue int32
}

// String is the place as it stands in a violation.
func (p Place) String() string { return fmt.Sprintf("%s %d", p.Topic, p.Queue) }

// scheduleTopic is where delayed messages wait, those of level n in queue n-1.
const scheduleTopic = "SCHEDULE_TOPIC_XXXX"

// Attempt names one attempt to send one message; it is the UNIQ_KEY of the record.
type Attempt struct{ Message, Try int }

// String is the UNIQ_KEY.
func (a Attempt) String() string { return fmt.Sprintf("CRASH-%d-%d", a.Message, a.Try) }

func parseAttempt(text string) (a Attempt, err error) {
	_, err = fmt.Sscanf(text, "CRASH-%d-%d", &a.Message, &a.Try)
	return a, err
}

// Digest stands for the content of a message: hashes of its body and of the properties that its sender gave it.
type Digest struct{ Body, Properties uint64 }

// Outcome is what the sender of an attempt knows.
type Outcome int

// The outcomes. Without an answer the record may be stored or not. FLUSH_DISK_TIMEOUT and its like are Uncertain: stored, but
// not as durably as asked for.
const (
	Unanswered Outcome = iota
	Acknowledged
	Uncertain
	Refused
)

// outcomeOf is what the code of a send's answer says.
func outcomeOf(code int) Outcome {
	switch {
	case code == codeSuccess:
		return Acknowledged
	case code >= 10 && code <= 12:
		return Uncertain
	}
	return Refused
}

// String is the outcome as it stands in a violation.
func (o Outcome) String() string {
	return [...]string{"unanswered", "acknowledged", "uncertain", "refused"}[o]
}

// Send is one attempt.
type Send struct {
	Attempt
	Place  Place         // of the message; one that is delayed waits elsewhere
	Level  int           // delay level; 0: not delayed
	Delay  time.Duration // of the level
	Digest Digest        // of the content
	Code   int           // of the answer

	Outcome        Outcome
	Sent, Answered time.Duration // since the run began
	Offset         int64         // acknowledged: the queue offset
	PhyOffset      int64         // acknowledged: by the message id
}

// StoredAt is the queue that the record of the send enters.
func (s *Send) StoredAt() Place {
	if s.Level > 0 {
		return Place{scheduleTopic, int32(s.Level - 1)}
	}
	return s.Place
}

// Record is one message as a pull returned it.
type Record struct {
	Attempt
	Offset         int64
	PhyOffset      int64
	StoreTimestamp int64  // ms
	Digest         Digest // of the content
	Whole          uint64 // of all its bytes
	Prepared       int64  // the log offset of the half message that it was
	Checks         int    // as a half message: for which check it was stored, 0 the first time
	Due            int64  // ms, of one that has waited for its time; 0: it has not
	Damage         string // what is wrong with the record in itself; "": nothing
}

// Pull is one pull that was answered.
type Pull struct {
	Place
	Asked          int64
	Code           int
	Min, Max       int64 // of the queue, as answered
	Sent, Answered time.Duration
	Records        []Record
	Final          bool // one of the reading of everything at the end
}

// Commit is one consumer offset that a group has sent.
type Commit struct {
	Place
	Offset int64
	Sent   time.Duration
}

// Standing is what a broker said of a group's offset, and then of the end of the queue.
type Standing struct {
	Place
	Known     bool
	Committed int64
	Max       int64
	Answered  time.Duration
}

// End is what a broker said of a queue after everything was read.
type End struct {
	Place
	Min, Max int64
}

// Lookup is a message that was asked for by key and by id at the end.
type Lookup struct {
	Attempt
	ByKey, ById bool // it was found, the very record
}

// Kill is one SIGKILL.
type Kill struct {
	At      time.Duration
	Millis  int64 // the same moment, in ms since 1970, to compare with store timestamps
	InStart bool  // the broker had not yet said that it serves
}

// History is all that clients have seen of a broker. Its methods may be called at once.
type History struct {
	began time.Time

	mu        sync.Mutex
	Sends     []*Send
	Pulls     []*Pull
	Commits   []Commit
	Standings []Standing
	Ends      []End
	Lookups   []Lookup
	Kills     []Kill
	Garbled   []string // pulls whose bodies could not be read
}

// NewHistory begins a history now.
func NewHistory() *History { return &History{began: time.Now()} }

// now is the time since the history began.
func (h *History) now() time.Duration { return time.Since(h.began) }

func (h *History) send(s *Send) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Sends = append(h.Sends, s)
}

// settle fills in what became of a send.
func (h *History) settle(s *Send, fill func(s *Send)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Answered = h.now()
	fill(s)
}

func (h *History) pull(p *Pull) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Pulls = append(h.Pulls, p)
}

func (h *History) garble(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Garbled = append(h.Garbled, text)
}

func (h *History) commit(p Place, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Commits = append(h.Commits, Commit{Place: p, Offset: offset, Sent: h.now()})
}

func (h *History) standing(s Standing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Answered = h.now()
	h.Standings = append(h.Standings, s)
}

func (h *History) kill(inStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Kills = append(h.Kills, Kill{At: h.now(), Millis: time.Now().UnixMilli(), InStart: inStart})
}

// lastDelayed is when a delayed message was sent last, and the longest delay of all.
func (h *History) lastDelayed() (sent, delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.Sends {
		if s.Level > 0 {
			sent, delay = max(sent, s.Sent), max(delay, s.Delay)
		}
	}
	return sent, delay
}
