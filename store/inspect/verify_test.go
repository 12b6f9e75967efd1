package inspect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

// manifest lists the lines of a kind of what is known of an official store.
func manifest(t *testing.T, name, kind string) (lines [][]string) {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if f := strings.Split(s.Text(), "\t"); f[0] == kind {
			lines = append(lines, f[1:])
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no %s in %s", kind, name)
	}
	return lines
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The official stores have nothing wrong, and all that is known of them is found in them.
func TestOfficialStores(t *testing.T) {
	for _, name := range []string{"clean", "killed"} {
		t.Run(name, func(t *testing.T) {
			mem := unpack(t, name)
			before := tree(t, mem, "/store")
			r := verifyStore(t, mem)
			wantClean(t, r)
			records := manifest(t, name, "record")
			if r.Records != int64(len(records)) || r.CleanStop != (name == "clean") || r.Running {
				t.Errorf("%+v", r)
			}
			d := open(t, mem)
			if d.log.fileSize != 64<<10 || d.queues.perFile != 50 || d.index.slots != 500 || d.index.entries != 400 {
				t.Errorf("sizes %d %d %d %d", d.log.fileSize, d.queues.perFile, d.index.slots, d.index.entries)
			}
			info, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			last := records[len(records)-1]
			if end := number(t, last[0]) + number(t, last[1]); info.Log.MaxPhyOffset != end || r.MaxPhyOffset != end {
				t.Errorf("the log ends at %d and %d, want %d", info.Log.MaxPhyOffset, r.MaxPhyOffset, end)
			}
			for _, f := range manifest(t, name, "queue") {
				var q QueueInfo
				for _, topic := range info.Topics {
					for _, queue := range topic.Queues {
						if topic.Topic == f[0] && fmt.Sprint(queue.QueueId) == f[1] {
							q = queue
						}
					}
				}
				if q.MinOffset != number(t, f[2]) || q.MaxOffset < number(t, f[3]) {
					t.Errorf("queue %v: %+v", f, q)
				}
			}
			if len(info.Index.Files) != 3 || len(info.Config) != 5 || info.Checkpoint.Dispatched != -1 || len(info.Log.Files) < 2 {
				t.Errorf("%+v", info)
			}
			if after := sameTree(before, tree(t, mem, "/store")); after != "" {
				t.Errorf("%s was changed", after)
			}
		})
	}
}

// The records of a dump are those of the official store, by whatever way they are looked for.
func TestDump(t *testing.T) {
	d := open(t, unpack(t, "clean"))
	known := map[string][]string{}
	for _, f := range manifest(t, "clean", "message") {
		known[f[3]] = f
	}
	damage := func(text string) { t.Error(text) }
	find := func(q Query, scan bool) (all []*Record) {
		t.Helper()
		if err := d.Records(q, scan, true, func(r *Record) error {
			all = append(all, r)
			return nil
		}, damage); err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := find(Query{QueueId: -1, Limit: math.MaxInt64}, false)
	if len(all) != len(manifest(t, "clean", "record")) {
		t.Errorf("%d records", len(all))
	}
	seen := 0
	for _, r := range all {
		f := known[fmt.Sprint(r.PhyOffset)]
		if f == nil {
			continue
		}
		seen++
		have := []string{r.Topic, fmt.Sprint(r.QueueId), fmt.Sprint(r.QueueOffset), fmt.Sprint(r.PhyOffset), fmt.Sprint(r.Size), fmt.Sprint(r.SysFlag),
			fmt.Sprint(r.ReconsumeTimes), fmt.Sprint(r.StoreTimestamp), r.Properties["UNIQ_KEY"], r.Properties["KEYS"], r.Properties["TAGS"]}
		if !slices.Equal(have, f[:11]) {
			t.Errorf("got %v, want %v", have, f)
		}
		for _, scan := range []bool{false, true} {
			if got := find(Query{Topic: r.Topic, QueueId: r.QueueId, QueueFrom: r.QueueOffset, QueueTo: r.QueueOffset + 1, Limit: 10}, scan); len(got) != 1 || got[0].PhyOffset != r.PhyOffset {
				t.Errorf("%d is not found in its queue: %v", r.PhyOffset, got)
			}
			if uniq := r.Properties["UNIQ_KEY"]; uniq != "" {
				got := find(Query{Topic: r.Topic, QueueId: -1, Key: uniq, Limit: 10}, scan)
				if !slices.ContainsFunc(got, func(g *Record) bool { return g.PhyOffset == r.PhyOffset }) {
					t.Errorf("%d is not found by %s", r.PhyOffset, uniq)
				}
			}
		}
	}
	if seen != len(known) {
		t.Errorf("%d of %d messages", seen, len(known))
	}
	if got := find(Query{QueueId: -1, From: 1, To: 706, Limit: 10}, false); len(got) != 3 || got[0].PhyOffset != 235 || *got[0].Body != "seed body 1" {
		t.Errorf("by log offsets: %v", got)
	}
	if got := find(Query{QueueId: -1, Since: all[5].StoreTimestamp, Until: all[5].StoreTimestamp + 1, Limit: 1}, false); len(got) != 1 || got[0].StoreTimestamp != all[5].StoreTimestamp {
		t.Errorf("by time: %v", got)
	}
	var entries []*QueueEntry
	if err := d.QueueEntries(Query{Topic: "StoreTopic", QueueId: 0, QueueFrom: 49, Limit: 2}, func(e *QueueEntry) error {
		entries = append(entries, e)
		return nil
	}); err != nil || len(entries) != 2 || entries[1].File != "consumequeue/StoreTopic/0/00000000000000001000" || entries[1].FileOffset != 0 {
		t.Errorf("%v %+v", err, entries)
	}
	if err := d.QueueEntries(Query{Topic: "StoreTopic", QueueId: 77}, nil); !errors.Is(err, ErrNoQueue) {
		t.Error(err)
	}
	n := 0
	if err := d.IndexEntries(Query{Topic: "StoreTopic", Key: "key-1", Limit: 10}, func(e *IndexEntry) error {
		n++
		return nil
	}); err != nil || n == 0 {
		t.Errorf("%d index entries, %v", n, err)
	}
}

// A store of ours has nothing wrong: stopped, going on after that, killed, and while it runs.
func TestOwnStores(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	fillStore(t, s, 0, 300)
	running := verifyStore(t, mem)
	wantClean(t, running)
	if !running.Running || running.Records != 600 {
		t.Errorf("%+v", running)
	}
	for percent := 0; percent <= 100; percent += 25 {
		crashed := mem.Crash(percent, rand.New(rand.NewSource(int64(percent))))
		r := verifyStore(t, crashed)
		if percent == 100 {
			wantClean(t, r)
		}
		if r.CleanStop || r.Running {
			t.Errorf("%+v", r)
		}
		closeStore(t, ownStore(t, crashed))
		wantClean(t, verifyStore(t, crashed))
	}
	closeStore(t, s)
	r := verifyStore(t, mem)
	wantClean(t, r)
	if r.Records != 600 || r.Queues != 3 || r.Keys != 1800 || len(r.Notes) != 0 {
		t.Errorf("%+v", r)
	}
	s = ownStore(t, mem)
	fillStore(t, s, 300, 100)
	if err := s.DeleteTopics(func(topic string) bool { return topic != "U" }); err != nil {
		t.Fatal(err)
	}
	fillStore(t, s, 400, 10)
	closeStore(t, s)
	r = verifyStore(t, mem)
	wantClean(t, r)
	if r.Records != 820 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "begin again") {
		t.Errorf("%+v", r)
	}
}

// A store that is written to meanwhile shows no damage.
func TestWhileItIsWritten(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	fillStore(t, s, 0, 50)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 50; n < 4000; n++ {
			s.Put([]*store.Put{{Message: newMessage("T", int32(n%2), n)}, {Message: newMessage("U", 0, n)}})
		}
	}()
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		r := verifyStore(t, mem)
		if wantClean(t, r); t.Failed() || !r.Running {
			<-done
			t.Fatalf("%+v", r.Notes)
		}
	}
	closeStore(t, s)
	wantClean(t, verifyStore(t, mem))
}

