package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

// repairClean mends a store and fails the test when something is left, or when the store does not open then.
func repairClean(t testing.TB, mem *vfs.Mem, o RepairOptions) *RepairReport {
	t.Helper()
	r, err := Repair(Options{FS: mem, Root: "/store"}, o)
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, r.Left)
	opens(t, mem)
	return r
}

// opens opens the store on a copy of the disk, and verifies what that leaves.
func opens(t testing.TB, mem *vfs.Mem) {
	t.Helper()
	again := mem.Crash(100, rand.New(rand.NewSource(1)))
	s, err := store.Open(smallConfig(), store.Options{FS: again})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	closeStore(t, s)
	wantClean(t, verifyStore(t, again))
}

const (
	log0   = "/store/commitlog/00000000000000000000"
	log1   = "/store/commitlog/00000000000000065536"
	folder = "/store/consumequeue/StoreTopic/2"
	queue0 = folder + "/00000000000000000000"
	queue1 = folder + "/00000000000000001000"
	index0 = "/store/index/20261129185426690"
	index1 = "/store/index/20261129185427869"
)

func be32(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
func be64(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// damages is each kind of damage to the official store that was stopped, whose log ends at 75289. The records at 0 and
// 235 are of queues 2 and 3.
var damages = []struct {
	name   string
	damage func(t *testing.T, mem *vfs.Mem)
	kinds  []string // that are found
	file   string   // of the first finding of the first kind
	offset int64
	fill   bool // needed to mend it
	left   []string
}{
	{name: "body", kinds: []string{RecordCRC}, file: "commitlog/00000000000000000000", offset: 235, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 235+88, []byte("X")) }},
	{name: "zeroed page", kinds: []string{RecordDamaged, QueueEntryStray, QueueOffsets, IndexEntryWrong}, file: "commitlog/00000000000000000000", offset: 9 * 235, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 2048, make([]byte, 2048)) }},
	{name: "record size", kinds: []string{RecordDamaged}, file: "commitlog/00000000000000000000", offset: 235, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 235, be32(1<<30)) }},
	{name: "physical offset", kinds: []string{RecordDamaged}, file: "commitlog/00000000000000000000", offset: 235, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 235+28, be64(236)) }},
	{name: "queue offset", kinds: []string{RecordOffset}, file: "commitlog/00000000000000000000", offset: 1410,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 1410+20, be64(0)) }},
	{name: "queue offset far off", kinds: []string{RecordOffset}, file: "commitlog/00000000000000000000", offset: 1410,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 1410+20, be64(-5)) }},
	{name: "first queue offset beyond all", kinds: []string{RecordOffset}, file: "commitlog/00000000000000000000",
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, 20, be64(1<<62)) }},
	{name: "queue offset and queue", kinds: []string{RecordOffset}, file: "commitlog/00000000000000000000", offset: 1410, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) {
			patch(t, mem, log0, 1410+20, be64(1<<40))
			patch(t, mem, "/store/consumequeue/StoreTopic/0/00000000000000000000", 20, make([]byte, 8))
		}},
	{name: "blank record", kinds: []string{BlankRecord}, file: "commitlog/00000000000000000000",
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, blankAt(t, mem), be32(9)) }, offset: -1},
	{name: "no blank record", kinds: []string{RecordDamaged}, file: "commitlog/00000000000000000000", fill: true, offset: -1,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log0, blankAt(t, mem), make([]byte, 8)) }},
	{name: "torn last record", kinds: []string{TornTail, QueueEntryStray, IndexEntryWrong}, file: "commitlog/00000000000000065536", offset: 75049 - 65536,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log1, 75049-65536+60, make([]byte, 180)) }},
	{name: "last body", kinds: []string{RecordCRC}, file: "commitlog/00000000000000065536", offset: 75049 - 65536,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, log1, 75049-65536+90, []byte("X")) }},
	{name: "file behind the end", kinds: []string{TornTail}, file: "commitlog/00000000000000131072",
		damage: func(t *testing.T, mem *vfs.Mem) {
			write(t, mem, "/store/commitlog/00000000000000131072", slices.Concat([]byte("old"), make([]byte, 65536-3)))
		}},
	{name: "short log file", kinds: []string{LogFileSize}, file: "commitlog/00000000000000065536", offset: 20000,
		damage: func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, log1, 20000) }},
	{name: "long log file", kinds: []string{LogFileSize}, file: "commitlog/00000000000000065536", offset: 65536,
		damage: func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, log1, 70000) }},
	{name: "missing entry", kinds: []string{QueueEntryMissing}, file: "consumequeue/StoreTopic/2/00000000000000000000", offset: 60,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, queue0, 60, make([]byte, 20)) }},
	{name: "entry of another record", kinds: []string{QueueEntryWrong}, file: "consumequeue/StoreTopic/2/00000000000000000000", offset: 20,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, queue0, 20, be64(235)) }},
	{name: "size of an entry", kinds: []string{QueueEntryWrong}, file: "consumequeue/StoreTopic/2/00000000000000001000", offset: 0,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, queue1, 8, be32(5)) }},
	{name: "tagsCode", kinds: []string{QueueEntryTags}, file: "consumequeue/StoreTopic/2/00000000000000000000", offset: 40,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, queue0, 52, be64(17)) }},
	{name: "time of delivery", kinds: []string{QueueEntryTags}, file: "consumequeue/SCHEDULE_TOPIC_XXXX/2/00000000000000000000", offset: 0,
		damage: func(t *testing.T, mem *vfs.Mem) {
			patch(t, mem, "/store/consumequeue/SCHEDULE_TOPIC_XXXX/2/00000000000000000000", 12, be64(17))
		}},
	{name: "entry behind the end of the log", kinds: []string{QueueEntryStray}, file: "consumequeue/StoreTopic/2/00000000000000001000", offset: 21 * 20,
		damage: func(t *testing.T, mem *vfs.Mem) {
			patch(t, mem, queue1, 21*20, slices.Concat(be64(75289), be32(200), be64(0)))
		}},
	{name: "entry twice", kinds: []string{QueueEntryStray}, file: "consumequeue/StoreTopic/2/00000000000000001000", offset: 21 * 20,
		damage: func(t *testing.T, mem *vfs.Mem) {
			patch(t, mem, queue1, 21*20, read(t, mem, queue1)[20*20:21*20])
		}},
	{name: "garbage behind a hole", kinds: []string{QueueEntryStray}, file: "consumequeue/StoreTopic/2/00000000000000001000", offset: 30 * 20,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, queue1, 30*20, []byte("garbage")) }},
	{name: "short queue file", kinds: []string{QueueFileSize, QueueEntryMissing}, file: "consumequeue/StoreTopic/2/00000000000000000000", offset: 500,
		damage: func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, queue0, 500) }},
	{name: "missing first queue file", kinds: []string{QueueEntryMissing}, file: "consumequeue/StoreTopic/2/00000000000000000000",
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, queue0) }},
	{name: "missing queue", kinds: []string{QueueMissing}, file: "consumequeue/StoreTopic/2",
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, folder) }},
	{name: "all queues missing", kinds: []string{QueueMissing}, file: "consumequeue/%DLQ%StoreDead/0", left: []string{QueueMissing},
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, "/store/consumequeue") }},
	{name: "stray queue file", kinds: []string{QueueFileName}, file: "consumequeue/StoreTopic/2/notes.txt",
		damage: func(t *testing.T, mem *vfs.Mem) { write(t, mem, folder+"/notes.txt", []byte("hi")) }},
	{name: "misnamed queue file", kinds: []string{QueueFileName}, file: "consumequeue/StoreTopic/2/00000000000000002020",
		damage: func(t *testing.T, mem *vfs.Mem) { write(t, mem, folder+"/00000000000000002020", make([]byte, 1000)) }},
	{name: "queue file behind a gap", kinds: []string{QueueFileMissing}, file: "consumequeue/StoreTopic/2/00000000000000002000",
		damage: func(t *testing.T, mem *vfs.Mem) { write(t, mem, folder+"/00000000000000003000", make([]byte, 1000)) }},
	{name: "index entry", kinds: []string{IndexEntryWrong, IndexChain, KeyMissing}, file: "index/20261129185426690", offset: 40 + 2000 + 100,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index0, 40+2000+100, be32(1)) }},
	{name: "offset of an index entry", kinds: []string{IndexEntryWrong, KeyMissing}, file: "index/20261129185426690", offset: 40 + 2000 + 100,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index0, 40+2000+104, be64(60000)) }},
	{name: "time of an index entry", kinds: []string{IndexEntryWrong}, file: "index/20261129185426690", offset: 40 + 2000 + 100,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index0, 40+2000+112, be32(99)) }},
	{name: "index chain", kinds: []string{IndexChain}, file: "index/20261129185427869", offset: 40 + 2000 + 20*350,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index1, 40+2000+20*350+16, be32(349)) }},
	{name: "index slots", kinds: []string{IndexChain}, file: "index/20261129185426690",
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index0, 40+400, make([]byte, 400)) }, offset: -1},
	{name: "index count", kinds: []string{KeyMissing, IndexChain, IndexHeader}, file: "commitlog/00000000000000000000", offset: -1,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index0, 36, be32(300)) }},
	{name: "begin of an index file", kinds: []string{IndexHeader}, file: "index/20261129185427869",
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index1, 0, be64(5)) }},
	{name: "end of an index file", kinds: []string{IndexHeader}, file: "index/20261129185427869",
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, index1, 8, be64(5)) }},
	{name: "missing index file", kinds: []string{KeyMissing}, file: "commitlog/00000000000000000000",
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, index0) }},
	{name: "missing index", kinds: []string{IndexMissing}, file: "index", left: []string{IndexMissing},
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, "/store/index") }},
	{name: "long index file", kinds: []string{IndexFileSize}, file: "index/20261129185427869", offset: 10040,
		damage: func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, index1, 10041) }},
	{name: "garbage configuration", kinds: []string{ConfigFile}, file: "config/topics.json",
		damage: func(t *testing.T, mem *vfs.Mem) { write(t, mem, "/store/config/topics.json", []byte("{\x00\x00")) }},
	{name: "empty configuration", kinds: []string{ConfigFile}, file: "config/consumerOffset.json",
		damage: func(t *testing.T, mem *vfs.Mem) { write(t, mem, "/store/config/consumerOffset.json", nil) }},
	{name: "missing configuration", kinds: []string{ConfigFile}, file: "config/subscriptionGroup.json",
		damage: func(t *testing.T, mem *vfs.Mem) { remove(t, mem, "/store/config/subscriptionGroup.json") }},
	{name: "no good configuration", kinds: []string{ConfigFile}, file: "config/delayOffset.json", left: []string{ConfigFile},
		damage: func(t *testing.T, mem *vfs.Mem) {
			write(t, mem, "/store/config/delayOffset.json", []byte("{"))
			write(t, mem, "/store/config/delayOffset.json.bak", []byte("]"))
		}},
	{name: "checkpoint of the future", kinds: []string{CheckpointFile}, file: "checkpoint", offset: 8,
		damage: func(t *testing.T, mem *vfs.Mem) { patch(t, mem, "/store/checkpoint", 8, be64(1<<50)) }},
	{name: "short checkpoint", kinds: []string{CheckpointFile}, file: "checkpoint",
		damage: func(t *testing.T, mem *vfs.Mem) { truncate(t, mem, "/store/checkpoint", 10) }},
	{name: "topic of a record", kinds: []string{RecordTopic}, file: "commitlog/00000000000000000000", offset: 235, fill: true,
		damage: func(t *testing.T, mem *vfs.Mem) {
			patch(t, mem, log0, int64(235+strings.Index(string(read(t, mem, log0)[235:470]), "StoreTopic")), []byte("Store/opic"))
		}},
}

