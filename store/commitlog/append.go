package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// chunk bounds what is encoded and written at once; one larger message is a chunk of its own. Larger buffers
// than keep are not kept.
const (
	chunk = 1 << 20
	keep  = 4 << 20
)

// holdBack is how far a clock may step back without the store time following it: less is hidden, so that store
// times rise with offsets (searches by time need that), but a clock set right must not freeze the time, or
// delayed messages would be late by that much.
const holdBack = int64(time.Second / time.Millisecond)

// appender is the single writer of the log; all is guarded by mu, the append lock.
type appender struct {
	mu        sync.Mutex
	recovered bool
	closed    bool
	file      *segment.File // in which the end lies; nil: none yet
	dirty     int64         // end of what is to be made zeros from the log's end on; 0: nothing
	tail      bool          // what recovery has found there has not been looked at
	failures  failures      // what was logged of writes that failed
}

// encoder is what one Append works with outside the lock; it is reused.
type encoder struct {
	buf   []byte
	units []unit
}

// unit is an encoded Put: bytes [from, to) of the buffer.
type unit struct {
	put      *Put
	from, to int
}

// Append appends the run with one lock and, as far as it fits the file, one write; it fills each Put's
// results. It does not wait for flushing. Any number of goroutines may call it.
//
// When a write fails, nothing of it is visible then or later and its queue offsets are untaken; the Puts that
// follow in the run fail with the same error.
func (l *Log) Append(run []*Put) {
	e := l.buffers.Get().(*encoder)
	var failed error
	for len(run) > 0 {
		run = run[l.encode(e, run):]
		if failed == nil {
			failed = l.appendUnits(e)
		} else {
			failUnits(e.units, failed)
		}
	}
	clear(e.units[:cap(e.units)]) // or the pool would keep messages alive
	if cap(e.buf) <= keep {
		l.buffers.Put(e)
	}
}

// encode fills e with the first Puts of a run and returns how many it took. One that is too large gets its
// error and is left out.
func (l *Log) encode(e *encoder, run []*Put) int {
	e.buf, e.units = e.buf[:0], e.units[:0]
	limit := int(min(l.o.FileSize-message.BlankRecordSize, 1<<31-1))
	largest := limit
	if l.o.MaxRecord != nil {
		largest = min(limit, l.o.MaxRecord())
	}
	for i, p := range run {
		size, err := 0, error(nil)
		for j := range p.count() {
			m := p.at(j)
			n := message.RecordSize(m)
			size += n
			if n > limit || n > largest && !p.Copy {
				err = fmt.Errorf("%w: record of %d bytes, at most %d", ErrTooLarge, n, largest)
			} else if e := message.CheckSizes(m); e != nil {
				err = fmt.Errorf("%w: %w", ErrTooLarge, e)
			}
		}
		if size == 0 {
			err = errors.New("commitlog: nothing to append")
		} else if err == nil && size > limit {
			err = fmt.Errorf("%w: batch of %d bytes in files of %d", ErrTooLarge, size, l.o.FileSize)
		}
		if p.Err = err; err != nil {
			continue
		}
		if len(p.Queues) > 0 { // alone, and encoded under the lock
			if len(e.units) > 0 {
				return i
			}
			e.units = append(e.units, unit{p, 0, 0})
			return i + 1
		}
		if len(e.buf) > 0 && len(e.buf)+size > chunk {
			return i
		}
		from := len(e.buf)
		for j := range p.count() {
			e.buf = message.AppendRecord(e.buf, p.at(j))
		}
		e.units = append(e.units, unit{p, from, len(e.buf)})
	}
	return len(run)
}

// count is the number of messages of a Put, at its i-th.
func (p *Put) count() int {
	if p.Message != nil {
		return 1
	}
	return len(p.Batch)
}

func (p *Put) at(i int) *message.Message {
	if p.Message != nil {
		return p.Message
	}
	return p.Batch[i]
}

