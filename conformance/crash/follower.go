package crash

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"rocketd/conformance/wire"
)

// commitInterval is how often an offset is committed by a request of its own.
const commitInterval = 50 * time.Millisecond

// follower reads one queue while it grows, and commits how far it is.
type follower struct {
	h     *History
	place Place
	link  *link // shared with other followers
	rng   *rand.Rand
	at    atomic.Int64 // next offset to be read
}

// again is how far a follower goes back after a crash, at most: what it has read must still be the same.
const again = 64

// run pulls until ctx ends. Some pulls are held by the broker until there is something, some commit an offset.
func (f *follower) run(ctx context.Context) error {
	var last *wire.Conn
	for {
		c := f.link.get(ctx)
		if c == nil {
			return nil
		}
		if last != c { // a new connection: the broker may have died
			last = c
			f.at.Store(max(0, f.at.Load()-f.rng.Int64N(again)))
		}
		flag, suspend := 0, int64(0)
		if f.rng.IntN(4) > 0 {
			flag, suspend = pullSuspends, 1000
		}
		if f.rng.IntN(4) == 0 {
			flag |= pullCommits
		}
		p, err := pull(f.h, c, f.place, f.at.Load(), flag, f.at.Load(), suspend, false)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			f.link.broken(c)
			continue
		}
		switch {
		case len(p.Records) > 0:
			f.at.Store(p.Asked + int64(len(p.Records)))
		case p.Code == codePullMoved: // noted; from where there is something
			f.at.Store(max(0, p.Max))
		case flag&pullSuspends == 0 && !pause(ctx, redial):
			return nil
		}
	}
}

// commit sends offsets of a group at intervals, as consumers do, until ctx ends.
func (f *follower) commit(ctx context.Context, l *link) error {
	for pause(ctx, commitInterval) {
		c := l.get(ctx)
		if c == nil {
			return nil
		}
		offset := f.at.Load()
		f.h.commit(f.place, offset)
		if _, err := c.Call(f.place.ask(15, "consumerGroup", group, "commitOffset", strconv.FormatInt(offset, 10)), patience); err != nil {
			l.broken(c)
		}
	}
	return nil
}

// stand asks where the group stands in a queue, and then for the end of the queue.
func stand(ctx context.Context, h *History, l *link, p Place) error {
	at, err := l.call(ctx, p.ask(14, "consumerGroup", group))
	if err != nil {
		return err
	}
	end, err := l.call(ctx, p.ask(30))
	if err != nil {
		return err
	}
	h.standing(Standing{Place: p, Known: at.Code == codeSuccess, Committed: number(at, "offset"), Max: number(end, "offset")})
	return nil
}
