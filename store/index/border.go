package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// Border is where one file ends and the next one begins: no record between the two has keys, unless a file is missing.
type Border struct {
	From, To               int64 // log offsets of the last record before and of the first one behind; From -1: none
	FromEntries, ToEntries int   // how many of the keys of each are there
	after, before          string
}

// Borders are those before the first file and between each two.
func (x *Index) Borders() ([]Border, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []Border
	b := Border{From: -1}
	for _, f := range x.files {
		if f.header.count <= 1 {
			continue
		}
		var err error
		b.To, b.before = f.header.beginPhyOffset, f.name
		if b.ToEntries, err = x.entriesOf(f, 1, 1); err != nil {
			return nil, err
		}
		all = append(all, b)
		b = Border{From: f.header.endPhyOffset, after: f.name}
		if b.FromEntries, err = x.entriesOf(f, f.header.count-1, -1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// End is the log offset of the last record that was indexed, and how many of its keys the last file has; -1 when there is
// none.
func (x *Index) End() (phyOffset int64, entries int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.files) - 1; i >= 0; i-- {
		if f := x.files[i]; f.header.count > 1 {
			entries, err = x.entriesOf(f, f.header.count-1, -1)
			return f.header.endPhyOffset, entries, err
		}
	}
	return -1, 0, nil
}

// entriesOf counts the neighbouring entries of one record, from one on. The file is not being written.
func (x *Index) entriesOf(f *file, k, step int32) (n int, err error) {
	if f.writer != nil {
		return 0, fmt.Errorf("index: %s is being written", f.path)
	}
	in, err := x.fs.OpenRead(f.path)
	if err != nil {
		return 0, fmt.Errorf("index: %w", err)
	}
	defer in.Close()
	first, err := readEntry(in, x.entryAt(k), f.path)
	for e := first; err == nil && e.phyOffset == first.phyOffset; e, err = readEntry(in, x.entryAt(k), f.path) {
		n++
		if k += step; k < 1 || k >= f.header.count {
			break
		}
	}
	return n, err
}

// Again lets the record at a log offset be put though it is the last one that was: some of its keys are missing.
func (x *Index) Again(phyOffset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.again = phyOffset
}

// Insert makes files at a border, of what fill puts. They are made beside the others and get their place when they are
// whole and durable. The names, which are times, lie between those of the neighbours.
func (x *Index) Insert(b Border, scratch string, fill func(made *Index) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, err := borderTime(b)
	if err != nil {
		return err
	}
	if err := x.fs.RemoveAll(scratch); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("index: %w", err)
	}
	made, err := Open(Options{FS: x.fs, Dir: scratch, MaxHashSlotNum: int(x.slotNum), MaxIndexNum: int(x.indexNum),
		Clock: func() time.Time { return at }, Log: x.log})
	if err != nil {
		return err
	}
	err = fill(made)
	if _, closing := made.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = made.damaged
	}
	for _, f := range made.files {
		if err == nil && f.name >= b.before {
			err = fmt.Errorf("index: there is no room for %d files between %s and %s", len(made.files), b.after, b.before)
		}
	}
	for _, f := range made.files {
		if err != nil {
			break
		}
		if f.header.count <= 1 {
			continue
		}
		place := path.Join(x.dir, f.name)
		if err = x.fs.Rename(f.path, place); err == nil {
			f.path, f.writer = place, nil
			x.insert(f)
		}
	}
	if err == nil {
		err = x.fs.SyncDir(x.dir)
	}
	return errors.Join(err, x.fs.RemoveAll(scratch))
}

func (x *Index) insert(f *file) {
	i := len(x.files)
	for i > 0 && x.files[i-1].name > f.name {
		i--
	}
	x.files = append(x.files, nil)
	copy(x.files[i+1:], x.files[i:])
	x.files[i] = f
}

// borderTime is the time after which files at a border are named.
func borderTime(b Border) (time.Time, error) {
	name, step := b.after, time.Millisecond
	if name == "" {
		name, step = b.before, -time.Second
	}
	at, err := time.ParseInLocation("20060102150405.000", name[:14]+"."+name[14:], time.Local)
	if err != nil {
		return at, fmt.Errorf("index: the name %s is no time: %w", name, err)
	}
	return at.Add(step), nil
}