func failUnits(units []unit, err error) {
	for _, u := range units {
		u.put.Err = err
	}
}

// appendUnits writes what is encoded in e. The error is that of the first write that failed.
func (l *Log) appendUnits(e *encoder) error {
	if len(e.units) == 0 {
		return nil
	}
	l.append.mu.Lock()
	before, now := l.written.Load(), l.o.Clock()
	l.lockedSince.Store(now.UnixNano())
	err := l.appendLocked(e, l.storeTime(now))
	l.lockedSince.Store(0)
	grown := l.written.Load() > before
	l.append.mu.Unlock()
	if grown {
		l.appended()
	}
	return err
}

// storeTime is the time that the records get: see holdBack.
func (l *Log) storeTime(now time.Time) int64 {
	t, last := now.UnixMilli(), l.writtenTime.Load()
	if t < last && last-t <= holdBack {
		return last
	}
	return t
}

func (l *Log) appendLocked(e *encoder, storeTime int64) error {
	units := e.units
	err := l.writableLocked()
	further := err == nil && len(units[0].put.Queues) > 0
	if further {
		if units[0].put.Err = l.encodeFurtherLocked(e); units[0].put.Err != nil {
			return nil // no fault of the log
		}
	}
	for err == nil && len(units) > 0 {
		end := l.written.Load()
		n := 0
		if f := l.append.file; f != nil {
			for free := f.End() - end; n < len(units) && int64(units[n].to-units[0].from)+message.BlankRecordSize <= free; {
				n++
			}
		}
		if n == 0 {
			err = l.rollLocked()
			continue
		}
		if err = l.writeLocked(e.buf, units[:n], end, storeTime); err == nil {
			units = units[n:]
		}
	}
	if err != nil {
		failUnits(units, err)
		if further {
			l.untakeFurtherLocked(units[0].put)
		}
		l.append.failures.tell(l.o, err)
	}
	return err
}

// writableLocked tells whether something may be written now, after it has done what is left to do before.
func (l *Log) writableLocked() error {
	switch err := l.stopError(); {
	case l.append.closed:
		return ErrClosed
	case !l.append.recovered:
		return errors.New("commitlog: Recover has not been called")
	case err != nil:
		return err
	case l.append.tail || l.files.Last() != l.append.file:
		if err := l.removeBehindEndLocked(); err != nil {
			return err
		}
	}
	if l.append.dirty != 0 {
		return l.cleanLocked()
	}
	return nil
}

// cleanLocked makes the bytes between the log's end and append.dirty zeros, durably. While that fails nothing is
// written: what is there could look valid once the bytes before it are right.
func (l *Log) cleanLocked() error {
	f, end := l.append.file, l.written.Load()
	if err := f.Zero(end, l.append.dirty); err != nil {
		return fmt.Errorf("%w: what a failed write left cannot be cleared: %w", ErrWriteStop, err)
	}
	if err := f.Sync(); err != nil {
		return l.stop(err)
	}
	l.append.dirty = 0
	return nil
}

// writeLocked stamps the units, writes them at the end of the log, where they fit, and publishes them.
func (l *Log) writeLocked(buf []byte, units []unit, end, storeTime int64) error {
	base := units[0].from
	for i := range units {
		u := &units[i]
		stamp(u, buf, l.takeLocked(u.put), end+int64(u.from-base), storeTime)
	}
	b := buf[base:units[len(units)-1].to]
	if err := l.writeAtLocked(b, end); err != nil {
		for i := len(units) - 1; i >= 0; i-- {
			l.untakeLocked(units[i].put)
		}
		return err
	}
	l.written.Store(end + int64(len(b)))
	l.writtenTime.Store(storeTime)
	return nil
}

