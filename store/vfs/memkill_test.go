package vfs

import (
	"errors"
	"io/fs"
	"math/rand"
	"testing"
)

// A process that dies leaves all it has written; only when the power fails too is what was not synced gone.
func TestKillThenCrash(t *testing.T) {
	m := NewMem(nil)
	write := func(m *Mem, name, text string, synced bool) {
		t.Helper()
		f, err := m.Create(name)
		if errors.Is(err, fs.ErrExist) {
			f, err = m.Open(name)
		}
		if err == nil {
			_, err = f.WriteAt([]byte(text), 0)
		}
		if err == nil && synced {
			err = errors.Join(f.Sync(), m.SyncDir("/d"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(m *Mem, name string) string {
		b, err := Files{m}.ReadFile(name)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	write(m, "/d/synced", "one", true)
	write(m, "/d/gone", "two", true)
	write(m, "/d/written", "three", false)
	write(m, "/d/synced", "ONE", false)
	if err := m.Remove("/d/gone"); err != nil {
		t.Fatal(err)
	}
	if err := m.Rename("/d/written", "/d/renamed"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Lock("/d/lock", nil); err != nil {
		t.Fatal(err)
	}
	k := m.Kill()
	if _, err := k.Lock("/d/lock", nil); err != nil {
		t.Errorf("the dead process holds its lock: %v", err)
	}
	write(m, "/d/synced", "new", true) // what goes on does not show in the copy
	if got := read(k, "/d/synced"); got != "ONE" {
		t.Errorf("after the death: %q", got)
	}
	if got := read(k, "/d/renamed"); got != "three" {
		t.Errorf("after the death: %q", got)
	}
	if _, err := k.Stat("/d/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file after the death: %v", err)
	}
	dark := k.Crash(0, rand.New(rand.NewSource(1)))
	if got := read(dark, "/d/synced"); got != "one" {
		t.Errorf("after the power failure: %q", got)
	}
	if got := read(dark, "/d/gone"); got != "two" {
		t.Errorf("after the power failure: %q", got)
	}
	for _, name := range []string{"/d/written", "/d/renamed"} {
		if _, err := dark.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s after the power failure: %v", name, err)
		}
	}
}