// blankAt is the place of the blank record in the first file.
func blankAt(t *testing.T, mem *vfs.Mem) int64 {
	at := strings.LastIndex(string(read(t, mem, log0)), string(binary.BigEndian.AppendUint32(nil, message.BlankMagicCode)))
	if at < 0 {
		t.Fatal("no blank record")
	}
	return int64(at - 4)
}

func remove(t *testing.T, mem *vfs.Mem, name string) {
	t.Helper()
	if err := mem.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// Each damage is found, named with file and place, and mended.
func TestDamages(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			mem := unpack(t, "clean")
			c.damage(t, mem)
			r := verifyStore(t, mem)
			for _, kind := range c.kinds {
				if r.Counts[kind] == 0 {
					t.Errorf("no finding %s", kind)
				}
			}
			if t.Failed() || len(r.Findings) == 0 {
				t.Fatalf("%v %v", r.Findings, r.Notes)
			}
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == c.kinds[0] })
			if f := r.Findings[i]; f.File != c.file || c.offset >= 0 && f.Offset != c.offset {
				t.Errorf("the first of its kind is %v, want %s at %d", f, c.file, c.offset)
			}
			before := tree(t, mem, "/store")
			dry, err := Repair(Options{FS: mem, Root: "/store"}, RepairOptions{DryRun: true, Fill: c.fill})
			if err != nil || dry.Left != nil || len(dry.Steps) == 0 && c.left == nil {
				t.Errorf("dry run: %+v, %v", dry, err)
			}
			if name := sameTree(before, tree(t, mem, "/store")); name != "" {
				t.Errorf("the dry run has changed %s", name)
			}
			if c.fill {
				again := mem.Crash(100, rand.New(rand.NewSource(1)))
				plain, err := Repair(Options{FS: again, Root: "/store"}, RepairOptions{})
				if err != nil || plain.Left.Clean() {
					t.Errorf("without fill: %v, %v", plain.Left.Counts, err)
				}
			}
			if c.left == nil {
				repairClean(t, mem, RepairOptions{Fill: c.fill})
				return
			}
			done, err := Repair(Options{FS: mem, Root: "/store"}, RepairOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range slices.Collect(maps.Keys(done.Left.Counts)) {
				if !slices.Contains(c.left, kind) {
					t.Errorf("left is %v", done.Left.Findings)
				}
			}
		})
	}
}

