package store

import (
	"os"
	"path"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// oddStore is a store on the operating system's files with 100 messages, closed.
func oddStore(t *testing.T) Config {
	t.Helper()
	cfg := smallConfig(t.TempDir())
	s := openStore(t, vfs.OS, cfg, Options{})
	for n := range 100 {
		put(t, s, newMessage("T", int32(n%2), n))
	}
	closeStore(t, s)
	return cfg
}

// TestCheckpointThatIsNoFile: it is put aside, and nothing is missing.
func TestCheckpointThatIsNoFile(t *testing.T) {
	t.Parallel()
	cfg := oddStore(t)
	name := path.Join(cfg.StorePathRootDir, "checkpoint")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, vfs.OS, cfg, Options{})
	if got := readAll(t, s, "T", 0); len(got) != 50 {
		t.Errorf("%d messages", len(got))
	}
	closeStore(t, s)
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		t.Errorf("no new checkpoint: %v", err)
	}
	if info, err := os.Stat(name + ".damaged"); err != nil || !info.IsDir() {
		t.Errorf("not kept: %v", err)
	}
}

// TestLinkedFolders: folders and files may have been moved to other disks; while such a disk is not there the store does not
// open, for queue offsets would begin at 0 again.
func TestLinkedFolders(t *testing.T) {
	for _, name := range []string{"commitlog", "consumequeue", "consumequeue/T", "consumequeue/T/0", "consumequeue/T/0/00000000000000000000", "commitlog/00000000000000000000", "index"} {
		t.Run(name, func(t *testing.T) {
			cfg := oddStore(t)
			at, away := path.Join(cfg.StorePathRootDir, name), path.Join(t.TempDir(), "away")
			if err := os.Rename(at, away); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, at); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, vfs.OS, cfg, Options{})
			if p := put(t, s, newMessage("T", 0, 100))[0]; p.QueueOffset != 50 {
				t.Errorf("queue offset %d", p.QueueOffset)
			}
			if got := readAll(t, s, "T", 0); len(got) != 51 {
				t.Errorf("%d messages", len(got))
			}
			closeStore(t, s)
			if info, err := os.Lstat(at); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link has gone: %v", err)
			}
			if err := os.Rename(away, away+"2"); err != nil {
				t.Fatal(err)
			}
			if name == "index" {
				return // keys are no messages
			}
			if s, err := tryOpen(vfs.OS, cfg, Options{}); err == nil {
				closeStore(t, s)
				t.Error("it opens without what the link leads to")
			}
			if err := os.Rename(away+"2", away); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, vfs.OS, cfg, Options{})
			if got := readAll(t, s, "T", 0); len(got) != 51 {
				t.Errorf("%d messages when it is back", len(got))
			}
			closeStore(t, s)
		})
	}
}

// TestWrongSizeNamesTheKey: a store whose files have another size says which key to set.
func TestWrongSizeNamesTheKey(t *testing.T) {
	cfg := oddStore(t)
	for _, size := range []int{32 << 10, 128 << 10} {
		cfg.MappedFileSizeCommitLog = size
		if _, err := tryOpen(vfs.OS, cfg, Options{}); err == nil || !strings.Contains(err.Error(), "set mappedFileSizeCommitLog to") {
			t.Errorf("%d: %v", size, err)
		}
	}
}