// Queues and index of a log whose first files were deleted.
func TestExpired(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	fillStore(t, s, 0, 600)
	closeStore(t, s)
	d := open(t, mem)
	if len(d.log.files) < 4 {
		t.Fatalf("%d files", len(d.log.files))
	}
	for _, f := range d.log.files[:2] {
		if err := mem.Remove(f.path); err != nil {
			t.Fatal(err)
		}
	}
	wantClean(t, verifyStore(t, mem))
	info, err := open(t, mem).Info()
	if err != nil || info.Log.MinPhyOffset != 128<<10 || info.Topics[0].Queues[0].MinOffset == 0 || info.Topics[0].Queues[0].MinPhyOffset < 128<<10 {
		t.Errorf("%+v %v", info, err)
	}
	// Made anew, the queues go on with their offsets.
	before := info.Topics[0].Queues
	patch(t, mem, "/store/consumequeue/T/0/00000000000000001000", 8, []byte{1, 2, 3})
	patch(t, mem, "/store/consumequeue/T/1/00000000000000001000", 8, []byte{1, 2, 3})
	repairClean(t, mem, RepairOptions{})
	if info, err = open(t, mem).Info(); err != nil {
		t.Fatal(err)
	}
	for i, q := range info.Topics[0].Queues {
		if q.MinOffset != before[i].MinOffset || q.MaxOffset != before[i].MaxOffset || q.MaxPhyOffset != before[i].MaxPhyOffset {
			t.Errorf("%+v, before %+v", q, before[i])
		}
	}
}

