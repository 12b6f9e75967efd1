package store

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// Consumers with a filter lose nothing either, of none of the damages that show without a look at each record.
func TestMendFiltered(t *testing.T) {
	for name, damage := range damages {
		if name == "of another size" || name == "no record's start" { // only whoever wants the message sees it
			continue
		}
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem(nil)
			s := mendStore(t, mem, "/store", Options{})
			defer func() { closeStore(t, s) }()
			const file = "/store/consumequeue/T/0/00000000000000001000"
			b := readBytes(t, mem, file)
			damage(b, s)
			overwrite(t, mem, file, 0, b)
			code := tagFilter(scanCode(t, s, 1))
			for i, r := range readPatiently(t, s, "T", 0, 32, code) {
				if r.QueueOffset() != int64(2*i+1) {
					t.Fatalf("message %d is %d", i, r.QueueOffset())
				}
			}
		})
	}
}

// scanCode is the tagsCode of an entry of T 0.
func scanCode(t *testing.T, s *Store, offset int64) int64 {
	t.Helper()
	e, ok := s.Entry("T", 0, offset)
	if !ok {
		t.Fatal("no entry")
	}
	return e.TagsCode
}

// What is not a message's own queue is mended too: light queues, whose records name another, and that of delayed messages,
// whose entries have times.
func TestMendOtherQueues(t *testing.T) {
	mem := vfs.NewMem(nil)
	cfg := lightConfig()
	s := openStore(t, mem, cfg, Options{})
	defer func() { closeStore(t, s) }()
	for i := range 30 {
		put(t, s, dispatched(i, "%LMQ%a,Other"))
		delayed := newMessage(message.TopicSchedule, 2, i)
		delayed.Properties += "\x02DELAY\x013\x02"
		put(t, s, delayed)
	}
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"%LMQ%a/0", "Other/2", "T/2", "SCHEDULE_TOPIC_XXXX/2"} {
		topic, id, _ := strings.Cut(queue, "/")
		file := "/store/consumequeue/" + queue + "/00000000000000000000"
		want := readBytes(t, mem, file)
		overwrite(t, mem, file, 5*20, make([]byte, 10*20))
		if got := readPatiently(t, s, topic, int32(id[0]-'0'), 32, nil); len(got) != 30 {
			t.Errorf("%s: %d messages", queue, len(got))
		}
		if got := readBytes(t, mem, file); !bytes.Equal(got, want) {
			t.Errorf("%s is not as it was:\n%x\n%x", queue, got, want)
		}
		overwrite(t, mem, file, 5*20, make([]byte, 10*20))
		waitFor(t, "an Entry", func() bool { _, ok := s.Entry(topic, int32(id[0]-'0'), 7); return ok })
		if got := readBytes(t, mem, file); !bytes.Equal(got, want) {
			t.Errorf("%s is not as it was:\n%x\n%x", queue, got, want)
		}
	}
}

// Where the log is damaged too there is nothing to make an entry from: that message alone is passed over, the log says so, and
// nobody waits for ever. An entry that may be right stays as it is.
func TestMendWithoutRecord(t *testing.T) {
	mem := vfs.NewMem(nil)
	var log errorLog
	s := mendStore(t, mem, "/store", Options{Log: log.logger()})
	defer func() { closeStore(t, s) }()
	e, _ := s.Entry("T", 0, 70)
	overwrite(t, mem, "/store/commitlog/00000000000000000000", e.PhyOffset, make([]byte, e.Size))
	const file = "/store/consumequeue/T/0/00000000000000001000"
	want := readBytes(t, mem, file)
	check := func() {
		t.Helper()
		got := readPatiently(t, s, "T", 0, 32, nil)
		if len(got) != 179 || got[69].QueueOffset() != 69 || got[70].QueueOffset() != 71 {
			t.Errorf("%d messages", len(got))
		}
	}
	check()
	if !bytes.Equal(readBytes(t, mem, file), want) {
		t.Error("an entry whose record can't be read was changed")
	}
	if !strings.Contains(log.String(), "THE LOG IS DAMAGED") {
		t.Errorf("the log:\n%s", log.String())
	}
	overwrite(t, mem, file, 20*20, make([]byte, 20))
	check()
	if e, ok := s.Entry("T", 0, 70); !ok || e.PhyOffset != -1 {
		t.Errorf("a place without a message: %+v %v", e, ok)
	}
	if _, err := s.Message(-1); err == nil {
		t.Error("it has a message")
	}
}

