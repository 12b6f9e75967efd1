package vfs

import (
	"errors"
	"io/fs"
	"math/rand"
	"syscall"
	"testing"
)

// disk is a file with "old" synced and "new" written over it, in a directory whose name is durable.
func disk(t *testing.T) (*Mem, File) {
	m := NewMem(nil)
	if err := MkdirAllSync(m, "/d"); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create("/d/f")
	if err != nil {
		t.Fatal(err)
	}
	return m, f
}

func write(t *testing.T, f File, s string, at int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(s), at); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, m *Mem, name string) string {
	t.Helper()
	b, err := Files{m}.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	m, f := disk(t)
	write(t, f, "old", 0)
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "-" {
		t.Errorf("name not synced: %q", got)
	}
	if got := read(t, m.Crash(100, rng), "/d/f"); got != "old" {
		t.Errorf("everything survived: %q", got)
	}
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "" {
		t.Errorf("content not synced: %q", got)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "newer", 0)
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "old" {
		t.Errorf("overwritten and not synced: %q", got)
	}
	if got := read(t, m.Crash(100, rng), "/d/f"); got != "newer" {
		t.Errorf("overwritten and survived: %q", got)
	}
	if got := read(t, m, "/d/f"); got != "newer" {
		t.Errorf("Crash has changed the disk: %q", got)
	}
	if err := f.Truncate(2); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "old" {
		t.Errorf("cut and not synced: %q", got)
	}
	if err := f.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "ne\x00" {
		t.Errorf("cut, extended and synced: %q", got)
	}
	if err := f.Zero(0, 1); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "ne\x00" {
		t.Errorf("zeroed and not synced: %q", got)
	}
	write(t, f, "n", 0)
	crashed := m.Crash(0, rng)
	again, err := crashed.Open("/d/f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, again, "x", 0)
	if got := read(t, crashed.Crash(0, rng), "/d/f"); got != "ne\x00" {
		t.Errorf("second crash: %q", got)
	}
}

func TestCrashOfSectors(t *testing.T) {
	m, f := disk(t)
	if err := f.Truncate(10 * sector); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), m.SyncDir("/d")); err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		write(t, f, "x", i*sector)
	}
	seen := map[int]bool{}
	for seed := range int64(50) {
		got, n := read(t, m.Crash(50, rand.New(rand.NewSource(seed))), "/d/f"), 0
		if got != read(t, m.Crash(50, rand.New(rand.NewSource(seed))), "/d/f") {
			t.Fatal("one seed, two disks")
		}
		for i := range 10 {
			if got[i*sector] == 'x' {
				n++
			}
		}
		seen[n] = true
	}
	if len(seen) < 4 {
		t.Errorf("numbers of surviving sectors: %v", seen)
	}
}

func TestCrashOfDirectories(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	m, f := disk(t)
	write(t, f, "old", 0)
	if err := errors.Join(f.Sync(), m.SyncDir("/d"), (Files{m}).WriteFile("/d/tmp", []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if err := m.Rename("/d/tmp", "/d/f"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "old" {
		t.Errorf("rename not synced: %q", got)
	}
	for seed := range int64(20) { // a rename is whole: the name always has one of both
		if got := read(t, m.Crash(50, rand.New(rand.NewSource(seed))), "/d/f"); got != "old" && got != "new" {
			t.Errorf("rename half done: %q", got)
		}
	}
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "new" {
		t.Errorf("rename synced: %q", got)
	}
	if err := m.Remove("/d/f"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/d/f"); got != "new" {
		t.Errorf("removal not synced: %q", got)
	}
	if err := m.MkdirAll("/e/f"); err != nil {
		t.Fatal(err)
	}
	if err := (Files{m}).WriteFile("/e/f/g", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := m.SyncDir("/e/f"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, m.Crash(0, rng), "/e/f/g"); got != "-" {
		t.Errorf("directory not synced: %q", got)
	}
}

func TestCapacity(t *testing.T) {
	m, f := disk(t)
	m.SetCapacity(2 * page)
	if err := f.Truncate(100 * page); err != nil {
		t.Fatal("a sparse file takes room:", err)
	}
	n, err := f.WriteAt(make([]byte, 3*page), 10)
	if n != 2*page-10 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt = %d, %v", n, err)
	}
	if used, free, _ := m.Usage("/d"); used != 1 || free != 0 {
		t.Errorf("Usage = %v, %d", used, free)
	}
	if n, err := f.WriteAt([]byte("x"), 100); n != 1 || err != nil {
		t.Errorf("write where there is room: %d, %v", n, err)
	}
	if err := m.Remove("/d/f"); err != nil {
		t.Fatal(err)
	}
	if used, free, _ := m.Usage("/d"); used != 0 || free != 2*page {
		t.Errorf("Usage after the removal = %v, %d", used, free)
	}
}
