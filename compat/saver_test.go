package compat

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gated is a file system whose writes wait for a token.
type gated struct {
	*memFiles
	begun chan struct{} // one token for each write that began
	pass  chan struct{}
}

func (g *gated) WriteFile(name string, data []byte) error {
	g.begun <- struct{}{}
	<-g.pass
	return g.memFiles.WriteFile(name, data)
}

// TestSaverShares: changes made during a write share the next, and each is told of a write that began after it.
func TestSaverShares(t *testing.T) {
	files := &gated{newMemFiles(nil), make(chan struct{}), make(chan struct{})}
	var value atomic.Int64
	s := NewSaver(files, "c/f", func() ([]byte, error) { return fmt.Append(nil, value.Load()), nil }, slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	told := make(map[int64]string) // value at the change -> file when it was told
	done := make(chan struct{}, 1000)
	change := func() {
		v := value.Add(1)
		s.Changed(func(err error) {
			text, _ := files.ReadFile("c/f")
			mu.Lock()
			told[v] = fmt.Sprint(string(text), err)
			mu.Unlock()
			done <- struct{}{}
		})
	}
	change()
	<-files.begun
	for range 500 {
		change()
	}
	files.pass <- struct{}{}
	<-files.begun
	files.pass <- struct{}{}
	for range 501 {
		<-done
	}
	if told[1] != "1<nil>" || told[2] != "501<nil>" || told[501] != "501<nil>" {
		t.Errorf("told %q, %q, %q", told[1], told[2], told[501])
	}
	value.Add(1)
	s.Changed(nil)
	go func() { <-files.begun; files.pass <- struct{}{} }()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSaverFaultAndFlush(t *testing.T) {
	files := newMemFiles(nil)
	files.failAt = 1
	writes := 0
	s := NewSaver(files, "c/f", func() ([]byte, error) { writes++; return []byte("text"), nil }, slog.New(slog.DiscardHandler))
	if err := s.Flush(); err != nil || writes != 0 {
		t.Errorf("nothing changed: %v, %d writes", err, writes)
	}
	outcome := make(chan error, 1)
	s.Changed(func(err error) { outcome <- err })
	if err := <-outcome; !errors.Is(err, errFault) {
		t.Errorf("outcome %v", err)
	}
	if err := s.Flush(); err != nil || files.files["c/f"] != "text" || writes != 2 { // the change is not forgotten
		t.Errorf("flush %v, %d writes, file %q", err, writes, files.files["c/f"])
	}
	if err := s.Flush(); err != nil || writes != 2 {
		t.Errorf("second flush %v, %d writes", err, writes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.Changed(func(err error) { outcome <- err })
	if err := <-outcome; err != ErrSaverClosed || s.Flush() != ErrSaverClosed {
		t.Errorf("after close: %v", err)
	}
}

func TestSaverCloseWrites(t *testing.T) {
	files := newMemFiles(nil)
	s := NewSaver(files, "c/f", func() ([]byte, error) { return []byte("last"), nil }, slog.New(slog.DiscardHandler))
	s.Changed(nil)
	if err := s.Close(); err != nil || files.files["c/f"] != "last" {
		t.Errorf("%v, file %q", err, files.files["c/f"])
	}
	s = NewSaver(files, "c/f", func() ([]byte, error) { return nil, errFault }, slog.New(slog.DiscardHandler))
	s.Changed(nil)
	if err := s.Close(); !errors.Is(err, errFault) || files.files["c/f"] != "last" {
		t.Errorf("%v, file %q", err, files.files["c/f"])
	}
}

// TestSaverTriesAgain: a change whose write failed is written within seconds of the obstacle's end, without a further
// change.
func TestSaverTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newMemFiles(nil)
		var broken atomic.Bool
		var writes atomic.Int64
		s := NewSaver(files, "c/f", func() ([]byte, error) {
			writes.Add(1)
			if broken.Load() {
				return nil, errFault
			}
			return []byte("text"), nil
		}, slog.New(slog.DiscardHandler))
		broken.Store(true)
		outcome := make(chan error, 1)
		s.Changed(func(err error) { outcome <- err })
		if err := <-outcome; !errors.Is(err, errFault) {
			t.Errorf("outcome %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := writes.Load(); n < 15 || n > 25 {
			t.Errorf("%d writes in the first minute", n)
		}
		broken.Store(false)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if text, err := files.ReadFile("c/f"); string(text) != "text" {
			t.Errorf("file %q, %v", text, err)
		}
		before := writes.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if writes.Load() != before {
			t.Errorf("%d writes of what is written", writes.Load()-before)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