// A disk that fails for a while delays the mending: readers wait, none passes over anything.
func TestMendIsTriedAgain(t *testing.T) {
	mem := vfs.NewMem(nil)
	fsys := vfs.NewFault(mem, nil)
	s := mendStore(t, fsys, "/store", Options{})
	defer func() { closeStore(t, s) }()
	const file = "/store/consumequeue/T/0/00000000000000001000"
	want := readBytes(t, mem, file)
	overwrite(t, mem, file, 200, make([]byte, 200))
	var failed atomic.Bool
	fsys.SetInject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite && o.Name == file && !failed.Swap(true) {
			return syscall.EIO
		}
		return nil
	})
	if err := func() error { s.Get("T", 0, 60, 32, nil); return s.MendNow() }(); err == nil && !failed.Load() {
		t.Error("nothing was tried")
	}
	waitFor(t, "the failure", failed.Load)
	if got := readPatiently(t, s, "T", 0, 32, nil); len(got) != 180 {
		t.Errorf("%d messages", len(got))
	}
	if !bytes.Equal(readBytes(t, mem, file), want) {
		t.Error("the file is not as it was")
	}
}

// Times are looked for among damaged entries as if they were right.
func TestMendByTime(t *testing.T) {
	now := newClock()
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, smallConfig("/store"), Options{Clock: now.Now})
	defer func() { closeStore(t, s) }()
	start := now.Now().UnixMilli()
	for i := range 140 {
		put(t, s, newMessage("T", 0, i))
		now.Advance(10 * time.Millisecond)
	}
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	for i := range 140 {
		overwrite(t, mem, "/store/consumequeue/T/0/00000000000000001000", 0, make([]byte, 1000))
		if got := s.OffsetByTime("T", 0, start+int64(10*i)); got != int64(i) {
			t.Errorf("message %d: %d", i, got)
		}
	}
}

// Entries are damaged again and again while others are appended and read. Nothing is lost, and a stop in the middle ends.
func TestMendUnderWay(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := mendStore(t, mem, "/store", Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 180; i < 600; i++ {
			p := &Put{Message: newMessage("T", int32(i%2), i)}
			if s.Put([]*Put{p}); p.Err != nil {
				t.Error(p.Err)
			}
		}
	})
	for round := range 30 {
		overwrite(t, mem, fmt.Sprintf("/store/consumequeue/T/%d/%020d", round%2, 1000*(round%3)), int64(round%7)*100, make([]byte, 333))
		for i, r := range readPatiently(t, s, "T", int32(round%2), 32, nil) {
			if r.QueueOffset() != int64(i) {
				t.Fatalf("message %d is %d", i, r.QueueOffset())
			}
		}
	}
	wg.Wait()
	waitFor(t, "dispatch", func() bool { return s.DispatchBehind() == 0 })
	overwrite(t, mem, "/store/consumequeue/T/0/00000000000000000000", 0, make([]byte, 1000))
	s.Get("T", 0, 0, 32, nil)
	closeStore(t, s)
	if err := s.MendNow(); err == nil && len(s.mend.reported) > 0 {
		t.Error("a closed store mends")
	}
	s = openStore(t, mem, smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	if got := len(readPatiently(t, s, "T", 0, 32, nil)) + len(readPatiently(t, s, "T", 1, 32, nil)); got != 780 {
		t.Errorf("%d messages at the next start", got)
	}
}

// A queue of an official broker behind a gap: each record stands one place before its own. They are given as they stand, by a
// start without a hint too, and nothing is changed.
func TestShiftedQueue(t *testing.T) {
	mem := vfs.NewMem(nil)
	var log errorLog
	s := mendStore(t, mem, "/store", Options{})
	closeStore(t, s)
	var all []byte
	for start := int64(0); start < 4000; start += 1000 {
		all = append(all, readBytes(t, mem, fmt.Sprintf("/store/consumequeue/T/0/%020d", start))...)
	}
	all = append(append(bytes.Clone(all[:70*20]), all[71*20:]...), make([]byte, 20)...)
	for i := range 4 {
		overwrite(t, mem, fmt.Sprintf("/store/consumequeue/T/0/%020d", 1000*i), 0, all[1000*i:1000*i+1000])
	}
	if err := mem.Remove("/store/" + hintName); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, mem, smallConfig("/store"), Options{Log: log.logger()})
	defer func() { closeStore(t, s) }()
	for _, max := range []int{1, 32} {
		got := readPatiently(t, s, "T", 0, max, nil)
		if len(got) != 179 || got[69].QueueOffset() != 69 || got[70].QueueOffset() != 71 || got[178].QueueOffset() != 179 {
			t.Errorf("%d messages", len(got))
		}
	}
	for i := range 4 {
		if b := readBytes(t, mem, fmt.Sprintf("/store/consumequeue/T/0/%020d", 1000*i)); !bytes.Equal(b, all[1000*i:1000*i+1000]) {
			t.Errorf("file %d was changed", i)
		}
	}
	if log.String() != "" {
		t.Errorf("the log:\n%s", log.String())
	}
}
