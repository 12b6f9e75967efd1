package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"

	"rocketd/store/segment"
)

// A unit of consumequeue_ext, to which the tagsCode of an entry leads when filters are computed in advance:
//
//	 0        2            10           18            20
//	+--------+------------+------------+-------------+---------+
//	| size   | tagsCode   | store time | bit map's   | bit map |
//	| int16  | int64      | int64      | size, int16 |         |
//	+--------+------------+------------+-------------+---------+
//
// The address is the offset of the unit, counted through the queue's files, plus the smallest int64.
const minUnit = 20

// extended checks the unit that an entry leads to. The kind is "" when it is that of the record.
func (v *verify) extended(q *queue, address, tags, storeTimestamp int64) (kind, text string) {
	offset := address - math.MinInt64
	dir := path.Join(v.d.path("consumequeue_ext"), q.topic, strconv.Itoa(int(q.queueId)))
	size := v.extendedSize(dir)
	if size == 0 {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to consumequeue_ext at %d, which has no files for the queue", offset)
	}
	name := path.Join(dir, segment.Name(offset-offset%size))
	var b [minUnit]byte
	err := v.d.readAt(name, b[:], offset%size)
	if errors.Is(err, fs.ErrNotExist) {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to %s, which is missing", v.d.short(name))
	}
	if err != nil {
		return QueueEntryTags, err.Error()
	}
	be := binary.BigEndian
	if n := int16(be.Uint16(b[:])); n < minUnit || int64(be.Uint64(b[2:])) != tags || int64(be.Uint64(b[10:])) != storeTimestamp {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to %s at %d, where is no unit of this record", v.d.short(name), offset%size)
	}
	return "", ""
}

// extendedSize is the size of the files of a folder of consumequeue_ext, 0 when there are none.
func (v *verify) extendedSize(dir string) int64 {
	if c := v.d.o.Config; c != nil {
		return int64(c.MappedFileSizeConsumeQueueExt)
	}
	entries, err := v.d.list(dir)
	if err != nil {
		return 0
	}
	sizes := map[int64]int{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			sizes[info.Size()]++
		}
	}
	return commonSize(sizes)
}
