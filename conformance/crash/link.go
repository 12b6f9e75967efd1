package crash

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"rocketd/conformance/wire"
)

// patience is how long an answer may take: a broker that the machine has forgotten for a while is not dead.
const patience = 20 * time.Second

// redial is how often a broker that is down is tried.
const redial = 15 * time.Millisecond

// link is a connection that is made again after each crash. Any goroutine may use it.
type link struct {
	addr  string
	hello *wire.Frame       // the first request of each connection; nil: none
	told  func(*wire.Frame) // takes what the broker tells without wanting an answer; nil: nobody does

	mu   sync.Mutex
	conn *wire.Conn // nil: none
}

// get returns the connection, made anew if need be; nil when ctx has ended before the broker was back.
func (l *link) get(ctx context.Context) *wire.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.conn == nil {
		if l.conn = l.dial(); l.conn != nil {
			break
		}
		if !pause(ctx, redial) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return l.conn
}

// dial makes a connection and introduces itself; nil: the broker is down.
func (l *link) dial() *wire.Conn {
	c, err := wire.DialTold(l.addr, l.told)
	if err != nil {
		return nil
	}
	if l.hello != nil {
		if answer, err := c.Call(l.hello, patience); err != nil || answer.Code != codeSuccess {
			c.Close()
			return nil
		}
	}
	return c
}

// broken hangs up a connection that has failed.
func (l *link) broken(c *wire.Conn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.conn = nil
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// call makes a call until it is answered; an error only when ctx has ended.
func (l *link) call(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	for {
		c := l.get(ctx)
		if c == nil {
			return nil, ctx.Err()
		}
		answer, err := c.Call(f, patience)
		if err == nil {
			return answer, nil
		}
		l.broken(c)
	}
}

// pause waits; false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// number is a field of an answer; -1 when it has none.
func number(f *wire.Frame, name string) int64 {
	n, err := strconv.ParseInt(f.Ext[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// ask is a request about one queue.
func (p Place) ask(code int, pairs ...string) *wire.Frame {
	return wire.Request(code, append([]string{"topic", p.Topic, "queueId", strconv.Itoa(int(p.Queue))}, pairs...)...)
}

// group is the consumer group of all pullers and committers.
const group = "CrashReaders"

// Bits of a pull's sysFlag.
const (
	pullCommits  = 1
	pullSuspends = 2
	pullFilters  = 4 // the subscription is in the request
)

// pull pulls once from a queue over a connection and notes the answer.
func pull(h *History, c *wire.Conn, p Place, offset int64, sysFlag int, commit, suspend int64, final bool) (*Pull, error) {
	f := p.ask(11, "consumerGroup", group, "queueOffset", strconv.FormatInt(offset, 10), "maxMsgNums", "32", "sysFlag", strconv.Itoa(sysFlag|pullFilters),
		"commitOffset", strconv.FormatInt(commit, 10), "suspendTimeoutMillis", strconv.FormatInt(suspend, 10), "subscription", "*", "subVersion", "0",
		"expressionType", "TAG")
	if sysFlag&pullCommits != 0 {
		h.commit(p, commit)
	}
	r := &Pull{Place: p, Asked: offset, Sent: h.now(), Final: final}
	answer, err := c.Call(f, patience)
	if err != nil {
		return nil, err
	}
	r.Answered, r.Code, r.Min, r.Max = h.now(), answer.Code, number(answer, "minOffset"), number(answer, "maxOffset")
	if r.Records, err = records(p, answer.Body); err != nil {
		h.garble(fmt.Sprintf("%s: a pull from %d: %v", p, offset, err))
	}
	h.pull(r)
	return r, nil
}
