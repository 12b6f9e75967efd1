package index

import "rocketd/store/vfs"

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
	return first.phyOffset == h.beginPhyOffset && last.phyOffset == h.endPhyOffset && first.hash >= 0 && last.hash >= 0 && h.endPhyOffset < end, err
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
