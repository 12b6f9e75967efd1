package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"testing"
	"time"

	"rocketd/compat"
)

var _ compat.FileSystem = Files{}

// each runs a test on the operating system's files and on those in memory.
func each(t *testing.T, test func(t *testing.T, f FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := NewMem(nil)
		if err := m.MkdirAll("/d"); err != nil {
			t.Fatal(err)
		}
		test(t, m, "/d")
	})
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, f FS, dir string) {
		a, b := path.Join(dir, "a"), path.Join(dir, "b")
		_, err := f.Open(a)
		wantErr(t, "open what is not there", err, fs.ErrNotExist)
		_, err = f.OpenRead(a)
		wantErr(t, "open for reading what is not there", err, fs.ErrNotExist)
		_, err = f.Create(path.Join(dir, "no", "a"))
		wantErr(t, "create in no directory", err, fs.ErrNotExist)
		_, err = f.Stat(a)
		wantErr(t, "stat what is not there", err, fs.ErrNotExist)
		wantErr(t, "remove what is not there", f.Remove(a), fs.ErrNotExist)
		wantErr(t, "rename what is not there", f.Rename(a, b), fs.ErrNotExist)

		w := must(f.Create(a))(t)
		defer w.Close()
		_, err = f.Create(a)
		wantErr(t, "create twice", err, fs.ErrExist)
		wantErr(t, "truncate", w.Truncate(10_000), nil)
		if n, err := w.WriteAt([]byte("hello"), 4094); n != 5 || err != nil {
			t.Fatalf("WriteAt = %d, %v", n, err)
		}
		wantErr(t, "sync", w.Sync(), nil)
		if info := must(w.Stat())(t); info.Size() != 10_000 || info.IsDir() {
			t.Errorf("Stat: %d bytes", info.Size())
		}

		r := must(f.OpenRead(a))(t)
		defer r.Close()
		got := make([]byte, 7)
		if n, err := r.ReadAt(got, 4093); n != 7 || err != nil || string(got) != "\x00hello\x00" {
			t.Errorf("ReadAt = %d, %v, %q", n, err, got)
		}
		if n, err := r.ReadAt(got, 9_998); n != 2 || err != io.EOF {
			t.Errorf("ReadAt at the end = %d, %v", n, err)
		}
		if _, err := r.WriteAt(got, 0); err == nil {
			t.Error("a file opened for reading can be written")
		}
		m := must(r.Map(10_000))(t)
		if _, err := w.WriteAt([]byte("J"), 4094); err != nil {
			t.Fatal(err)
		}
		if b := m.Bytes(); len(b) != 10_000 || string(b[4094:4099]) != "Jello" {
			t.Errorf("mapping of %d bytes: %q", len(b), b[4094:4099])
		}
		wantErr(t, "zero", w.Zero(4095, 2), nil)
		if b := m.Bytes(); string(b[4094:4099]) != "J\x00\x00lo" {
			t.Errorf("after Zero: %q", b[4094:4099])
		}
		wantErr(t, "zero", w.Zero(0, 10_000), nil)
		if info := must(w.Stat())(t); info.Size() != 10_000 || string(m.Bytes()[4094:4099]) != "\x00\x00\x00\x00\x00" {
			t.Errorf("after Zero of all: %d bytes, %q", info.Size(), m.Bytes()[4094:4099])
		}
		wantErr(t, "unmap", m.Unmap(), nil)

		wantErr(t, "rename", f.Rename(a, b), nil)
		wantErr(t, "sync directory", f.SyncDir(dir), nil)
		if info := must(f.Stat(b))(t); info.Name() != "b" || info.Size() != 10_000 {
			t.Errorf("after rename: %s, %d bytes", info.Name(), info.Size())
		}
		when := time.UnixMilli(1795978468000)
		wantErr(t, "chtimes", f.Chtimes(b, when), nil)
		if info := must(f.Stat(b))(t); !info.ModTime().Equal(when) {
			t.Errorf("modified at %v, want %v", info.ModTime(), when)
		}
		wantErr(t, "remove", f.Remove(b), nil)
		_, err = f.Stat(b)
		wantErr(t, "stat after remove", err, fs.ErrNotExist)
		if n, err := w.WriteAt([]byte("x"), 0); n != 1 || err != nil {
			t.Errorf("write to a removed file: %d, %v", n, err)
		}
	})
}