// Verify and Info only read, whatever is wrong.
func TestOnlyReads(t *testing.T) {
	mem := unpack(t, "killed")
	patch(t, mem, "/store/commitlog/00000000000000000000", 100, []byte{1})
	reading := vfs.NewFault(mem, func(o vfs.Op) error {
		switch o.Kind {
		case vfs.OpOpenRead, vfs.OpList, vfs.OpStat, vfs.OpRead, vfs.OpFileStat, vfs.OpClose:
			return nil
		}
		return fmt.Errorf("%v of %s", o.Kind, o.Name)
	})
	d, err := Open(Options{FS: reading, Root: "/store"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(0); err != nil {
		t.Error(err)
	}
	if _, err := d.Info(); err != nil {
		t.Error(err)
	}
}

func TestNoStore(t *testing.T) {
	mem := vfs.NewMem(nil)
	if _, err := Open(Options{FS: mem, Root: "/none"}); err == nil {
		t.Error("a folder that is not there")
	}
	if err := mem.MkdirAll("/some/folder"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{FS: mem, Root: "/some"}); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	unreadable := vfs.NewFault(unpack(t, "clean"), func(o vfs.Op) error {
		if o.Kind == vfs.OpRead && strings.Contains(o.Name, "commitlog/") {
			return errors.New("no luck")
		}
		return nil
	})
	d, err := Open(Options{FS: unreadable, Root: "/store"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(0); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Error(err)
	}
}

// Light message queues have entries of records of another topic; they are verified where they are there.
func TestLightQueues(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := ownStore(t, mem)
	m := newMessage("T", 3, 0)
	m.Properties = message.SetProperty(m.Properties, "INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b")
	m.Properties = message.SetProperty(m.Properties, "INNER_MULTI_QUEUE_OFFSET", "0,0")
	p := &store.Put{Message: m}
	if s.Put([]*store.Put{p}); p.Err != nil {
		t.Fatal(p.Err)
	}
	closeStore(t, s)
	light := "/store/consumequeue/%LMQ%a/0/00000000000000000000"
	file := read(t, mem, "/store/consumequeue/T/3/00000000000000000000")
	write(t, mem, light, file)
	wantClean(t, verifyStore(t, mem))
	patch(t, mem, light, 11, []byte{1})
	r := verifyStore(t, mem)
	if len(r.Findings) != 1 || r.Findings[0].Kind != QueueEntryWrong || r.Findings[0].Topic != "%LMQ%a" {
		t.Errorf("%v", r.Findings)
	}
	repairClean(t, mem, RepairOptions{})
	if string(read(t, mem, light)) != string(file) {
		t.Error("the light queue was not made anew")
	}
}

// A tagsCode that is an address in consumequeue_ext is that of the unit there.
func TestExtendedEntries(t *testing.T) {
	mem := unpack(t, "clean")
	const name = "/store/consumequeue_ext/StoreTopic/2/00000000000000000000"
	entry := read(t, mem, queue0)[20:40]
	var r *Record
	if err := open(t, mem).Records(Query{Topic: "StoreTopic", QueueId: 2, QueueFrom: 1, Limit: 1}, false, false, func(got *Record) error {
		r = got
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	unit := slices.Concat([]byte{0, 28}, entry[12:20], be64(r.StoreTimestamp), []byte{0, 8}, make([]byte, 8))
	write(t, mem, name, slices.Concat(make([]byte, 100), unit, make([]byte, 400)))
	patch(t, mem, queue0, 20+12, be64(math.MinInt64+100))
	wantClean(t, verifyStore(t, mem))
	patch(t, mem, name, 105, []byte{1})
	if got := verifyStore(t, mem); len(got.Findings) != 1 || got.Findings[0].Kind != QueueEntryTags || got.Findings[0].Offset != 20 {
		t.Errorf("%v", got.Findings)
	}
	remove(t, mem, name)
	if got := verifyStore(t, mem); len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Text, "no files") {
		t.Errorf("%v", got.Findings)
	}
}

// The entry of a timer message has its time, that of a recall minus its time: that is no address in consumequeue_ext, whether there are units or not.
func TestTimerEntries(t *testing.T) {
	for _, extended := range []bool{false, true} {
		mem := vfs.NewMem(nil)
		cfg := smallConfig()
		s := ownStore(t, mem)
		for n := range 4 {
			if n == 2 { // what comes from here on has units, where they are asked for
				closeStore(t, s)
				cfg.EnableConsumeQueueExt = extended
				var err error
				if s, err = store.Open(cfg, store.Options{FS: mem}); err != nil {
					t.Fatal(err)
				}
				s.Start()
			}
			m := newMessage(message.TopicTimer, 0, n)
			m.Properties += "\x02TIMER_OUT_MS\x011796020240441"
			if n%2 == 1 {
				m.Properties += "\x02TIMER_DEL_UNIQKEY\x01T+uniq"
			}
			p := store.Put{Message: m}
			if s.Put([]*store.Put{&p}); p.Err != nil {
				t.Fatal(p.Err)
			}
		}
		closeStore(t, s)
		wantClean(t, verifyStore(t, mem))
		var codes []int64
		var units []int64
		if err := open(t, mem).QueueEntries(Query{Topic: message.TopicTimer, Limit: 10}, func(e *QueueEntry) error {
			if codes = append(codes, e.TagsCode); e.Unit != nil {
				codes[len(codes)-1] = e.Unit.TagsCode
				units = append(units, e.Unit.Offset)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(codes, []int64{1796020240441, -1796020240441, 1796020240441, -1796020240441}) || extended != slices.Equal(units, []int64{0, 20}) {
			t.Errorf("extended %v: times %v, units at %v", extended, codes, units)
		}
	}
}

func TestDelayLevels(t *testing.T) {
	cfg := smallConfig()
	cfg.MessageDelayLevel = "7s 8s 9s"
	mem := unpack(t, "clean")
	d, err := Open(Options{FS: mem, Root: "/store", Config: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Verify(0)
	if err != nil || r.Counts[QueueEntryTags] == 0 || len(r.Counts) != 1 {
		t.Errorf("%v %v", r.Counts, err)
	}
	for _, f := range r.Findings {
		if f.Topic != message.TopicSchedule {
			t.Error(f)
		}
	}
}
