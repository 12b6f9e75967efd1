package store

import (
	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
)

// denseSpan is in how many times their own bytes of the log messages may lie for what is between them to be read ahead too:
// other queues are mostly read at the same time.
const denseSpan = 16

// guessedBytes is how much is read at once beyond what an answer takes, when the filter refuses most of it.
const guessedBytes = 32 << 10

// verdict is what the first stage of the filter says of an entry.
type verdict uint8

const (
	unjudged verdict = iota
	passes
	refused
)

// run is records that lie one behind the other in the log and were read at once, to where the body of the answer goes on: those
// that are taken move down there, so one that comes first is never copied again.
type run struct {
	at    int64  // log offset of bytes
	bytes []byte // those not asked for yet, in the memory of the body, behind its end
	known int64  // log offset up to which it was looked what to read
}

// record returns the record of the n-th entry, in the memory behind the body's end; it stays there until the next is asked for.
func (g *get) record(n int, e consumequeue.Entry) (message.Record, error) {
	from, size := e.PhyOffset-g.run.at, int64(e.Size)
	if from < 0 || from+size > int64(len(g.run.bytes)) {
		if err := g.readRun(n, e); err != nil {
			return nil, err
		}
		from = 0
	}
	record := message.Record(g.run.bytes[from : from+size])
	// What lies before may be overwritten from now on; an entry that leads back there has it read again.
	g.run.at, g.run.bytes = e.PhyOffset+size, g.run.bytes[from+size:]
	return record, nil
}

// readRun reads the records from the n-th entry on that lie without a gap.
func (g *get) readRun(n int, e consumequeue.Entry) error {
	size, all := g.plan(n, e)
	r := &g.result
	end := len(r.Body)
	r.Body = growBody(r.Body, all)
	g.run.bytes = nil
	b, err := g.s.log.Read(r.Body, e.PhyOffset, size)
	if err != nil && size > int(e.Size) { // perhaps only a part is there
		b, err = g.s.log.Read(r.Body, e.PhyOffset, int(e.Size))
	}
	if err != nil {
		return err
	}
	g.run.at, g.run.bytes = e.PhyOffset, b[end:]
	return nil
}

// plan looks at the entries from the n-th on that the Get will probably take. It returns the bytes of those that lie without
// a gap, and of all; when it was looked before, only the first. Cold bytes are read ahead.
func (g *get) plan(n int, e consumequeue.Entry) (size, all int) {
	maxBytes, maxCount := g.limits(e)
	want, taken := maxCount-g.result.Count, g.result.Count
	if g.refused > 0 { // as many must be read as pass the filter for one that it takes
		want = want * (g.refused + taken) / (taken + 1)
		maxBytes = min(maxBytes, len(g.result.Body)+guessedBytes)
	}
	again := e.PhyOffset < g.run.known
	first, end, gap := e.PhyOffset, e.PhyOffset, false
	for count := 0; ; {
		if e.PhyOffset != end {
			if gap = true; again {
				break
			}
		}
		end = e.PhyOffset + int64(e.Size)
		all += int(e.Size)
		if !gap {
			size = all
		}
		if count++; count >= want {
			break
		}
		if n++; !g.next(&n, &e, end) || len(g.result.Body)+all+int(e.Size) > maxBytes {
			break
		}
	}
	if span := end - first; !again {
		g.run.known = end
		if span <= denseSpan*int64(all) {
			g.s.log.ReadAhead(first, int(span))
		}
	}
	return size, all
}

// next finds the next entry, from the n-th on, whose record will be asked for; one that is odd ends the search, for what becomes
// of it shows when its turn comes.
func (g *get) next(n *int, e *consumequeue.Entry, end int64) bool {
	for ; *n < len(g.entries)/consumequeue.EntrySize; *n++ {
		*e = g.entry(*n)
		if g.isOdd(*e, end) {
			return false
		}
		if g.matches(*n, *e) {
			return true
		}
		end = e.PhyOffset + int64(e.Size)
	}
	return false
}

// matches is the first stage of the filter for the n-th entry, asked once.
func (g *get) matches(n int, e consumequeue.Entry) bool {
	if g.filter == nil {
		return true
	}
	v := &g.verdicts[n]
	if *v == unjudged {
		if *v = refused; g.match(e) {
			*v = passes
		}
	}
	return *v == passes
}
