package store

import (
	"fmt"
	"strings"
	"testing"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// sized is a message whose record takes exactly size bytes.
func sized(topic string, n, size int) *message.Message {
	m := newMessage(topic, 0, n)
	m.Body = nil
	m.Body = make([]byte, size-message.RecordSize(m))
	return m
}

func TestGetStatuses(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	for n := range 120 {
		put(t, s, newMessage("T", 0, n))
	}
	for _, c := range []struct {
		topic  string
		offset int64
		want   GetStatus
		next   int64
		count  int
	}{
		// DefaultMessageStore#getMessage of 4.9.8.
		{"None", 0, NoMessageInQueue, 0, 0},
		{"None", 7, NoMessageInQueue, 0, 0},
		{"T", 0, Found, 32, 32},
		{"T", 119, Found, 120, 1},
		{"T", 40, Found, 50, 10}, // to the end of the queue's file
		{"T", 120, OffsetOverflowOne, 120, 0},
		{"T", 121, OffsetOverflowBadly, 120, 0},
		{"T", -1, OffsetTooSmall, 0, 0},
	} {
		got := s.Get(c.topic, 0, c.offset, 32, nil)
		if got.Status != c.want || got.NextBeginOffset != c.next || got.Count != c.count || len(records(t, got.Body)) != c.count {
			t.Errorf("Get(%s, %d) = %+v, want %v, next %d, %d messages", c.topic, c.offset, got, c.want, c.next, c.count)
		}
	}
}

func TestGetOfSlaveKeepsOffsets(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	put(t, s, newMessage("T", 0, 0))
	cfg := *s.Config()
	cfg.BrokerRole = Slave
	s.SetConfig(&cfg)
	if got := s.Get("T", 0, 9, 32, nil); got.NextBeginOffset != 9 || got.Status != OffsetOverflowBadly {
		t.Errorf("%+v", got)
	}
	other := cfg
	other.OffsetCheckInSlave = true
	s.SetConfig(&other)
	if got := s.Get("T", 0, 9, 32, nil); got.NextBeginOffset != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGetLimits(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 4 << 20
	cfg.MappedFileSizeConsumeQueue = 20_000
	cfg.MaxMessageSize = 1 << 20
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	var small, kilo, large []*message.Message
	for n := range 100 {
		small = append(small, newMessage("Small", 0, n))
		kilo = append(kilo, sized("Kilo", n, 10<<10))
	}
	for n := range 3 {
		large = append(large, sized("Large", n, 300<<10))
	}
	put(t, s, append(append(small, kilo...), large...)...)
	memory := s.memory
	for _, c := range []struct {
		topic  string
		max    int
		onDisk bool
		want   int
	}{
		{"Small", 10, false, 10},
		{"Small", 100, false, 32}, // maxTransferCountOnMessageInMemory
		{"Small", 100, true, 8},   // maxTransferCountOnMessageInDisk
		{"Small", 3, true, 3},
		{"Small", 0, false, 1},  // one message is always given
		{"Kilo", 32, false, 25}, // 256 KiB
		{"Kilo", 32, true, 6},   // 64 KiB
		{"Large", 32, false, 1},
		{"Large", 32, true, 1},
	} {
		s.memory = memory
		if c.onDisk {
			s.memory = 0
		}
		got := s.Get(c.topic, 0, 0, c.max, nil)
		if got.Count != c.want || got.NextBeginOffset != int64(c.want) || got.SuggestSlave != c.onDisk {
			t.Errorf("%s max %d disk %v: %d messages, next %d, slave %v; want %d", c.topic, c.max, c.onDisk, got.Count, got.NextBeginOffset, got.SuggestSlave, c.want)
		}
		if s.OnDisk(c.topic, 0, 0) != c.onDisk {
			t.Errorf("OnDisk(%s) is not %v", c.topic, c.onDisk)
		}
	}
	if s.OnDisk("Small", 0, 100) || s.OnDisk("None", 0, 0) {
		t.Error("what does not exist is on disk")
	}
}

// After a start what was stored before may have to come from the disk: an answer has the bytes of one from the disk,
// and as many messages as one from memory.
func TestGetLimitsAfterAStart(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 1 << 20
	cfg.MappedFileSizeConsumeQueue = 20_000
	cfg.MaxMessageSize = 1 << 20
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, cfg, Options{})
	for n := range 40 {
		put(t, s, sized("Kilo", n, 10<<10), newMessage("Small", 0, n))
	}
	for range 3 { // so that recovery need not read the file of the others
		put(t, s, sized("Large", 0, 800<<10))
	}
	closeStore(t, s)
	s = openStore(t, mem, cfg, Options{})
	defer func() { closeStore(t, s) }()
	for n := range 40 {
		put(t, s, sized("New", n, 10<<10))
	}
	for topic, want := range map[string]int{"Kilo": 6, "Small": 32, "New": 25} {
		if got := s.Get(topic, 0, 0, 32, nil); got.Count != want || got.Cold != (topic != "New") {
			t.Errorf("%s: %d messages, cold %v; want %d", topic, got.Count, got.Cold, want)
		}
	}
}

// byTag chooses by the hash of a tag, byBody by an ending of the body.
type byTag struct {
	code int64
	body string
}

func (f byTag) MatchQueue(tagsCode int64) bool { return tagsCode == f.code }
func (f byTag) MatchRecord(r message.Record) bool {
	return strings.HasSuffix(string(r.Body()), f.body)
}

func TestGetFilters(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeConsumeQueue = 100_000
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	var run []*message.Message
	for n := range 2000 {
		run = append(run, newMessage("T", 0, n)) // Tag0 and Tag1 in turn
	}
	put(t, s, run...)
	tag1 := int64(compat.HashCode("Tag1"))
	for _, c := range []struct {
		name   string
		offset int64
		max    int
		filter Filter
		status GetStatus
		want   []int64
		next   int64
	}{
		{"by tag", 0, 3, byTag{tag1, ""}, Found, []int64{1, 3, 5}, 6},
		{"by tag and record", 0, 3, byTag{tag1, "5"}, Found, []int64{5, 15, 25}, 26},
		{"nothing matches: 800 entries are looked at", 10, 32, byTag{99, ""}, NoMatchedMessage, nil, 810},
		{"nothing matches by record", 10, 32, byTag{tag1, "x"}, NoMatchedMessage, nil, 810},
		{"few match", 1200, 32, byTag{tag1, "99"}, Found, []int64{1299, 1399, 1499, 1599, 1699, 1799, 1899, 1999}, 2000},
		{"more than 800 are asked for", 0, 1000, byTag{99, ""}, NoMatchedMessage, nil, 1000},
	} {
		got := s.Get("T", 0, c.offset, c.max, c.filter)
		var offsets []int64
		for _, r := range records(t, got.Body) {
			offsets = append(offsets, r.QueueOffset())
		}
		if got.Status != c.status || got.NextBeginOffset != c.next || fmt.Sprint(offsets) != fmt.Sprint(c.want) || got.Count != len(c.want) {
			t.Errorf("%s: %v next %d offsets %v; want %v %d %v", c.name, got.Status, got.NextBeginOffset, offsets, c.status, c.next, c.want)
		}
	}
}

// TestGetOfExtAddress: with entries whose tagsCode lies in consumequeue_ext the client filters, as when the official
// broker can't read that file.
func TestGetOfExtAddress(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	p := put(t, s, newMessage("T", 0, 0))[0]
	if err := s.queues.Append("T", 0, 1, Entry{PhyOffset: p.PhyOffset, Size: p.Size, TagsCode: -1 << 63}); err != nil {
		t.Fatal(err)
	}
	end := s.log.MaxOffset()
	if err := s.queues.Append("Ext", 0, 0, Entry{PhyOffset: p.PhyOffset, Size: p.Size, TagsCode: -1 << 63}); err != nil {
		t.Fatal(err)
	}
	if got := s.Get("Ext", 0, 0, 32, byTag{12345, ""}); got.Status != Found || got.Count != 1 || got.BehindBytes != end {
		t.Errorf("%+v", got)
	}
}

func TestGetOfRemovedRecords(t *testing.T) {
	c := newClock()
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 8 << 10
	cfg.MappedFileSizeConsumeQueue = 100 * 20
	s := openStore(t, vfs.NewMem(c.Now), cfg, Options{Clock: c.Now})
	defer func() { closeStore(t, s) }()
	var run []*message.Message
	for n := range 200 {
		run = append(run, newMessage("T", 0, n))
	}
	put(t, s, run...)
	if _, err := s.log.DeleteBefore(8<<10, 1); err != nil {
		t.Fatal(err)
	}
	// The queue does not know yet. Nothing of the first file is there; what follows in the scan is.
	first := int64(-1)
	for n := int64(0); first < 0; n++ {
		if e, _ := s.Entry("T", 0, n); e.PhyOffset >= 8<<10 {
			first = n
		}
	}
	got := s.Get("T", 0, 0, 4, nil)
	if got.Status != Found || got.Count != 4 || records(t, got.Body)[0].QueueOffset() != first || got.NextBeginOffset != first+4 {
		t.Errorf("%v %d, next %d, the first in the log is %d", got.Status, got.Count, got.NextBeginOffset, first)
	}
	if _, err := s.log.DeleteBefore(s.log.MaxOffset(), 100); err != nil {
		t.Fatal(err)
	}
	if got := s.Get("T", 0, 0, 4, nil); got.Status != MessageWasRemoving || got.NextBeginOffset != 100 {
		t.Errorf("%+v", got)
	}
}

// TestGetRefusesWrongEntries: an entry that points into the middle of a record gives nothing out.
func TestGetRefusesWrongEntries(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	put(t, s, newMessage("T", 0, 0), newMessage("T", 0, 1))
	for n, e := range []Entry{{PhyOffset: 10, Size: 100}, {PhyOffset: 11, Size: 100}, {PhyOffset: 200, Size: 1 << 30}} {
		if err := s.queues.Append("Wrong", 0, int64(n), e); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Get("Wrong", 0, 0, 32, nil); got.Count != 0 || len(got.Body) != 0 || got.Status == Found {
		t.Errorf("%+v", got)
	}
}
