package compat

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
)

// A name is fresh until a text that was made after it was added is durable: not by a write that was under way, nor by one that failed.
func TestFresh(t *testing.T) {
	var f Fresh
	want := func(when, name string, fresh bool) {
		t.Helper()
		if f.Has(name) != fresh {
			t.Errorf("%s: %s fresh: %v", when, name, !fresh)
		}
	}
	var added []string
	fail := errors.New("no text")
	s := NewSaver(OSFiles, filepath.Join(t.TempDir(), "names.json"), func() ([]byte, error) {
		f.Writing()
		for _, name := range added {
			f.Add(name) // while it is written
		}
		return []byte("{}"), fail
	}, slog.New(slog.DiscardHandler))
	saved := func() error {
		done := make(chan error, 1)
		f.Saved(s, func(err error) { done <- err })
		return <-done
	}
	want("nothing added", "a", false)
	f.Add("a")
	want("added", "a", true)
	want("added", "b", false)
	if err := saved(); !errors.Is(err, fail) {
		t.Fatalf("a write that fails: %v", err)
	}
	want("not written", "a", true)
	if err := s.Close(); !errors.Is(err, fail) {
		t.Fatal(err)
	}

	added, fail = []string{"b"}, nil
	s = NewSaver(OSFiles, filepath.Join(t.TempDir(), "names.json"), s.encode, slog.New(slog.DiscardHandler))
	defer s.Close()
	if err := saved(); err != nil {
		t.Fatal(err)
	}
	want("written", "a", false)
	want("added while it was written", "b", true)
	f.Saved(s, nil)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	want("two writes later", "a", false)
}
