package crash

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

const (
	timerTopic     = "CrashTimer"
	timerQueues    = 2
	timerProducers = 4
	// timerLongest is how far away messages are due at most (ms).
	timerLongest = 5000
)

// timerLoad is a run of timer messages under way.
type timerLoad struct {
	h        *TimerHistory
	admin    link
	next     atomic.Int64
	stopping atomic.Bool
}

// RunTimers loads a broker that has just been started with s.Conf with messages for a time of their own, kills
// it again and again, waits until all are due, and reads everything. Then the broker runs.
func RunTimers(ctx context.Context, b *target.Broker, s Settings) (*TimerHistory, error) {
	r := &timerLoad{h: &TimerHistory{History: NewHistory()}, admin: link{addr: b.Addr}}
	defer r.admin.close()
	if err := makeTopic(ctx, &r.admin, timerTopic, timerQueues); err != nil {
		return nil, err
	}
	readers, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var producing, reading sync.WaitGroup
	for i := range timerProducers {
		producing.Go(func() {
			l := &link{addr: b.Addr}
			defer l.close()
			r.produce(ctx, l, newRand(s.Seed, 700+uint64(i)))
		})
	}
	for q := range timerQueues {
		l := &link{addr: b.Addr}
		defer l.close()
		f := &follower{h: r.h.History, place: Place{timerTopic, int32(q)}, link: l, rng: newRand(s.Seed, 800+uint64(q))}
		reading.Go(func() { _ = f.run(readers) })
	}
	err := killAgain(ctx, b, s, newRand(s.Seed, 0), hooks{before: r.met, killed: r.h.kill})
	r.stopping.Store(true)
	producing.Wait()
	// What was recalled would come when it is due, what waits has to.
	if err == nil && !pause(ctx, (timerLongest+1000)*time.Millisecond) {
		err = ctx.Err()
	}
	for deadline := r.h.now() + deliveryPatience; err == nil && r.missing() > 0 && r.h.now() < deadline; {
		if !pause(ctx, 50*time.Millisecond) {
			err = ctx.Err()
		}
	}
	stopReading()
	reading.Wait()
	for q := range timerQueues {
		if err == nil {
			err = readAtEnd(ctx, r.h.History, &r.admin, Place{timerTopic, int32(q)})
		}
	}
	return r.h, err
}

// missing counts the messages that were accepted, not recalled and not seen.
func (r *timerLoad) missing() int {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	open := map[int]bool{}
	for _, s := range r.h.Messages {
		if s.Outcome == Acknowledged && s.Recall == nil {
			open[s.Id] = true
		}
	}
	for _, p := range r.h.Pulls {
		for i := range p.Records {
			delete(open, p.Records[i].Message)
		}
	}
	return len(open)
}

// met counts what a kill has met.
func (r *timerLoad) met() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	now := time.Now().UnixMilli()
	for _, s := range r.h.Messages {
		switch {
		case s.Due == underWay:
			r.h.Sent++
		case s.Recall != nil && s.Recall.Answered == underWay:
			r.h.RecallsSent++
		case s.Outcome == Acknowledged && s.Due > now && s.Recall == nil:
			r.h.Waiting++
		}
	}
}

// produce sends messages, each once, and recalls some: at once, or shortly before they are due.
func (r *timerLoad) produce(ctx context.Context, l *link, rng *rand.Rand) {
	type late struct {
		s      *TimerSend
		handle string
	}
	var soon []late // to be recalled shortly before they are due
	for !r.stopping.Load() && ctx.Err() == nil {
		c := l.get(ctx)
		if c == nil {
			return
		}
		s := &TimerSend{Id: int(r.next.Add(1)), Place: Place{timerTopic, rng.Int32N(timerQueues)}, Due: underWay}
		handle, ok := r.send(c, s, rng)
		if ok && handle != "" {
			switch n := rng.IntN(100); {
			case n < 10:
				ok = r.recall(c, s, handle)
			case n < 15:
				soon = append(soon, late{s, handle})
			}
		}
		for i := 0; ok && i < len(soon); i++ {
			if soon[i].s.Due-time.Now().UnixMilli() < 30 {
				ok = r.recall(c, soon[i].s, soon[i].handle)
				soon[i] = soon[len(soon)-1]
				soon = soon[:len(soon)-1]
			}
		}
		if !ok {
			l.broken(c)
		}
		pause(ctx, time.Duration(rng.IntN(3))*time.Millisecond)
	}
}

// send sends a message with one of the properties that name a time, and returns the handle to recall it by. False: there was
// no answer.
func (r *timerLoad) send(c *wire.Conn, s *TimerSend, rng *rand.Rand) (handle string, ok bool) {
	now, wait := time.Now().UnixMilli(), int64(rng.IntN(timerLongest))
	s.Earliest = now + wait
	var name, value string
	switch n := rng.IntN(100); {
	case n < 10: // past: at once
		name, value, s.Earliest = "TIMER_DELIVER_MS", strconv.FormatInt(now-wait, 10), 0
	case n < 50:
		name, value = "TIMER_DELIVER_MS", strconv.FormatInt(s.Earliest, 10)
	case n < 75:
		name, value = "TIMER_DELAY_MS", strconv.FormatInt(wait, 10)
	case n < 90:
		wait /= 1000
		name, value, s.Earliest = "TIMER_DELAY_SEC", strconv.FormatInt(wait, 10), now+wait*1000
	default:
		name, value = "__STARTDELIVERTIME", strconv.FormatInt(s.Earliest, 10)
	}
	content := newContent(rng, s.Id, 2000)
	content.noWait = false
	s.Digest = content.digest()
	r.h.mu.Lock()
	r.h.Messages = append(r.h.Messages, s)
	r.h.mu.Unlock()
	properties := content.properties(Attempt{s.Id, 1}, 0) + "\x02" + wire.Properties(name, value)
	a, err := c.Call(header(310, s.Place, properties, false).WithBody(content.body), patience)
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	s.Due = 0
	if err != nil {
		return "", false
	}
	if s.Outcome = outcomeOf(a.Code); s.Outcome == Acknowledged {
		handle = a.Ext["recallHandle"]
		s.Due = dueOf(handle)
	}
	return handle, true
}

// dueOf is the time in a handle, which has one ms more; 0: there is none.
func dueOf(handle string) int64 {
	text, err := base64.URLEncoding.DecodeString(handle)
	parts := strings.Fields(string(text))
	if err != nil || len(parts) < 5 {
		return 0
	}
	at, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return 0
	}
	return at - 1
}

// recall takes a message back; false: there was no answer.
func (r *timerLoad) recall(c *wire.Conn, s *TimerSend, handle string) bool {
	k := &TimerRecall{Answered: underWay}
	r.h.mu.Lock()
	s.Recall = k
	r.h.mu.Unlock()
	a, err := c.Call(wire.Request(370, "producerGroup", "crash-producer", "topic", timerTopic, "recallHandle", handle), patience)
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	k.Answered = time.Now().UnixMilli()
	if err != nil {
		return false
	}
	k.Code, k.Outcome = a.Code, Refused
	if a.Code == codeSuccess {
		k.Outcome = Acknowledged
	}
	return true
}
