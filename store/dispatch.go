package store

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// retryDispatch is how long the dispatcher waits after an error of reading the log.
const retryDispatch = time.Second

// dispatchScratch is the dispatcher's own.
type dispatchScratch struct {
	lastError time.Time // when an error was logged last
	skipped   int       // errors not logged since
	unit      consumequeue.Unit
}

// confirmed wakes the dispatcher; see commitlog.Options.
func (s *Store) confirmed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// dispatchLoop is the dispatcher: it follows the log, fills queues and index and tells who waits for messages.
func (s *Store) dispatchLoop(stop <-chan struct{}) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-s.wake:
		case <-retry.C:
		case <-stop:
			if err := s.dispatch(); err != nil {
				s.o.Log.Error("dispatch has not finished", "error", err)
			}
			return
		}
		if err := s.dispatch(); err != nil {
			s.o.Log.Error("reading the log for dispatch failed; it is tried again", "phyOffset", s.dispatched.Load(), "error", err)
			retry.Reset(retryDispatch)
		}
	}
}

// dispatch handles everything that can be read now.
func (s *Store) dispatch() error {
	for {
		from, confirmed := s.dispatched.Load(), s.log.ConfirmOffset()
		if from >= confirmed {
			return nil
		}
		next, err := s.log.Scan(from, s.dispatchLive)
		if next > from {
			s.dispatched.Store(next)
		}
		switch minimum := s.log.MinOffset(); {
		case errors.Is(err, commitlog.ErrNotFound) && next < minimum:
			s.o.Log.Error("the log was deleted before it was dispatched", "phyOffset", next, "minPhyOffset", minimum)
			s.dispatched.Store(minimum)
		case errors.Is(err, commitlog.ErrDamaged) && next < confirmed:
			// It can be read again from the next file on, or from where it ended a moment ago, as the official master does.
			to := min(confirmed, s.log.NextFile(next))
			s.o.Log.Error("THE LOG IS DAMAGED: its messages up to here are in no queue", "from", next, "to", to, "error", err)
			s.dispatched.Store(to)
		case errors.Is(err, commitlog.ErrDamaged):
		case err != nil || next <= from:
			return err
		}
	}
}

// dispatchedTo is how far dispatch is, and the offset of the last record before that; -1 when it is not known.
func (s *Store) dispatchedTo() (end, lastRecord int64) {
	for range 1000 {
		end, lastRecord = s.dispatched.Load(), s.lastRecord.Load()
		if lastRecord < end {
			return end, lastRecord
		}
		runtime.Gosched() // the next record is just being noted
	}
	return end, -1
}

func (s *Store) dispatchLive(phyOffset int64, r message.Record) error {
	return s.dispatchRecord(phyOffset, r, true)
}

// dispatchRecord puts a record into its queue and into the index, then tells Arrive. It fails never: what can't be
// written to a file is kept in memory, or noted as damage that the next start mends.
func (s *Store) dispatchRecord(phyOffset int64, r message.Record, indexed bool) error {
	var a Arrival
	p := s.parse(r, &a)
	enters := message.Queued(a.sysFlag)
	entry := consumequeue.Entry{PhyOffset: phyOffset, Size: int32(r.Size()), TagsCode: a.TagsCode}
	if enters && s.isWhole(consumequeue.Name{Topic: a.Topic, QueueId: a.QueueId}) {
		s.enqueue(&a, entry)
	}
	cfg := s.Config()
	if enters && cfg.EnableMultiDispatch {
		s.enqueueFurther(cfg, a.Properties, a.QueueId, entry, s.isWhole)
	}
	if indexed && message.TransactionValue(a.sysFlag) != message.TransactionRollback && cfg.MessageIndexEnable {
		if err := s.index.Put(a.Topic, p.uniqKey, p.keys, phyOffset, a.StoreTimestamp); err != nil {
			s.dispatchError("index", phyOffset, err)
		}
	}
	s.lastRecord.Store(phyOffset)
	s.dispatched.Store(phyOffset + int64(r.Size()))
	s.lastStored.Store(a.StoreTimestamp)
	if enters && s.live && s.o.Arrive != nil {
		s.o.Arrive(a)
		if cfg.EnableMultiDispatch {
			s.arriveFurther(cfg, a)
		}
	}
	return nil
}

