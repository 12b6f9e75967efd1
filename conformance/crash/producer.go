package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/conformance/wire"
)

// load is what the producers share.
type load struct {
	h        *History
	s        Settings
	queues   []Place // to which plain messages and batches go
	late     []Place // to which delayed ones go
	messages atomic.Int64
	topics   atomic.Int64 // new topics so far
	stopping atomic.Bool  // no new messages; what was not acknowledged is still sent again

	mu   sync.Mutex
	made []Place // queues of new topics
}

// outgoing is one request: a message, or several in a batch.
type outgoing struct {
	place    Place
	level    int
	ids      []int // of the messages
	try      int
	contents []content
	sends    []*Send // of the attempt under way
	waiting  *wire.Pending
}

// producer is one connection that sends.
type producer struct {
	*load
	rng   *rand.Rand
	link  link
	form  byte // of the headers
	makes bool // a new topic at the start of each connection

	mu    sync.Mutex
	again []*outgoing // not answered, or not accepted: to be sent again
}

// There are so many producers; window is how many requests of one may be unanswered, burst how many it sends at once.
const (
	producers = 4
	window    = 48
	burst     = 16
)

// run sends until the load stops and all is acknowledged, or ctx ends.
func (p *producer) run(ctx context.Context) error {
	defer p.link.close()
	for !p.finished() {
		c := p.link.get(ctx)
		if c == nil {
			return ctx.Err()
		}
		p.serve(ctx, c)
	}
	return nil
}

func (p *producer) finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping.Load() && len(p.again) == 0
}

// serve sends over one connection until that breaks.
func (p *producer) serve(ctx context.Context, c *wire.Conn) {
	var broken atomic.Bool
	pending := make(chan *outgoing, window)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for o := range pending {
			if !p.answer(o) && !broken.Swap(true) {
				p.link.broken(c)
			}
		}
	}()
	fresh := true
	for !broken.Load() && !p.finished() && ctx.Err() == nil {
		run := p.next(fresh)
		fresh = false
		frames := make([]*wire.Frame, len(run))
		for i, o := range run {
			frames[i] = p.frame(o)
		}
		waiting, err := c.SendAll(frames)
		for i, o := range run {
			o.waiting = waiting[i]
			pending <- o
		}
		if err != nil {
			break
		}
		if p.stopping.Load() {
			break // wait for the answers before deciding what is to be sent again
		}
		pause(ctx, time.Duration(len(run))*time.Second*producers/time.Duration(p.s.Rate))
	}
	close(pending)
	<-done
	if broken.Load() || ctx.Err() != nil {
		p.link.broken(c)
	}
}

// next chooses what is sent now: what has to be sent again first, then new messages.
func (p *producer) next(fresh bool) []*outgoing {
	p.mu.Lock()
	n := min(len(p.again), burst)
	run := p.again[:n:n]
	p.again = p.again[len(run):]
	p.mu.Unlock()
	if p.stopping.Load() {
		return run
	}
	if fresh && p.makes {
		run = append(run, p.newTopic())
	}
	for n := 1 + p.rng.IntN(burst); len(run) < n; {
		run = append(run, p.newOutgoing())
	}
	return run
}

// newTopic is a message to a topic that does not exist; the broker makes it.
func (p *producer) newTopic() *outgoing {
	topic := fmt.Sprintf("CrashNew%d", p.topics.Add(1))
	p.load.mu.Lock()
	p.made = append(p.made, Place{topic, 0}, Place{topic, 1})
	p.load.mu.Unlock()
	return p.outgoing(Place{topic, int32(p.rng.IntN(2))}, 0, 1, p.s.LargestBody)
}

func (p *producer) newOutgoing() *outgoing {
	place := p.queues[p.rng.IntN(len(p.queues))]
	switch k := p.rng.IntN(100); {
	case k < 10:
		return p.outgoing(place, 0, 2+p.rng.IntN(7), 2000)
	case k < 13 && len(p.late) > 0:
		return p.outgoing(p.late[p.rng.IntN(len(p.late))], 1+p.rng.IntN(levels), 1, p.s.LargestBody)
	default:
		return p.outgoing(place, 0, 1, p.s.LargestBody)
	}
}

func (p *producer) outgoing(place Place, level, n, largest int) *outgoing {
	o := &outgoing{place: place, level: level}
	for range n {
		id := int(p.messages.Add(1))
		o.ids, o.contents = append(o.ids, id), append(o.contents, newContent(p.rng, id, largest))
	}
	return o
}

// frame makes the next attempt of a request and notes it.
func (p *producer) frame(o *outgoing) *wire.Frame {
	o.try++
	o.sends = nil
	for i, id := range o.ids {
		s := &Send{Attempt: Attempt{id, o.try}, Place: o.place, Level: o.level, Delay: delayOf(o.level), Digest: o.contents[i].digest(), Sent: p.h.now()}
		o.sends = append(o.sends, s)
		p.h.send(s)
	}
	var f *wire.Frame
	if len(o.ids) == 1 {
		f = header(310, o.place, o.contents[0].properties(o.sends[0].Attempt, o.level), false).WithBody(o.contents[0].body)
	} else {
		var body []byte
		for i := range o.ids {
			c := o.contents[i]
			c.noWait = false // it is a matter of the whole batch
			body = append(body, wire.Batch(c.properties(o.sends[i].Attempt, 0), c.body)...)
		}
		f = header(320, o.place, wire.Properties("WAIT", strconv.FormatBool(!o.contents[0].noWait)), true).WithBody(body)
	}
	f.Form = p.form
	return f
}

// answer waits for the answer of a request; false: there will be none. What is not acknowledged is kept for another try.
func (p *producer) answer(o *outgoing) bool {
	a, err := o.waiting.Wait(patience)
	if err != nil {
		p.keep(o)
		return false
	}
	outcome, ids := outcomeOf(a.Code), strings.Split(a.Ext["msgId"], ",")
	if outcome == Acknowledged && len(ids) != len(o.sends) {
		outcome = Uncertain
	}
	for i, s := range o.sends {
		p.h.settle(s, func(s *Send) {
			s.Outcome, s.Code = outcome, a.Code
			if outcome == Acknowledged {
				s.Offset, s.PhyOffset = number(a, "queueOffset")+int64(i), phyOffset(ids[i])
			}
		})
	}
	if outcome != Acknowledged {
		p.keep(o)
	}
	return true
}

func (p *producer) keep(o *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = append(p.again, o)
}

// phyOffset is the commit-log offset in a message id: its last 16 digits. -1: it is none.
func phyOffset(msgId string) int64 {
	if len(msgId) != 32 {
		return -1
	}
	n, err := strconv.ParseInt(msgId[16:], 16, 64)
	if err != nil {
		return -1
	}
	return n
}

// levels is how many delay levels the cases use; delayLevels is the broker's messageDelayLevel.
const (
	levels      = 3
	delayLevels = "1s 2s 4s 8s"
)

// delayOf is the delay of a level.
func delayOf(level int) time.Duration {
	if level == 0 {
		return 0
	}
	return time.Second << (level - 1)
}