// What repair makes anew is what the official broker had made, to the byte.
func TestRebuiltIsOfficial(t *testing.T) {
	official := tree(t, unpack(t, "clean"), "/store")
	mem := unpack(t, "clean")
	for _, name := range []string{queue0, "/store/consumequeue/SCHEDULE_TOPIC_XXXX/2/00000000000000000000", "/store/consumequeue/StoreOrder/1/00000000000000000000"} {
		patch(t, mem, name, 3, []byte("damage"))
	}
	r := repairClean(t, mem, RepairOptions{})
	if len(r.Steps) != 3 {
		t.Errorf("steps %v", r.Steps)
	}
	delete(official, "/store/lock")
	mended := tree(t, mem, "/store")
	delete(mended, "/store/lock")
	if name := sameTree(official, mended); name != "" {
		t.Errorf("%s is not as it was", name)
	}
}

// Damage beyond one place: a whole file of the log, in the middle.
func TestMissingLogFile(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	fillStore(t, s, 0, 600)
	closeStore(t, s)
	remove(t, mem, log1)
	r := verifyStore(t, mem)
	if r.Counts[LogFileMissing] != 1 || r.Findings[0].File != "commitlog/00000000000000065536" {
		t.Errorf("%v", r.Findings)
	}
	if _, err := store.Open(smallConfig(), store.Options{FS: mem}); err == nil {
		t.Error("the store opens")
	}
	repairClean(t, mem, RepairOptions{Fill: true})
}

