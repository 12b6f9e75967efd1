package store

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// MinOffset and MaxOffset are a queue's bounds; 0, 0 for a queue that does not exist.
func (s *Store) MinOffset(topic string, queueId int32) int64 {
	if q := s.queues.Find(topic, queueId); q != nil {
		return q.Min()
	}
	return 0
}

// MaxOffset is the queue offset behind the last message; see MinOffset.
func (s *Store) MaxOffset(topic string, queueId int32) int64 {
	if q := s.queues.Find(topic, queueId); q != nil {
		return q.Max()
	}
	return 0
}

// Old tells, without a look at the disk, whether the message at a queue offset was stored before this process had the store.
func (s *Store) Old(topic string, queueId int32, offset int64) bool {
	q := s.queues.Find(topic, queueId)
	return q != nil && q.Old(offset)
}

// Entry is one entry of a consume queue.
type Entry = consumequeue.Entry

// Unit is one unit of consumequeue_ext.
type Unit = consumequeue.Unit

// unitReaders are readers of single units.
var unitReaders = sync.Pool{New: func() any { return new(consumequeue.UnitReader) }}

// readUnit calls found with the unit at an address, whose bit map is valid during the call only; false when there is none.
func readUnit(q *consumequeue.Queue, address int64, found func(u Unit)) bool {
	r := unitReaders.Get().(*consumequeue.UnitReader)
	r.Reset() // units may have gone since
	u, ok := r.Read(q, address)
	if ok {
		found(u)
	}
	unitReaders.Put(r)
	return ok
}

// Entry is the consume-queue entry at a queue offset. Its tagsCode is that of its unit, if it leads to one; when that can't
// be read, the tagsCode of a delayed message is calculated again (ScheduleMessageService of 4.9.8), others stay addresses.
// There is none at a place whose entry is damaged until it is mended. A place without a message (a blank entry) has one whose
// message is gone.
func (s *Store) Entry(topic string, queueId int32, offset int64) (e Entry, ok bool) {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return Entry{}, false
	}
	if e, ok = q.Entry(offset); !ok || !s.looksRight(e) {
		return s.noEntry(q, offset)
	}
	if e.IsExtAddress() {
		address := e.TagsCode
		there := readUnit(q, address, func(u Unit) { e.TagsCode = u.TagsCode })
		if !there && topic == message.TopicSchedule {
			e.TagsCode = s.o.DeliverTime(int(queueId)+1, s.storeTime(e.PhyOffset))
		}
	}
	return e, ok
}

// recordHeads are buffers for the beginnings of records.
var recordHeads = sync.Pool{New: func() any { b := make([]byte, 0, message.MinRecordSize); return &b }}

// looksRight tells whether a record of its size begins where an entry leads, if that is behind the beginning of the log; what can't be read
// counts as right.
func (s *Store) looksRight(e Entry) bool {
	if e.Size <= 0 || e.PhyOffset < 0 {
		return false
	}
	if e.PhyOffset < s.log.MinOffset() {
		return true
	}
	b := recordHeads.Get().(*[]byte)
	size, err := s.readSize((*b)[:0], e.PhyOffset)
	recordHeads.Put(b)
	return err == nil && size == e.Size || err != nil && !errors.Is(err, commitlog.ErrNotFound)
}

// noEntry is Entry for a place where there is none, or a damaged one.
func (s *Store) noEntry(q *consumequeue.Queue, offset int64) (e Entry, ok bool) {
	if offset < q.Min() || offset >= q.Max() {
		return Entry{}, false
	}
	b, err := q.Read(nil, offset, 1)
	switch {
	case err == nil && len(b) == consumequeue.EntrySize:
		e = consumequeue.Decode(b)
	case !errors.Is(err, fs.ErrNotExist):
		return Entry{}, false
	}
	if e.IsBlank() {
		return Entry{PhyOffset: -1}, true
	}
	return e, !s.looksRight(e) && !s.damaged(q, offset, e)
}

// Unit is the unit to which a tagsCode that is an address leads (Entry.IsExtAddress); ok is false when there is none.
func (s *Store) Unit(topic string, queueId int32, address int64) (u Unit, ok bool) {
	if q := s.queues.Find(topic, queueId); q != nil {
		ok = readUnit(q, address, func(found Unit) {
			u = found
			u.BitMap = slices.Clone(u.BitMap)
		})
	}
	return u, ok
}

