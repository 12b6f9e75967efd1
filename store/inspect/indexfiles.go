package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"rocketd/store"
	"rocketd/store/index"
	"rocketd/store/vfs"
)

// indexFiles is the files of the index.
type indexFiles struct {
	dir   string
	files []indexFile // oldest first
	other []string    // such of other sizes: maxHashSlotNum or maxIndexNum have become smaller since
	stray []string

	slots, entries int32 // of a file; 0: unknown, no file tells
}

type indexFile struct {
	path   string
	length int64
	header index.FileHeader
}

func (x *indexFiles) fileSize() int64 {
	return index.HeaderSize + int64(x.slots)*index.SlotSize + int64(x.entries)*index.EntrySize
}

// entryAt is the place of entry k.
func (x *indexFiles) entryAt(k int32) int64 {
	return index.HeaderSize + int64(x.slots)*index.SlotSize + int64(k)*index.EntrySize
}

func (d *Dir) openIndex() error {
	x := &d.index
	x.dir = d.path("index")
	entries, err := d.list(x.dir)
	if err != nil {
		return err
	}
	sizes := map[int64]int{}
	for _, e := range entries {
		name := path.Join(x.dir, e.Name())
		if e.IsDir() || !index.IsFileName(e.Name()) {
			x.stray = append(x.stray, name)
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := indexFile{path: name, length: info.Size()}
		var b [index.HeaderSize]byte
		if err := d.readAt(name, b[:], 0); err != nil {
			return err
		}
		f.header = index.DecodeFileHeader(b[:])
		sizes[f.length]++
		x.files = append(x.files, f)
	}
	if c := d.o.Config; c != nil {
		x.slots, x.entries = int32(c.MaxHashSlotNum), int32(c.MaxIndexNum)
		return nil
	}
	c := store.DefaultConfig("")
	x.slots, x.entries = int32(c.MaxHashSlotNum), int32(c.MaxIndexNum)
	size := commonSize(sizes)
	if newest := len(x.files) - 1; newest >= 0 && x.files[newest].length < size {
		// Cut off, or made since the sizes were made smaller: then the others are not used any more.
		f := &x.files[newest]
		if slots := d.guessSlots(f); slots > 0 && (sizes[f.length] > 1 || slots != d.slotsOf(size)) {
			x.setSizes(f.length, slots)
			x.passOver(d)
			return nil
		}
	}
	if size == x.fileSize() || len(x.files) == 0 && d.log.defaultSize() {
		return nil
	}
	if x.setSizes(size, d.slotsOf(size)); x.slots > 0 {
		x.passOver(d)
	}
	return nil
}

// setSizes takes the sizes from a file's length and its number of slots; 0: unknown.
func (x *indexFiles) setSizes(length int64, slots int32) {
	if x.slots, x.entries = slots, 0; slots > 0 {
		x.entries = int32((length - index.HeaderSize - int64(slots)*index.SlotSize) / index.EntrySize)
	}
}

// slotsOf is the number of slots of the files of a length, 0 when none of them tells.
func (d *Dir) slotsOf(length int64) int32 {
	for i := range d.index.files {
		if f := &d.index.files[i]; f.length == length {
			if slots := d.guessSlots(f); slots > 0 {
				return slots
			}
		}
	}
	return 0
}

// passOver leaves out the files that are larger and whole with other sizes: a broker does not use them, and makes their keys
// again in files of the sizes that it has.
func (x *indexFiles) passOver(d *Dir) {
	used := x.files[:0]
	for _, f := range x.files {
		if f.length > x.fileSize() && d.guessSlots(&f) > 0 {
			x.other = append(x.other, f.path)
			continue
		}
		used = append(used, f)
	}
	x.files = used
}

// readAt reads len(b) bytes of a file; what is beyond its end is zeros.
func (d *Dir) readAt(name string, b []byte, at int64) error {
	in, err := d.fs.OpenRead(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return readFull(in, name, b, at)
}

func readFull(in io.ReaderAt, name string, b []byte, at int64) error {
	n, err := in.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	clear(b[n:])
	return nil
}

// guessSlots finds out how many slots a file has, for nothing in it says so: there must be a place for entry 1 such that
// the first entries hang on slots as entries do. 0 when nothing fits.
func (d *Dir) guessSlots(f *indexFile) int32 {
	const trial = 64 // entries that must fit
	have := min(f.header.IndexCount-1, trial)
	if have < 1 || f.length > 1<<31 {
		return 0
	}
	in, err := d.fs.OpenRead(f.path)
	if err != nil {
		return 0
	}
	defer in.Close()
	buf := make([]byte, readStep+trial*index.EntrySize)
	// Entry 1 is at 60+4*slots, entry 0 before it is unused; the file is whole entries to its end. The time of entry 1
	// counts from the end of the file before.
	for base := int64(index.HeaderSize); base < f.length; base += readStep {
		b := buf
		if readFull(in, f.path, b, base) != nil {
			return 0
		}
		if zeros(b) {
			continue
		}
		for at := int64(0); at < readStep; at += index.SlotSize {
			e := index.DecodeFileEntry(b[at:])
			if e.PhyOffset != f.header.BeginPhyOffset || e.Seconds < 0 || e.Previous != 0 || e.KeyHash < 0 {
				continue
			}
			slots := (base + at - index.HeaderSize - index.EntrySize) / index.SlotSize
			if slots < 1 || (f.length-base-at+index.EntrySize)%index.EntrySize != 0 {
				continue
			}
			if d.hangTogether(in, f, b[at:], int32(slots), have) {
				return int32(slots)
			}
		}
	}
	return 0
}

// hangTogether tells whether the first entries of a file, which begin at b, hang on slots as entries do.
func (d *Dir) hangTogether(in io.ReaderAt, f *indexFile, b []byte, slots, have int32) bool {
	newest := map[int32]int32{}
	last := int64(-1)
	for k := int32(1); k <= have; k++ {
		e := index.DecodeFileEntry(b[(k-1)*index.EntrySize:])
		if e.KeyHash < 0 || e.PhyOffset < last || e.Previous != newest[e.KeyHash%slots] {
			return false
		}
		newest[e.KeyHash%slots], last = k, e.PhyOffset
	}
	for slot, k := range newest {
		var s [index.SlotSize]byte
		if readFull(in, f.path, s[:], index.HeaderSize+int64(slot)*index.SlotSize) != nil {
			return false
		}
		if v := int32(binary.BigEndian.Uint32(s[:])); v < k || v >= f.header.IndexCount {
			return false
		}
	}
	return true
}

// indexReader reads the entries of all files in their order.
type indexReader struct {
	d      *Dir
	f      *indexFile
	number int // of the file, from 0 on
	in     vfs.File
	buf    []byte
	at     int32 // entry at the start of buf
	next   int32 // entry that is read next
	count  int32 // entries of the file, counted with the unused one

	endOf func(f *indexFile) error // called behind the last entry of each file
}

// place is where an entry stands.
type entryPlace struct {
	f *indexFile
	k int32
}

// read returns the next entry; io.EOF behind the last one. Files of a length that can't be read as they should are
// passed over.
func (r *indexReader) read() (index.FileEntry, entryPlace, error) {
	for r.f == nil || r.next >= r.count {
		if r.f != nil {
			if err := r.endOf(r.f); err != nil {
				return index.FileEntry{}, entryPlace{}, err
			}
			r.close()
			r.number++
		}
		x := &r.d.index
		if r.number >= len(x.files) || x.slots == 0 {
			return index.FileEntry{}, entryPlace{}, io.EOF
		}
		f := &x.files[r.number]
		in, err := r.d.fs.OpenRead(f.path)
		if errors.Is(err, fs.ErrNotExist) && r.d.running {
			r.number++
			continue
		}
		if err != nil {
			return index.FileEntry{}, entryPlace{}, err
		}
		r.f, r.in, r.at, r.buf, r.next, r.count = f, in, 1, r.buf[:0], 1, min(f.header.IndexCount, x.entries)
	}
	i := int(r.next-r.at) * index.EntrySize
	if i >= len(r.buf) {
		n := min(int(r.count-r.next)*index.EntrySize, readStep/index.EntrySize*index.EntrySize)
		if cap(r.buf) < n {
			r.buf = make([]byte, n)
		}
		r.buf, r.at, i = r.buf[:n], r.next, 0
		if err := readFull(r.in, r.f.path, r.buf, r.d.index.entryAt(r.next)); err != nil {
			return index.FileEntry{}, entryPlace{}, err
		}
	}
	p := entryPlace{r.f, r.next}
	r.next++
	return index.DecodeFileEntry(r.buf[i:]), p, nil
}

func (r *indexReader) close() {
	if r.in != nil {
		r.in.Close()
		r.f, r.in = nil, nil
	}
}
