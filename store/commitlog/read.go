package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// scanBuffer is how much Scan and Recover read at once; one larger record makes it larger.
const scanBuffer = 256 << 10

var scanBuffers = sync.Pool{New: func() any { b := make([]byte, scanBuffer); return &b }}

// Read appends size bytes at offset to dst. ErrNotFound below MinOffset or beyond MaxOffset, and where the
// bytes would span two files. Bytes within the hot window come from memory; others may wait for the disk.
func (l *Log) Read(dst []byte, offset int64, size int) ([]byte, error) {
	written := l.written.Load()
	if size < 0 || offset < 0 || int64(size) > written-offset {
		return dst, fmt.Errorf("%w: %d bytes at %d, the log ends at %d", ErrNotFound, size, offset, written)
	}
	v, ok := l.files.View(offset)
	if !ok {
		return dst, fmt.Errorf("%w: %d, the log begins at %d", ErrNotFound, offset, l.MinOffset())
	}
	defer v.Release()
	if offset+int64(size) > v.End() {
		return dst, fmt.Errorf("%w: %d bytes at %d span two files", ErrNotFound, size, offset)
	}
	n := len(dst)
	dst = slices.Grow(dst, size)[:n+size]
	if err := l.copyFrom(v, dst[n:], offset, written); err != nil {
		return dst[:n], fmt.Errorf("commitlog: %w", err)
	}
	return dst, nil
}

// copyFrom fills b from a file: by the mapping where it is hot, else by a read.
func (l *Log) copyFrom(v segment.View, b []byte, offset, written int64) error {
	if offset >= written-l.o.HotWindow && !l.Cold(offset) {
		return v.CopyAt(b, offset)
	}
	return v.ReadAt(b, offset)
}

// Cold tells whether this process has neither written nor recovered what lies at an offset: it may be on the disk only. A
// mapping must not be asked for it: a thread that waits for a page takes its processor with it, and with that the sends that
// were to run there, while one that waits in a read gives it up.
func (l *Log) Cold(offset int64) bool { return offset < l.warmFrom }

// Scan calls each for every record from offset (a record's start) up to ConfirmOffset, as it is at the call, and
// returns the offset behind the last one. Records point into a buffer that is valid during the call only.
// What is not a record there is ErrDamaged, and next its offset: NextFile leads past it. An error of each ends the
// scan; next is then the offset of the record that it was called for.
func (l *Log) Scan(offset int64, each func(phyOffset int64, r message.Record) error) (next int64, err error) {
	limit := l.ConfirmOffset()
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	for offset < limit {
		v, ok := l.files.View(offset)
		if !ok {
			return offset, fmt.Errorf("%w: %d, the log begins at %d", ErrNotFound, offset, l.MinOffset())
		}
		offset, err = l.scanFile(v, buf, offset, min(limit, v.End()), each)
		v.Release()
		if err != nil {
			return offset, err
		}
	}
	return offset, nil
}

// scanFile scans one file from offset up to limit and returns where the scan goes on: at limit, or at the file's
// end behind a blank record.
func (l *Log) scanFile(v segment.View, buf *[]byte, offset, limit int64, each func(int64, message.Record) error) (int64, error) {
	for offset < limit {
		b := (*buf)[:min(int64(len(*buf)), limit-offset)]
		if err := l.copyFrom(v, b, offset, l.written.Load()); err != nil {
			return offset, fmt.Errorf("commitlog: %w", err)
		}
		need, done, err := eachRecord(b, offset, false, each)
		offset += int64(done)
		switch {
		case err == nil: // b ended with a record
		case errors.Is(err, message.ErrBlank):
			return v.End(), nil
		case errors.Is(err, message.ErrShort):
			if int64(need) > limit-offset {
				return offset, damaged(v.Path(), offset, err)
			}
			if need > len(*buf) {
				*buf = make([]byte, need)
			}
		case errors.As(err, new(*callError)):
			return offset, errors.Unwrap(err)
		default:
			return offset, damaged(v.Path(), offset, err)
		}
	}
	return offset, nil
}

func damaged(path string, offset int64, cause error) error {
	return fmt.Errorf("%w: %s, offset %d: %w", ErrDamaged, path, offset, cause)
}

// callError is the error of a callback, told apart from those of records.
type callError struct{ error }

// Unwrap returns the callback's error.
func (e *callError) Unwrap() error { return e.error }

// eachRecord calls each for the records at the start of b, whose first byte has the given offset. done is how many
// bytes they take; the error says why it did not go on: nil at the end of b, what Check says, or a callError. With
// ErrShort need is the size of the record that begins there.
func eachRecord(b []byte, offset int64, crc bool, each func(int64, message.Record) error) (need, done int, err error) {
	for done < len(b) {
		size, err := message.Check(b[done:], crc)
		if err != nil {
			return size, done, err
		}
		r := message.Record(b[done : done+size])
		if at := offset + int64(done); r.PhyOffset() != at {
			return 0, done, fmt.Errorf("record of offset %d at %d", r.PhyOffset(), at)
		}
		if err := each(offset+int64(done), r); err != nil {
			return 0, done, &callError{err}
		}
		done += size
	}
	return 0, done, nil
}

// NextFile is the start of the file behind the one that holds an offset.
func (l *Log) NextFile(offset int64) int64 {
	return offset - offset%l.o.FileSize + l.o.FileSize
}
