package store

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/store/vfs"
)

// manyTopics is enough for a hint, with queuesEach each.
const (
	manyTopics = 300
	queuesEach = 4
)

// hinted is a store on the disk with many queues. log collects what it logs.
type hinted struct {
	t    *testing.T
	root string
	each int32 // queues of a topic
	log  strings.Builder
	*Store
}

func (h *hinted) open() {
	h.t.Helper()
	cfg := smallConfig(h.root)
	cfg.MappedFileSizeCommitLog = 64 << 20
	h.log.Reset()
	s, err := Open(cfg, Options{FS: vfs.OS, Log: slog.New(slog.NewTextHandler(&h.log, nil))})
	if err != nil {
		h.t.Fatal(err)
	}
	s.Start()
	h.Store = s
}

func (h *hinted) close() {
	h.t.Helper()
	if err := h.Store.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// kill ends the store without what Close does.
func (h *hinted) kill() {
	h.t.Helper()
	h.cleaner.end()
	h.endMending()
	h.dispatcher.end()
	h.flusher.end()
	if err := h.Store.log.Close(); err != nil {
		h.t.Fatal(err)
	}
	if err := h.lock.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// put puts a message into each queue of some topics.
func (h *hinted) put(from, to int) {
	h.t.Helper()
	for i := from; i < to; i++ {
		for q := range h.each {
			put(h.t, h.Store, newMessage(fmt.Sprintf("topic%d", i), q, i))
		}
	}
	waitDispatched(h.t, h.Store, h.MaxPhyOffset())
}

func TestHint(t *testing.T) {
	h := &hinted{t: t, root: t.TempDir(), each: queuesEach}
	file := filepath.Join(h.root, hintName)
	want := map[string]int64{}
	see := func(step string, least, most int) {
		t.Helper()
		if n := h.queues.Hinted(); n < least || n > most {
			t.Errorf("%s: %d queues by the hint, want %d to %d\n%s", step, n, least, most, h.log.String())
		}
		for i := range manyTopics {
			topic := fmt.Sprintf("topic%d", i)
			for q := range int32(queuesEach) {
				if got := h.MaxOffset(topic, q); got != 1+want[topic] {
					t.Fatalf("%s: %s queue %d ends at %d, want %d", step, topic, q, got, 1+want[topic])
				}
			}
		}
	}
	more := func(from, to int) {
		t.Helper()
		h.put(from, to)
		for i := from; i < to; i++ {
			want[fmt.Sprintf("topic%d", i)]++
		}
	}
	const all, most = queuesEach * manyTopics, queuesEach * manyTopics * 9 / 10 // files written just before the hint are looked into
	h.open()
	h.put(0, manyTopics)
	h.close()
	h.open()
	see("clean stop", 0, all)
	h.close()
	h.open()
	see("second clean stop", most, all)
	more(100, 120)
	h.kill()
	h.open()
	see("killed", most-80, all)
	h.kill()
	h.open()
	see("killed at once", most-160, all)
	more(110, 130)
	h.close()

	for _, c := range []struct {
		name, reason string
		change       func() error
	}{
		{"another opened the directory", "another broker", func() error {
			return os.Chtimes(filepath.Join(h.root, "lock"), time.Now(), time.Now())
		}},
		{"the official broker wrote the checkpoint", "checkpoint is another", func() error {
			f, err := os.OpenFile(filepath.Join(h.root, "checkpoint"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{1}, 7)
			return firstOf(err, f.Close())
		}},
		{"damaged", "damaged", func() error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 1
			return os.WriteFile(file, b, 0o644)
		}},
		{"short", "has 7 bytes", func() error { return os.WriteFile(file, []byte("garbage"), 0o644) }},
		{"removed", "", func() error { return os.Remove(file) }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		h.open()
		see(c.name, 0, 0)
		if !strings.Contains(h.log.String(), c.reason) {
			t.Errorf("%s: the log does not say %q:\n%s", c.name, c.reason, h.log.String())
		}
		h.close()
	}
	h.open()
	see("and back", most, all)
	h.close()
}

// TestHintOtherBoot: after a crash the hint is not believed when the power may have been cut.
func TestHintOtherBoot(t *testing.T) {
	s := &Store{o: Options{FS: vfs.OS, Log: slog.New(slog.DiscardHandler)}, checkpoint: checkpoint{1, 2, 3, 4, 5}}
	s.config.Store(&Config{MappedFileSizeConsumeQueue: 6_000_000})
	b := s.encodeHint(nil, 7, 8, s.checkpoint)
	copy(b[32:72], "another")
	seal := func() {
		copy(b[112:], []byte{byte(hintCRC(b) >> 24), byte(hintCRC(b) >> 16), byte(hintCRC(b) >> 8), byte(hintCRC(b))})
	}
	seal()
	if err := s.checkHint(b, false, 8); err != nil {
		t.Errorf("after a clean stop: %v", err)
	}
	if err := s.checkHint(b, true, 8); err == nil {
		t.Error("believed after a crash")
	}
	if err := s.checkHint(b, false, 0); err == nil {
		t.Error("believed without a lock file")
	}
}

// TestManyTopics: very many queues are opened by the hint, after a clean stop and after a kill, without a file kept open
// for each. With CONFORMANCE_LONG=1 it is a hundred thousand topics, and the times are those that are promised.
func TestManyTopics(t *testing.T) {
	t.Parallel()
	n, each, patience := hintAbove+100, 1, time.Minute
	if os.Getenv("CONFORMANCE_LONG") != "" {
		n, each, patience = 100_000, 4, 5*time.Second
	}
	h := &hinted{t: t, root: t.TempDir(), each: int32(each)}
	reopen := func(step string) {
		t.Helper()
		began := time.Now()
		h.open()
		if took := time.Since(began); took > patience {
			t.Errorf("%s: opening took %v, want at most %v", step, took, patience)
		} else {
			t.Logf("%s: opening took %v, %d of %d queues by the hint", step, took, h.queues.Hinted(), each*n)
		}
		if got := len(h.Topics()); got != n {
			t.Fatalf("%s: %d topics, want %d", step, got, n)
		}
		if open, err := os.ReadDir("/proc/self/fd"); err == nil && len(open) > 700 {
			t.Errorf("%s: %d files are open", step, len(open))
		}
	}
	h.open()
	h.put(0, n)
	began := time.Now()
	h.close()
	t.Logf("making the files of %d queues took %v", each*n, time.Since(began))
	reopen("clean stop")
	h.put(0, 50)
	h.kill()
	reopen("killed")
	h.put(0, 50)
	began = time.Now()
	h.close()
	if took := time.Since(began); took > 2*patience {
		t.Errorf("closing took %v, want at most %v", took, 2*patience)
	}
	reopen("clean stop again")
	for i := range n {
		want := int64(1)
		if i < 50 {
			want = 3
		}
		if got := h.MaxOffset(fmt.Sprintf("topic%d", i), int32(each-1)); got != want {
			t.Fatalf("the last queue of topic%d ends at %d, want %d", i, got, want)
		}
	}
	h.close()
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
