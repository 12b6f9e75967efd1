package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"testing"

	"golang.org/x/sys/unix"
)

// TestListFollowsLinks: a linked file has the size of what it leads to, a linked folder is one, and a link that leads nowhere
// is an error and not a small file.
func TestListFollowsLinks(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	wantErr(t, "file", os.WriteFile(path.Join(away, "file"), make([]byte, 1000), 0o600), nil)
	wantErr(t, "folder", os.Mkdir(path.Join(away, "folder"), 0o700), nil)
	for _, name := range []string{"file", "folder", "gone"} {
		wantErr(t, "link", os.Symlink(path.Join(away, name), path.Join(dir, name)), nil)
	}
	list := must(OS.List(dir))(t)
	if len(list) != 3 {
		t.Fatal(list)
	}
	if info := must(list[0].Info())(t); info.Size() != 1000 || list[0].IsDir() || list[0].Type() != 0 {
		t.Errorf("file: %d bytes, %v", info.Size(), list[0].Type())
	}
	if !list[1].IsDir() || list[1].Type() != fs.ModeDir || list[1].Name() != "folder" {
		t.Errorf("folder: %v", list[1].Type())
	}
	if _, err := list[2].Info(); !errors.Is(err, fs.ErrNotExist) || list[2].IsDir() {
		t.Errorf("gone: %v", err)
	}
}

// TestPipeInPlaceOfAFile: opening it does not wait, and reading it fails or gives nothing.
func TestPipeInPlaceOfAFile(t *testing.T) {
	name := path.Join(t.TempDir(), "pipe")
	wantErr(t, "pipe", unix.Mkfifo(name, 0o600), nil)
	if b, err := (Files{OS}).ReadFile(name); len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
	}
	f, err := OS.OpenRead(name)
	if err != nil {
		return
	}
	defer f.Close()
	if n, err := f.ReadAt(make([]byte, 10), 0); err == nil {
		t.Errorf("read %d bytes", n)
	}
}
