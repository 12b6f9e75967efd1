package ordering

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Kind is what a line of the history says.
type Kind byte

// The kinds of lines. Every member appends whole lines to one file, before and after it deals with a batch; so their order
// in the file is an order of time.
const (
	Consumed  Kind = 'M' // M member queue offset key seq: begins to deal with a message
	Done      Kind = 'E' // E member queue: has dealt with all it has begun of the queue
	Disturbed Kind = 'D' // D what: a member came or went, or the broker; queues may be read again from what is committed
	Killed    Kind = 'K' // K member: will never end what it has begun
)

// Event is one line.
type Event struct {
	Kind   Kind
	Member string
	Queue  string
	Offset int64 // in the queue
	Key    string
	Seq    int64 // of the key's messages, from 0
}

// Read reads a history. A last line that a kill has cut off is left out.
func Read(r io.Reader) ([]Event, error) {
	var all []Event
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		e, err := parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
		all = append(all, e)
	}
}

func parse(line string) (e Event, err error) {
	kind, rest, _ := strings.Cut(line, " ")
	if len(kind) != 1 {
		return e, fmt.Errorf("no kind")
	}
	switch e.Kind = Kind(kind[0]); e.Kind {
	case Consumed:
		_, err = fmt.Sscan(rest, &e.Member, &e.Queue, &e.Offset, &e.Key, &e.Seq)
	case Done:
		_, err = fmt.Sscan(rest, &e.Member, &e.Queue)
	case Killed:
		_, err = fmt.Sscan(rest, &e.Member)
	case Disturbed:
	default:
		err = fmt.Errorf("unknown kind")
	}
	return e, err
}

// Verdict is what came of a check.
type Verdict struct {
	Messages int      // different ones that were consumed
	Missing  int64    // wanted ones that were not
	Repeated int      // deliveries again, after a queue has changed its owner
	Owners   int      // changes of a queue's owner
	Faults   []string // at most maxFaults
	Count    int      // of all faults
}

// maxFaults bounds the faults that are told.
const maxFaults = 20

func (v *Verdict) fault(format string, args ...any) {
	if v.Count++; len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
	}
}

// queue is what the checker knows of a queue.
type queue struct {
	last   int64  // offset of the last event
	max    int64  // of all
	owner  string // of the last event
	busy   bool   // it has not ended what it began
	mayGo  bool   // back: something was disturbed since the last event
	placed bool   // there was an event
}

// Check judges a history. want is the number of messages of each key.
//
// Within a queue each message must follow the one before it. A queue may go back, but only to where it has been, and only
// for another member or after a disturbance; then it must pass all messages again. Two members never deal with one queue
// at a time. Messages of one key come in the order in which they were sent, each at least once.
func Check(events []Event, want map[string]int64) *Verdict {
	v := &Verdict{}
	queues, keys, dead := map[string]*queue{}, map[string]int64{}, map[string]bool{}
	for n, e := range events {
		q := queues[e.Queue]
		if q == nil && e.Queue != "" {
			q = &queue{last: -1, max: -1}
			queues[e.Queue] = q
		}
		switch e.Kind {
		case Disturbed, Killed:
			if e.Kind == Killed {
				dead[e.Member] = true
			}
			for _, q := range queues {
				q.mayGo = true
			}
		case Done:
			if q.owner == e.Member {
				q.busy = false
			}
		case Consumed:
			v.consumed(n, e, q, dead)
			if e.Offset > q.max {
				q.max = e.Offset
				v.Messages++
				v.next(n, e, keys)
			} else {
				v.Repeated++
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if keys[key] != want[key] {
			v.Missing += max(0, want[key]-keys[key])
			v.fault("%d messages of key %s, want %d", keys[key], key, want[key])
		}
	}
	return v
}

// consumed checks an event against the one before it in its queue.
func (v *Verdict) consumed(n int, e Event, q *queue, dead map[string]bool) {
	other := q.placed && q.owner != e.Member
	if other {
		v.Owners++
		if q.busy && !dead[q.owner] {
			v.fault("event %d: %s begins with offset %d of %s, of which %s has not ended %d", n, e.Member, e.Offset, e.Queue, q.owner, q.last)
		}
	}
	if dead[e.Member] {
		v.fault("event %d: %s is dead and consumes offset %d of %s", n, e.Member, e.Offset, e.Queue)
	}
	switch {
	case e.Offset == q.last+1:
	case e.Offset > q.last:
		v.fault("event %d: %s has offset %d after %d", n, e.Queue, e.Offset, q.last)
	case !other && !q.mayGo:
		v.fault("event %d: %s goes back from offset %d to %d for no reason", n, e.Queue, q.last, e.Offset)
	}
	q.last, q.owner, q.busy, q.mayGo, q.placed = e.Offset, e.Member, true, false, true
}

// next checks the order of a key. A send whose answer was lost is repeated, so a number may come twice, but none too early.
func (v *Verdict) next(n int, e Event, keys map[string]int64) {
	switch {
	case e.Seq == keys[e.Key]:
		keys[e.Key]++
	case e.Seq > keys[e.Key]:
		v.fault("event %d: message %d of key %s comes before %d", n, e.Seq, e.Key, keys[e.Key])
		keys[e.Key] = e.Seq + 1
	}
}
