package compat

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestEditConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.properties")
	edit := func(value string) {
		t.Helper()
		if err := EditConfigFile(OSFiles, path, []KeyValue{{"key", value}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		if got, err := ReadOrBak(os.ReadFile, path); err != nil || string(got) != text {
			t.Errorf("the file has %q, error %v, want %q", got, err, text)
		}
	}
	if _, err := ReadOrBak(os.ReadFile, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	edit("1")
	want("key=1\n")
	if err := os.WriteFile(path, []byte("# mine\nother = 5\nkey=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edit("2")
	want("# mine\nother = 5\nkey=2\n")
	if err := os.Remove(path); err != nil { // an update was interrupted: its .bak has what was before
		t.Fatal(err)
	}
	want("# mine\nother = 5\nkey=1\n")
	edit("3")
	want("# mine\nother = 5\nkey=3\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".bak"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".bak", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := EditConfigFile(OSFiles, path, nil); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a .bak that can't be read: %v", err)
	}
}
