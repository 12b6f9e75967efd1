package store

import (
	"sync/atomic"
	"time"
)

// PutTimeBounds are the upper bounds, exclusive, of Stats.PutTimes in milliseconds; the first bucket is that of
// less than a millisecond, the last has no bound (StoreStatsService of 4.9.8).
var PutTimeBounds = [12]int64{1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000}

// Stats is what a store has done since it was opened.
type Stats struct {
	Started time.Time

	PutMessages int64 // stored
	PutBytes    int64 // of their records
	PutFailed   int64
	PutTimeMax  time.Duration
	PutTimes    [13]int64 // messages by the time that storing them took; see PutTimeBounds

	GetFound    int64 // Gets that found something
	GetMiss     int64 // and those that didn't
	GetMessages int64 // given out
	GetBytes    int64
}

// stats counts. Writers add once a run or a Get.
type stats struct {
	started                                         time.Time
	messages, bytes, failed                         atomic.Int64
	timeMax                                         atomic.Int64
	times                                           [13]atomic.Int64
	getFound, getMiss, getMessages, getMessageBytes atomic.Int64
}

// put counts a run that took some time.
func (s *stats) put(run []*Put, took time.Duration) {
	var messages, bytes, failed int64
	for _, p := range run {
		switch {
		case p.Err != nil:
			failed++
		case p.Message != nil:
			messages++
			bytes += int64(p.Size)
		default:
			messages += int64(len(p.Batch))
			bytes += int64(p.Size)
		}
	}
	s.messages.Add(messages)
	s.bytes.Add(bytes)
	if failed > 0 {
		s.failed.Add(failed)
	}
	bucket, ms := 0, took.Milliseconds()
	for bucket < len(PutTimeBounds) && ms >= PutTimeBounds[bucket] {
		bucket++
	}
	s.times[bucket].Add(messages)
	for old := s.timeMax.Load(); int64(took) > old && !s.timeMax.CompareAndSwap(old, int64(took)); {
		old = s.timeMax.Load()
	}
}

// get counts a Get.
func (s *stats) get(r *GetResult) {
	if r.Status != Found {
		s.getMiss.Add(1)
		return
	}
	s.getFound.Add(1)
	s.getMessages.Add(int64(r.Count))
	s.getMessageBytes.Add(int64(len(r.Body)))
}

// LockHeld is how long the append lock has been held by who has it now, 0 when nobody has (lockTimeMills of 4.9.8).
func (s *Store) LockHeld() time.Duration {
	since := s.log.LockedSince()
	if since.IsZero() {
		return 0
	}
	return min(max(0, s.o.Clock().Sub(since)), maxPageCacheBusy)
}

// Unflushed is how many bytes of the log are written and not yet durable.
func (s *Store) Unflushed() int64 { return max(0, s.log.MaxOffset()-s.log.FlushedOffset()) }

// Stats returns the counters.
func (s *Store) Stats() Stats {
	c := &s.stats
	out := Stats{
		Started:     c.started,
		PutMessages: c.messages.Load(),
		PutBytes:    c.bytes.Load(),
		PutFailed:   c.failed.Load(),
		PutTimeMax:  time.Duration(c.timeMax.Load()),
		GetFound:    c.getFound.Load(),
		GetMiss:     c.getMiss.Load(),
		GetMessages: c.getMessages.Load(),
		GetBytes:    c.getMessageBytes.Load(),
	}
	for i := range out.PutTimes {
		out.PutTimes[i] = c.times[i].Load()
	}
	return out
}
