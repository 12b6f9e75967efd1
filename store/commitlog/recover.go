package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// progressInterval is how often a long recovery says how far it is.
const progressInterval = 2 * time.Second

// Recover finds the end of the valid records, scanning from the given offset (the start of a file, or of a record, or
// the end of the records), and calls each for every record from there; what lies behind the end is zeroed before the next append.
// each gets records in order; its error stops the recovery. The package comment has the steps. Once, before Start.
func (l *Log) Recover(from int64, checkCRC bool, each func(phyOffset int64, r message.Record) error) error {
	l.append.mu.Lock()
	defer l.append.mu.Unlock()
	files := l.files.Files()
	if len(files) == 0 {
		l.append.recovered = true
		return nil
	}
	first := (from - files[0].Start()) / l.o.FileSize
	if from < files[0].Start() || first >= int64(len(files)) {
		return fmt.Errorf("commitlog: recovery from %d: there is no file", from)
	}
	r := recovery{log: l, crc: checkCRC, each: each, from: from, started: time.Now(), total: files[len(files)-1].End()}
	for _, f := range files[first:] {
		more, err := r.file(f)
		if err != nil {
			return fmt.Errorf("commitlog: recovery: %w", err)
		}
		l.append.file = f
		if !more {
			break
		}
	}
	// Those before the scan too: the queues may know of records that a killed process had not synced.
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("commitlog: recovery: %w", err)
		}
		if f == l.append.file {
			break
		}
	}
	if r.cause != nil {
		l.o.Log.Info("commit log: end found", "path", l.append.file.Path(), "offset", r.end, "behind", r.cause)
	}
	l.warmFrom = min(from, r.end)
	l.written.Store(r.end)
	l.flushed.Store(r.end)
	l.writtenTime.Store(r.last)
	l.flushedTime.Store(r.last)
	if end := l.append.file.End(); r.end < end {
		l.append.dirty, l.append.tail = end, true
	}
	l.append.recovered = true
	return nil
}

// recovery is the state of one Recover.
type recovery struct {
	log     *Log
	crc     bool
	each    func(int64, message.Record) error
	buf     []byte
	from    int64 // where the scan begins
	end     int64 // behind the last valid record
	last    int64 // its store timestamp
	cause   error // what stands at the end; nil: a blank record without a file behind it
	total   int64 // end of the files, for progress
	started time.Time
	told    time.Time
}

// file scans one file, the first from where the scan begins. It returns whether a blank record leads to the next one.
func (r *recovery) file(f *segment.File) (more bool, err error) {
	if r.buf == nil {
		r.buf = make([]byte, min(scanBuffer, r.log.o.FileSize))
	}
	r.end = max(f.Start(), r.from)
	for r.end < f.End() {
		r.progress()
		b := r.buf[:min(int64(len(r.buf)), f.End()-r.end)]
		if err := f.ReadAt(b, r.end); err != nil {
			return false, err
		}
		need, done, err := eachRecord(b, r.end, r.crc, func(at int64, record message.Record) error {
			if r.log.o.Crashed && torn(record) {
				if last, err := nothingAt(f, at+int64(record.Size())); err != nil {
					return err
				} else if last {
					return errTorn
				}
			}
			r.last = record.StoreTimestamp()
			return r.each(at, record)
		})
		r.end += int64(done)
		switch {
		case err == nil:
		case errors.Is(err, message.ErrBlank):
			r.cause = nil
			return true, nil
		case errors.Is(err, message.ErrShort) && int64(need) <= f.End()-r.end:
			if need > len(r.buf) {
				r.buf = make([]byte, need)
			}
		case errors.Is(err, errTorn):
			r.cause = errTorn
			return false, nil
		case errors.As(err, new(*callError)):
			return false, errors.Unwrap(err)
		default:
			r.cause = err
			return false, nil
		}
	}
	r.cause = nil
	return true, nil // a file without a blank record, to the last byte; no broker writes that
}

// progress tells how far a long recovery is.
func (r *recovery) progress() {
	now := time.Now()
	if r.told.IsZero() {
		r.told = now
	}
	if now.Sub(r.told) >= progressInterval {
		r.told = now
		r.log.o.Log.Info("commit log: recovering", "offset", r.end, "of", r.total, "seconds", int(now.Sub(r.started).Seconds()))
	}
}

// removeBehindEndLocked removes the files behind the one in which the log ends, as the official broker does; those that
// hold records it keeps aside.
func (l *Log) removeBehindEndLocked() error {
	if err := l.keepTailLocked(); err != nil {
		return fmt.Errorf("%w: records behind the end cannot be kept aside: %w", ErrWriteStop, err)
	}
	for f := l.files.Last(); f != l.append.file; f = l.files.Last() {
		kept, err := l.keepLastLocked(f)
		if err == nil && !kept { // made in advance
			l.o.Log.Info("commit log: removing a file behind the end", "path", f.Path(), "end", l.written.Load())
			err = l.files.RemoveLast()
		}
		if err != nil {
			return fmt.Errorf("%w: a file behind the end cannot be removed: %w", ErrWriteStop, err)
		}
	}
	return nil
}

// FileStart describes one file for recovery and cleaning.
type FileStart struct {
	Offset         int64
	FirstTimestamp int64     // ms, 0 when the first record is not valid
	Modified       time.Time // last write
}

// FileStarts returns the first offset of each file and the store timestamp of its first record (0: none),
// oldest first; the store chooses from it where recovery begins.
func (l *Log) FileStarts() []FileStart {
	var starts []FileStart
	for _, f := range l.files.Files() {
		v, ok := l.files.View(f.Start())
		if !ok {
			continue // deleted meanwhile
		}
		s := FileStart{Offset: f.Start(), FirstTimestamp: firstTimestamp(v)}
		if info, err := f.Stat(); err == nil {
			s.Modified = info.ModTime()
		}
		v.Release()
		starts = append(starts, s)
	}
	return starts
}

// firstTimestamp is the store timestamp of a file's first record. As CommitLog#isMappedFileMatchedRecover of 4.9.8 it
// looks at the magic code only; what it says decides only where a scan begins.
func firstTimestamp(v segment.View) int64 {
	var b [message.MinRecordSize + 24]byte // room for two IPv6 hosts
	if v.ReadAt(b[:], v.Start()) != nil || binary.BigEndian.Uint32(b[4:]) != message.MagicCode {
		return 0
	}
	return message.Record(b[:]).StoreTimestamp()
}

// DeleteBefore removes the files that end at or before offset, oldest first, at most max, never the last;
// it returns how many.
func (l *Log) DeleteBefore(offset int64, max int) (int, error) {
	for n := 0; ; n++ {
		files := l.files.Files()
		if n >= max || len(files) < 2 || files[0].End() > offset || files[0].End() > l.written.Load() {
			return n, nil
		}
		if err := l.files.RemoveFirst(); err != nil {
			return n, fmt.Errorf("commitlog: %w", err)
		}
	}
}
