package consumequeue

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
)

const (
	// tailSize is how large a tail grows before it is written: one write for some hundred messages.
	tailSize = 8 << 10
	// maxGap is the widest gap between two entries of a queue that is filled with blank ones. Queue offsets are
	// given out one by one, so there are no gaps unless entries were lost; a wider one means a corrupt record,
	// whose header no checksum covers.
	maxGap = 1 << 20
	// MaxQueueOffset is the largest queue offset whose place in bytes can be told. Larger ones come from corrupt records.
	MaxQueueOffset = math.MaxInt64/EntrySize - 1<<31
)

// ErrGap is the refusal of an entry too far behind the end of its queue.
var ErrGap = errors.New("consumequeue: queue offset is far behind the end of its queue")

// Queue is one queue of a topic. Append and what changes the files is called by one goroutine at a time (the
// dispatcher, or recovery) beside the flusher; reading by any number.
type Queue struct {
	table   *Table
	topic   string
	queueId int32

	// next is the queue offset that the next message gets. Owned by the append lock of the commit log.
	next int64

	// old is the end of what an earlier process has left. Set by ResetOffsets, before others read.
	old int64

	// Readers. Entries in [min, max) can be read.
	min, max atomic.Int64

	mu sync.Mutex
	// Guarded by mu. Positions count entries.
	tail       []byte // entries [written, max)
	ext        *extension
	written    int64  // entries before it are in the files
	synced     int64  // entries before it are durable
	first, end int64  // the files' places, multiples of the entries of a file; equal: no file
	maxPhy     int64  // commit-log offset behind the last message
	minPhy     int64  // commit-log offset of the entry at min, -1 when unknown
	epoch      uint32 // counts cuts, so that a flush that ran meanwhile is not believed
	dirty      bool   // in the table's dirty list
	hot        bool   // the tail has been full since the last flush
	dead       bool   // destroyed; a new Queue may stand in the table
	unfit      bool   // the topic can't be the name of a folder
	eager      bool   // entries are written one by one
	known      bool   // loaded by a hint: its end is not looked for
	successor  bool   // a queue of this name was destroyed; its records may be in the log yet
}

// Topic and QueueId name the queue.
func (q *Queue) Topic() string  { return q.topic }
func (q *Queue) QueueId() int32 { return q.queueId }

// Min is the first queue offset whose message is still in the commit log (or Max when there is none); Max is
// the queue offset behind the last entry.
func (q *Queue) Min() int64 { return q.min.Load() }
func (q *Queue) Max() int64 { return q.max.Load() }

// Old tells whether the entry at a queue offset was there when the table was opened: neither it nor its message need be in
// memory.
func (q *Queue) Old(offset int64) bool { return offset < q.old }

// MaxPhyOffset is the commit-log offset behind the last message of the queue, 0 when there was none.
func (q *Queue) MaxPhyOffset() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.maxPhy
}

// Append adds the entry of the message at queueOffset. It can be read when Append returns. Entries come in
// commit-log order; one that is there already is passed over (so a part of the log can be dispatched again).
// An error other than ErrGap and ErrTopic is that of writing the tail: the entry is kept in memory, can be read, and is
// written later.
func (q *Queue) Append(queueOffset int64, e Entry) error { return q.append(queueOffset, e, nil) }

// append is Append, with a unit if u is not nil.
func (q *Queue) append(queueOffset int64, e Entry, u *Unit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return errDead
	}
	if q.unfit {
		return fmt.Errorf("%w: %q", ErrTopic, q.topic)
	}
	end := e.PhyOffset + int64(e.Size)
	if end <= q.maxPhy {
		return nil
	}
	max, writeNow := q.max.Load(), false
	if queueOffset != max {
		var err error
		if writeNow, err = q.placeLocked(queueOffset, max); err != nil {
			return err
		}
	}
	if u != nil {
		e.TagsCode = q.extendLocked(u)
	}
	q.tail = e.append(q.tail)
	q.maxPhy = end
	if q.minPhy < 0 && q.min.Load() == queueOffset {
		q.minPhy = e.PhyOffset
	}
	q.max.Store(queueOffset + 1)
	if !q.dirty {
		q.dirty = true
		q.table.addDirty(q)
	}
	// Later tries only when as much again has come, so that a full disk doesn't cost a system call a message.
	writeNow = writeNow || q.eager && len(q.tail) < tailSize || q.successor && q.first == q.end && len(q.tail) == EntrySize
	if writeNow || len(q.tail) >= tailSize && len(q.tail)%tailSize < EntrySize {
		q.hot = !writeNow
		return q.writeLocked()
	}
	return nil
}