// writeAtLocked writes b at the end of the log. When that fails, wholly or in part, the place is cleared.
func (l *Log) writeAtLocked(b []byte, end int64) error {
	f := l.append.file
	n, err := f.WriteAt(b, end)
	if err == nil {
		return nil
	}
	err = writeError(err)
	if n == 0 && errors.Is(err, ErrFull) {
		return err // a full disk takes nothing, and need not be asked to clear it
	}
	l.append.dirty = end + int64(len(b))
	if cerr := l.cleanLocked(); cerr != nil {
		l.o.Log.Error("commit log: what a failed write left is not cleared yet", "path", f.Path(), "offset", end, "err", cerr)
	}
	return err
}

// queued tells whether a Put's records enter a consume queue; then it takes queue offsets. Those of prepared
// and rolled-back messages are 0.
func (p *Put) queued() bool {
	return message.Queued(p.at(0).SysFlag)
}

func (l *Log) takeLocked(p *Put) int64 {
	if !p.queued() {
		return 0
	}
	m := p.at(0)
	return l.o.QueueOffsets.Take(m.Topic, m.QueueId, p.count())
}

func (l *Log) untakeLocked(p *Put) {
	if p.queued() {
		m := p.at(0)
		l.o.QueueOffsets.Untake(m.Topic, m.QueueId, p.count())
	}
}

// stamp writes offsets and time into a unit's records, its messages and its Put.
func stamp(u *unit, buf []byte, queueOffset, phyOffset, storeTime int64) {
	p := u.put
	p.PhyOffset, p.QueueOffset, p.StoreTimestamp, p.Size = phyOffset, queueOffset, storeTime, int32(u.to-u.from)
	p.End = phyOffset + int64(p.Size)
	p.PhyOffsets = nil
	if p.Message == nil {
		p.PhyOffsets = make([]int64, 0, len(p.Batch))
	}
	at := u.from
	for i := range p.count() {
		m, r := p.at(i), message.Record(buf[at:u.to])
		if m.QueueOffset = queueOffset; p.queued() {
			m.QueueOffset += int64(i)
		}
		m.PhyOffset, m.StoreTimestamp = phyOffset, storeTime
		r.Stamp(m.QueueOffset, phyOffset, storeTime)
		if p.Message == nil {
			p.PhyOffsets = append(p.PhyOffsets, phyOffset)
		}
		at += r.Size()
		phyOffset += int64(r.Size())
	}
}

// rollLocked goes on to the next file: it gets or makes it, closes the one that is full with a blank record,
// and moves the end of the log to the start of the next.
func (l *Log) rollLocked() error {
	full, start := l.append.file, l.written.Load()
	if full != nil {
		start = full.End()
	} else if start%l.o.FileSize != 0 {
		return fmt.Errorf("commitlog: no file for offset %d", start)
	}
	if err := l.addNextLocked(start); err != nil {
		return err
	}
	l.append.file = l.files.Last()
	l.written.Store(start)
	l.unmapCold()
	l.wantNext(start + l.o.FileSize)
	return nil
}

// addNextLocked puts the file that begins at start, made in advance or now, at the end of the queue, after a blank record
// has closed the one before it.
func (l *Log) addNextLocked(start int64) error {
	l.next.mu.Lock() // until the file is in the queue: else it could be made a second time, which empties it
	defer l.next.mu.Unlock()
	l.forgetNextIfGone()
	if l.next.file == nil || l.next.file.Start() != start {
		f, err := l.files.Create(start)
		if err != nil {
			return createError(err)
		}
		l.next.file = f
	}
	if end := l.written.Load(); end < start { // so there is a full file; every append has left room for the blank
		if err := l.writeAtLocked(message.AppendBlank(nil, int(start-end)), end); err != nil {
			return err
		}
	}
	l.files.Add(l.next.file)
	l.next.file = nil
	return nil
}

// unmapCold ends the mappings of files that have left the hot window.
func (l *Log) unmapCold() {
	for _, f := range l.files.Files() {
		if f.End() < l.written.Load()-l.o.HotWindow {
			if err := f.Unmap(); err != nil {
				l.o.Log.Warn("commit log: unmap", "path", f.Path(), "err", err)
			}
		}
	}
}
