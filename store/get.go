package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// GetStatus is the outcome of a Get, named as the official GetMessageStatus (its name is a pull's remark).
type GetStatus int

// The statuses.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue // never given: a queue that does not exist counts as empty, as in 4.9.8
	NoMessageInQueue
	// Mending is ours: the entry at the offset is damaged and is being made again from the log (mend.go). Whoever asks again
	// later gets its message; the official broker passes over it.
	Mending
)

// minScan is how many entries a Get looks at, at least, before it gives up filtering (16000 bytes of entries in
// DefaultMessageStore#getMessage of 4.9.8).
const minScan = 16000 / consumequeue.EntrySize

// maxStep is how many entries are read at a time, however many messages are asked for.
const maxStep = 255

// Filter chooses messages in a Get. Both methods must be cheap and may run at once.
type Filter interface {
	// MatchQueue decides by the tagsCode of the consume-queue entry, or of its unit in consumequeue_ext.
	MatchQueue(tagsCode int64) bool
	// MatchRecord decides by the record; called only for entries that MatchQueue let pass.
	MatchRecord(r message.Record) bool
}

// UnitFilter is a Filter that decides by the unit in consumequeue_ext too.
type UnitFilter interface {
	Filter
	// MatchUnit decides by the store timestamp (ms) and the bit map of an entry's unit, nil when the unit has none; called
	// only for entries that have a unit and that MatchQueue let pass. bitMap is valid during the call only.
	MatchUnit(storeTimestamp int64, bitMap []byte) bool
}

// GetResult is what a Get found.
type GetResult struct {
	Status          GetStatus
	NextBeginOffset int64
	MinOffset       int64
	MaxOffset       int64
	Body            []byte // the records, back to back; the caller's, who may give it to RecycleBody
	Count           int
	SuggestSlave    bool  // the reader is further behind than accessMessageInMemoryMaxRatio of memory
	BehindBytes     int64 // from the last entry looked at to the log's end
	Cold            bool  // that entry's message may be on the disk only

	elsewhere []bodyPlace // of records whose own queue offset is another; QueueOffset tells
}

// bodyPlace is the queue offset at which record number n of a body stands.
type bodyPlace struct {
	n  int
	at int64
}

// QueueOffset is the place in the queue of record number n of the body: mostly the record's own, but a light message queue has
// records of others, and official brokers put what comes behind a gap right at the end.
func (r *GetResult) QueueOffset(n int, record message.Record) int64 {
	i, ok := slices.BinarySearchFunc(r.elsewhere, n, func(p bodyPlace, n int) int { return p.n - n })
	if !ok {
		return record.QueueOffset()
	}
	return r.elsewhere[i].at
}

// getScratch is memory that one Get needs for itself.
type getScratch struct {
	entries  []byte
	verdicts [maxStep + 1]verdict // of entries
	units    consumequeue.UnitReader
}

var getScratches = sync.Pool{New: func() any { return new(getScratch) }}

// get is one Get under way.
type get struct {
	*getScratch
	s        *Store
	cfg      *Config
	filter   Filter
	queue    *consumequeue.Queue
	max      int
	logEnd   int64
	inMemory int64 // records from this offset on count as in memory
	skipTo   int64 // entries before this log offset are passed over: their file is gone
	first    int64 // queue offset that the Get begins with
	base     int64 // queue offset of the first of entries
	end      int64 // log offset behind the last entry, at first the log's minimum: the next lies behind it
	damage   int64 // queue offset of the damaged entry that ends the Get, -1: none
	refused  int   // records that the filter has refused
	last     int64 // queue offset of the last record of the body
	lastSize int   // its bytes
	run      run
	result   GetResult
}

// Get reads messages of a queue from a queue offset, at most max and within the official limits of
// bytes; filter nil takes all. The rules are those of DefaultMessageStore#getMessage of 4.9.8.
func (s *Store) Get(topic string, queueId int32, offset int64, max int, filter Filter) GetResult {
	cfg := s.Config()
	g := get{s: s, cfg: cfg, filter: filter, max: max, logEnd: s.log.MaxOffset(), end: s.log.MinOffset(), damage: -1}
	g.inMemory = g.logEnd - s.inMemoryBytes(cfg)
	g.result.NextBeginOffset = offset
	g.result.Status = NoMessageInQueue
	q := s.queues.Find(topic, queueId)
	if q != nil {
		// In this order: the minimum never passes the maximum.
		g.result.MinOffset = q.Min()
		g.result.MaxOffset = q.Max()
	}
	r := &g.result
	switch {
	case r.MaxOffset == 0:
		r.NextBeginOffset = g.correct(offset, 0)
	case offset < r.MinOffset:
		r.Status, r.NextBeginOffset = OffsetTooSmall, g.correct(offset, r.MinOffset)
	case offset == r.MaxOffset:
		r.Status = OffsetOverflowOne
	case offset > r.MaxOffset:
		r.Status, r.NextBeginOffset = OffsetOverflowBadly, g.correct(offset, r.MaxOffset)
	default:
		g.read(q, offset)
	}
	s.stats.get(r)
	return g.result
}

