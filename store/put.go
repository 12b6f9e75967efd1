package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store/commitlog"
)

// Put is one message or batch to append (see commitlog.Put).
type Put = commitlog.Put

// Reasons why writes are refused (Writable, Put.Err).
var (
	ErrClosed   = commitlog.ErrClosed
	ErrDiskFull = errors.New("store: the disk is nearly full")
	ErrFiles    = errors.New("store: consume queue or index files can't be written")
)

// maxPageCacheBusy: a lock held longer than this is taken for a clock that jumped (as isOSPageCacheBusy of 4.9.8).
const maxPageCacheBusy = 10_000_000 * time.Millisecond

// Writable returns nil, or the reason why writes are refused now.
func (s *Store) Writable() error {
	switch {
	case s.clean.diskFull.Load():
		return fmt.Errorf("%w: %s", ErrDiskFull, *s.clean.diskFullReason.Load())
	case s.clean.unmarked.Load():
		return fmt.Errorf("%w: there was no room for the file %s", ErrDiskFull, s.path("abort"))
	case s.queues.Failing() || s.index.Failing():
		return ErrFiles
	}
	return nil
}

// PageCacheBusy tells whether the append lock has been held longer than osPageCacheBusyTimeOutMills.
func (s *Store) PageCacheBusy() bool {
	since := s.log.LockedSince()
	if since.IsZero() {
		return false
	}
	held := s.o.Clock().Sub(since)
	return held.Milliseconds() > s.Config().OsPageCacheBusyTimeOutMills && held < maxPageCacheBusy
}

// Put appends a run; each Put gets its result. The checks of size are made here (Put.Err is
// commitlog.ErrTooLarge, …); what a client sees is decided by the broker.
func (s *Store) Put(run []*Put) { s.put(run, s.Writable()) }

// PutAgain appends messages that lie in log files which are to go, also when the disk is nearly full: they keep those files,
// which are larger, from going.
func (s *Store) PutAgain(run []*Put) {
	refusal := s.Writable()
	if errors.Is(refusal, ErrDiskFull) {
		refusal = nil
	}
	s.put(run, refusal)
}

func (s *Store) put(run []*Put, refusal error) {
	s.putting.RLock()
	defer s.putting.RUnlock()
	if s.closed {
		refusal = ErrClosed
	}
	if refusal != nil {
		for _, p := range run {
			p.Err = refusal
		}
		s.stats.failed.Add(int64(len(run)))
		return
	}
	began := s.o.Clock()
	maximum := s.Config().MaxMessageSize
	good := run
	for i, p := range run {
		if !p.Copy && bodySize(p) > maximum {
			good = s.refuseLarge(run, i, maximum)
			break
		}
	}
	if cfg := s.Config(); cfg.EnableMultiDispatch {
		good = s.nameQueues(cfg, good)
	}
	if len(good) > 0 {
		s.log.Append(good)
	}
	s.stats.put(run, s.o.Clock().Sub(began))
}

// bodySize is the size of a message's body, or of the bodies of a batch.
func bodySize(p *Put) int {
	if p.Message != nil {
		return len(p.Message.Body)
	}
	size := 0
	for _, m := range p.Batch {
		size += len(m.Body)
	}
	return size
}

// refuseLarge gives those from i on that are too large their error and returns the others.
func (s *Store) refuseLarge(run []*Put, i, maximum int) []*Put {
	good := append([]*Put(nil), run[:i]...)
	for _, p := range run[i:] {
		if size := bodySize(p); size > maximum && !p.Copy {
			p.Err = fmt.Errorf("%w: body of %d bytes, maxMessageSize is %d", commitlog.ErrTooLarge, size, maximum)
			continue
		}
		good = append(good, p)
	}
	return good
}

// WaitFlushed calls done when the log is durable up to end (see commitlog).
func (s *Store) WaitFlushed(end int64, timeout time.Duration, done func(error)) {
	s.log.WaitFlushed(end, timeout, done)
}

// Message reads the record at a commit-log offset.
func (s *Store) Message(phyOffset int64) (message.Message, error) {
	r, err := s.Record(phyOffset)
	if err != nil {
		return message.Message{}, err
	}
	return r.Message(), nil
}

// Record reads the bytes of the record at a commit-log offset; commitlog.ErrNotFound when none begins there.
func (s *Store) Record(phyOffset int64) (message.Record, error) {
	size, err := s.recordSize(phyOffset)
	if err != nil {
		return nil, err
	}
	return s.rawRecord(nil, phyOffset, size)
}

// recordSize reads how large the record at an offset says it is, and checks that a record begins there at all: the
// offset may be anything that a client sends, and what lies there anything that a client has stored, so the size
// is only believed beside the magic code and the record's own place.
func (s *Store) recordSize(phyOffset int64) (int32, error) {
	return s.readSize(make([]byte, 0, message.MinRecordSize), phyOffset)
}

// readSize is recordSize with a buffer to read into.
func (s *Store) readSize(buf []byte, phyOffset int64) (int32, error) {
	b, err := s.log.Read(buf, phyOffset, message.MinRecordSize)
	if err != nil {
		return 0, err
	}
	r := message.Record(b)
	size := r.Size()
	largest := max(s.Config().MaxMessageSize, protocol.MaxFrame) + recordOverhead // what can ever have been sent
	if binary.BigEndian.Uint32(b[4:]) != message.MagicCode || r.PhyOffset() != phyOffset ||
		size < message.MinRecordSize || size > largest || int64(size) > s.log.ConfirmOffset()-phyOffset || size > s.Config().MappedFileSizeCommitLog {
		return 0, fmt.Errorf("%w: no record at %d", commitlog.ErrNotFound, phyOffset)
	}
	return int32(size), nil
}

// rawRecord reads a record whose size is known, appends it to dst and returns it; it must say that it lies at the
// offset.
func (s *Store) rawRecord(dst []byte, phyOffset int64, size int32) (message.Record, error) {
	if size < message.MinRecordSize || int(size) > s.Config().MappedFileSizeCommitLog {
		return nil, fmt.Errorf("%w: no record of %d bytes at %d", commitlog.ErrNotFound, size, phyOffset)
	}
	b, err := s.log.Read(dst, phyOffset, int(size))
	if err != nil {
		return nil, err
	}
	b = b[len(dst):]
	n, err := message.Check(b, false)
	if err == nil && (n != int(size) || message.Record(b).PhyOffset() != phyOffset) {
		err = commitlog.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%w: no record of %d bytes at %d: %w", commitlog.ErrNotFound, size, phyOffset, err)
	}
	return message.Record(b), nil
}