// What a torn write leaves behind the end is cut; after an orderly stop it is no damage.
func TestTornTail(t *testing.T) {
	for _, name := range []string{"killed", "clean"} {
		mem := unpack(t, name)
		end := verifyStore(t, mem).MaxPhyOffset
		patch(t, mem, log1, end-65536, be32(200))
		r := verifyStore(t, mem)
		if r.MaxPhyOffset != end || r.Clean() != (name == "clean") {
			t.Errorf("%s: %v %v", name, r.Findings, r.Notes)
		}
		if name == "killed" {
			if f := r.Findings[0]; f.Kind != TornTail || f.File != "commitlog/00000000000000065536" || f.Offset != end-65536 {
				t.Error(f)
			}
		} else if !strings.Contains(strings.Join(r.Notes, " "), "harmless") {
			t.Errorf("notes %v", r.Notes)
		}
		repairClean(t, mem, RepairOptions{})
		if b := read(t, mem, log1)[end-65536:]; !zeros(b) {
			t.Error("the tail was not zeroed")
		}
	}
}

// Without a file that tells the sizes broker.conf does.
func TestRepairByConfig(t *testing.T) {
	mem := unpack(t, "clean")
	remove(t, mem, "/store/consumequeue")
	remove(t, mem, "/store/index")
	cfg := smallConfig()
	r, err := Repair(Options{FS: mem, Root: "/store", Config: &cfg}, RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, r.Left)
	opens(t, mem)
	wantClean(t, verifyStore(t, mem))
	official, mended := tree(t, unpack(t, "clean"), "/store/consumequeue"), tree(t, mem, "/store/consumequeue")
	if name := sameTree(official, mended); name != "" {
		t.Errorf("%s is not as the official broker made it", name)
	}
}

