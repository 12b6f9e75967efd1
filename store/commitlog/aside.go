package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

// emptyStretch is how many bytes of zeros end the search for records behind the end of the log: written data has no holes
// of that size, and a file of a gigabyte that is mostly empty need not be read.
const emptyStretch = 16 << 20

var magic = binary.BigEndian.AppendUint32(nil, message.MagicCode)

// aside is the folder for what lies behind the end.
func (l *Log) aside() string { return l.o.Aside + "-" + segment.Name(l.written.Load()) }

// keepTailLocked copies the records behind the end, in the file in which the log ends, before they are made zeros.
func (l *Log) keepTailLocked() error {
	if !l.append.tail {
		return nil
	}
	f, end := l.append.file, l.written.Load()
	records, last := l.recordsBehind(f, end)
	if records > 0 {
		name, err := l.copyAside(f, end, last)
		if err != nil {
			return err
		}
		l.o.Log.Error("THE LOG HAS RECORDS BEHIND A DAMAGED PLACE: they are no longer in it, a copy is kept", "path", f.Path(),
			"damage", end, "records", records, "until", last, "copy", name)
	}
	l.append.tail = false
	return nil
}

// keepLastLocked moves the last file, when it holds records, to the folder for what lies behind the end.
func (l *Log) keepLastLocked(f *segment.File) (kept bool, err error) {
	records, last := l.recordsBehind(f, f.Start())
	if records == 0 {
		return false, nil
	}
	if err := vfs.MkdirAllSync(l.o.FS, l.aside()); err != nil {
		return false, err
	}
	name, err := l.freeName(f)
	if err != nil {
		return false, err
	}
	if err = l.files.MoveLast(name); err != nil && l.files.Last() == f { // on another disk
		if name, err = l.copyAside(f, f.Start(), last); err == nil {
			err = l.files.RemoveLast()
		}
	}
	if err != nil {
		return false, err
	}
	l.o.Log.Error("THE LOG HAS RECORDS BEHIND A DAMAGED PLACE: their file is no longer in it, it is kept", "path", f.Path(),
		"damage", l.written.Load(), "records", records, "until", last, "kept", name)
	return true, nil
}

// freeName is a name for a file in the folder that no earlier one has: the file's own, mostly.
func (l *Log) freeName(f *segment.File) (string, error) {
	name := path.Join(l.aside(), segment.Name(f.Start()))
	for n, free := 2, name; ; n++ {
		_, err := l.o.FS.Stat(free)
		if errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
		if err != nil {
			return "", err
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}

// copyAside copies the bytes between two offsets of a file to their places in a file of the same size, durably.
func (l *Log) copyAside(f *segment.File, from, to int64) (name string, err error) {
	if err := vfs.MkdirAllSync(l.o.FS, l.aside()); err != nil {
		return "", err
	}
	if name, err = l.freeName(f); err != nil {
		return "", err
	}
	out, err := l.o.FS.Create(name)
	if err != nil {
		return "", err
	}
	err = out.Truncate(l.o.FileSize)
	for buf := make([]byte, min(scanBuffer, l.o.FileSize)); err == nil && from < to; {
		b := buf[:min(int64(len(buf)), to-from)]
		if err = f.ReadAt(b, from); err == nil {
			_, err = out.WriteAt(b, from-f.Start())
		}
		from += int64(len(b))
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = l.o.FS.SyncDir(path.Dir(name))
	}
	if err != nil {
		return "", errors.Join(err, l.o.FS.Remove(name))
	}
	return name, nil
}

// recordsBehind counts the records of a file from an offset on, which need not be one's: those that are whole and say that
// they stand where they do. last is the offset behind the last one. What can't be read ends the search.
func (l *Log) recordsBehind(f *segment.File, from int64) (records int, last int64) {
	buf := make([]byte, min(scanBuffer, l.o.FileSize))
	for at, empty := from, 0; f.End()-at >= message.MinRecordSize && empty < emptyStretch; {
		b := buf[:min(int64(len(buf)), f.End()-at)]
		if err := f.ReadAt(b, at); err != nil {
			l.o.Log.Error("commit log: what lies behind the end cannot be read", "path", f.Path(), "offset", at, "err", err)
			return records, last
		}
		i := bytes.Index(b, magic)
		if i < 0 {
			if isZero(b) {
				empty += len(b)
			} else {
				empty = 0
			}
			at += int64(max(1, len(b)-len(magic)+1))
			continue
		}
		empty = 0
		start := at + int64(i) - 4 // the size stands before it
		size := l.recordAt(f, from, start)
		if size == 0 {
			at += int64(i) + 1
			continue
		}
		records, last, at = records+1, start+size, start+size
	}
	return records, last
}

// recordAt is the size of the record that begins at start, 0 when there is none; it may not begin before from.
func (l *Log) recordAt(f *segment.File, from, start int64) int64 {
	if start < from || f.End()-start < message.MinRecordSize {
		return 0
	}
	head := make(message.Record, message.MinRecordSize)
	if f.ReadAt(head, start) != nil || head.PhyOffset() != start {
		return 0
	}
	size := int64(head.Size())
	if size < message.MinRecordSize || size > f.End()-start {
		return 0
	}
	b := make([]byte, size)
	if f.ReadAt(b, start) != nil {
		return 0
	}
	if n, err := message.Check(b, true); err != nil || int64(n) != size {
		return 0
	}
	return size
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
