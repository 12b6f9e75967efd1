package segment

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rocketd/store/vfs"
)

const size = 8192

var quiet = slog.New(slog.DiscardHandler)

func newQueue(t *testing.T, fsys vfs.FS, dir string, files int) *Queue {
	t.Helper()
	if err := vfs.MkdirAllSync(fsys, dir); err != nil {
		t.Fatal(err)
	}
	q, err := Open(fsys, dir, size, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for range files {
		start := int64(0)
		if last := q.Last(); last != nil {
			start = last.End()
		}
		f, err := q.Create(start)
		if err != nil {
			t.Fatal(err)
		}
		q.Add(f)
	}
	return q
}

// both runs a test on the operating system's files and on those in memory.
func both(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) { test(t, vfs.NewMem(nil), "/log") })
}

func TestNames(t *testing.T) {
	if got := Name(65536); got != "00000000000000065536" {
		t.Error(got)
	}
	for name, want := range map[string]int64{"00000000000000065536": 65536, "00000000000000000000": 0, "09223372036854775807": 1<<63 - 1,
		"0": -1, "0000000000000006553x": -1, "+0000000000000065536": -1, "99999999999999999999": -1, "": -1} {
		got, ok := ParseName(name)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("ParseName(%q) = %d, %v", name, got, ok)
		}
	}
}

func TestQueue(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		q := newQueue(t, fsys, dir, 0)
		if q.Last() != nil || q.Find(0) != nil {
			t.Error("an empty queue has files")
		}
		q.Close()
		q = newQueue(t, fsys, dir, 3)
		content := bytes.Repeat([]byte("abcdefgh"), size/8)
		for _, f := range q.Files() {
			if _, err := f.WriteAt(content, f.Start()); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		q = newQueue(t, fsys, dir, 0)
		defer q.Close()
		if len(q.Files()) != 3 || q.Last().Start() != 2*size || q.Last().End() != 3*size {
			t.Fatalf("%d files after opening again", len(q.Files()))
		}
		for offset, want := range map[int64]int64{-1: -1, 0: 0, size - 1: 0, size: size, 3*size - 1: 2 * size, 3 * size: -1} {
			v, ok := q.View(offset)
			if ok != (want >= 0) || ok && v.Start() != want {
				t.Errorf("View(%d): %v", offset, ok)
			}
			if ok {
				v.Release()
			}
		}
		v, _ := q.View(100)
		if err := q.RemoveFirst(); err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Stat(path.Join(dir, Name(0))); err == nil {
			t.Error("the first file is still there")
		}
		if q.Find(100) != nil || q.Find(size) == nil {
			t.Error("the first file is still in the queue")
		}
		b := make([]byte, 8)
		for _, read := range []func([]byte, int64) error{v.ReadAt, v.CopyAt} { // a deleted file can be read on
			clear(b)
			if err := read(b, 16); err != nil || string(b) != "abcdefgh" {
				t.Errorf("read of a deleted file: %q, %v", b, err)
			}
		}
		v.Release()
		if err := q.RemoveLast(); err != nil {
			t.Fatal(err)
		}
		if files := q.Files(); len(files) != 1 || files[0].Start() != size {
			t.Errorf("%d files left", len(files))
		}
		f := q.Last()
		if err := f.Zero(size+4, size+12); err != nil {
			t.Fatal(err)
		}
		b = make([]byte, 16)
		if err := f.CopyAt(b, size); err != nil || string(b) != "abcd\x00\x00\x00\x00\x00\x00\x00\x00efgh" {
			t.Errorf("after Zero: %q, %v", b, err)
		}
		if err := errors.Join(f.Unmap(), f.Unmap()); err != nil {
			t.Error(err)
		}
		if err := f.CopyAt(b, size); err != nil || string(b[:4]) != "abcd" {
			t.Errorf("after Unmap: %q, %v", b, err)
		}
		if err := f.ReadAt(b, 2*size-8); err == nil {
			t.Error("read beyond the end succeeds")
		}
		if err := f.CopyAt(b, 2*size-8); !errors.Is(err, ErrFault) {
			t.Errorf("copy beyond the end: %v", err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(m *vfs.Mem) error
		errors string // part of the error; "" when it opens
	}{
		{"nothing", func(m *vfs.Mem) error { return nil }, ""},
		{"short file", func(m *vfs.Mem) error { return cut(m, "/log/"+Name(2*size), size-1) }, Name(2*size) + ": got 8191 bytes, the configured file size is 8192"},
		{"long file", func(m *vfs.Mem) error { return cut(m, "/log/"+Name(0), size+1) }, Name(0) + ": got 8193 bytes"},
		{"empty last file", func(m *vfs.Mem) error { return cut(m, "/log/"+Name(2*size), 0) }, ""},
		{"two empty last files", func(m *vfs.Mem) error {
			return errors.Join(cut(m, "/log/"+Name(size), 0), cut(m, "/log/"+Name(2*size), 0))
		}, ""},
		{"empty file in the middle", func(m *vfs.Mem) error { return cut(m, "/log/"+Name(size), 0) }, Name(size) + ": got 0 bytes"},
		{"missing file", func(m *vfs.Mem) error { return m.Remove("/log/" + Name(size)) }, Name(size) + " is missing"},
		{"missing first file", func(m *vfs.Mem) error { return m.Remove("/log/" + Name(0)) }, ""},
		{"other size", func(m *vfs.Mem) error { return m.Rename("/log/"+Name(2*size), "/log/"+Name(2*size+1)) }, "not a multiple"},
		{"foreign files", func(m *vfs.Mem) error {
			return errors.Join(m.MkdirAll("/log/lost+found"), vfs.Files{FS: m}.WriteFile("/log/notes.txt", nil))
		}, ""},
	} {
		m := vfs.NewMem(nil)
		if err := newQueue(t, m, "/log", 3).Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(m); err != nil {
			t.Fatal(err)
		}
		q, err := Open(m, "/log", size, quiet)
		if c.errors == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			q.Close()
		} else if err == nil || !strings.Contains(err.Error(), c.errors) {
			t.Errorf("%s: %v, want %q", c.name, err, c.errors)
		}
	}
}

func cut(fsys vfs.FS, name string, n int64) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(n), f.Close())
}

