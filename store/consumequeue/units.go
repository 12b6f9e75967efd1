package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
)

// unitsRead is how many bytes of units are read at a time: a reader of entries wants neighbours.
const unitsRead = 4 << 10

// UnitReader reads units of a queue, of neighbours most from memory. The zero value is ready; one goroutine uses it.
type UnitReader struct {
	queue *Queue
	at    int64 // offset of b
	b     []byte
}

// Reset forgets what was read: units may have been removed since.
func (r *UnitReader) Reset() { r.queue, r.b = nil, r.b[:0] }

// Read reads the unit at an address; ok is false when there is none. Its bit map is valid until the next call.
func (r *UnitReader) Read(q *Queue, address int64) (u Unit, ok bool) {
	if !q.table.ext.there.Load() || address > maxExtAddress {
		return Unit{}, false
	}
	offset := UnitOffset(address)
	if r.queue == q && offset >= r.at && offset < r.at+int64(len(r.b)) {
		if u, ok = DecodeUnit(r.b[offset-r.at:]); ok {
			return u, true
		}
	}
	need := unitsRead
	for {
		if cap(r.b) < need {
			r.b = make([]byte, 0, need)
		}
		var err error
		r.queue, r.at = q, offset
		if r.b, err = q.readUnits(r.b[:0], offset); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				q.table.log.Debug("a unit can't be read", "topic", q.topic, "queueId", q.queueId, "error", err)
			}
			r.b = r.b[:0]
			return Unit{}, false
		}
		n := UnitSize(r.b)
		if n <= cap(r.b) || need >= n {
			return DecodeUnit(r.b)
		}
		need = n
	}
}

// readUnits appends to dst, as far as its capacity goes, what a file or the tail of units has from an offset on.
func (q *Queue) readUnits(dst []byte, offset int64) ([]byte, error) {
	if offset < 0 || offset > maxUnitOffset {
		return dst, nil
	}
	limit := int64(math.MaxInt64)
	q.mu.Lock()
	if x := q.ext; x != nil && !x.bypass {
		if limit = x.written; offset >= limit {
			if at := offset - limit; at < int64(len(x.tail)) {
				tail := x.tail[at:]
				dst = append(dst, tail[:min(len(tail), cap(dst)-len(dst))]...)
			}
			q.mu.Unlock()
			return dst, nil
		}
	}
	q.mu.Unlock()
	return q.readUnitFile(dst, offset, limit)
}

// readUnitFile is readUnits for what lies in a file, up to limit.
func (q *Queue) readUnitFile(dst []byte, offset, limit int64) ([]byte, error) {
	size := q.table.ext.size
	start := offset - offset%size
	n := int(min(limit-offset, start+size-offset, int64(cap(dst)-len(dst))))
	h, err := q.table.files.acquire(q, extPlace(start))
	if err != nil {
		return dst, err
	}
	defer q.table.files.release(h)
	had := len(dst)
	got, err := h.file.ReadAt(dst[had:had+n], offset-start)
	if err == io.EOF {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("consumequeue: reading %s: %w", q.table.extPath(q, start), err)
	}
	return dst[:had+got], err
}