// A queue whose records have all expired keeps its end.
func TestExpiredQueueGoesOn(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	var run []*store.Put
	for n := range 70 {
		run = append(run, &store.Put{Message: newMessage("Old", 0, n)})
	}
	s.Put(run)
	fillStore(t, s, 0, 300)
	closeStore(t, s)
	remove(t, mem, log0)
	old := "/store/consumequeue/Old/0/00000000000000001000"
	truncate(t, mem, old, 900)
	if r := verifyStore(t, mem); r.Counts[QueueFileSize] != 1 {
		t.Errorf("%v", r.Findings)
	}
	repairClean(t, mem, RepairOptions{})
	info, err := open(t, mem).Info()
	if err != nil || info.Topics[0].Topic != "Old" || info.Topics[0].Queues[0].MaxOffset != 70 || info.Topics[0].Queues[0].MinOffset != 70 {
		t.Errorf("%+v %v", info.Topics, err)
	}
}

// A running broker is left alone.
func TestRepairOfARunningStore(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	fillStore(t, s, 0, 10)
	for _, dry := range []bool{true, false} {
		if _, err := Repair(Options{FS: mem, Root: "/store"}, RepairOptions{DryRun: dry}); !errors.Is(err, ErrRunning) {
			t.Errorf("dry %v: %v", dry, err)
		}
	}
	closeStore(t, s)
	repairClean(t, mem, RepairOptions{})
}

