package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
)

// chainStep is how much of a file of units is read at a time when its end is looked for.
const chainStep = 64 << 10

// openExtensionLocked finds where the next unit of a queue goes, when the first one is added after a start:
//
//  1. Behind the unit to which the queue's newest entry leads that leads to one (ConsumeQueueExt#truncateByMaxAddress of
//     4.9.8). What is behind is zeroed, files behind are removed: no entry leads there.
//  2. When that is no unit, the files are damaged or lost: the next file behind it is begun, so that no old entry ever
//     leads to a new unit. The chain of sizes in the damaged file is ended where it breaks: the official broker follows
//     it at its start.
//  3. When the newest entries lead to none, behind the last unit of the last file.
//
// The official broker follows all units of all files at every start. When the files can't be used at all, the queue goes
// on without units, which everyone takes for entries written with the option off.
func (q *Queue) openExtensionLocked() *extension {
	x := new(extension)
	err := q.findUnitsEnd(x)
	if err != nil {
		q.table.tell("the files of consumequeue_ext can't be used: the entries of the queue have their tagsCode themselves",
			"topic", q.topic, "queueId", q.queueId, "error", err)
		x.bypass = true
	}
	return x
}

func (q *Queue) findUnitsEnd(x *extension) error {
	t := q.table
	size := t.ext.size
	starts, err := t.unitFiles(q)
	if err != nil {
		return err
	}
	newest, known, err := q.newestUnit(len(starts) > 0)
	if err != nil {
		return err
	}
	end := int64(0)
	if n := len(starts); n > 0 {
		end = starts[n-1] + size
	}
	switch {
	case known:
		length, err := q.unitAt(newest)
		if err != nil {
			return err
		}
		if length > 0 {
			end = newest + int64(length)
			break
		}
		end = max(end, newest-newest%size+size)
		t.tell("consumequeue_ext is damaged: the entries that lead there are not filtered", "file", t.extPath(q, newest-newest%size),
			"topic", q.topic, "queueId", q.queueId, "goesOn", end)
		if _, err := q.endChain(newest - newest%size); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case len(starts) > 0:
		if end, err = q.endChain(starts[len(starts)-1]); err != nil {
			return err
		}
	}
	x.end = (end + size - 1) / size * size
	for i := len(starts) - 1; i >= 0 && starts[i] >= x.end; i-- {
		t.files.drop(q, extPlace(starts[i]))
		if err := t.fs.Remove(t.extPath(q, starts[i])); err != nil {
			return err
		}
		t.addExtDirs(q)
	}
	x.written, x.synced = end, end
	if end < x.end {
		return q.zeroUnits(end)
	}
	return nil
}

// unitFiles are the offsets with which a queue's files of units begin, in order.
func (t *Table) unitFiles(q *Queue) ([]int64, error) {
	entries, err := t.fs.List(t.extDir(q))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("consumequeue: %w", err)
	}
	var starts []int64
	for i, e := range entries {
		name := path.Join(t.extDir(q), e.Name())
		start, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || start < 0 || len(e.Name()) != 20 || start%t.ext.size != 0 || start > maxUnitOffset {
			return nil, fmt.Errorf("consumequeue: the name of %s is no multiple of mappedFileSizeConsumeQueueExt %d", name, t.ext.size)
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("consumequeue: %w", err)
		}
		if info.Size() == 0 && i == len(entries)-1 { // a creation that was cut off
			if err := t.fs.Remove(name); err != nil {
				return nil, fmt.Errorf("consumequeue: %w", err)
			}
			continue
		}
		if info.Size() != t.ext.size {
			return nil, fmt.Errorf("consumequeue: %s has %d bytes, mappedFileSizeConsumeQueueExt says %d", name, info.Size(), t.ext.size)
		}
		starts = append(starts, start)
	}
	return starts, nil
}

// newestUnit is the offset of the unit to which the newest entry leads of those that lead to one; some: there are files of
// units. It looks at a file's worth of entries, and at a page of them when there are none.
func (q *Queue) newestUnit(some bool) (offset int64, known bool, err error) {
	most := int64(firstRead)
	if some {
		most = q.table.perFile
	}
	var buf []byte
	for at, stop := q.written, max(q.first, q.written-most); at > stop; {
		from := max(stop, at-firstRead, (at-1)-(at-1)%q.table.perFile)
		if buf, err = q.readFile(buf[:0], from, int(at-from)*EntrySize); err != nil {
			return 0, false, err
		}
		for i := len(buf) - EntrySize; i >= 0; i -= EntrySize {
			if e := Decode(buf[i:]); e.valid() && e.IsExtAddress() {
				return UnitOffset(e.TagsCode), true, nil
			}
		}
		at = from
	}
	return 0, false, nil
}

// unitAt is the size of the unit at an offset, 0 when there is none.
func (q *Queue) unitAt(offset int64) (int, error) {
	b, err := q.readUnitFile(make([]byte, 0, minUnit), offset, math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	size := q.table.ext.size
	if n := UnitSize(b); err == nil && len(b) >= minUnit && n > 0 && int64(n) <= size-unitFree-offset%size {
		return n, nil
	}
	return 0, err
}

// endChain follows the units of the file that begins at an offset and returns the offset behind the last one, the file's
// end when something else than nothing stands there: that is made the end of the chain.
func (q *Queue) endChain(start int64) (int64, error) {
	t := q.table
	h, err := t.files.acquire(q, extPlace(start))
	if err != nil {
		return 0, err
	}
	defer t.files.release(h)
	buf := make([]byte, min(chainStep, t.ext.size))
	for at := int64(0); at+2 <= t.ext.size; {
		n, err := h.file.ReadAt(buf[:min(int64(len(buf)), t.ext.size-at)], at)
		if err != nil && err != io.EOF {
			return 0, fmt.Errorf("consumequeue: reading %s: %w", t.extPath(q, start), err)
		}
		b, from := buf[:n], at
		for len(b) >= minUnit || len(b) >= 2 && at+int64(len(b)) == t.ext.size {
			unit := UnitSize(b)
			if unit == 0 {
				return start + at, nil
			}
			if b[0] == 0xff && b[1] == 0xff {
				return start + t.ext.size, nil
			}
			if unit < 0 || at+int64(unit) > t.ext.size-unitFree {
				_, err := h.file.WriteAt(binary.BigEndian.AppendUint16(nil, 0xffff), at)
				return start + t.ext.size, err
			}
			at, b = at+int64(unit), b[min(unit, len(b)):]
		}
		if at == from {
			break // the file is shorter than it was
		}
	}
	return start + t.ext.size, nil
}

// zeroUnits zeroes a file of units from an offset on as long as there is something.
func (q *Queue) zeroUnits(from int64) error {
	t := q.table
	size := t.ext.size
	start := from - from%size
	h, err := t.files.acquire(q, extPlace(start))
	if err != nil {
		return err
	}
	defer t.files.release(h)
	buf := make([]byte, zeroStep)
	for at := from - start; at < size; at += zeroStep {
		b := buf[:min(size-at, zeroStep)]
		if _, err := h.file.ReadAt(b, at); err != nil {
			return fmt.Errorf("consumequeue: reading %s: %w", t.extPath(q, start), err)
		}
		if allZero(b) {
			return nil
		}
		if err := h.file.Zero(at, int64(len(b))); err != nil {
			return fmt.Errorf("consumequeue: zeroing %s: %w", t.extPath(q, start), err)
		}
	}
	return nil
}
