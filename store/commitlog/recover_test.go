package commitlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/storetest"
	"rocketd/store/vfs"
)

// golden puts the files of an official broker into a new directory and returns what an independent reader found.
func golden(t testing.TB, name string) (o Options, rows [][]string) {
	t.Helper()
	content := storetest.Gunzip(t, "testdata/"+name+".gz")
	o = options()
	if err := vfs.MkdirAllSync(o.FS, o.Dir); err != nil {
		t.Fatal(err)
	}
	for start := 0; start < len(content); start += fileSize {
		if err := (vfs.Files{FS: o.FS}).WriteFile(path.Join(o.Dir, segment.Name(int64(start))), content[start:start+fileSize]); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(text))
	for s.Scan() {
		if line := s.Text(); !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	return o, rows
}

// The logs of an official broker, stopped and killed, are read record for record; what it made in advance goes,
// and the log can be written on.
func TestOfficialFiles(t *testing.T) {
	for _, name := range []string{"clean", "killed"} {
		o, rows := golden(t, name)
		l, found := recovered(t, o)
		i, end := 0, int64(0)
		for _, row := range rows {
			at, _ := strconv.ParseInt(row[0], 10, 64)
			size, _ := strconv.ParseInt(row[1], 10, 64)
			end = at + size
			if row[2] == "blank" {
				continue
			}
			if i == len(found) {
				t.Fatalf("%s: %d records found, the next is at %d", name, i, at)
			}
			m := found[i]
			uniq, _ := m.Property(message.PropertyUniqKey)
			if m.PhyOffset != at || int64(message.RecordSize(&m)) != size || m.Topic != row[2] || strconv.Itoa(int(m.QueueId)) != row[3] ||
				strconv.FormatInt(m.QueueOffset, 10) != row[4] || uniq != row[5] {
				t.Fatalf("%s: found %+v, want %q", name, m, row)
			}
			i++
		}
		if i != len(found) || l.MaxOffset() != end || l.FlushedOffset() != end || l.ConfirmOffset() != end {
			t.Errorf("%s: %d records of %d, %d to %d, want %d", name, len(found), i, l.MinOffset(), l.MaxOffset(), end)
		}
		starts := l.FileStarts()
		if starts[0].FirstTimestamp != found[0].StoreTimestamp || starts[1].Offset != fileSize || starts[1].Modified.IsZero() {
			t.Errorf("%s: FileStarts %v", name, starts)
		}
		if n := len(starts); name == "killed" && (n != 3 || starts[2].FirstTimestamp != 0) {
			t.Errorf("%s: FileStarts %v", name, starts)
		}
		same(t, scan(t, l, 0), found)
		l.Start()
		more := msg(0, "more", 0)
		mustAppend(t, l, put(more))
		found = append(found, *more)
		same(t, scan(t, l, 0), found)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, o); !slices.Equal(got, []string{segment.Name(0), segment.Name(fileSize)}) {
			t.Errorf("%s: files %v", name, got)
		}
		l, again := recovered(t, o)
		same(t, again, found)
		l.Close()
	}
}

// filled is a log of three files, closed, and its messages.
func filled(t testing.TB) (Options, []message.Message) {
	o := options()
	l := started(t, o)
	for i := range 30 {
		mustAppend(t, l, put(msg(int32(i%2), "message", 5000)))
	}
	all := scan(t, l, 0)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(names(t, o)); n != 3 {
		t.Fatalf("%d files", n)
	}
	return o, all
}