// Entries are up to n entries of a queue from a queue offset on, as far as they lie in one file; none when there is no
// entry at that offset (ConsumeQueue#getIndexBuffer of 4.9.8). ok is false for a queue that does not exist.
func (s *Store) Entries(topic string, queueId int32, offset int64, n int) (entries []Entry, ok bool, err error) {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return nil, false, nil
	}
	if offset < q.Min() || offset >= q.Max() {
		return nil, true, nil
	}
	b, err := q.Read(nil, offset, max(n, 0))
	for ; len(b) >= consumequeue.EntrySize; b = b[consumequeue.EntrySize:] {
		entries = append(entries, consumequeue.Decode(b))
	}
	return entries, true, err
}

// EarliestTime is the store time of a queue's first message, -1 when there is none.
func (s *Store) EarliestTime(topic string, queueId int32) int64 {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return -1
	}
	return s.timeAt(q, q.Min())
}

// TimeOf is the store time of the message at a queue offset, -1 when there is none.
func (s *Store) TimeOf(topic string, queueId int32, offset int64) int64 {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return -1
	}
	return s.timeAt(q, offset)
}

func (s *Store) timeAt(q *consumequeue.Queue, offset int64) int64 {
	e, ok := s.mendedEntry(q, offset)
	if !ok {
		return -1
	}
	if t := s.storeTime(e.PhyOffset); t > 0 {
		return t
	}
	return -1
}

// mendedEntry is the entry at a queue offset, made again when it is damaged; ok is false when there is none, or none that can be
// believed.
func (s *Store) mendedEntry(q *consumequeue.Queue, offset int64) (e Entry, ok bool) {
	for tries := 0; ; tries++ {
		if e, ok = q.Entry(offset); ok && s.looksRight(e) {
			return e, true
		}
		if _, gone := s.noEntry(q, offset); gone || tries > 0 || offset < q.Min() || offset >= q.Max() {
			return Entry{}, false
		}
		if err := s.MendNow(); err != nil {
			return Entry{}, false // the log says so
		}
	}
}

// storeTime is the store timestamp of the record at a commit-log offset, 0 when there is none.
func (s *Store) storeTime(phyOffset int64) int64 {
	b, err := s.log.Read(make([]byte, 0, message.MinRecordSize), phyOffset, message.MinRecordSize)
	if err != nil {
		return 0
	}
	return message.Record(b).StoreTimestamp()
}

// OnDisk tells whether the message at a queue offset counts as "on disk" (rule of code 14).
func (s *Store) OnDisk(topic string, queueId int32, offset int64) bool {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return false
	}
	e, ok := q.Entry(offset)
	return ok && s.log.MaxOffset()-e.PhyOffset > s.inMemoryBytes(s.Config())
}

// OffsetByTime is the queue offset of the message stored at a time (ms), or of the one stored nearest to it (code 29;
// ConsumeQueue#getOffsetInQueueByTime of 4.9.8). The official broker looks in one file: the first that was modified at
// or after the time, else the last. We take the first whose last message was stored then: the same file, unless the
// store was copied without its times.
func (s *Store) OffsetByTime(topic string, queueId int32, timestamp int64) int64 {
	q := s.queues.Find(topic, queueId)
	if q == nil {
		return 0
	}
	low, high := q.Min(), q.Max()
	for low < high {
		_, fileEnd := q.FileOf(low)
		if fileEnd >= high || s.timeAt(q, fileEnd-1) >= timestamp {
			high = min(high, fileEnd)
			break
		}
		low = fileEnd
	}
	return s.searchTime(q, low, high-1, timestamp)
}

// searchTime looks among the entries low to high. The midpoints are the official ones: of several messages of one
// millisecond the same is found.
func (s *Store) searchTime(q *consumequeue.Queue, low, high, timestamp int64) int64 {
	minPhyOffset := s.log.MinOffset()
	left, right := int64(-1), int64(-1)
	var leftTime, rightTime int64
	leftKnown := false
	for low <= high {
		middle := (low + high) / 2
		e, ok := s.mendedEntry(q, middle)
		if !ok || e.PhyOffset < minPhyOffset {
			low, left = middle+1, middle
			continue
		}
		switch t := s.storeTime(e.PhyOffset); {
		case t <= 0:
			return 0
		case t == timestamp:
			return middle
		case t > timestamp:
			high, right, rightTime = middle-1, middle, t
		default:
			low, left, leftTime, leftKnown = middle+1, middle, t, true
		}
	}
	switch {
	case !leftKnown:
		return max(right, 0)
	case right < 0:
		return left
	case timestamp-leftTime > rightTime-timestamp:
		return right
	}
	return left
}