func TestDirectories(t *testing.T) {
	each(t, func(t *testing.T, f FS, dir string) {
		deep := path.Join(dir, "x", "y", "z")
		wantErr(t, "make", MkdirAllSync(f, deep), nil)
		wantErr(t, "make again", MkdirAllSync(f, deep), nil)
		wantErr(t, "make again", f.MkdirAll(deep), nil)
		for _, name := range []string{"c", "a", "b"} {
			wantErr(t, "write", (Files{f}).WriteFile(path.Join(deep, name), []byte(name)), nil)
		}
		names := ""
		for _, e := range must(f.List(deep))(t) {
			names += e.Name()
		}
		if names != "abc" {
			t.Errorf("List: %s", names)
		}
		if list := must(f.List(path.Join(dir, "x")))(t); len(list) != 1 || !list[0].IsDir() || list[0].Name() != "y" {
			t.Errorf("List: %v", list)
		}
		_, err := f.List(path.Join(dir, "no"))
		wantErr(t, "list what is not there", err, fs.ErrNotExist)
		if err := f.Remove(deep); err == nil {
			t.Error("a directory that is not empty was removed")
		}
		wantErr(t, "remove all", f.RemoveAll(path.Join(dir, "x")), nil)
		wantErr(t, "remove all of nothing", f.RemoveAll(path.Join(dir, "x")), nil)
		_, err = f.Stat(deep)
		wantErr(t, "stat after remove", err, fs.ErrNotExist)
		used, free, err := f.Usage(dir)
		if err != nil || used < 0 || used > 1 || free == 0 {
			t.Errorf("Usage = %v, %d, %v", used, free, err)
		}
		if total, err := f.Capacity(dir); err != nil || total < free {
			t.Errorf("Capacity = %d, %v with %d free", total, err, free)
		}
		if _, err := f.Capacity(path.Join(dir, "no")); err == nil {
			t.Error("capacity of nothing")
		}
		if _, _, err := f.Usage(path.Join(dir, "no")); err == nil {
			t.Error("usage of nothing")
		}
	})
}

func TestWholeFiles(t *testing.T) {
	each(t, func(t *testing.T, f FS, dir string) {
		files, name := Files{f}, path.Join(dir, "f")
		_, err := files.ReadFile(name)
		wantErr(t, "read what is not there", err, fs.ErrNotExist)
		for _, content := range []string{"long content", "short", ""} {
			wantErr(t, "write", files.WriteFile(name, []byte(content)), nil)
			if got := must(files.ReadFile(name))(t); !bytes.Equal(got, []byte(content)) {
				t.Errorf("read %q, want %q", got, content)
			}
		}
		wantErr(t, "rename", files.Rename(name, name+"2"), nil)
		wantErr(t, "sync directory", files.SyncDir(dir), nil)
		wantErr(t, "remove", files.Remove(name+"2"), nil)
		wantErr(t, "make directory", files.MkdirAll(path.Join(dir, "d")), nil)
	})
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, f FS, dir string) {
		name := path.Join(dir, "lock")
		l := must(f.Lock(name, []byte("lock")))(t)
		if got := must(Files{f}.ReadFile(name))(t); string(got) != "lock" {
			t.Errorf("content %q", got)
		}
		_, err := f.Lock(name, []byte("lock"))
		wantErr(t, "second lock", err, ErrLocked)
		wantErr(t, "unlock", l.Close(), nil)
		l = must(f.Lock(name, []byte("lock")))(t)
		wantErr(t, "unlock", l.Close(), nil)
		if got := must(Files{f}.ReadFile(name))(t); string(got) != "lock" {
			t.Errorf("content after the second lock %q", got)
		}
	})
}