// overwrite changes bytes of the log behind its back.
func overwrite(t testing.TB, o Options, offset int64, b []byte) {
	t.Helper()
	f, err := o.FS.Open(path.Join(o.Dir, segment.Name(offset-offset%fileSize)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, offset%fileSize); err != nil {
		t.Fatal(err)
	}
}

func TestRecoverCutsAtTheFirstDamage(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, o Options, all []message.Message)
		keep  int // messages left of 30
	}{
		{"nothing", func(*testing.T, Options, []message.Message) {}, 30},
		{"magic of the last", func(t *testing.T, o Options, all []message.Message) { overwrite(t, o, all[29].PhyOffset+4, []byte{0}) }, 29},
		{"body of the last", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, all[29].PhyOffset+2000, []byte{0})
		}, 29},
		{"size beyond the file", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, all[29].PhyOffset, []byte{0x7f})
		}, 29},
		{"a record from elsewhere", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, all[29].PhyOffset, message.AppendRecord(nil, &all[3]))
		}, 29},
		{"zeroed sector in the second file", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, all[15].PhyOffset+512, make([]byte, 512))
		}, 15},
		{"first record of the second file", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, fileSize, make([]byte, 8))
		}, 12},
		{"blank record of the first file", func(t *testing.T, o Options, all []message.Message) {
			overwrite(t, o, int64(12*message.RecordSize(&all[0])), make([]byte, 8))
		}, 12},
		{"everything", func(t *testing.T, o Options, all []message.Message) { overwrite(t, o, 0, make([]byte, 8)) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, all := filled(t)
			c.spoil(t, o, all)
			l, found := recovered(t, o)
			same(t, found, all[:c.keep])
			if c.keep < 30 {
				end := int64(0)
				if c.keep > 0 {
					end = all[c.keep-1].PhyOffset + int64(message.RecordSize(&all[0]))
				}
				if c.name == "first record of the second file" {
					end = fileSize // behind the blank record
				}
				if l.MaxOffset() != end || l.FlushedOffset() != end {
					t.Errorf("ends at %d, durable to %d, want %d", l.MaxOffset(), l.FlushedOffset(), end)
				}
			}
			same(t, scan(t, l, 0), found)
			l.Start()
			more := msg(7, "short", 0)
			mustAppend(t, l, put(more))
			// Behind the new record is nothing of what was cut off, in no file.
			file := raw(t, o, l.MaxOffset()-l.MaxOffset()%fileSize)
			if tail := file[l.MaxOffset()%fileSize:]; !bytes.Equal(tail, make([]byte, len(tail))) {
				t.Error("what was cut off is still there")
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(found), *more)
			l, found = recovered(t, o)
			same(t, found, want)
			l.Close()
		})
	}
}

// What was cut off stays cut off even when the power goes right after the next append.
func TestCutTailIsClearedDurably(t *testing.T) {
	o, all := filled(t)
	// The last but one is torn; the last is whole behind it.
	overwrite(t, o, all[28].PhyOffset+4, make([]byte, 4))
	m := o.FS.(*vfs.Mem)
	l := started(t, o)
	again := msg(0, "message", 5000) // as long as the torn one: the last one would follow it
	mustAppend(t, l, put(again))
	if again.PhyOffset != all[28].PhyOffset {
		t.Fatalf("appended at %d", again.PhyOffset)
	}
	o.FS = m.Crash(100, newRand(1))
	l2, found := recovered(t, o)
	defer l2.Close()
	if n := len(found); n != 29 || found[28].StoreTimestamp != again.StoreTimestamp {
		t.Errorf("%d messages found", n)
	}
}

