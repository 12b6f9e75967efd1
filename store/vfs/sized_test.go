package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestCreateSized(t *testing.T) {
	for name, fsys := range map[string]FS{"OS": OS, "memory": NewMem(nil), "OS that makes no file whole": NewFault(OS, nil)} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := fsys.MkdirAll(filepath.Dir(file)); err != nil {
				t.Fatal(err)
			}
			f, err := CreateSized(fsys, file, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("x"), 1<<20-1); err != nil {
				t.Error(err)
			}
			if err := f.Sync(); err != nil {
				t.Error(err)
			}
			b, err := Files{fsys}.ReadFile(file)
			if err != nil || len(b) != 1<<20 || b[0] != 0 || b[1<<20-1] != 'x' {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			if _, err := CreateSized(fsys, file, 1); !errors.Is(err, fs.ErrExist) {
				t.Errorf("an existing file: %v", err)
			}
			if _, err := CreateSized(fsys, file+"/no/folder", 1); err == nil {
				t.Error("a file without a folder was made")
			}
		})
	}
}

// A file that is seen has its size.
func TestCreateSizedIsWhole(t *testing.T) {
	dir := t.TempDir()
	probe, err := osFS{}.createWhole(filepath.Join(dir, "probe"), 1)
	if errors.Is(err, errNotWhole) {
		t.Skip("the file system of " + dir + " makes no file whole")
	}
	if err != nil {
		t.Fatal(err)
	}
	probe.Close()
	const files, size = 300, 4096
	done := make(chan error)
	go func() {
		for i := range files {
			f, err := CreateSized(OS, filepath.Join(dir, strconv.Itoa(i)), size)
			if err != nil {
				done <- err
				return
			}
			f.Close()
		}
		done <- nil
	}()
	for i := 0; i < files; {
		st, err := os.Stat(filepath.Join(dir, strconv.Itoa(i)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil || st.Size() != size:
			t.Fatal(st, err)
		default:
			i++
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			done = nil
		default:
		}
	}
}

func TestCreateSizedWithoutSpace(t *testing.T) {
	mem := NewMem(nil)
	full := NewFault(mem, func(o Op) error {
		if o.Kind == OpTruncate {
			return syscall.ENOSPC
		}
		return nil
	})
	if _, err := CreateSized(full, "/file", 10); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if _, err := mem.Stat("/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}
