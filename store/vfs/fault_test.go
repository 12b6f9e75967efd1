package vfs

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// all does every operation once and returns the errors in order.
func all(f FS) []error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	note(f.MkdirAll("/d"))
	w, err := f.Create("/d/a")
	note(err)
	if w != nil {
		_, err = w.WriteAt([]byte("hello"), 0)
		note(err)
		_, err = w.ReadAt(make([]byte, 5), 0)
		note(err)
		note(w.Truncate(5))
		note(w.Zero(1, 1))
		note(w.Sync())
		_, err = w.Stat()
		note(err)
		_, err = w.Map(5)
		note(err)
		note(w.Close())
	}
	note(f.SyncDir("/d"))
	_, err = f.Open("/d/a")
	note(err)
	_, err = f.OpenRead("/d/a")
	note(err)
	note(f.Chtimes("/d/a", time.Now()))
	note(f.Rename("/d/a", "/d/b"))
	_, err = f.List("/d")
	note(err)
	_, err = f.Stat("/d")
	note(err)
	_, _, err = f.Usage("/d")
	note(err)
	l, err := f.Lock("/d/lock", nil)
	note(err)
	if l != nil {
		l.Close()
	}
	note(f.Remove("/d/lock"))
	note(f.RemoveAll("/d"))
	return errs
}

func TestFaultFailsTheOne(t *testing.T) {
	cause := errors.New("cause")
	f := NewFault(NewMem(nil), nil)
	for i, err := range all(f) {
		if err != nil {
			t.Fatalf("operation %d without faults: %v", i, err)
		}
	}
	n := f.Count()
	for i := range n {
		var op Op
		f := NewFault(NewMem(nil), func(o Op) error {
			if o.Index == i {
				op = o
			}
			return FailAt(i, cause)(o)
		})
		errs := all(f)
		if i >= len(errs) || !errors.Is(errs[i], cause) {
			t.Errorf("operation %d, %s %s: errors are %v", i, op.Kind, op.Name, errs)
		}
	}
	f = NewFault(NewMem(nil), FailFrom(0, syscall.EIO))
	for i, err := range all(f) {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %d on a dead disk: %v", i, err)
		}
	}
}

func TestShortWrite(t *testing.T) {
	m := NewMem(nil)
	f := NewFault(m, nil)
	w, err := f.Create("/a")
	if err != nil {
		t.Fatal(err)
	}
	f.SetInject(func(o Op) error {
		if o.Kind == OpWrite && o.Offset == 1 && o.Size == 5 {
			return &ShortWrite{3, syscall.ENOSPC}
		}
		return nil
	})
	n, err := w.WriteAt([]byte("hello"), 1)
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt = %d, %v", n, err)
	}
	if got := read(t, m, "/a"); got != "\x00hel" {
		t.Errorf("written: %q", got)
	}
}
