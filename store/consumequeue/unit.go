package consumequeue

import (
	"encoding/binary"
	"math"
)

// With enableConsumeQueueExt each entry leads to a unit in ROOT/consumequeue_ext/<topic>/<queueId>/, in files of
// mappedFileSizeConsumeQueueExt bytes, named as those of the queue:
//
//	 0        2            10           18            20
//	+--------+------------+------------+-------------+---------+
//	| size   | tagsCode   | store time | bit map's   | bit map |   units follow one another; -1 in place of a size:
//	| int16  | int64      | int64      | size, int16 |         |   the next one begins the next file
//	+--------+------------+------------+-------------+---------+
//
// The tagsCode of the entry is the unit's address: its offset, counted through the queue's files, plus the smallest int64.
// The last 4 bytes of a file stay free. A queue's entries lead to units in rising order, but not each entry need: those
// written while the option was off have their own tagsCode.
const (
	minUnit  = 20
	maxUnit  = math.MaxInt16
	unitFree = 4 // bytes at the end of a file that no unit enters (ConsumeQueueExt#END_BLANK_DATA_LENGTH)

	// maxUnitOffset is the largest offset that is an address (ConsumeQueueExt#MAX_REAL_OFFSET is twice that).
	maxUnitOffset = maxExtAddress - math.MinInt64
)

// Unit is one unit of consumequeue_ext.
type Unit struct {
	TagsCode       int64
	StoreTimestamp int64  // ms
	BitMap         []byte // nil: none
}

// Address is the tagsCode of an entry that leads to the unit at an offset, UnitOffset the offset that an address names.
func Address(offset int64) int64 { return offset + math.MinInt64 }

// UnitOffset is the offset that an address names; see Address.
func UnitOffset(address int64) int64 { return address - math.MinInt64 }

// UnitSize is the size of the unit that begins b, by its first bytes: 0 when nothing was written there, negative when
// there is no unit.
func UnitSize(b []byte) int {
	if len(b) < 2 {
		return -1
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	switch {
	case n == 0:
		return 0
	case n < minUnit:
		return -1
	case len(b) >= minUnit && n != minUnit+int(binary.BigEndian.Uint16(b[18:])):
		return -1
	}
	return n
}

// DecodeUnit reads the unit that begins b; its bit map is a part of b. ok is false when there is no whole one.
func DecodeUnit(b []byte) (u Unit, ok bool) {
	n := UnitSize(b)
	if n < minUnit || n > len(b) {
		return Unit{}, false
	}
	be := binary.BigEndian
	u.TagsCode, u.StoreTimestamp = int64(be.Uint64(b[2:])), int64(be.Uint64(b[10:]))
	if n > minUnit {
		u.BitMap = b[minUnit:n:n]
	}
	return u, true
}

// append appends the unit's bytes to dst.
func (u *Unit) append(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(minUnit+len(u.BitMap)))
	dst = be.AppendUint64(dst, uint64(u.TagsCode))
	dst = be.AppendUint64(dst, uint64(u.StoreTimestamp))
	dst = be.AppendUint16(dst, uint16(len(u.BitMap)))
	return append(dst, u.BitMap...)
}

// Size is the number of bytes that the unit takes.
func (u *Unit) Size() int { return minUnit + len(u.BitMap) }
