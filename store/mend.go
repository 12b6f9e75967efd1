package store

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// A reader that comes upon an entry of a queue that can't be right (nothing where one must be, a place outside the log or out
// of order, a record that is another's) reports it and stops before it. The mender, a goroutine of its own, looks how far
// the damage goes and makes these entries again from the log: from what lies between the records of the right ones
// around them, one pass of the log for all queues that were reported meanwhile. Then the reader goes on. The official
// broker passes over such entries, and with them their messages.

// retryMend is how long the mender waits after an error of reading or writing.
const retryMend = time.Second

// mender owns the damage that was reported. Readers report under its lock; who mends, its goroutine or who can't wait for it,
// holds working.
type mender struct {
	wake    chan struct{}
	working sync.Mutex
	ending  atomic.Bool // the store is being closed: whoever is at work stops

	mu       sync.Mutex
	reported map[*consumequeue.Queue]int64 // the first place of each, until it is mended
	unread   []logRange                    // where the log itself is damaged: entries that lead there stay as they are
	waiting  bool                          // the last try failed: the next waits
}

// logRange is a part of the log.
type logRange struct{ from, to int64 }

// damaged is called by readers for an entry that can't be right. It returns false when nothing can be done about it: the log
// itself is damaged where the entry leads.
func (s *Store) damaged(q *consumequeue.Queue, offset int64, e consumequeue.Entry) bool {
	m := &s.mend
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Size > 0 && m.isUnread(e.PhyOffset) {
		return false
	}
	if at, ok := m.reported[q]; !ok || offset < at {
		if m.reported == nil {
			m.reported = make(map[*consumequeue.Queue]int64)
		}
		m.reported[q] = offset
	}
	if !m.waiting {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// isUnread tells whether the log is damaged at an offset. The caller has mu.
func (m *mender) isUnread(phyOffset int64) bool {
	for _, r := range m.unread {
		if phyOffset >= r.from && phyOffset < r.to {
			return true
		}
	}
	return false
}

// noteUnread notes that the log can't be read from one offset to another.
func (m *mender) noteUnread(from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isUnread(from) {
		m.unread = append(m.unread, logRange{from, to})
	}
}

// mendLoop is the mender.
func (s *Store) mendLoop(stop <-chan struct{}) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-s.mend.wake:
		case <-retry.C:
		case <-stop:
			return
		}
		if err := s.mendReported(); err != nil && !errors.Is(err, errStopped) {
			s.o.Log.Error("a damaged consume queue could not be mended; it is tried again, readers wait", "error", err)
			retry.Reset(retryMend)
		}
	}
}

// MendNow mends what has been reported until now, for those that can wait: an entry that was damaged is right when it returns, or
// the error says why not.
func (s *Store) MendNow() error {
	err := s.mendReported()
	if err != nil && !errors.Is(err, errStopped) {
		s.o.Log.Error("a damaged consume queue could not be mended; it is tried again, readers wait", "error", err)
	}
	return err
}

// mendReported mends what has been reported until now.
func (s *Store) mendReported() error {
	m := &s.mend
	m.working.Lock()
	defer m.working.Unlock()
	m.mu.Lock()
	batch := m.reported
	m.reported = nil
	m.waiting = false
	m.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := errStopped
	if !m.ending.Load() {
		err = s.mendQueues(batch)
	}
	if err == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = true
	if m.reported == nil {
		m.reported = make(map[*consumequeue.Queue]int64)
	}
	for q, offset := range batch {
		if at, ok := m.reported[q]; !ok || offset < at {
			m.reported[q] = offset
		}
	}
	return err
}