// Whatever operation of Create fails, or wherever the power is cut, the folder can be opened and the file made.
func TestCreateFails(t *testing.T) {
	for i := 0; ; i++ {
		m := vfs.NewMem(nil)
		q := newQueue(t, m, "/log", 1)
		fault := vfs.NewFault(m, vfs.FailAt(i, syscall.ENOSPC))
		_, err := Create(fault, "/log", size, size)
		crashed := m.Crash(50, rand.New(rand.NewSource(int64(i))))
		for _, disk := range []*vfs.Mem{m, crashed} {
			again, operr := Open(disk, "/log", size, quiet)
			if operr != nil {
				t.Fatalf("operation %d failed, then: %v", i, operr)
			}
			if again.Find(size) == nil {
				f, err := again.Create(size)
				if err != nil {
					t.Fatal(err)
				}
				again.Add(f)
			}
			again.Close()
		}
		q.Close()
		if err == nil {
			if crashed := m.Crash(0, rand.New(rand.NewSource(1))); cut(crashed, "/log/"+Name(size), size) != nil {
				t.Error("a created file was lost")
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
}

func TestCreateEmptiesWhatIsThere(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		q := newQueue(t, fsys, dir, 0)
		defer q.Close()
		if err := (vfs.Files{FS: fsys}).WriteFile(path.Join(dir, Name(0)), []byte("old")); err != nil {
			t.Fatal(err)
		}
		f, err := q.Create(0)
		if err != nil {
			t.Fatal(err)
		}
		q.Add(f)
		b := make([]byte, 4)
		if err := f.ReadAt(b, 0); err != nil || string(b) != "\x00\x00\x00\x00" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A file that is cut from outside makes a read fail, not the process.
func TestCutFromOutside(t *testing.T) {
	dir := t.TempDir()
	q := newQueue(t, vfs.OS, dir, 1)
	defer q.Close()
	b := make([]byte, 100)
	if err := q.Last().CopyAt(b, 5000); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path.Join(dir, Name(0)), 0); err != nil {
		t.Fatal(err)
	}
	if err := q.Last().CopyAt(b, 5000); !errors.Is(err, ErrFault) {
		t.Errorf("CopyAt: %v", err)
	}
	if err := q.Last().ReadAt(b, 5000); err == nil {
		t.Error("ReadAt succeeds")
	}
}

func TestReadersAndRemoval(t *testing.T) {
	q := newQueue(t, vfs.OS, t.TempDir(), 20)
	defer q.Close()
	var readers sync.WaitGroup
	for n := range 4 {
		readers.Go(func() {
			b := make([]byte, 64)
			rng := rand.New(rand.NewSource(int64(n)))
			for len(q.Files()) > 1 {
				offset := rng.Int63n(20*size - 64)
				v, ok := q.View(offset)
				if !ok {
					continue
				}
				offset = min(offset, v.End()-64)
				if err := errors.Join(v.CopyAt(b, offset), v.ReadAt(b, offset)); err != nil {
					t.Error(err)
				}
				v.Release()
			}
		})
	}
	for len(q.Files()) > 1 {
		if err := q.Files()[0].Unmap(); err != nil {
			t.Error(err)
		}
		if err := q.RemoveFirst(); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
}

func BenchmarkCopyAt(b *testing.B) {
	f, err := Create(vfs.OS, b.TempDir(), 0, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Drop()
	buf := make([]byte, 300)
	for b.Loop() {
		if err := f.CopyAt(buf, 4096); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAt(b *testing.B) {
	f, err := Create(vfs.OS, b.TempDir(), 0, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Drop()
	buf := make([]byte, 300)
	for b.Loop() {
		if err := f.ReadAt(buf, 4096); err != nil {
			b.Fatal(err)
		}
	}
}
