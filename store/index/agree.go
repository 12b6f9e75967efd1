package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"rocketd/store/vfs"
)

// Mend looks, after a clean stop, at what is cheap to see of each file: whether its header agrees with its first and its last
// entry and with the file before it. One that does not is set right from its entries, as Recover does, and the files
// behind it are removed. Mend returns end, that of the commit log, or a smaller offset from which on the log must be indexed
// again.
func (x *Index) Mend(end int64, timeOf func(phyOffset int64) int64) (from int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := 0; i < len(x.files); i++ {
		agrees, err := x.agrees(i, end)
		if err != nil {
			return 0, err
		}
		if agrees {
			continue
		}
		whole, err := x.mend(x.files[i], end, i == len(x.files)-1, timeOf)
		if err != nil {
			return 0, err
		}
		if !whole || x.files[i].header.count <= 1 {
			if from, err = x.cutAt(i); err == nil {
				err = x.fs.SyncDir(x.dir)
			}
			x.again = from
			return from, err
		}
	}
	return end, nil
}

// Shrunk tells whether Recover has removed a last file in which it found nothing: one that was new, or whose content is lost.
func (x *Index) Shrunk() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shrunk
}

// agrees tells whether header and entries of file i, which is not being written, say the same, and nothing of records at or
// behind end.
func (x *Index) agrees(i int, end int64) (bool, error) {
	f := x.files[i]
	h := &f.header
	if h.count > x.indexNum || h.slots < 0 || h.slots >= h.count && h.count > 1 || h.beginPhyOffset > h.endPhyOffset ||
		i > 0 && h.beginPhyOffset < x.files[i-1].header.endPhyOffset {
		return false, nil
	}
	if i < len(x.files)-1 && h.count < x.indexNum {
		// One that was made again for a missing one need not be full, but has no more than the header says.
		if behind, err := x.readEntry(f, max(h.count, 1)); err != nil || behind != (entry{}) {
			return false, err
		}
	}
	first, err := x.readEntry(f, 1)
	if err != nil {
		return false, err
	}
	if h.count <= 1 {
		return first == entry{} && h.endPhyOffset < max(end, 1), nil
	}
	last, err := x.readEntry(f, h.count-1)
	if err != nil || first.phyOffset != h.beginPhyOffset || last.phyOffset != h.endPhyOffset || h.endPhyOffset >= end {
		return false, err
	}
	return x.sample(f)
}

const (
	sampleBlocks  = 64
	sampleEntries = 4 << 10 / entrySize
)

// sample tells whether some pages of entries, spread over the whole file (of a small one all), and the slots of some of them are as
// they must be: offsets rise between those of the header, each entry names an earlier one of its slot as its previous, and
// its slot names it or a later one.
func (x *Index) sample(f *file) (bool, error) {
	in, err := x.fs.OpenRead(f.path)
	if err != nil {
		return false, fmt.Errorf("index: %w", err)
	}
	defer in.Close()
	h := &f.header
	buf := make([]byte, sampleEntries*entrySize)
	at, stride := h.beginPhyOffset, max(sampleEntries, h.count/sampleBlocks)
	for k := int32(1); k < h.count; k += stride {
		b := buf[:entrySize*min(sampleEntries, h.count-k)]
		if err := readFull(in, b, x.entryAt(k)); err != nil {
			return false, fmt.Errorf("index: reading %s: %w", f.path, err)
		}
		for i := int32(0); len(b) > 0; i, b = i+1, b[entrySize:] {
			e := decodeEntry(b)
			if e.hash < 0 || e.seconds < 0 || e.phyOffset < at || e.phyOffset > h.endPhyOffset || e.previous < 0 || e.previous >= k+i {
				return false, nil
			}
			at = e.phyOffset
			if i != 0 && len(b) > entrySize { // slots of the first and the last
				continue
			}
			var slot [slotSize]byte
			if err := readFull(in, slot[:], headerSize+int64(e.hash%x.slotNum)*slotSize); err != nil {
				return false, fmt.Errorf("index: reading %s: %w", f.path, err)
			}
			if newest := int32(binary.BigEndian.Uint32(slot[:])); newest < k+i || newest >= h.count {
				return false, nil
			}
		}
	}
	return true, nil
}

// cutAt ends the index in file i, which has lost entries, and returns the offset from which on the log must be indexed again.
func (x *Index) cutAt(i int) (from int64, err error) {
	f := x.files[i]
	if f.header.count <= 1 { // of such a file nothing is to be believed
		if i--; i >= 0 {
			from = x.files[i].header.endPhyOffset
		}
	} else {
		from = f.header.endPhyOffset
	}
	x.log.Error("an index file is damaged; what it lost is indexed again", "file", f.path, "from", from)
	for len(x.files) > i+1 {
		if err := x.dropLast(); err != nil {
			return 0, err
		}
	}
	return from, nil
}

// mendBegin makes the beginning in the header that of the first entry's record.
func (x *Index) mendBegin(in vfs.File, f *file, timeOf func(int64) int64) error {
	first, err := readEntry(in, x.entryAt(1), f.path)
	if err != nil {
		return err
	}
	f.header.beginPhyOffset = first.phyOffset
	if t := timeOf(first.phyOffset); t != 0 {
		f.header.beginTimestamp = t
	}
	return nil
}

// noteBroken notes, with a line in the log, that a query has come upon an entry of a file that can't be right.
func (x *Index) noteBroken(s *snapshot, k int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		if f.path == s.path && !f.broken {
			f.broken = true
			x.log.Error("AN INDEX FILE IS DAMAGED: keys in it may not be found; it is made again at the next start after a stop", "file", f.path, "entry", k)
		}
	}
}

// removeBroken removes the files that queries have found to be damaged. The index is being closed.
func (x *Index) removeBroken() error {
	removed := false
	for _, f := range x.files {
		if !f.broken {
			continue
		}
		if err := x.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("index: %w", err)
		}
		removed = true
	}
	if !removed {
		return nil
	}
	if err := x.fs.SyncDir(x.dir); err != nil {
		return fmt.Errorf("index: syncing %s: %w", x.dir, err)
	}
	return nil
}
