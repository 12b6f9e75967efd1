package index

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"rocketd/store/vfs"
)

// recoverStep is how many bytes of entries are read at a time.
const recoverStep = 1 << 20

// Recover sets the files right after a crash. The commit log is dispatched again from phyOffset on, up to which
// everything was durable:
//
//  1. Last files that have no entry before phyOffset are removed.
//  2. Of the last file that is left, and of those that end after indexMsgTimestamp of the checkpoint, the entries are
//     read from the first one on: offsets must not fall, each must name as its previous entry the one that its slot
//     has had until then.
//  3. The first entry that doesn't, or that is not before phyOffset, ends the file: the slots are written anew from
//     the entries before it, what is behind is zeroed, files after it are removed. All of it durably.
//
// The official broker removes the files of step 2 altogether, and with them the keys of what it doesn't dispatch again.
// Recover returns phyOffset, or a smaller offset from which on the log must be indexed again because entries that
// should have been durable are not. timeOf is the store timestamp of the record at an offset, 0 when there is none.
func (x *Index) Recover(phyOffset, indexMsgTimestamp int64, timeOf func(phyOffset int64) int64) (from int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := len(x.files)
	from, err = x.recover(phyOffset, indexMsgTimestamp, timeOf)
	if from < phyOffset {
		x.again = from // a record that may have lost some of its keys only
	}
	if err != nil || len(x.files) == before {
		return from, err
	}
	// A removed file must not come back with the next crash.
	if err := x.fs.SyncDir(x.dir); err != nil {
		return 0, fmt.Errorf("index: syncing %s: %w", x.dir, err)
	}
	return from, nil
}

func (x *Index) recover(phyOffset, indexMsgTimestamp int64, timeOf func(int64) int64) (from int64, err error) {
	from = phyOffset
	for len(x.files) > 0 {
		last := x.files[len(x.files)-1]
		first, err := x.readEntry(last, 1)
		if err != nil {
			return 0, err
		}
		if first != (entry{}) && first.phyOffset < phyOffset {
			break
		}
		x.log.Info("an index file without entries before the checkpoint is removed", "file", last.path)
		if h := &last.header; h.count > 1 && h.beginPhyOffset < from {
			from = h.beginPhyOffset // it should have had some
		}
		x.shrunk = true
		if err := x.dropLast(); err != nil {
			return 0, err
		}
	}
	for i := 0; i < len(x.files); i++ {
		f := x.files[i]
		last := i == len(x.files)-1
		if !last && f.header.endTimestamp <= indexMsgTimestamp {
			agrees, err := x.agrees(i, phyOffset)
			if err != nil {
				return 0, err
			}
			if agrees {
				continue
			}
		}
		whole, err := x.mend(f, phyOffset, last, timeOf)
		if err != nil {
			return 0, err
		}
		if !whole {
			return x.cutAt(i)
		}
	}
	return from, nil
}

// readEntry reads entry k of a file that is not being written.
func (x *Index) readEntry(f *file, k int32) (entry, error) {
	in, err := x.fs.OpenRead(f.path)
	if err != nil {
		return entry{}, fmt.Errorf("index: %w", err)
	}
	defer in.Close()
	return readEntry(in, x.entryAt(k), f.path)
}

func readEntry(in io.ReaderAt, at int64, path string) (entry, error) {
	var b [entrySize]byte
	if err := readFull(in, b[:], at); err != nil {
		return entry{}, fmt.Errorf("index: reading %s: %w", path, err)
	}
	return decodeEntry(b[:]), nil
}

