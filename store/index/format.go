// Package index finds records by key: files with a hash table on disk, official to the byte:
//
//	ROOT/index/20261129181941282   the time of creation, yyyyMMddHHmmssSSS in local time
//
//	 0                 8                16               24               32           36           40
//	+-----------------+----------------+----------------+----------------+------------+------------+
//	| begin store     | end store      | begin physical | end physical   | used hash  | index      |  header
//	| timestamp       | timestamp      | offset         | offset         | slots      | count      |
//	+-----------------+----------------+----------------+----------------+------------+------------+
//	 40 + 4*slot
//	+-----------------------------+
//	| newest entry, int32, 0 none |    one for each of maxHashSlotNum slots
//	+-----------------------------+
//	 40 + 4*maxHashSlotNum + 20*k
//	+------------+----------------+--------------------+-------------------+
//	| key hash   | commit-log     | seconds since the  | previous entry of |   entry k, from 1 to index count - 1
//	| int32      | offset, int64  | header's begin     | the slot, 0 none  |
//	+------------+----------------+--------------------+-------------------+
//
// The key hash is that of "topic#key" as Java has it, without its sign; the slot is the hash modulo the number of slots.
//
// A file of default size is 420 MB, sparse. Nothing of it is mapped. Of the file that is written, new entries are kept in
// a tail and changed slots in pages of memory; Flush writes both, then the header. What a crash leaves half written
// is set right by Recover, from the entries alone.
package index

import (
	"encoding/binary"
	"math"
	"strings"

	"rocketd/compat"
)

const (
	headerSize = 40
	slotSize   = 4
	entrySize  = 20
)

// header is the beginning of a file.
type header struct {
	beginTimestamp, endTimestamp int64 // ms
	beginPhyOffset, endPhyOffset int64
	slots                        int32 // used
	count                        int32 // number of the next entry
}

func (h *header) append(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(h.beginTimestamp))
	dst = be.AppendUint64(dst, uint64(h.endTimestamp))
	dst = be.AppendUint64(dst, uint64(h.beginPhyOffset))
	dst = be.AppendUint64(dst, uint64(h.endPhyOffset))
	dst = be.AppendUint32(dst, uint32(h.slots))
	return be.AppendUint32(dst, uint32(h.count))
}

// decodeHeader reads a header; a count below 1 is 1, as in IndexHeader#load of 4.9.8.
func decodeHeader(b []byte) header {
	be := binary.BigEndian
	return header{
		beginTimestamp: int64(be.Uint64(b)),
		endTimestamp:   int64(be.Uint64(b[8:])),
		beginPhyOffset: int64(be.Uint64(b[16:])),
		endPhyOffset:   int64(be.Uint64(b[24:])),
		slots:          int32(be.Uint32(b[32:])),
		count:          max(1, int32(be.Uint32(b[36:]))),
	}
}

// entry is one index entry.
type entry struct {
	hash      int32
	phyOffset int64
	seconds   int32
	previous  int32
}

func (e entry) append(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(e.hash))
	dst = be.AppendUint64(dst, uint64(e.phyOffset))
	dst = be.AppendUint32(dst, uint32(e.seconds))
	return be.AppendUint32(dst, uint32(e.previous))
}

func decodeEntry(b []byte) entry {
	_ = b[entrySize-1]
	be := binary.BigEndian
	return entry{
		hash:      int32(be.Uint32(b)),
		phyOffset: int64(be.Uint64(b[4:])),
		seconds:   int32(be.Uint32(b[12:])),
		previous:  int32(be.Uint32(b[16:])),
	}
}

// secondsSince is the time field of an entry (IndexFile#putKey of 4.9.8).
func secondsSince(begin, timestamp int64) int32 {
	if begin <= 0 || timestamp < begin {
		return 0
	}
	return int32(min((timestamp-begin)/1000, math.MaxInt32))
}

// keyHash is the hash of "topic#key": Java's, made positive; 0 for the one that can't be
// (IndexFile#indexKeyHashMethod of 4.9.8).
func keyHash(topic, key string) int32 {
	h, ok := hashASCII(0, topic)
	if ok {
		h, ok = hashASCII(31*h+'#', key)
	}
	if !ok {
		h = compat.HashCode(strings.Join([]string{topic, key}, "#"))
	}
	if h < 0 {
		h = -h
	}
	return max(h, 0)
}

// hashASCII goes on with Java's String.hashCode h over s, four characters at a time; ok is false when s is not
// all ASCII.
func hashASCII(h int32, s string) (hash int32, ok bool) {
	for ; len(s) >= 4; s = s[4:] {
		if (s[0]|s[1]|s[2]|s[3])&0x80 != 0 {
			return 0, false
		}
		h = h*(31*31*31*31) + int32(s[0])*(31*31*31) + int32(s[1])*(31*31) + int32(s[2])*31 + int32(s[3])
	}
	for i := range len(s) {
		if s[i]&0x80 != 0 {
			return 0, false
		}
		h = 31*h + int32(s[i])
	}
	return h, true
}
