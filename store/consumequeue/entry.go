// Package consumequeue is the consume queues: for each queue of a topic the places of its messages in the
// commit log, in queue order. The files are the official ones to the byte:
//
//	ROOT/consumequeue/<topic>/<queueId>/00000000000000000000   offset of the first byte, 20 digits
//
//	 0                8          12                 20
//	+----------------+----------+------------------+
//	| commit-log     | record   | tagsCode         |   entry n of the queue is at byte n*20;
//	| offset, int64  | size     | int64            |   zeros follow the last entry
//	+----------------+----------+------------------+
//
// tagsCode is the hash of the tag; in SCHEDULE_TOPIC_XXXX the time of delivery (ms); at or below -2^62 the address of a
// unit in consumequeue_ext (unit.go), which has it. A blank entry (0, 0x7FFFFFFF, 0) fills a file before the first offset of a queue that
// did not begin at 0.
//
// Files have their full length, sparse, from the start: the official broker refuses shorter ones. Nothing is mapped:
// new entries go to a small tail in memory, from which they can be read at once, and are written in batches; files
// are opened on demand through a bounded cache of descriptors. So a hundred thousand topics cost memory for their
// queues' bounds and nothing else.
//
// Locks, in the order in which they may be taken: Queue.mu, Table.places, Table.shards, Table.flush, descriptors.
package consumequeue

import (
	"encoding/binary"
	"math"
)

// EntrySize is the number of bytes of an entry.
const EntrySize = 20

// Entry is one entry of a consume queue.
type Entry struct {
	PhyOffset int64 // of the record in the commit log
	Size      int32 // bytes of the record
	TagsCode  int64
}

// blank fills the file before a queue's first entry.
var blank = Entry{Size: math.MaxInt32}

// maxExtAddress is the largest tagsCode that is an address in consumequeue_ext. Officially all numbers below an int are (ConsumeQueueExt#MAX_ADDR);
// here the lower half of the longs: the entry of a recall has minus a time (message.TimerCode), and no queue has 2^62 bytes of units.
const maxExtAddress = math.MinInt64 / 2

// Decode reads the entry at the start of b, which must have EntrySize bytes.
func Decode(b []byte) Entry {
	_ = b[EntrySize-1]
	return Entry{
		PhyOffset: int64(binary.BigEndian.Uint64(b)),
		Size:      int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode:  int64(binary.BigEndian.Uint64(b[12:])),
	}
}

// append appends the entry's bytes to dst.
func (e Entry) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.PhyOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Size))
	return binary.BigEndian.AppendUint64(dst, uint64(e.TagsCode))
}

// IsBlank tells whether the entry only fills the file before the queue's first one.
func (e Entry) IsBlank() bool { return e == blank }

// IsExtAddress tells whether TagsCode is an address in consumequeue_ext and not a hash.
func (e Entry) IsExtAddress() bool { return e.TagsCode <= maxExtAddress }

// valid is the official test for a place that has been written (ConsumeQueue#recover of 4.9.8).
func (e Entry) valid() bool { return e.PhyOffset >= 0 && e.Size > 0 }