// mendQueues mends one stretch of each queue.
func (s *Store) mendQueues(batch map[*consumequeue.Queue]int64) error {
	began, dispatched := s.o.Clock(), s.dispatched.Load()
	stretches := make(map[consumequeue.Name]*consumequeue.Stretch)
	from, to := int64(math.MaxInt64), int64(0)
	for q, offset := range batch {
		right := func(at int64, e consumequeue.Entry) bool { return s.isRight(q, at, e) }
		stretch, err := q.StretchAt(offset, max(0, s.log.MinOffset()), dispatched, right)
		if err != nil {
			return err
		}
		if stretch == nil {
			continue
		}
		s.o.Log.Error("A CONSUME QUEUE IS DAMAGED: its entries are made again from the commit log", "topic", q.Topic(), "queueId", q.QueueId(),
			"queueOffset", stretch.First, "entries", stretch.Left, "file", q.FileName(stretch.First), "from", stretch.From, "to", stretch.To)
		stretches[consumequeue.Name{Topic: q.Topic(), QueueId: q.QueueId()}] = stretch
		from, to = min(from, stretch.From), max(to, stretch.To)
	}
	if len(stretches) == 0 {
		return nil
	}
	if err := s.scanStretches(stretches, from, to); err != nil {
		return err
	}
	for name, stretch := range stretches {
		mended, lost, err := stretch.Write(func(e consumequeue.Entry) bool {
			s.mend.mu.Lock()
			defer s.mend.mu.Unlock()
			return s.mend.isUnread(e.PhyOffset)
		})
		if err != nil {
			return err
		}
		s.o.Log.Warn("a damaged consume queue was mended", "topic", name.Topic, "queueId", name.QueueId, "queueOffset", stretch.First,
			"mended", mended, "lost", lost, "took", s.o.Clock().Sub(began))
	}
	return nil
}

// scanStretches offers the records of a part of the log to the stretches.
func (s *Store) scanStretches(stretches map[consumequeue.Name]*consumequeue.Stretch, from, to int64) error {
	left := len(stretches)
	offer := func(name consumequeue.Name, queueOffset int64, e consumequeue.Entry) {
		if st := stretches[name]; st != nil && st.Left > 0 && st.Offer(queueOffset, e) {
			left--
		}
	}
	for from < to && left > 0 {
		next, err := s.log.Scan(from, func(phyOffset int64, r message.Record) error {
			if s.mend.ending.Load() {
				return errStopped
			}
			if phyOffset >= to || left == 0 {
				return errSeen
			}
			var a Arrival
			s.parse(r, &a)
			if !message.Queued(a.sysFlag) {
				return nil
			}
			e := consumequeue.Entry{PhyOffset: phyOffset, Size: int32(r.Size()), TagsCode: a.TagsCode}
			offer(consumequeue.Name{Topic: a.Topic, QueueId: a.QueueId}, a.QueueOffset, e)
			for _, lmq := range []bool{true, false} { // whatever was configured when it was dispatched
				(&Config{EnableLmq: lmq}).eachFurtherQueue(a.Properties, a.QueueId, func(q commitlog.QueueName, queueOffset int64) bool {
					offer(consumequeue.Name{Topic: q.Topic, QueueId: q.QueueId}, queueOffset, e)
					return true
				})
			}
			return nil
		})
		switch minimum := s.log.MinOffset(); {
		case errors.Is(err, errSeen):
			return nil
		case errors.Is(err, commitlog.ErrNotFound) && next < minimum: // deleted meanwhile
			next = minimum
		case errors.Is(err, commitlog.ErrDamaged):
			behind := s.log.NextFile(next)
			s.o.Log.Error("the log is damaged; the rest of the file is in no queue that is mended", "error", err)
			s.mend.noteUnread(next, behind)
			next = behind
		case err != nil:
			return err
		case next <= from:
			return nil
		}
		from = next
	}
	return nil
}

// endMending ends the mender and whoever mends beside it.
func (s *Store) endMending() {
	s.mend.ending.Store(true)
	s.mender.end()
	s.mend.working.Lock()
	defer s.mend.working.Unlock()
}

// errStopped ends the mender's work at a stop.
var errStopped = errors.New("store: it is being closed")
