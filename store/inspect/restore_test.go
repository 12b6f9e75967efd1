package inspect

import (
	"fmt"
	"math/rand"
	"strings"
	"syscall"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

// storeWithAside is a store whose recovery has put records aside: of 60 messages some are lost in a hole, and the rest
// stands behind it. A half message is among them.
func storeWithAside(t *testing.T) (mem *vfs.Mem, folder string) {
	t.Helper()
	mem = vfs.NewMem(nil)
	s := openWith(t, mem)
	var hole, file int64
	for n := range 60 {
		m := &message.Message{Topic: "T", QueueId: int32(n % 2), Body: fmt.Appendf(nil, "body %03d", n), BornTimestamp: int64(n), BornHost: host, StoreHost: host,
			Properties: fmt.Sprintf("KEYS\x01key%d\x02TAGS\x01Tag%d", n, n%3)}
		switch n {
		case 50:
			m.Topic, m.SysFlag = message.TopicTransHalf, message.TransactionNot
		case 51, 52: // the same twice: both are kept
			m.Body, m.BornTimestamp, m.Properties, m.QueueId = []byte("twins"), 7, "", 0
		}
		p := &store.Put{Message: m}
		s.Put([]*store.Put{p})
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		if n == 20 {
			hole = p.PhyOffset
		}
	}
	file = hole / (64 << 10) * (64 << 10)
	disk := mem.Crash(100, rand.New(rand.NewSource(1)))
	closeStore(t, s)
	f, err := disk.Open(fmt.Sprintf("/store/commitlog/%020d", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Zero(hole-file, 100); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := disk.Remove("/store/checkpoint"); err != nil && !strings.Contains(err.Error(), "not exist") {
		t.Fatal(err)
	}
	s = openWith(t, disk)
	p := &store.Put{Message: &message.Message{Topic: "T", Body: []byte("after"), BornHost: host, StoreHost: host}}
	s.Put([]*store.Put{p})
	if p.Err != nil || p.PhyOffset != hole {
		t.Fatal(p.Err, p.PhyOffset, hole)
	}
	closeStore(t, s)
	return disk, fmt.Sprintf("damaged-%020d", hole)
}

func openWith(t *testing.T, fsys vfs.FS) *store.Store {
	t.Helper()
	s, err := store.Open(smallConfig(), store.Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

// bodies counts the bodies of all messages of a store.
func bodies(t *testing.T, fsys vfs.FS) map[string]int {
	t.Helper()
	s := openWith(t, fsys)
	defer func() { closeStore(t, s) }()
	all := map[string]int{}
	for _, topic := range s.Topics() {
		for _, id := range s.Queues(topic) {
			for at := s.MinOffset(topic, id); at < s.MaxOffset(topic, id); at++ {
				got := s.Get(topic, id, at, 1, nil)
				if got.Count != 1 {
					t.Fatalf("%s %d %d: %v", topic, id, at, got.Status)
				}
				all[string(message.Record(got.Body).Body())]++
			}
		}
	}
	return all
}

// wantRestored looks for the bodies of messages 0 to 19, which were never lost, and of those that restore brings back: all
// but the one or two in the hole, and the half message.
func wantRestored(t *testing.T, got map[string]int, first int) {
	t.Helper()
	for n := range 60 {
		want := 1
		if n >= 20 && n < first || n >= 50 && n <= 52 {
			want = 0
		}
		if body := fmt.Sprintf("body %03d", n); got[body] != want {
			t.Errorf("%q is there %d times, want %d", body, got[body], want)
		}
	}
	if got["twins"] != 2 || got["after"] != 1 {
		t.Errorf("twins %d, after %d", got["twins"], got["after"])
	}
}

func TestRestore(t *testing.T) {
	mem, folder := storeWithAside(t)
	info, err := open(t, mem).Info()
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Aside) != 1 || info.Aside[0].Dir != folder || info.Aside[0].Restored || info.Aside[0].Messages+1 != info.Aside[0].Records {
		t.Fatalf("%+v", info.Aside)
	}
	first := 60 - int(info.Aside[0].Records)
	if first > 22 {
		t.Fatalf("%d records are put aside", info.Aside[0].Records)
	}
	if r := verifyStore(t, mem); !strings.Contains(strings.Join(r.Notes, "\n"), folder) {
		t.Errorf("notes %q", r.Notes)
	}
	options := Options{FS: mem, Root: "/store"}
	r, err := Repair(options, RepairOptions{DryRun: true, Restore: true})
	if err != nil || len(r.Steps) != 1 || r.Steps[0].What != "restore" {
		t.Fatalf("%+v %v", r, err)
	}
	if got := bodies(t, mem); got["body 030"] != 0 {
		t.Error("a dry run restores")
	}
	for range 2 { // the second time there is nothing to do
		if r, err = Repair(options, RepairOptions{Restore: true}); err != nil {
			t.Fatal(err)
		}
		wantClean(t, r.Left)
		wantRestored(t, bodies(t, mem), first)
	}
	if len(r.Steps) != 0 {
		t.Errorf("%+v", r.Steps)
	}
	if info, err = open(t, mem).Info(); err != nil || len(info.Aside) != 1 || !info.Aside[0].Restored {
		t.Errorf("%+v %v", info.Aside, err)
	}
	if there, err := open(t, mem).exists("/store/" + folder); there || err != nil {
		t.Error(there, err)
	}
}

// However a restore is cut short, the next one completes it, and no message is there twice.
func TestRestoreInterrupted(t *testing.T) {
	whole, folder := storeWithAside(t)
	info, err := open(t, whole).Info()
	if err != nil || info.Aside[0].Dir != folder {
		t.Fatal(err)
	}
	first := 60 - int(info.Aside[0].Records)
	rng := rand.New(rand.NewSource(1))
	for i, more := 0, true; more; i += 5 {
		mem := whole.Crash(100, rng)
		failing := vfs.NewFault(mem, func(o vfs.Op) error {
			if o.Index >= i && o.Kind != vfs.OpClose {
				return syscall.EIO
			}
			return nil
		})
		_, err := Repair(Options{FS: failing, Root: "/store"}, RepairOptions{Restore: true})
		if more = failing.Count() > i; more && err == nil {
			t.Fatalf("operation %d failed, and nothing is said", i)
		}
		for _, percent := range []int{100, 50} {
			disk := mem.Crash(percent, rng)
			if _, err := Repair(Options{FS: disk, Root: "/store"}, RepairOptions{Restore: true}); err != nil {
				t.Fatalf("operation %d: %v", i, err)
			}
			wantRestored(t, bodies(t, disk), first)
			if t.Failed() {
				t.Fatalf("operation %d, %d percent", i, percent)
			}
		}
	}
}
