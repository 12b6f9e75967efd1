// Package storetest is set-up of tests that look at stores: it unpacks what official brokers have written.
package storetest

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// Gunzip reads a compressed file.
func Gunzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Unpack unpacks a .tar.gz file into memory, under /.
func Unpack(t testing.TB, name string) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem(nil)
	UnpackTo(t, name, mem, "/")
	return mem
}

// UnpackTo unpacks a .tar.gz file below a directory. Where the file system can, files get the times that they have in it.
func UnpackTo(t testing.TB, name string, fsys vfs.FS, root string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.FileInfo().IsDir() {
			continue
		}
		b, err := io.ReadAll(r)
		to := path.Join(root, h.Name)
		if err == nil {
			err = fsys.MkdirAll(path.Dir(to))
		}
		if err == nil {
			err = vfs.Files{FS: fsys}.WriteFile(to, b)
		}
		if dated, ok := fsys.(interface {
			Chtimes(name string, mtime time.Time) error
		}); ok && err == nil {
			err = dated.Chtimes(to, h.ModTime)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
