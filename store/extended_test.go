package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
	"rocketd/store/vfs"
)

// extendedConfig is a configuration with enableConsumeQueueExt.
func extendedConfig(cfg Config) Config {
	cfg.EnableConsumeQueueExt, cfg.MappedFileSizeConsumeQueueExt = true, 4096
	return cfg
}

// unitOf tells what is wrong with the unit of a record whose entry leads to one.
func unitOf(s *Store, r message.Record) error {
	entries, _, err := s.Entries(r.Topic(), r.QueueId(), r.QueueOffset(), 1)
	if err != nil || len(entries) != 1 || !entries[0].IsExtAddress() {
		return err
	}
	u, ok := s.Unit(r.Topic(), r.QueueId(), entries[0].TagsCode)
	want := message.TagsCode(r.Properties())
	if level, delayed := r.Property("DELAY"); delayed && r.Topic() == message.TopicSchedule {
		var n int
		if _, err := fmt.Sscan(level, &n); err != nil {
			return err
		}
		want = s.o.DeliverTime(n, r.StoreTimestamp())
	}
	if !ok || u.TagsCode != want || u.StoreTimestamp != r.StoreTimestamp() {
		return fmt.Errorf("%s %d %d leads to the unit at %d: %+v %v, want %d %d", r.Topic(), r.QueueId(), r.QueueOffset(),
			consumequeue.UnitOffset(entries[0].TagsCode), u, ok, want, r.StoreTimestamp())
	}
	return nil
}

// extendedEntries counts the entries that lead to a unit and the others, and checks the units.
func extendedEntries(t *testing.T, s *Store) (extended, plain int) {
	t.Helper()
	for _, topic := range s.Topics() {
		for _, queueId := range s.Queues(topic) {
			for offset := s.MinOffset(topic, queueId); offset < s.MaxOffset(topic, queueId); offset++ {
				entries, _, err := s.Entries(topic, queueId, offset, 1)
				if err != nil || len(entries) != 1 {
					t.Fatalf("%s %d %d: %v %v", topic, queueId, offset, entries, err)
				}
				if !entries[0].IsExtAddress() {
					plain++
					continue
				}
				extended++
				if r, err := s.Record(entries[0].PhyOffset); err != nil {
					t.Error(err)
				} else if err := unitOf(s, r); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return extended, plain
}

// filesBelow are the files of a folder with their content.
func filesBelow(t *testing.T, mem vfs.FS, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := mem.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			for k, v := range filesBelow(t, mem, name) {
				all[k] = v
			}
			continue
		}
		if all[name], err = (vfs.Files{FS: mem}).ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// What the official broker wrote is read, and made again from its log it is the same to the byte.
func TestOfficialUnits(t *testing.T) {
	mem := unpack(t, "extended")
	cfg := extendedConfig(smallConfig("/store"))
	cfg.MappedFileSizeConsumeQueueExt = 512
	s := openStore(t, mem, cfg, Options{})
	if extended, plain := extendedEntries(t, s); extended < 100 || plain > 0 {
		t.Errorf("%d entries lead to units, %d to none", extended, plain)
	}
	closeStore(t, s)
	want := filesBelow(t, mem, "/store/consumequeue_ext")
	for _, dir := range []string{"consumequeue", "consumequeue_ext"} {
		if err := mem.RemoveAll("/store/" + dir); err != nil {
			t.Fatal(err)
		}
	}
	s = openStore(t, mem, cfg, Options{})
	extendedEntries(t, s)
	closeStore(t, s)
	got := filesBelow(t, mem, "/store/consumequeue_ext")
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			t.Errorf("%s is not as the official broker wrote it", name)
		}
	}
	if len(want) < 10 {
		t.Errorf("only %d files", len(want))
	}
}

// bitFilter takes what has a bit in its unit's map, and notes which records it is asked about.
type bitFilter struct {
	code  int64
	bit   byte
	asked int
}

func (f *bitFilter) MatchQueue(tagsCode int64) bool { return f.code == 0 || tagsCode == f.code }
func (f *bitFilter) MatchUnit(storeTimestamp int64, bitMap []byte) bool {
	return storeTimestamp > 0 && (bitMap == nil || bitMap[0]&f.bit != 0)
}
func (f *bitFilter) MatchRecord(message.Record) bool { f.asked++; return true }

// The tagsCode and the bit map of a unit decide before a record is read; of units in memory as of those in files.
func TestGetFiltersByUnit(t *testing.T) {
	cfg := extendedConfig(smallConfig("/store"))
	cfg.MappedFileSizeConsumeQueue = 100_000
	bits := func(dst []byte, topic, properties string) []byte {
		if topic != "T" {
			return dst
		}
		keys, _ := message.Property(properties, "UNIQ_KEY")
		return append(dst, 1<<(keys[len(keys)-1]-'0')&0xff, 0xee)
	}
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, cfg, Options{FilterBitMap: bits})
	defer func() { closeStore(t, s) }()
	var run []*message.Message
	for n := range 400 {
		run = append(run, newMessage("T", 0, n), newMessage("Other", 0, n))
	}
	put(t, s, run...)
	for range 2 {
		for _, c := range []struct {
			name, topic string
			f           bitFilter
			want        string
		}{
			{"by bit", "T", bitFilter{bit: 1 << 3}, "[3 13 23 33]"},
			{"by tag", "T", bitFilter{code: int64(compat.HashCode("Tag1")), bit: 0xff}, "[1 3 5 7]"},
			{"by both", "T", bitFilter{code: int64(compat.HashCode("Tag0")), bit: 1 << 4}, "[4 14 24 34]"},
			{"without a bit map", "Other", bitFilter{bit: 1}, "[0 1 2 3]"},
		} {
			var got []int64
			for _, r := range records(t, s.Get(c.topic, 0, 0, 4, &c.f).Body) {
				got = append(got, r.QueueOffset())
			}
			if fmt.Sprint(got) != c.want || c.f.asked != 4 {
				t.Errorf("%s: %v, want %s; %d records were asked about", c.name, got, c.want, c.f.asked)
			}
		}
		if err := s.saveCheckpoint(); err != nil { // the same from the files
			t.Fatal(err)
		}
	}
}

