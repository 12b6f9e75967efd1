package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"

	"rocketd/store/consumequeue"
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

// unit reads the unit to which an entry leads.
func (d *Dir) unit(q *queue, address int64) *Unit {
	u := &Unit{Offset: consumequeue.UnitOffset(address)}
	dir := path.Join(d.path("consumequeue_ext"), q.topic, strconv.Itoa(int(q.queueId)))
	size := d.extendedSize(dir)
	if size == 0 {
		u.Damage = "there are no files for the queue"
		return u
	}
	b := make([]byte, min(math.MaxInt16, size-u.Offset%size))
	if err := d.readAt(path.Join(dir, segment.Name(u.Offset-u.Offset%size)), b, u.Offset%size); err != nil {
		u.Damage = err.Error()
		return u
	}
	read, ok := consumequeue.DecodeUnit(b)
	if !ok {
		u.Damage = "no unit stands there"
		return u
	}
	u.TagsCode, u.StoreTimestamp, u.BitMap = read.TagsCode, read.StoreTimestamp, read.BitMap
	return u
}

// extended checks the unit that an entry leads to. The kind is "" when it is that of the record.
func (v *verify) extended(q *queue, address, tags, storeTimestamp int64) (kind, text string) {
	offset := consumequeue.UnitOffset(address)
	dir := path.Join(v.d.path("consumequeue_ext"), q.topic, strconv.Itoa(int(q.queueId)))
	size := v.d.extendedSize(dir)
	if size == 0 {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to consumequeue_ext at %d, which has no files for the queue", offset)
	}
	name := path.Join(dir, segment.Name(offset-offset%size))
	b, err := v.unitBytes(q, name, offset%size, size)
	if errors.Is(err, fs.ErrNotExist) {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to %s, which is missing", v.d.short(name))
	}
	if err != nil {
		return QueueEntryTags, err.Error()
	}
	be := binary.BigEndian
	if consumequeue.UnitSize(b) <= 0 || int64(be.Uint64(b[2:])) != tags || int64(be.Uint64(b[10:])) != storeTimestamp {
		return QueueEntryTags, fmt.Sprintf("the tagsCode leads to %s at %d, where is no unit of this record", v.d.short(name), offset%size)
	}
	return "", ""
}

// unitStep is how much of a file of units is read at once, unitChunks how many such parts are kept: the units of a queue
// are asked for in order, those of many queues in turn.
const (
	unitStep   = 4 << 10
	unitChunks = 4 << 10
)

// unitChunk is a part of a file of units.
type unitChunk struct {
	name string
	at   int64
	b    []byte
}

// unitBytes reads the beginning of the unit at a place of a file.
func (v *verify) unitBytes(q *queue, name string, at, size int64) ([]byte, error) {
	c := v.units[q]
	if c.name != name || at < c.at || at+minUnit > c.at+int64(len(c.b)) {
		c = unitChunk{name, at, make([]byte, min(unitStep, size-at))}
		if err := v.d.readAt(name, c.b, at); err != nil {
			return nil, err
		}
		if v.units == nil || len(v.units) >= unitChunks {
			v.units = make(map[*queue]unitChunk)
		}
		v.units[q] = c
	}
	b := c.b[at-c.at:]
	if len(b) < minUnit { // an address within the last bytes of a file
		b = append(b[:len(b):len(b)], make([]byte, minUnit-len(b))...)
	}
	return b[:minUnit], nil
}

// extendedSize is the size of the files of a folder of consumequeue_ext, 0 when there are none.
func (d *Dir) extendedSize(dir string) int64 {
	if c := d.o.Config; c != nil {
		return int64(c.MappedFileSizeConsumeQueueExt)
	}
	if size, known := d.unitSizes[dir]; known {
		return size
	}
	entries, err := d.list(dir)
	if err != nil {
		return 0
	}
	sizes := map[int64]int{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			sizes[info.Size()]++
		}
	}
	if d.unitSizes == nil {
		d.unitSizes = make(map[string]int64)
	}
	d.unitSizes[dir] = commonSize(sizes)
	return d.unitSizes[dir]
}

// ExtendedInfo is consumequeue_ext: its queues and files, 0 when there is none.
type ExtendedInfo struct {
	Queues int   `json:"queues"`
	Files  int   `json:"files"`
	Bytes  int64 `json:"bytes"` // lengths of the files together, which are mostly empty
}

func (d *Dir) extendedInfo() (i ExtendedInfo, err error) {
	root := d.path("consumequeue_ext")
	topics, err := d.list(root)
	if err != nil {
		return i, err
	}
	for _, topic := range topics {
		if !topic.IsDir() {
			continue
		}
		queues, err := d.list(path.Join(root, topic.Name()))
		if err != nil {
			return i, err
		}
		for _, q := range queues {
			if !q.IsDir() {
				continue
			}
			files, err := d.list(path.Join(root, topic.Name(), q.Name()))
			if err != nil {
				return i, err
			}
			if len(files) > 0 {
				i.Queues++
			}
			for _, f := range files {
				if info, err := f.Info(); err == nil {
					i.Files++
					i.Bytes += info.Size()
				}
			}
		}
	}
	return i, nil
}
