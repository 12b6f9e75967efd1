package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
)

// GetStatus is the outcome of a Get, named as the official GetMessageStatus (its name is a pull's remark).
type GetStatus int

// The statuses; spec/wire.md section 9 maps them to response codes.
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

// denseSpan is in how many times their own bytes of the log messages may lie for what is between them to be read ahead too:
// other queues are mostly read at the same time.
const denseSpan = 16

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
}

// getScratch is memory that one Get needs for itself.
type getScratch struct {
	entries []byte
	chosen  []chosenEntry
	units   consumequeue.UnitReader
}

// chosenEntry is an entry whose record is to be read.
type chosenEntry struct {
	consumequeue.Entry
	at int64 // queue offset
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
	broken   bool  // it was found when its record was read
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

// inMemoryBytes is how far behind the log's end a record still counts as in memory.
func (s *Store) inMemoryBytes(cfg *Config) int64 {
	return int64(float64(s.memory) * (float64(cfg.AccessMessageInMemoryMaxRatio) / 100))
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
	scanned := int64(0)
	for full := false; scanned < scan && !full; {
		step := min(scan-scanned, int64(min(max(g.max, 32), maxStep))+1)
		var err error
		g.entries, err = q.Read(g.entries[:0], offset+scanned, int(step))
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
		var n int
		g.base = offset + scanned
		n, full = g.readEntries(g.entries)
		scanned += int64(n)
	}
	if g.damage >= 0 {
		if scanned = g.damage - offset; scanned == 0 {
			r.Status = Mending
		}
	}
	r.NextBeginOffset = offset + scanned
	r.SuggestSlave = r.BehindBytes > g.logEnd-g.inMemory
}

// readEntries adds the records of entries to the body. It returns how many entries it has dealt with, and whether
// the limits are reached: so they count when an entry is damaged.
func (g *get) readEntries(entries []byte) (n int, full bool) {
	for len(entries) > 0 {
		// First choose, as if every record could be read and passed the filter, then read; if some did not, the
		// limits are not reached yet and there is a next round.
		chosen, bytes, took := g.chosen[:0], 0, 0
		for full = false; took < len(entries); took += consumequeue.EntrySize {
			e := consumequeue.Decode(entries[took:])
			at := g.base + int64(n+took/consumequeue.EntrySize)
			if e.PhyOffset < g.end || e.Size <= 0 || e.PhyOffset > g.logEnd-int64(e.Size) { // blank, expired, just added or damaged
				pass, before := g.odd(at, e)
				if g.damage >= 0 {
					if k := len(chosen) - 1; k >= 0 && chosen[k].Entry == before {
						chosen = chosen[:k]
					}
					full = true
					break
				}
				if pass {
					continue
				}
			}
			g.end = e.PhyOffset + int64(e.Size)
			g.result.BehindBytes, g.result.Cold = g.logEnd-e.PhyOffset, g.s.log.Cold(e.PhyOffset)
			if e.PhyOffset < g.skipTo {
				continue
			}
			if full = g.full(len(g.result.Body)+bytes, g.result.Count+len(chosen), e); full {
				break
			}
			if g.filter != nil && !g.match(e) {
				continue
			}
			chosen, bytes = append(chosen, chosenEntry{e, at}), bytes+int(e.Size)
		}
		g.chosen = chosen
		n += took / consumequeue.EntrySize
		entries = entries[took:]
		if len(chosen) == 0 {
			return n, full
		}
		if all := g.readRecords(chosen, bytes); all && full || g.damage >= 0 {
			return n, true
		}
	}
	return n, false
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

// full is isTheBatchFull of 4.9.8: the first message is always given. What was stored before the start may be on the disk,
// whatever the distance from the log's end; such an answer is short, so that those who wait behind it don't wait long
// (compat).
func (g *get) full(bytes, count int, e consumequeue.Entry) bool {
	if bytes == 0 || count == 0 {
		return false
	}
	maxBytes, maxCount := g.cfg.MaxTransferBytesOnMessageInMemory, g.cfg.MaxTransferCountOnMessageInMemory
	if e.PhyOffset < g.inMemory {
		maxBytes, maxCount = g.cfg.MaxTransferBytesOnMessageInDisk, g.cfg.MaxTransferCountOnMessageInDisk
	} else if g.s.log.Cold(e.PhyOffset) {
		maxBytes = min(maxBytes, g.cfg.MaxTransferBytesOnMessageInDisk)
	}
	return count >= g.max || bytes+int(e.Size) > maxBytes || count >= maxCount
}

// readRecords appends the chosen records to the body, neighbours in the log with one read; all is false when one of
// them was left out.
func (g *get) readRecords(chosen []chosenEntry, bytes int) (all bool) {
	r := &g.result
	if r.Body == nil {
		r.Body = newBody(bytes)
	}
	if last := chosen[len(chosen)-1]; bytes > 0 { // else they are tried one by one
		first := chosen[0].PhyOffset
		if span := last.PhyOffset + int64(last.Size) - first; span > 0 && span <= denseSpan*int64(bytes) {
			g.s.log.ReadAhead(first, int(span))
		}
	}
	all = true
	for len(chosen) > 0 {
		k, size := 1, int(chosen[0].Size)
		for k < len(chosen) && chosen[k].PhyOffset == chosen[k-1].PhyOffset+int64(chosen[k-1].Size) {
			size += int(chosen[k].Size)
			k++
		}
		run := chosen[:k]
		chosen = chosen[k:]
		if run[0].PhyOffset < g.skipTo {
			all = false
			continue
		}
		before := len(r.Body)
		body, err := g.s.log.Read(r.Body, run[0].PhyOffset, size)
		if err != nil && k > 1 {
			// Perhaps only a part is there: one by one.
			for i := range run {
				if !g.readRecords(run[i:i+1], 0) {
					all = false
				}
				if g.broken {
					return false
				}
			}
			continue
		}
		if err != nil {
			if errors.Is(err, commitlog.ErrNotFound) && run[0].PhyOffset >= g.s.log.MinOffset() && g.breakAt(run[0]) {
				return false
			}
			g.removing(run[0])
			all = false
			continue
		}
		r.Body = body
		if !g.keep(run, before) {
			all = false
		}
		if g.broken {
			return false
		}
	}
	return all
}

// removing notes that a record is gone: what its file had is passed over.
func (g *get) removing(e chosenEntry) {
	if len(g.result.Body) == 0 {
		g.result.Status = MessageWasRemoving
	}
	fileSize := int64(g.cfg.MappedFileSizeCommitLog)
	g.skipTo = e.PhyOffset + fileSize - e.PhyOffset%fileSize
}

// keep goes through the records of a run, which the body holds from before on, and takes out those that the filter
// refuses or that are not what their entry says.
func (g *get) keep(run []chosenEntry, before int) (all bool) {
	r := &g.result
	all = true
	read, write := before, before
	for _, e := range run {
		record := message.Record(r.Body[read : read+int(e.Size)])
		read += int(e.Size)
		if !isRecordOf(record, e.Entry) || record.QueueOffset() != e.at && !g.isElsewhere(record, e) {
			all = false
			if g.breakAt(e) {
				break
			}
			g.s.tellEntry(g.queue, e.Entry)
			continue
		}
		if g.filter != nil && !g.filter.MatchRecord(record) {
			if write == 0 {
				r.Status = NoMatchedMessage
			}
			all = false
			continue
		}
		if write != read-len(record) {
			copy(r.Body[write:], record)
		}
		write += len(record)
		r.Count++
		r.Status = Found
		g.skipTo = 0
	}
	r.Body = r.Body[:write]
	return all
}

// isRecordOf tells, cheaply, whether a record is the one of an entry.
func isRecordOf(r message.Record, e consumequeue.Entry) bool {
	return len(r) >= message.MinRecordSize && r.Size() == int(e.Size) &&
		binary.BigEndian.Uint32(r[4:]) == message.MagicCode && r.PhyOffset() == e.PhyOffset
}
