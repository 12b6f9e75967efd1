package compat

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWriteNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf", "secret")
	for round, want := range []struct {
		text string
		made bool
	}{{"first", true}, {"second", false}} {
		made, err := WriteNewFile(path, []byte(want.text), 0o600)
		if err != nil || made != want.made {
			t.Fatalf("round %d: made %v, %v", round, made, err)
		}
		text, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(text) != "first" || info.Mode().Perm() != 0o600 {
			t.Errorf("round %d: %q, %v, %v %v", round, text, info.Mode(), err, serr)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if made, err := WriteNewFile(empty, []byte("text"), 0o600); err != nil || !made {
		t.Errorf("over an empty file: %v, %v", made, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Of all who try at once, one makes the file; the others find it whole.
func TestWriteNewFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ok, err := WriteNewFile(path, []byte("whole"), 0o600)
			if err != nil {
				t.Error(err)
			}
			if ok {
				made.Add(1)
			}
			if text, err := os.ReadFile(path); string(text) != "whole" {
				t.Errorf("found %q, %v", text, err)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(path); made.Load() != 1 || string(text) != "whole" {
		t.Errorf("%d made it, %q, %v", made.Load(), text, err)
	}
}
