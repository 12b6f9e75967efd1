package inspect

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// Units of the official broker are followed, checked against the log, shown, and mended where they are damaged.
func TestVerifyUnits(t *testing.T) {
	const folder, file = "/store/consumequeue_ext/Disk/1", "/store/consumequeue_ext/Disk/1/00000000000000000000"
	put := func(at int64, b []byte) func(*vfs.Mem) error {
		return func(mem *vfs.Mem) error {
			f, err := mem.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(b, at)
			return err
		}
	}
	resize := func(name string, size int64) func(*vfs.Mem) error {
		return func(mem *vfs.Mem) error {
			f, err := mem.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(size)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*vfs.Mem) error
		kinds  string
		gone   bool // the units go with the repair
	}{
		{"nothing", func(*vfs.Mem) error { return nil }, "", false},
		{"the folder is gone", func(mem *vfs.Mem) error { return mem.RemoveAll(folder) }, QueueEntryTags, true},
		{"a tagsCode", put(20*3+2, be64(99)), QueueEntryTags, true},
		{"a size", put(20*3, []byte{0, 77}), QueueEntryTags + " " + UnitChain, true},
		{"a size behind the last unit", put(20*25+4, []byte{1, 1}), "", false},
		{"the end of the file", put(20*25, []byte{0, 77}), UnitChain, false},
		{"the length", resize(folder+"/00000000000000000512", 500), UnitFile, true},
		{"a foreign file", func(mem *vfs.Mem) error { return vfs.Files{FS: mem}.WriteFile(folder+"/x", []byte("x")) }, UnitFile, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := unpack(t, "extended")
			// Without it the queue of a deleted topic would be missed.
			topics := []byte(`{"topicConfigTable":{"Disk":{"topicName":"Disk"}}}`)
			if err := errors.Join(mem.MkdirAll("/store/config"), vfs.Files{FS: mem}.WriteFile("/store/config/topics.json", topics)); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(mem); err != nil {
				t.Fatal(err)
			}
			r := verifyStore(t, mem)
			kinds := []string{}
			for k := range r.Counts {
				kinds = append(kinds, k)
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Fatalf("findings %q, want %q: %v", got, c.kinds, r.Findings)
			}
			repairClean(t, mem, RepairOptions{})
			if there, err := open(t, mem).exists(folder); err != nil || there == c.gone {
				t.Errorf("the units are there: %v, %v", there, err)
			}
		})
	}
}

func TestShowUnits(t *testing.T) {
	d := open(t, unpack(t, "extended"))
	info, err := d.Info()
	if err != nil || info.Extended.Queues != 10 || info.Extended.Files < 15 || info.Extended.Bytes != int64(info.Extended.Files)*512 {
		t.Fatalf("%+v %v", info.Extended, err)
	}
	n := int64(0)
	err = d.QueueEntries(Query{Topic: "Disk", QueueId: 1, Limit: 1000}, func(e *QueueEntry) error {
		if u := e.Unit; u == nil || u.Damage != "" || u.StoreTimestamp < 1795900000000 || u.Offset != n/25*512+n%25*20 {
			t.Errorf("entry %d: %+v", e.QueueOffset, e.Unit)
		}
		n++
		return nil
	})
	if err != nil || n < 30 {
		t.Error(n, err)
	}
	if !bytes.Equal(read(t, d.fs, "/store/consumequeue_ext/Disk/1/00000000000000000000")[500:502], []byte{0xff, 0xff}) {
		t.Error("the first file of units is not full")
	}
}