// isWhole tells whether a queue is not one of those that are made again later.
func (s *Store) isWhole(n consumequeue.Name) bool { return s.lost == nil || !s.lost[n] }

// enqueue puts the entry of a record into its queue, with a unit in consumequeue_ext when that is enabled.
func (s *Store) enqueue(a *Arrival, e consumequeue.Entry) {
	var u *consumequeue.Unit
	if s.extended {
		u = &s.scratch.unit
		u.TagsCode, u.StoreTimestamp, u.BitMap = a.TagsCode, a.StoreTimestamp, u.BitMap[:0]
		if s.o.FilterBitMap != nil {
			u.BitMap = s.o.FilterBitMap(u.BitMap, a.Topic, a.Properties)
		}
	}
	if err := s.queues.AppendUnit(a.Topic, a.QueueId, a.QueueOffset, e, u); err != nil {
		s.dispatchError("consume queue", e.PhyOffset, err)
	}
}

// indexRecord is the index's part of dispatchRecord.
func (s *Store) indexRecord(phyOffset int64, r message.Record) {
	var a Arrival
	p := s.parse(r, &a)
	if message.TransactionValue(a.sysFlag) == message.TransactionRollback {
		return
	}
	if err := s.index.Put(a.Topic, p.uniqKey, p.keys, phyOffset, a.StoreTimestamp); err != nil {
		s.dispatchError("index", phyOffset, err)
	}
}

// dispatchError logs that a file could not be written, at most once a second.
func (s *Store) dispatchError(what string, phyOffset int64, err error) {
	d := &s.scratch
	now := s.o.Clock()
	if d.skipped++; now.Sub(d.lastError) < time.Second {
		return
	}
	s.o.Log.Error("dispatch: "+what, "phyOffset", phyOffset, "errors", d.skipped, "error", err)
	d.lastError, d.skipped = now, 0
}

// dispatchProperties are the properties that dispatch looks at, as parts of the record.
type dispatchProperties struct{ tags, keys, uniqKey, delay string }

// parse fills a with what the record says and returns its properties, read in one pass.
func (s *Store) parse(r message.Record, a *Arrival) (p dispatchProperties) {
	a.Topic, a.QueueId, a.QueueOffset = r.Topic(), r.QueueId(), r.QueueOffset()
	a.StoreTimestamp, a.sysFlag = r.StoreTimestamp(), r.SysFlag()
	a.Properties = r.Properties()
	p = scanProperties(a.Properties)
	if p.tags != "" {
		a.TagsCode = int64(compat.HashCode(p.tags))
	}
	if p.delay != "" && a.Topic == message.TopicSchedule {
		// As CommitLog#checkMessageAndReturnSize of 4.9.8, but a level that is no number does not stop dispatch.
		if level, err := strconv.ParseInt(p.delay, 10, 32); err == nil && level > 0 {
			a.TagsCode = s.o.DeliverTime(int(level), a.StoreTimestamp)
		}
	}
	if a.Topic == message.TopicTimer {
		if code := message.TimerCode(a.Properties); code != 0 {
			a.TagsCode = code
		}
	}
	return p
}

// scanProperties reads a properties text; of entries with one name the last counts.
func scanProperties(text string) (p dispatchProperties) {
	for text != "" {
		entry := text
		if i := strings.IndexByte(text, 2); i >= 0 {
			entry, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		// The names that matter have 4, 5 or 8 letters.
		if len(entry) > 5 && entry[4] == 1 && entry[:4] == message.PropertyTags {
			p.tags = entry[5:]
		} else if len(entry) > 5 && entry[4] == 1 && entry[:4] == message.PropertyKeys {
			p.keys = entry[5:]
		} else if len(entry) > 6 && entry[5] == 1 && entry[:5] == message.PropertyDelayTimeLevel {
			p.delay = entry[6:]
		} else if len(entry) > 9 && entry[8] == 1 && entry[:8] == message.PropertyUniqKey {
			p.uniqKey = entry[9:]
		}
	}
	return p
}
