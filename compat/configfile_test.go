package compat

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// load returns the text that is read; texts with an x are garbage.
func load(t *testing.T, files FileSystem, path string) (text, from string, err error) {
	t.Helper()
	from, err = LoadConfigFile(files, path, slog.New(slog.DiscardHandler), func(b []byte) error {
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

// A damaged file that its .bak stands in for does not become the next .bak.
func TestDamagedFileIsPutAside(t *testing.T) {
	var log bytes.Buffer
	decode := func(b []byte) error {
		if strings.Contains(string(b), "x") {
			return errors.New("garbage")
		}
		return nil
	}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	aside := func(m *memFiles, name, text string) {
		t.Helper()
		for n, have := range m.files {
			if strings.HasPrefix(n, name+".damaged-") && have == text {
				return
			}
		}
		t.Errorf("%s is not put aside: %v", name, m.files)
	}
	m := newMemFiles(map[string]string{"c/f": "x1", "c/f.bak": "old"})
	if from, err := LoadConfigFile(m, "c/f", logger, decode); err != nil || from != "c/f.bak" {
		t.Fatalf("%s, %v", from, err)
	}
	aside(m, "c/f", "x1")
	if err := WriteConfigFile(m, "c/f", []byte("new")); err != nil || m.files["c/f.bak"] != "old" {
		t.Errorf("bak %q, %v", m.files["c/f.bak"], err)
	}
	for _, want := range []string{"file=c/f ", "garbage", "used=c/f.bak"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}

	m = newMemFiles(map[string]string{"c/f": "forbidden", "c/f.bak": "old"})
	if _, err := LoadConfigFileOrNone(m, "c/f", logger, "", func(b []byte) error {
		if string(b) == "forbidden" {
			return fs.ErrPermission
		}
		return nil
	}); !errors.Is(err, fs.ErrPermission) || m.files["c/f"] != "forbidden" {
		t.Errorf("a file that may not be read: %v, %v", err, m.files)
	}

	m = newMemFiles(map[string]string{"c/f": "x1", "c/f.bak": "x2"})
	log.Reset()
	if from, err := LoadConfigFileOrNone(m, "c/f", logger, "all is lost", decode); err != nil || from != "" {
		t.Fatalf("%q, %v", from, err)
	}
	aside(m, "c/f", "x1")
	aside(m, "c/f.bak", "x2")
	if len(m.files) != 2 || !strings.Contains(log.String(), "all is lost") || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%v, log %s", m.files, log.String())
	}
}

// The file keeps its mode, and the .bak its text when nothing changes.
func TestWriteConfigFileKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(path, []byte("mine"), 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 1234, 2345); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"changed", "changed"} {
		if err := WriteConfigFile(OSFiles, path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path + ".bak"); err != nil || string(b) != "mine" {
		t.Errorf("bak %q, %v", b, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if s := info.Sys().(*syscall.Stat_t); os.Getuid() == 0 && (s.Uid != 1234 || s.Gid != 2345) {
		t.Errorf("owner %d:%d", s.Uid, s.Gid)
	}
}