// mend is steps 2 and 3 for one file; whole is false when an entry before phyOffset was bad, or when the header knows of
// more.
func (x *Index) mend(f *file, phyOffset int64, last bool, timeOf func(int64) int64) (whole bool, err error) {
	in, err := x.fs.Open(f.path)
	if err != nil {
		return false, fmt.Errorf("index: %w", err)
	}
	defer in.Close()
	end, err := x.lastBefore(in, f, phyOffset)
	if err != nil {
		return false, err
	}
	slots := make([]int32, x.slotNum)
	used, good := int32(0), int32(1)
	newest := entry{phyOffset: -1}
	buf := make([]byte, recoverStep/entrySize*entrySize)
	for good < end {
		b := buf[:min(len(buf), int(end-good)*entrySize)]
		if err := readFull(in, b, x.entryAt(good)); err != nil {
			return false, fmt.Errorf("index: reading %s: %w", f.path, err)
		}
		n := good
		for ; len(b) > 0; b = b[entrySize:] {
			e := decodeEntry(b)
			if e == (entry{}) || e.hash < 0 || e.seconds < 0 || e.phyOffset < newest.phyOffset || e.phyOffset >= phyOffset {
				break
			}
			slot := e.hash % x.slotNum
			if e.previous != slots[slot] {
				break
			}
			if e.previous == 0 {
				used++
			}
			slots[slot], newest = good, e
			good++
		}
		if len(b) > 0 || n == good {
			break
		}
	}
	// The header knows of more, unless it was written after the durable point.
	lacks := good < f.header.count && f.header.endPhyOffset < phyOffset
	// One before the last need not be full: it may have been made again for a missing one (see Borders).
	whole = good == end && (last || good > 1) && !lacks
	if good > 1 {
		if err := x.mendBegin(in, f, timeOf); err != nil {
			return false, err
		}
		f.header.endPhyOffset = newest.phyOffset
		if f.header.endTimestamp = timeOf(newest.phyOffset); f.header.endTimestamp == 0 {
			f.header.endTimestamp = f.header.beginTimestamp + int64(newest.seconds)*1000
		}
	} else {
		f.header.endPhyOffset, f.header.endTimestamp = f.header.beginPhyOffset, f.header.beginTimestamp
	}
	f.header.count, f.header.slots = good, used
	if err := x.writeSlotTable(in, f, slots); err != nil {
		return false, err
	}
	if err := x.zeroEntries(in, f, good); err != nil {
		return false, err
	}
	if _, err := in.WriteAt(f.header.append(nil), 0); err != nil {
		return false, fmt.Errorf("index: writing %s: %w", f.path, err)
	}
	if err := in.Sync(); err != nil { // the next checkpoint counts on it
		return false, fmt.Errorf("index: syncing %s: %w", f.path, err)
	}
	return whole, nil
}

// lastBefore returns the number behind the last entry before phyOffset, taking for granted that they are in order.
func (x *Index) lastBefore(in vfs.File, f *file, phyOffset int64) (int32, error) {
	var failed error
	n := sort.Search(int(x.indexNum)-1, func(i int) bool {
		e, err := readEntry(in, x.entryAt(int32(i)+1), f.path)
		if err != nil {
			failed = err
		}
		return failed != nil || e == entry{} || e.phyOffset >= phyOffset
	})
	return int32(n) + 1, failed
}

// writeSlotTable writes all slots; only those that are not 0 of a table that is mostly empty matter, but old ones
// must go.
func (x *Index) writeSlotTable(out vfs.File, f *file, slots []int32) error {
	buf := make([]byte, 0, writePages*pageSlots*slotSize)
	for at := 0; at < len(slots); {
		buf = buf[:0]
		n := min(len(slots)-at, cap(buf)/slotSize)
		for _, s := range slots[at : at+n] {
			buf = binary.BigEndian.AppendUint32(buf, uint32(s))
		}
		if _, err := out.WriteAt(buf, headerSize+int64(at)*slotSize); err != nil {
			return fmt.Errorf("index: writing %s: %w", f.path, err)
		}
		at += n
	}
	return nil
}

// zeroEntries zeroes entries from number on, as far as there are some.
func (x *Index) zeroEntries(out vfs.File, f *file, from int32) error {
	buf := make([]byte, tailSize)
	for at, end := x.entryAt(from), x.fileSize(); at < end; {
		b := buf[:min(int64(len(buf)), end-at)]
		if err := readFull(out, b, at); err != nil {
			return fmt.Errorf("index: reading %s: %w", f.path, err)
		}
		dirty := false
		for _, c := range b {
			if c != 0 {
				dirty = true
				break
			}
		}
		if !dirty {
			return nil
		}
		clear(b)
		if _, err := out.WriteAt(b, at); err != nil {
			return fmt.Errorf("index: zeroing %s: %w", f.path, err)
		}
		at += int64(len(b))
	}
	return nil
}