// An operation that fails makes Repair fail, and a second Repair puts it right.
func TestRepairFails(t *testing.T) {
	broken := unpack(t, "clean")
	patch(t, broken, queue0, 3, []byte("damage"))
	patch(t, broken, index0, 3, []byte("damage"))
	write(t, broken, "/store/config/topics.json", nil)
	patch(t, broken, log1, 75289-65536, []byte("torn"))
	for i := 0; ; i++ {
		mem := broken.Crash(100, rand.New(rand.NewSource(1)))
		failed, what := false, vfs.Op{}
		fault := vfs.NewFault(mem, func(o vfs.Op) error {
			switch o.Kind {
			case vfs.OpOpenRead, vfs.OpList, vfs.OpStat, vfs.OpRead, vfs.OpFileStat, vfs.OpClose, vfs.OpLock:
				return nil
			}
			if o.Index >= i && !failed {
				failed, what = true, o
				return fmt.Errorf("no luck with %v of %s", o.Kind, o.Name)
			}
			return nil
		})
		r, err := Repair(Options{FS: fault, Root: "/store"}, RepairOptions{Fill: true})
		if !failed {
			if err != nil || !r.Left.Clean() {
				t.Errorf("%v", err)
			}
			break
		}
		if err == nil && !r.Left.Clean() { // index and queues try again what fails
			t.Errorf("%v of %s failed, and Repair did not: %v", what.Kind, what.Name, r.Steps)
		}
		repairClean(t, mem, RepairOptions{Fill: true})
		if t.Failed() {
			break
		}
		i += 12
	}
}

// Whatever is damaged, nothing panics, and what repair leaves opens.
func TestRandomDamage(t *testing.T) {
	for _, name := range []string{"clean", "killed"} {
		t.Run(name, func(t *testing.T) { randomDamage(t, unpack(t, name), 50) })
	}
}

// recordsOf is the sizes of the records by their places.
func recordsOf(t *testing.T, mem *vfs.Mem) map[int64]int64 {
	t.Helper()
	all := map[int64]int64{}
	if _, err := open(t, mem).scan(0, "", visitor{record: func(at int64, r message.Record, _ error) error {
		all[at] = int64(r.Size())
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	return all
}

func randomDamage(t *testing.T, source *vfs.Mem, seeds int64) {
	names := slices.Sorted(maps.Keys(tree(t, source, "/store")))
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.Contains(name, "/config/") || strings.HasSuffix(name, "/lock") || strings.HasSuffix(name, "/abort")
	})
	all := recordsOf(t, source)
	for seed := range seeds {
		rng := rand.New(rand.NewSource(seed))
		mem := source.Crash(100, rng)
		touched := []span{}
		for range 1 + rng.Intn(4) {
			name := names[rng.Intn(len(names))]
			size := len(read(t, source, name))
			b := make([]byte, 1+rng.Intn(min(size, 300)))
			if rng.Intn(3) > 0 {
				rng.Read(b)
			}
			at := int64(rng.Intn(size))
			patch(t, mem, name, at, b)
			if start, ok := segment.ParseName(path.Base(name)); ok && path.Dir(name) == "/store/commitlog" {
				touched = append(touched, span{start + at, start + at + int64(len(b))})
			}
		}
		for _, name := range names { // a write over the end is another damage
			truncate(t, mem, name, int64(len(read(t, source, name))))
		}
		r, err := Repair(Options{FS: mem, Root: "/store"}, RepairOptions{Fill: true})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		for _, f := range r.Left.Findings {
			if f.Kind != QueueOffsets {
				t.Errorf("seed %d leaves %v", seed, f)
			}
		}
		s, err := store.Open(smallConfig(), store.Options{FS: mem})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		s.Start()
		if err := s.Close(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		left := recordsOf(t, mem)
		for at, size := range all {
			whole := !slices.ContainsFunc(touched, func(s span) bool { return s.from < at+size && s.to > at })
			if whole && left[at] != size {
				t.Errorf("seed %d: the record at %d is gone, though it was not damaged", seed, at)
			}
		}
		for _, f := range verifyStore(t, mem).Findings {
			if f.Kind != QueueOffsets {
				t.Errorf("seed %d: a start leaves %v", seed, f)
			}
		}
	}
}