// placeLocked prepares the queue for an entry that is not the next one. writeNow: the tail is large, or must be in the
// file soon.
func (q *Queue) placeLocked(queueOffset, max int64) (writeNow bool, err error) {
	switch {
	case queueOffset < 0 || queueOffset > MaxQueueOffset:
		return false, fmt.Errorf("%w: queue offset %d", ErrGap, queueOffset)
	case q.min.Load() == max:
		// Nothing to read in it: the queue begins here. As ConsumeQueue#fillPreBlank of 4.9.8.
		if q.first == q.end || queueOffset < max || queueOffset-max > maxGap {
			q.removeFilesLocked()
			q.first = queueOffset - queueOffset%q.table.perFile
			q.end, q.written, q.synced = q.first, q.first, q.first
		}
		q.fillLocked(queueOffset)
		q.min.Store(queueOffset)
		q.minPhy = -1
		return true, nil
	case queueOffset < max:
		// The newest record with a queue offset owns it: the topic was deleted and made again, or queue offsets
		// went back after entries had been lost. The official broker drops the newer entries here.
		q.table.notice(slog.LevelWarn, "queue offsets went back; the older entries are dropped", "topic", q.topic,
			"queueId", q.queueId, "queueOffset", queueOffset, "max", max)
		q.cutLocked(queueOffset)
		return true, nil // see Table.findOrCreate
	case queueOffset-max > maxGap:
		return false, fmt.Errorf("%w: %d behind %d", ErrGap, queueOffset, max)
	default:
		// compat: the official broker logs this and puts the entry at the wrong place.
		q.table.notice(slog.LevelError, "a gap in a consume queue is filled with blank entries", "topic", q.topic,
			"queueId", q.queueId, "queueOffset", queueOffset, "max", max)
		q.fillLocked(queueOffset)
		return true, nil
	}
}

// fillLocked adds blank entries up to queue offset until; max is left to the caller.
func (q *Queue) fillLocked(until int64) {
	have := q.written + int64(len(q.tail)/EntrySize)
	for ; have < until; have++ {
		q.tail = blank.append(q.tail)
	}
}

// Read appends to dst the bytes of up to n entries from queue offset on, as far as they are in one file (the
// official broker reads a file at a time too). Nothing is appended when there is no such entry.
func (q *Queue) Read(dst []byte, offset int64, n int) ([]byte, error) {
	limit := q.max.Load()
	if fileEnd := offset - offset%q.table.perFile + q.table.perFile; limit > fileEnd {
		limit = fileEnd
	}
	if limit > offset+int64(n) {
		limit = offset + int64(n)
	}
	if offset < 0 {
		return dst, nil
	}
	for offset < limit {
		q.mu.Lock()
		first, written := q.first, q.written
		if offset >= written {
			// max may have been cut back since it was loaded.
			if have := written + int64(len(q.tail)/EntrySize); limit > have {
				limit = have
			}
			if offset < limit {
				dst = append(dst, q.tail[(offset-written)*EntrySize:(limit-written)*EntrySize]...)
			}
			q.mu.Unlock()
			return dst, nil
		}
		q.mu.Unlock()
		if offset < first {
			return dst, nil
		}
		k := int((min(limit, written) - offset) * EntrySize)
		var err error
		if dst, err = q.readFile(dst, offset, k); err != nil {
			return dst, err
		}
		offset += int64(k / EntrySize)
	}
	return dst, nil
}

// readFile appends size bytes of the file that holds entry offset, from that entry on.
func (q *Queue) readFile(dst []byte, offset int64, size int) ([]byte, error) {
	start := offset - offset%q.table.perFile
	h, err := q.table.files.acquire(q, start)
	if err != nil {
		return dst, err
	}
	defer q.table.files.release(h)
	n := len(dst)
	if cap(dst)-n < size {
		grown := make([]byte, n, n+size)
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:n+size]
	if _, err := h.file.ReadAt(dst[n:], (offset-start)*EntrySize); err != nil {
		return dst[:n], fmt.Errorf("consumequeue: reading %s: %w", q.table.path(q, start), err)
	}
	return dst, nil
}

// Entry is the entry at a queue offset; ok is false when there is none or it is a blank one.
func (q *Queue) Entry(offset int64) (e Entry, ok bool) {
	if offset < q.min.Load() || offset >= q.max.Load() {
		return Entry{}, false
	}
	e, ok = q.at(offset)
	return e, ok && !e.IsBlank()
}

// at reads the entry at offset, blank or not.
func (q *Queue) at(offset int64) (Entry, bool) {
	var buf [EntrySize]byte
	b, err := q.Read(buf[:0], offset, 1)
	if err != nil {
		q.table.log.Error("reading a consume queue failed", "topic", q.topic, "queueId", q.queueId, "error", err)
		return Entry{}, false
	}
	if len(b) < EntrySize {
		return Entry{}, false
	}
	return Decode(b), true
}

// FileName is the file of an entry.
func (q *Queue) FileName(offset int64) string { return q.table.path(q, offset-offset%q.table.perFile) }

// FileOf is the range of queue offsets that share a file with offset.
func (q *Queue) FileOf(offset int64) (first, end int64) {
	first = offset - offset%q.table.perFile
	return first, first + q.table.perFile
}