// correct is nextOffsetCorrection of 4.9.8: a slave lets a consumer keep its offset.
func (g *get) correct(asked, right int64) int64 {
	if g.cfg.BrokerRole == Slave && !g.cfg.OffsetCheckInSlave {
		return asked
	}
	return right
}

// inMemoryBytes is how far behind the log's end a record still counts as in memory. What no int64 can hold is the most, as in Java.
func (s *Store) inMemoryBytes(cfg *Config) int64 {
	bytes := float64(s.memory) * (float64(cfg.AccessMessageInMemoryMaxRatio) / 100)
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// read reads from an offset that the queue has. It looks at the entries of one file, as the official broker does.
func (g *get) read(q *consumequeue.Queue, offset int64) {
	g.queue, g.first, g.getScratch = q, offset, getScratches.Get().(*getScratch)
	defer func() {
		g.units.Reset()
		getScratches.Put(g.getScratch)
	}()
	r := &g.result
	r.Status = NoMatchedMessage
	scan := int64(max(minScan, g.max))
	if _, fileEnd := q.FileOf(offset); offset+scan > fileEnd {
		scan = fileEnd - offset
	}
	step := min(max(g.max, 32), maxStep) // then, as few pass the filter, more
	scanned := int64(0)
	for full := false; scanned < scan && !full; step = maxStep {
		var err error
		g.entries, err = q.Read(g.entries[:0], offset+scanned, int(min(scan-scanned, int64(step)+1)))
		if err != nil || len(g.entries) == 0 {
			if err != nil {
				g.s.o.Log.Error("reading a consume queue failed", "topic", q.Topic(), "queueId", q.QueueId(), "offset", offset+scanned, "error", err)
			}
			if errors.Is(err, fs.ErrNotExist) && offset+scanned >= q.Min() && g.s.damaged(q, offset+scanned, consumequeue.Entry{}) {
				if scanned == 0 {
					r.Status = Mending
				}
				break
			}
			if scanned == 0 {
				_, fileEnd := q.FileOf(offset)
				r.Status, r.NextBeginOffset = OffsetFoundNull, g.correct(offset, fileEnd)
				return
			}
			break
		}
		g.base = offset + scanned
		var n int
		n, full = g.readEntries()
		scanned += int64(n)
	}
	if g.damage >= 0 {
		g.takeBack(g.damage)
		if scanned = g.damage - offset; scanned == 0 {
			r.Status = Mending
		}
	}
	if r.Count == 0 { // what was read passed no filter
		RecycleBody(r.Body)
		r.Body = nil
	}
	r.NextBeginOffset = offset + scanned
	r.SuggestSlave = r.BehindBytes > g.logEnd-g.inMemory
}

// readEntries adds the records of the entries to the body. It returns how many entries it has dealt with, and whether the Get
// ends there: its limits are reached, or the next entry is damaged.
func (g *get) readEntries() (n int, full bool) {
	clear(g.verdicts[:])
	for n = range len(g.entries) / consumequeue.EntrySize {
		e, at := g.entry(n), g.base+int64(n)
		if g.isOdd(e, g.end) {
			pass := g.odd(at, e)
			if g.damage >= 0 {
				return n, true
			}
			if pass {
				continue
			}
		}
		g.result.BehindBytes, g.result.Cold = g.logEnd-e.PhyOffset, g.s.log.Cold(e.PhyOffset)
		if e.PhyOffset < g.skipTo {
			g.end = e.PhyOffset + int64(e.Size)
			continue
		}
		if g.full(e) {
			return n, true
		}
		g.end = e.PhyOffset + int64(e.Size)
		if !g.matches(n, e) {
			g.noMatch()
			continue
		}
		record, err := g.record(n, e)
		switch {
		case err != nil && errors.Is(err, commitlog.ErrNotFound) && e.PhyOffset >= g.s.log.MinOffset() && g.breakAt(at, e):
			return n, true
		case err != nil:
			g.removing(e)
		case !isRecordOf(record, e) || record.QueueOffset() != at && !g.isElsewhere(record, at, e):
			if g.breakAt(at, e) {
				return n, true
			}
			g.s.tellEntry(g.queue, e)
		case g.filter != nil && !g.filter.MatchRecord(record):
			g.refused++
			g.noMatch()
		default:
			g.take(at, record)
		}
	}
	return len(g.entries) / consumequeue.EntrySize, false
}

// entry is the n-th of the entries.
func (g *get) entry(n int) consumequeue.Entry {
	return consumequeue.Decode(g.entries[n*consumequeue.EntrySize:])
}

// isOdd tells whether an entry is not as most are: it doesn't lead to what lies behind end and was there when the Get began.
// It is blank, expired, just added or damaged.
func (g *get) isOdd(e consumequeue.Entry, end int64) bool {
	return e.PhyOffset < end || e.Size <= 0 || e.PhyOffset > g.logEnd-int64(e.Size)
}

// noMatch notes that the filter has refused something.
func (g *get) noMatch() {
	if g.result.Count == 0 {
		g.result.Status = NoMatchedMessage
	}
}

// take adds a record to the body.
func (g *get) take(at int64, record message.Record) {
	r := &g.result
	n := len(r.Body)
	r.Body = r.Body[:n+len(record)] // the run that it is of lies there or behind
	if &r.Body[n] != &record[0] {
		copy(r.Body[n:], record)
	}
	if record.QueueOffset() != at {
		if r.elsewhere == nil { // in a light queue all are
			r.elsewhere = make([]bodyPlace, 0, min(max(1, g.max), 32))
		}
		r.elsewhere = append(r.elsewhere, bodyPlace{r.Count, at})
	}
	r.Count++
	r.Status = Found
	g.skipTo, g.last, g.lastSize = 0, at, len(record)
}

// takeBack takes the last record out of the body if it is that of a queue offset.
func (g *get) takeBack(at int64) {
	r := &g.result
	if r.Count == 0 || g.last != at {
		return
	}
	r.Body = r.Body[:len(r.Body)-g.lastSize]
	r.Count--
	if n := len(r.elsewhere); n > 0 && r.elsewhere[n-1].n == r.Count {
		r.elsewhere = r.elsewhere[:n-1]
	}
	if r.Count == 0 {
		r.Status = NoMatchedMessage
	}
}

// match is the first stage of the filter. An entry whose unit can't be read passes, as in 4.9.8.
func (g *get) match(e consumequeue.Entry) bool {
	if !e.IsExtAddress() {
		return g.filter.MatchQueue(e.TagsCode)
	}
	u, ok := g.units.Read(g.queue, e.TagsCode)
	if !ok {
		return true
	}
	if !g.filter.MatchQueue(u.TagsCode) {
		return false
	}
	f, ok := g.filter.(UnitFilter)
	return !ok || f.MatchUnit(u.StoreTimestamp, u.BitMap)
}

// full is isTheBatchFull of 4.9.8: the first message is always given.
func (g *get) full(e consumequeue.Entry) bool {
	r := &g.result
	if r.Count == 0 {
		return false
	}
	maxBytes, maxCount := g.limits(e)
	return r.Count >= maxCount || len(r.Body)+int(e.Size) > maxBytes
}

// limits are the most bytes and messages of an answer of which an entry's message is the last. What was stored before the
// start may be on the disk, whatever the distance from the log's end; such an answer is short, so that those who wait behind
// it don't wait long (compat).
func (g *get) limits(e consumequeue.Entry) (bytes, count int) {
	bytes, count = g.cfg.MaxTransferBytesOnMessageInMemory, g.cfg.MaxTransferCountOnMessageInMemory
	if e.PhyOffset < g.inMemory {
		bytes, count = g.cfg.MaxTransferBytesOnMessageInDisk, g.cfg.MaxTransferCountOnMessageInDisk
	} else if g.s.log.Cold(e.PhyOffset) {
		bytes = min(bytes, g.cfg.MaxTransferBytesOnMessageInDisk)
	}
	return bytes, min(count, g.max)
}

// removing notes that a record is gone: what its file had is passed over.
func (g *get) removing(e consumequeue.Entry) {
	if g.result.Count == 0 {
		g.result.Status = MessageWasRemoving
	}
	fileSize := int64(g.cfg.MappedFileSizeCommitLog)
	g.skipTo = e.PhyOffset + fileSize - e.PhyOffset%fileSize
}

// isRecordOf tells, cheaply, whether a record is the one of an entry.
func isRecordOf(r message.Record, e consumequeue.Entry) bool {
	return len(r) >= message.MinRecordSize && r.Size() == int(e.Size) &&
		binary.BigEndian.Uint32(r[4:]) == message.MagicCode && r.PhyOffset() == e.PhyOffset
}