// Files of units that are damaged, gone or of another size cost the filtering at the broker and nothing else: all messages
// are there, and no old entry ever leads to a new unit. Likewise with the option off and on again.
func TestDamagedUnits(t *testing.T) {
	t.Parallel()
	const file = "/store/consumequeue_ext/T/0/00000000000000000000"
	write := func(at int64, b ...byte) func(vfs.FS) error {
		return func(fsys vfs.FS) error {
			f, err := fsys.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(b, at)
			return err
		}
	}
	const last = 99 * 20 // the unit of the last message
	for _, c := range []struct {
		name   string
		damage func(vfs.FS) error
		off    bool // the option is off for a while
		lost   bool // the entry of the last message leads to nothing
		plain  int  // entries without a unit at the end
		next   int64
	}{
		{name: "nothing", next: 100 * 20},
		{name: "the folder is gone", damage: func(f vfs.FS) error { return f.RemoveAll("/store/consumequeue_ext") }, lost: true, next: 4096},
		{name: "the file is gone", damage: func(f vfs.FS) error { return f.Remove(file) }, lost: true, next: 4096},
		{name: "the last unit is zero", damage: write(last, make([]byte, 20)...), lost: true, next: 4096},
		{name: "the last unit is garbage", damage: write(last, bytes.Repeat([]byte{0x77}, 20)...), lost: true, next: 4096},
		{name: "something behind the end", damage: write(last+20, bytes.Repeat([]byte{0x77}, 1000)...), next: 100 * 20},
		{name: "an empty file", damage: func(f vfs.FS) error { return resize(f, file, 0) }, lost: true, next: 4096},
		{name: "a short file", damage: func(f vfs.FS) error { return resize(f, file, 1000) }, lost: true, plain: 60},
		{name: "a foreign file", damage: func(f vfs.FS) error { return vfs.Files{FS: f}.WriteFile(path.Dir(file)+"/x", nil) }, plain: 60},
		{name: "the option was off", off: true, plain: 50, next: 100 * 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, cfg := vfs.NewMem(nil), extendedConfig(smallConfig("/store"))
			cfg.MappedFileSizeConsumeQueue = 100_000
			sendTo := func(from, to int) {
				s := openStore(t, mem, cfg, Options{})
				for n := from; n < to; n++ {
					put(t, s, newMessage("T", 0, n))
				}
				closeStore(t, s)
			}
			sendTo(0, 100)
			if c.damage != nil {
				if err := c.damage(mem); err != nil {
					t.Fatal(err)
				}
			}
			cfg.EnableConsumeQueueExt = !c.off
			sendTo(100, 150)
			cfg.EnableConsumeQueueExt = true
			sendTo(150, 160)
			s := openStore(t, mem, cfg, Options{})
			defer func() { closeStore(t, s) }()
			plain, broken, next := 0, 0, int64(0)
			for n := range int64(160) {
				entries, _, err := s.Entries("T", 0, n, 1)
				if err != nil || len(entries) != 1 {
					t.Fatalf("entry %d: %v %v", n, entries, err)
				}
				e := entries[0]
				if !e.IsExtAddress() {
					plain++
					continue
				}
				if n >= 100 && next == 0 {
					next = consumequeue.UnitOffset(e.TagsCode)
				}
				r, err := s.Record(e.PhyOffset)
				if err != nil {
					t.Fatal(err)
				}
				if u, ok := s.Unit("T", 0, e.TagsCode); !ok {
					broken++
				} else if u.TagsCode != message.TagsCode(r.Properties()) || u.StoreTimestamp != r.StoreTimestamp() {
					t.Errorf("entry %d leads to a unit of another record", n)
				}
				if got := s.Get("T", 0, n, 1, byTag{message.TagsCode(r.Properties()), ""}); got.Status != Found || got.Count != 1 {
					t.Errorf("entry %d: %+v", n, got.Status)
				}
			}
			if plain != c.plain || next != c.next || (broken > 0) != c.lost {
				t.Errorf("%d entries without a unit, want %d; %d whose unit is lost; the next unit was put at %d, want %d", plain, c.plain, broken, next, c.next)
			}
		})
	}
}

