package delay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFile: the official form, places survive a restart, levels that are not configured are kept.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	// As store-format.md section 6 shows it, with a level that is not configured here.
	if err := os.WriteFile(path, []byte("{\n\t\"offsetTable\":{3:2,25:9\n\t}\n}"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newStore()
	for _, body := range []string{"a", "b", "c", "d"} {
		s.wait(3, time.Now(), body, properties("T", 0))
	}
	d := open(t, s, path, time.Now)
	if at := d.Offsets()[3]; at != 2 {
		t.Fatalf("place %d, want 2", at)
	}
	d.Start()
	waitFor(t, func() bool { return len(s.Bodies()) == 2 && d.Offsets()[3] == 4 })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "{\n\t\"offsetTable\":{3:4,25:9\n\t}\n}"; err != nil || string(got) != want {
		t.Fatalf("the file has %q, error %v, want %q", got, err, want)
	}
	if d = open(t, s, path, time.Now); d.Offsets()[3] != 4 {
		t.Fatalf("place %d after a restart, want 4", d.Offsets()[3])
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCorrection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	if err := os.WriteFile(path, []byte(`{"offsetTable":{1:7,2:1,3:5}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newStore()
	for range 5 {
		s.wait(1, time.Now(), "x", properties("T", 0)) // 0..5: 7 lies beyond
		s.wait(2, time.Now(), "x", properties("T", 0)) // 3..5: 1 is gone
		s.wait(3, time.Now(), "x", properties("T", 0)) // 0..5: 5 is the end
	}
	s.First[queueOf(2)] = 3
	d := open(t, s, path, time.Now)
	defer d.Close()
	for level, want := range map[int32]int64{1: 5, 2: 3, 3: 5, 4: 0} {
		if got := d.Offsets()[level]; got != want {
			t.Errorf("level %d: place %d, want %d", level, got, want)
		}
	}
}

// TestSaveWaitsForTheLog: places are written only when the copies before them are durable.
func TestSaveWaitsForTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delayOffset.json")
	s := newStore()
	s.wait(1, time.Now(), "x", properties("T", 0))
	d := open(t, s, path, time.Now)
	d.Start()
	defer d.Close()
	waitFor(t, func() bool { return d.Offsets()[1] == 1 })
	var done func(error)
	s.Flushed = func(f func(error)) { done = f }
	d.save()
	if done == nil {
		t.Fatal("did not ask the store")
	}
	done(errors.New("disk"))
	if !d.same(map[int32]int64{1: 0}) {
		t.Fatal("saved though the copies are not durable")
	}
	d.save()
	done(nil)
	if err := d.file.saver.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "{\n\t\"offsetTable\":{1:1\n\t}\n}" {
		t.Fatalf("the file has %q, error %v", got, err)
	}
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 5 s")
		}
	}
}