func TestRecoverFrom(t *testing.T) {
	o, all := filled(t)
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, from := range []int64{-fileSize, 3 * fileSize} {
		if err := l.Recover(from, true, nil); err == nil {
			t.Errorf("recovery from %d succeeds", from)
		}
	}
	stop := errors.New("stop")
	if err := l.Recover(fileSize, true, func(int64, message.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of each: %v", err)
	}
	var found []message.Message
	if err := l.Recover(fileSize, true, func(_ int64, r message.Record) error {
		found = append(found, r.Message())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	same(t, found, all[12:])
	same(t, scan(t, l, 0), all)
	if l.LastFlushedTimestamp() != all[29].StoreTimestamp {
		t.Errorf("LastFlushedTimestamp %d", l.LastFlushedTimestamp())
	}
	end := l.MaxOffset()
	for i, from := range []int64{all[20].PhyOffset, end} { // a record's start, and the end
		l, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := l.Recover(from, true, func(int64, message.Record) error { n++; return nil }); err != nil || n != 10*(1-i) || l.MaxOffset() != end {
			t.Errorf("recovery from %d: %d records, end %d: %v", from, n, l.MaxOffset(), err)
		}
		l.Close()
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	o, _ := filled(t)
	f, err := o.FS.Open(path.Join(o.Dir, segment.Name(fileSize)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(fileSize - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), path.Join(o.Dir, segment.Name(fileSize))+": got 65535 bytes, the configured file size is 65536") {
		t.Errorf("%v", err)
	}
}

func TestScanOfDamage(t *testing.T) {
	o, all := filled(t)
	l, _ := recovered(t, o)
	defer l.Close()
	for _, c := range []struct {
		name  string
		bytes []byte
	}{{"magic", make([]byte, 8)}, {"size", binary.BigEndian.AppendUint32(nil, 60000)}, {"sizes", binary.BigEndian.AppendUint32(nil, 5001)}} {
		overwrite(t, o, all[5].PhyOffset, c.bytes)
		n := 0
		next, err := l.Scan(0, func(int64, message.Record) error { n++; return nil })
		if !errors.Is(err, ErrDamaged) || next != all[5].PhyOffset || n != 5 || !strings.Contains(err.Error(), segment.Name(0)) {
			t.Errorf("%s: %d records, next %d: %v", c.name, n, next, err)
		}
		same(t, scan(t, l, l.NextFile(next)), all[12:])
		overwrite(t, o, all[5].PhyOffset, message.AppendRecord(nil, &all[5]))
	}
	same(t, scan(t, l, 0), all)
	stop := errors.New("stop")
	next, err := l.Scan(0, func(at int64, _ message.Record) error {
		if at == all[7].PhyOffset {
			return stop
		}
		return nil
	})
	if err != stop || next != all[7].PhyOffset {
		t.Errorf("stopped at %d: %v", next, err)
	}
}

// What was neither written nor recovered by this process is not read through a mapping, which would stop a whole thread.
func TestColdIsNotMapped(t *testing.T) {
	o, all := filled(t)
	o.HotWindow = 1 << 30
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from := all[7].PhyOffset
	if err := l.Recover(from, true, func(int64, message.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if got, want := l.Cold(all[i].PhyOffset), all[i].PhyOffset < from; got != want {
			t.Errorf("message %d: cold=%v, want %v", i, got, want)
		}
		b, err := l.Read(nil, all[i].PhyOffset, message.RecordSize(&all[i]))
		if err != nil || !bytes.Equal(b, message.AppendRecord(nil, &all[i])) {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestRead(t *testing.T) {
	for _, hot := range []int64{0, fileSize, 1 << 30} {
		o, all := filled(t)
		o.HotWindow = hot
		l, _ := recovered(t, o)
		defer l.Close()
		size := message.RecordSize(&all[0])
		for i := range all {
			b, err := l.Read(nil, all[i].PhyOffset, size)
			if err != nil || !bytes.Equal(b, message.AppendRecord(nil, &all[i])) {
				t.Errorf("message %d: %v", i, err)
			}
		}
		end := l.MaxOffset()
		for _, c := range []struct {
			offset int64
			size   int
		}{{-1, 1}, {end, 1}, {end - 1, 2}, {fileSize - 1, 2}, {0, -1}, {1 << 62, 1}, {0, 1 << 40}} {
			if b, err := l.Read([]byte("x"), c.offset, c.size); !errors.Is(err, ErrNotFound) || string(b) != "x" {
				t.Errorf("Read of %d at %d: %v", c.size, c.offset, err)
			}
		}
		if b, err := l.Read(nil, end, 0); err == nil && len(b) != 0 {
			t.Errorf("Read of nothing: %q", b)
		}
	}
}

func TestDeleteBefore(t *testing.T) {
	o, all := filled(t)
	l := started(t, o)
	for _, c := range []struct {
		offset    int64
		max, want int
	}{{fileSize - 1, 10, 0}, {fileSize, 0, 0}, {3 * fileSize, 1, 1}, {1 << 60, 10, 1}, {1 << 60, 10, 0}} {
		if n, err := l.DeleteBefore(c.offset, c.max); n != c.want || err != nil {
			t.Errorf("DeleteBefore(%d, %d) = %d, %v", c.offset, c.max, n, err)
		}
	}
	if l.MinOffset() != 2*fileSize {
		t.Errorf("MinOffset %d", l.MinOffset())
	}
	if _, err := l.Read(nil, 0, 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("Read of what was deleted: %v", err)
	}
	if next, err := l.Scan(0, nil); !errors.Is(err, ErrNotFound) || next != 0 {
		t.Errorf("Scan of what was deleted: %d, %v", next, err)
	}
	mustAppend(t, l, put(msg(0, "x", 0)))
	if got := scan(t, l, 2*fileSize); len(got) != 7 || all[24].PhyOffset != got[0].PhyOffset {
		t.Errorf("%d messages left", len(got))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, found := recovered(t, o)
	defer l.Close()
	if len(found) != 7 || l.MinOffset() != 2*fileSize {
		t.Errorf("%d messages recovered from %d on", len(found), l.MinOffset())
	}
}

// A file that someone cuts while it is in use: an error of the read, from the mapping and from the file.
func TestCutFromOutside(t *testing.T) {
	dir := t.TempDir()
	l := started(t, options(on(vfs.OS, dir)))
	p := put(msg(0, "x", 20000))
	mustAppend(t, l, p, p)
	if _, err := l.Read(nil, p.PhyOffset, int(p.Size)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path.Join(dir, segment.Name(0)), 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read(nil, p.PhyOffset, int(p.Size)); !errors.Is(err, segment.ErrFault) {
		t.Errorf("Read: %v", err)
	}
	if _, err := l.Scan(0, func(int64, message.Record) error { return nil }); !errors.Is(err, segment.ErrFault) {
		t.Errorf("Scan: %v", err)
	}
	l.o.HotWindow = 0
	if _, err := l.Read(nil, p.PhyOffset, int(p.Size)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cold Read: %v", err)
	}
}
