package compat

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// load returns the text that is read; texts with an x are garbage.
func load(t *testing.T, files FileSystem, path string) (text, from string, err error) {
	t.Helper()
	from, err = LoadConfigFile(files, path, func(b []byte) error {
		if strings.Contains(string(b), "x") {
			return errors.New("garbage")
		}
		text = string(b)
		return nil
	})
	return text, from, err
}

func TestLoadConfigFile(t *testing.T) {
	for name, tt := range map[string]struct {
		files      map[string]string
		text, from string
		fails      bool
	}{
		"none":            {nil, "", "", false},
		"file":            {map[string]string{"c/f": "new", "c/f.bak": "old"}, "new", "c/f", false},
		"backup":          {map[string]string{"c/f.bak": "old"}, "old", "c/f.bak", false},
		"empty file":      {map[string]string{"c/f": "", "c/f.bak": "old"}, "old", "c/f.bak", false},
		"garbage":         {map[string]string{"c/f": "x", "c/f.bak": "old"}, "old", "c/f.bak", false},
		"garbage, alone":  {map[string]string{"c/f": "x"}, "", "", true},
		"both garbage":    {map[string]string{"c/f": "x", "c/f.bak": "x"}, "", "", true},
		"garbage, no bak": {map[string]string{"c/f": "", "c/f.tmp": "new"}, "", "", true},
	} {
		text, from, err := load(t, newMemFiles(tt.files), "c/f")
		if text != tt.text || from != tt.from || (err != nil) != tt.fails {
			t.Errorf("%s: %q from %q, %v", name, text, from, err)
		}
	}
}

// TestWriteConfigFileFaults fails each operation, and cuts the power before and after each: the file that is
// then read is the old or the new one, and the new one when the write was said to be done.
func TestWriteConfigFileFaults(t *testing.T) {
	for failAt := 0; ; failAt++ {
		m := newMemFiles(map[string]string{"c/f": "old", "c/f.bak": "older"})
		m.failAt = failAt
		err := WriteConfigFile(m, "c/f", []byte("new!"))
		if failAt > 0 && m.ops < failAt {
			break // there is no such operation
		}
		if (err != nil) != (failAt > 0) {
			t.Fatalf("operation %d: %v", failAt, err)
		}
		for i, disk := range append(m.crashes(), m) {
			text, from, lerr := load(t, disk, "c/f")
			if lerr != nil || text != "new!" && (text != "old" || err == nil) {
				t.Errorf("operation %d, disk %d: %q from %q, %v", failAt, i, text, from, lerr)
			}
		}
		if err == nil && m.files["c/f.bak"] != "old" {
			t.Errorf("backup %q", m.files["c/f.bak"])
		}
	}
}

func TestWriteConfigFileOS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "topics.json")
	for _, text := range []string{"one", "two", "three"} {
		if err := WriteConfigFile(OSFiles, path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{path: "three", path + ".bak": "two"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary file: %v", err)
	}
	if err := OSFiles.Remove(path); err != nil {
		t.Error(err)
	}
	if err := WriteConfigFile(OSFiles, filepath.Join(path+".bak", "x"), nil); err == nil {
		t.Error("a file as directory was accepted")
	}
}
