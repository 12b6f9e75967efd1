package store

import (
	"errors"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/index"
)

// gapScan is how much of the log is read at most to see whether an index file is missing: mostly it is one record.
const gapScan = 64 << 20

// errSeen ends a scan early.
var errSeen = errors.New("seen")

// keyCount is how many entries a record has in the index.
func keyCount(r message.Record, s *Store) int {
	var a Arrival
	p := s.parse(r, &a)
	if message.TransactionValue(a.sysFlag) == message.TransactionRollback {
		return 0
	}
	n := len(strings.FieldsFunc(p.keys, func(c rune) bool { return c == ' ' }))
	if p.uniqKey != "" {
		n++
	}
	return n
}

// firstLacking is the first record in [from, to) of which the index lacks a key; have is how many it has of a record. ok is
// false when there is none, or when it is not in the first gapScan bytes.
func (s *Store) firstLacking(from, to int64, have func(phyOffset int64) int) (phyOffset int64, ok bool, err error) {
	from = max(from, s.log.MinOffset(), 0)
	if from >= to {
		return 0, false, nil
	}
	_, err = s.log.Scan(from, func(at int64, r message.Record) error {
		if at >= to || at-from > gapScan {
			return errSeen
		}
		if keyCount(r, s) > have(at) {
			phyOffset, ok = at, true
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) || errors.Is(err, commitlog.ErrDamaged) || errors.Is(err, commitlog.ErrNotFound) {
		err = nil
	}
	return phyOffset, ok, err
}

// lackingTail is from, or an earlier offset when the index ends before that: its newest files were removed. The official
// broker does so when it is started by mistake on a store that is in use, before it looks at the lock.
func (s *Store) lackingTail(from int64) (int64, error) {
	end, entries, err := s.index.End()
	if err != nil || end < 0 || end >= from {
		return from, err
	}
	at, ok, err := s.firstLacking(end, from, func(phyOffset int64) int {
		if phyOffset == end {
			return entries
		}
		return 0
	})
	if err != nil || !ok {
		return from, err
	}
	if at == end {
		s.index.Again(at)
	}
	return at, nil
}

// fillGaps makes index files that are missing before or between others again from the log: no more than what lies between
// their neighbours. borders are those before anything was added.
func (s *Store) fillGaps(borders []index.Border) error {
	for _, b := range borders {
		have := func(phyOffset int64) (n int) {
			if phyOffset == b.From {
				n += b.FromEntries
			}
			if phyOffset == b.To {
				n += b.ToEntries
			}
			return n
		}
		at, ok, err := s.firstLacking(b.From, b.To+1, have)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s.o.Log.Error("AN INDEX FILE IS MISSING: it is made again from the log", "from", at, "to", b.To)
		if err := s.fillGap(b, at, have); err != nil {
			s.o.Log.Error("a missing index file could not be made again: its keys are not found; the next start tries again", "from", at, "to", b.To, "error", err)
		}
	}
	return nil
}

func (s *Store) fillGap(b index.Border, from int64, have func(int64) int) error {
	progress := &progress{s: s, from: from, to: b.To, next: s.o.Clock().Add(progressInterval)}
	return s.index.Insert(b, s.path("index.rebuild"), func(made *index.Index) error {
		for at := from; at <= b.To; {
			next, err := s.log.Scan(at, func(phyOffset int64, r message.Record) error {
				if phyOffset > b.To {
					return errSeen
				}
				progress.at(phyOffset)
				if keyCount(r, s) <= have(phyOffset) {
					return nil
				}
				var a Arrival
				p := s.parse(r, &a)
				return made.Put(a.Topic, p.uniqKey, p.keys, phyOffset, a.StoreTimestamp)
			})
			if errors.Is(err, errSeen) {
				return nil
			}
			if errors.Is(err, commitlog.ErrDamaged) {
				next, err = s.log.NextFile(next), nil
			}
			if err != nil {
				return err
			}
			if next <= at {
				return nil
			}
			at = next
		}
		return nil
	})
}