func resize(fsys vfs.FS, name string, size int64) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

// The time of a delayed message is in its unit; without that it is calculated again.
func TestDelayedUnits(t *testing.T) {
	mem, cfg := vfs.NewMem(nil), extendedConfig(smallConfig("/store"))
	due := func(level int, storeTimestamp int64) int64 { return storeTimestamp + int64(level)*1000 }
	s := openStore(t, mem, cfg, Options{DeliverTime: due})
	m := newMessage(message.TopicSchedule, 2, 1)
	m.Properties = "DELAY\x013\x02" + m.Properties
	put(t, s, m)
	for range 2 {
		e, ok := s.Entry(message.TopicSchedule, 2, 0)
		r, err := s.Record(e.PhyOffset)
		if !ok || err != nil || e.TagsCode != r.StoreTimestamp()+3000 {
			t.Errorf("%+v %v, %v", e, ok, err)
		}
		closeStore(t, s)
		if err := mem.RemoveAll("/store/consumequeue_ext"); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, mem, cfg, Options{DeliverTime: due})
	}
	closeStore(t, s)
}

// Units go with the queue, and with the log's minimum.
func TestUnitsGo(t *testing.T) {
	t.Parallel()
	mem, cfg := vfs.NewMem(nil), extendedConfig(smallConfig("/store"))
	s := openStore(t, mem, cfg, Options{})
	for n := range 1000 {
		put(t, s, newMessage("T", 0, n), newMessage("Gone", 1, n))
	}
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	all := len(filesBelow(t, mem, "/store/consumequeue_ext/T"))
	if all != 5 { // 203 units of 20 bytes in 4092
		t.Errorf("%d files of units", all)
	}
	if err := s.DeleteTopics(func(topic string) bool { return topic == "T" }); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Stat("/store/consumequeue_ext/Gone"); err == nil {
		t.Error("units of a deleted topic are left")
	}
	starts := s.log.FileStarts()
	if _, err := s.log.DeleteBefore(starts[len(starts)-1].Offset, 1000); err != nil {
		t.Fatal(err)
	}
	if err := s.deleteExpiredDerived(nil); err != nil {
		t.Fatal(err)
	}
	if left := len(filesBelow(t, mem, "/store/consumequeue_ext/T")); left != 1 {
		t.Errorf("%d files of units are left", left)
	}
	if extended, plain := extendedEntries(t, s); extended == 0 || plain > 0 {
		t.Errorf("%d %d", extended, plain)
	}
	closeStore(t, s)
}

// The promises hold with units too: none is lost, none is another's, whatever fails.
func TestUnitsAfterCrashes(t *testing.T) {
	t.Run("power", func(t *testing.T) { t.Parallel(); cutAtEverySync(t, extendedConfig(crashConfig(SyncFlush))) })
	t.Run("kill", func(t *testing.T) { t.Parallel(); killAtEveryWrite(t, extendedConfig(crashConfig(AsyncFlush))) })
	t.Run("failure", func(t *testing.T) {
		t.Parallel()
		for i, more := 0, true; more; i++ {
			var err error
			if more, err = failThenCrash(i, syscall.EIO, false, extendedConfig(crashConfig(AsyncFlush))); err != nil {
				t.Fatalf("operation %d: %v", i, err)
			}
		}
	})
}

// A folder that can't be looked into is no reason not to start, nor not to store.
func TestUnitsThatCannotBeListed(t *testing.T) {
	mem, cfg := vfs.NewMem(nil), extendedConfig(smallConfig("/store"))
	fsys := vfs.NewFault(mem, func(o vfs.Op) error {
		if strings.Contains(o.Name, "consumequeue_ext/") {
			return fs.ErrPermission
		}
		return nil
	})
	s := openStore(t, fsys, cfg, Options{})
	put(t, s, newMessage("T", 0, 1))
	if got := s.Get("T", 0, 0, 1, nil); got.Count != 1 {
		t.Errorf("%+v", got)
	}
	closeStore(t, s)
}
