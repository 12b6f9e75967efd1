package index

import (
	"fmt"
	"io"
)

// maxWalk is how many entries one query looks at. The official broker has no bound: one query for a key that
// millions of messages share, in a time long ago, reads them all.
const maxWalk = 200_000

// Result is what a Query found.
type Result struct {
	PhyOffsets []int64 // newest first within each file, newest file first
	// Of the newest file: up to when and where there are entries.
	LastUpdateTimestamp int64
	LastUpdatePhyOffset int64
}

// Query returns at most max records whose key has the hash of "topic#key" and whose store time, to the second, lies in
// [begin, end] (ms). Other keys can have the same hash: the one who asks must look at the records. The rules are those
// of IndexService#queryOffset of 4.9.8.
func (x *Index) Query(topic, key string, max int, begin, end int64) (Result, error) {
	hash := keyHash(topic, key)
	var r Result
	x.mu.Lock()
	files := append([]*file(nil), x.files...)
	if n := len(files); n > 0 {
		r.LastUpdateTimestamp = files[n-1].header.endTimestamp
		r.LastUpdatePhyOffset = files[n-1].header.endPhyOffset
	}
	x.mu.Unlock()
	steps := maxWalk
	for i := len(files) - 1; i >= 0; i-- {
		s, err := x.snapshot(files[i], hash)
		if err != nil {
			return r, err
		}
		if s.in != nil {
			if s.matches(begin, end) {
				r.PhyOffsets, err = x.walk(s, r.PhyOffsets, hash, max, begin, end, &steps)
			}
			s.in.Close()
			if err != nil {
				return r, err
			}
		}
		if s.header.beginTimestamp < begin || len(r.PhyOffsets) >= max || steps <= 0 {
			break
		}
	}
	return r, nil
}

// snapshot is a file as it was at one moment, for reading without the lock.
type snapshot struct {
	path    string
	header  header
	newest  int32 // of the hash's slot
	tail    []byte
	written int32
	in      interface {
		io.ReaderAt
		io.Closer
	}
}

// matches is IndexFile#isTimeMatched of 4.9.8.
func (s *snapshot) matches(begin, end int64) bool {
	h := &s.header
	return begin < h.beginTimestamp && end > h.endTimestamp ||
		begin >= h.beginTimestamp && begin <= h.endTimestamp ||
		end >= h.beginTimestamp && end <= h.endTimestamp
}

// snapshot takes the snapshot of a file; in is nil when it has been removed.
func (x *Index) snapshot(f *file, hash int32) (snapshot, error) {
	s := snapshot{path: f.path}
	in, err := x.fs.OpenRead(f.path)
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		s.header = f.header
		for _, g := range x.files {
			if g == f {
				return s, fmt.Errorf("index: %w", err)
			}
		}
		return s, nil // expired
	}
	slot := hash % x.slotNum
	x.mu.Lock()
	defer x.mu.Unlock()
	s.header, s.written = f.header, f.header.count
	if w := f.writer; w != nil {
		s.tail, s.written = append([]byte(nil), w.tail...), w.written
		if p := w.pages[slot/pageSlots]; p != nil {
			s.newest, s.in = p.slots[slot%pageSlots], in
			return s, nil
		}
		if w.fresh {
			s.in = in
			return s, nil
		}
	}
	var b [slotSize]byte
	if err := readFull(in, b[:], headerSize+int64(slot)*slotSize); err != nil {
		in.Close()
		return s, fmt.Errorf("index: reading %s: %w", f.path, err)
	}
	s.newest = int32(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
	s.in = in
	return s, nil
}

// walk follows the chain of a slot (IndexFile#selectPhyOffset of 4.9.8).
func (x *Index) walk(s snapshot, found []int64, hash int32, max int, begin, end int64, steps *int) ([]int64, error) {
	k := s.newest
	if k <= 0 || k > s.header.count || s.header.count <= 1 {
		return found, nil
	}
	for ; len(found) < max && *steps > 0; *steps-- {
		var e entry
		if k >= s.written && int(k-s.written)*entrySize < len(s.tail) {
			e = decodeEntry(s.tail[int(k-s.written)*entrySize:])
		} else {
			var err error
			if e, err = readEntry(s.in, x.entryAt(k), s.path); err != nil {
				return found, err
			}
		}
		if e.hash%x.slotNum != hash%x.slotNum || e.seconds < 0 || e.previous >= k || e.phyOffset < s.header.beginPhyOffset || e.phyOffset > s.header.endPhyOffset {
			x.noteBroken(&s, k)
			break
		}
		at := s.header.beginTimestamp + int64(e.seconds)*1000
		if e.hash == hash && at >= begin && at <= end {
			found = append(found, e.phyOffset)
		}
		if e.previous <= 0 || e.previous > s.header.count || e.previous == k || at < begin {
			break
		}
		k = e.previous
	}
	return found, nil
}
