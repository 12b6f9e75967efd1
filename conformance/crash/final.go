package crash

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"rocketd/conformance/wire"
)

// deliveryPatience is how long delayed messages may be late after the last crash, beyond their delay.
const deliveryPatience = 30 * time.Second

// lookups is how many messages are asked for by key and id.
const lookups = 100

// settle waits until each waiting message has been delivered, or is late beyond patience.
func (r *run) settle(ctx context.Context) error {
	sent, delay := r.h.lastDelayed()
	for deadline := sent + delay + deliveryPatience; r.h.now() < deadline; {
		if open, err := r.undelivered(ctx); err != nil || open == 0 {
			return err
		}
		if !pause(ctx, 300*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil // the verdict says what is missing
}

// undelivered counts the messages that wait and that no follower has seen delivered.
func (r *run) undelivered(ctx context.Context) (int, error) {
	waiting := map[Attempt]bool{}
	for level := range int32(levels) {
		all, _, err := read(ctx, r.h, &r.admin, Place{scheduleTopic, level}, false)
		if err != nil {
			return 0, err
		}
		for _, record := range all {
			waiting[record.Attempt] = true
		}
	}
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	late := map[Place]bool{}
	for _, p := range r.load.late {
		late[p] = true
	}
	for _, p := range r.h.Pulls {
		for i := range p.Records {
			if late[p.Place] {
				delete(waiting, p.Records[i].Attempt)
			}
		}
	}
	return len(waiting), nil
}

// readAll reads every queue from its start and looks some messages up.
func (r *run) readAll(ctx context.Context) error {
	places := append(append([]Place(nil), r.queues...), r.load.made...)
	for level := range int32(levels) {
		places = append(places, Place{scheduleTopic, level})
	}
	for _, p := range places {
		if err := stand(ctx, r.h, &r.admin, p); err != nil {
			return err
		}
		if err := readAtEnd(ctx, r.h, &r.admin, p); err != nil {
			return err
		}
	}
	return r.lookUp(ctx)
}

// readAtEnd reads a queue from its start to its end and notes where that is: the last word about it.
func readAtEnd(ctx context.Context, h *History, l *link, p Place) error {
	_, end, err := read(ctx, h, l, p, true)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Ends = append(h.Ends, end)
	return nil
}

// read reads a queue from its start to its end. final: that is the last word about it.
func read(ctx context.Context, h *History, l *link, p Place, final bool) (all []Record, end End, err error) {
	bound := func(code int) (int64, error) {
		answer, err := l.call(ctx, p.ask(code))
		if err == nil && answer.Code != codeSuccess {
			err = fmt.Errorf("request %d of %s: %d %s", code, p, answer.Code, answer.Remark)
		}
		if err != nil {
			return 0, err
		}
		return number(answer, "offset"), nil
	}
	end.Place = p
	if end.Min, err = bound(31); err != nil {
		return nil, end, err
	}
	if end.Max, err = bound(30); err != nil {
		return nil, end, err
	}
	for offset := max(0, end.Min); offset < end.Max; {
		c := l.get(ctx)
		if c == nil {
			return nil, end, ctx.Err()
		}
		answer, err := pull(h, c, p, offset, 0, 0, 0, final)
		if err != nil {
			return nil, end, fmt.Errorf("pull of %s from %d: %w", p, offset, err)
		}
		if len(answer.Records) == 0 && answer.Code != codePullRetry {
			break // the verdict knows what is missing
		}
		all = append(all, answer.Records...)
		offset += int64(len(answer.Records))
		end.Max = max(end.Max, offset) // delayed messages may still arrive
	}
	return all, end, nil
}

// lookUp asks for some of the acknowledged messages by unique key and by id.
func (r *run) lookUp(ctx context.Context) error {
	r.h.mu.Lock()
	var acknowledged []*Send
	for _, s := range r.h.Sends {
		if s.Outcome == Acknowledged {
			acknowledged = append(acknowledged, s)
		}
	}
	r.h.mu.Unlock()
	for range min(lookups, len(acknowledged)) {
		s := acknowledged[r.rng.IntN(len(acknowledged))]
		byKey, err := r.found(ctx, s, wire.Request(12, "topic", s.StoredAt().Topic, "key", s.Attempt.String(), "maxNum", "32", "beginTimestamp", "0",
			"endTimestamp", strconv.FormatInt(math.MaxInt64, 10), "_UNIQUE_KEY_QUERY", "true"))
		if err != nil {
			return err
		}
		byId, err := r.found(ctx, s, wire.Request(33, "offset", strconv.FormatInt(s.PhyOffset, 10)))
		if err != nil {
			return err
		}
		r.h.mu.Lock()
		r.h.Lookups = append(r.h.Lookups, Lookup{Attempt: s.Attempt, ByKey: byKey, ById: byId})
		r.h.mu.Unlock()
	}
	return nil
}

// found makes a query and tells whether the very record of a send is in the answer.
func (r *run) found(ctx context.Context, s *Send, f *wire.Frame) (bool, error) {
	answer, err := r.admin.call(ctx, f)
	if err != nil {
		return false, err
	}
	messages, err := wire.Messages(answer.Body)
	if err != nil { // no record begins there any more
		return false, nil
	}
	for _, m := range messages {
		if m.Properties["UNIQ_KEY"] == s.Attempt.String() && m.PhyOffset == s.PhyOffset {
			return true, nil
		}
	}
	return false, nil
}
