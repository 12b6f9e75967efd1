package store

import (
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/vfs"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the tests make and drop thousands of small disks: a fifth of their time was collecting them
	goleak.VerifyTestMain(m)
}

func TestArrivals(t *testing.T) {
	var mu sync.Mutex
	var got []Arrival
	var s *Store
	s = openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{Arrive: func(a Arrival) {
		mu.Lock()
		defer mu.Unlock()
		if s.Get(a.Topic, a.QueueId, a.QueueOffset, 1, nil).Status != Found {
			t.Error("a message has arrived that can't be read")
		}
		a.Topic, a.Properties = strings.Clone(a.Topic), strings.Clone(a.Properties)
		got = append(got, a)
	}})
	defer func() { closeStore(t, s) }()
	prepared := newMessage("T", 0, 1)
	prepared.SysFlag = message.TransactionPrepared
	rolledBack := newMessage("T", 0, 2)
	rolledBack.SysFlag = message.TransactionRollback
	committed := newMessage("T", 0, 3)
	committed.SysFlag = message.TransactionCommit
	delayed := newMessage("SCHEDULE_TOPIC_XXXX", 2, 4)
	delayed.Properties = message.SetProperty(delayed.Properties, "DELAY", "3")
	beyond := newMessage("SCHEDULE_TOPIC_XXXX", 17, 5)
	beyond.Properties = message.SetProperty(beyond.Properties, "DELAY", "99")
	odd := newMessage("SCHEDULE_TOPIC_XXXX", 2, 6)
	odd.Properties = message.SetProperty(odd.Properties, "DELAY", "x")
	other := newMessage("T", 1, 7)
	other.Properties = "DELAY\x013" // only the topic makes it a delayed one
	run := put(t, s, newMessage("T", 0, 0), prepared, rolledBack, committed, delayed, beyond, odd, other)
	type arrival struct {
		topic       string
		queueId     int32
		queueOffset int64
		tagsCode    int64
	}
	tag := func(tag string) int64 { return int64(compat.HashCode(tag)) }
	want := []arrival{
		{"T", 0, 0, tag("Tag0")}, {"T", 0, 1, tag("Tag1")},
		{"SCHEDULE_TOPIC_XXXX", 2, 0, run[4].StoreTimestamp + 10_000},
		{"SCHEDULE_TOPIC_XXXX", 17, 0, run[5].StoreTimestamp + 7_200_000}, // the last level
		{"SCHEDULE_TOPIC_XXXX", 2, 1, tag("Tag0")},
		{"T", 1, 0, 0},
	}
	waitFor(t, "arrivals", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == len(want) })
	for i, w := range want {
		a := got[i]
		if (arrival{a.Topic, a.QueueId, a.QueueOffset, a.TagsCode}) != w {
			t.Errorf("arrival %d: %+v, want %+v", i, a, w)
		}
		e, _ := s.Entry(w.topic, w.queueId, w.queueOffset)
		if e.TagsCode != w.tagsCode {
			t.Errorf("entry %d has tagsCode %d, want %d", i, e.TagsCode, w.tagsCode)
		}
	}
	if got[0].Properties != run[0].Message.Properties || got[0].StoreTimestamp != run[0].StoreTimestamp {
		t.Errorf("%+v", got[0])
	}
	// Prepared records are indexed, rolled back ones are not.
	if got := len(s.Query("T", "key-1", 64, 0, math.MaxInt64).Records); got != 1 {
		t.Errorf("prepared: %d", got)
	}
	if got := len(s.Query("T", "key-2", 64, 0, math.MaxInt64).Records); got != 0 {
		t.Errorf("rolled back: %d", got)
	}
}

func TestBatchAndSizes(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MaxMessageSize = 1000
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	body := func(size int) *message.Message {
		m := newMessage("T", 0, size)
		m.Body = make([]byte, size)
		return m
	}
	batch := &Put{Batch: []*message.Message{newMessage("T", 0, 0), newMessage("T", 0, 1), newMessage("T", 0, 2)}}
	tooLarge := &Put{Batch: []*message.Message{body(500), body(501)}}
	fits := &Put{Message: body(1000)}
	large := &Put{Message: body(1001)}
	s.Put([]*Put{batch, large, fits, tooLarge})
	if batch.Err != nil || fits.Err != nil || batch.QueueOffset != 0 || fits.QueueOffset != 3 || len(batch.PhyOffsets) != 3 {
		t.Errorf("%+v %+v", batch, fits)
	}
	for _, p := range []*Put{large, tooLarge} {
		if !errors.Is(p.Err, commitlog.ErrTooLarge) {
			t.Errorf("error %v", p.Err)
		}
	}
	waitDispatched(t, s, fits.End)
	if got := readAll(t, s, "T", 0); len(got) != 4 {
		t.Errorf("%d messages", len(got))
	}
	bigger := *s.Config()
	bigger.MaxMessageSize = 2000
	s.SetConfig(&bigger)
	put(t, s, body(2000))
	st := s.Stats()
	if st.PutMessages != 5 || st.PutFailed != 2 || st.PutTimes[0]+st.PutTimes[1]+st.PutTimes[2] != 5 || st.PutBytes != s.MaxPhyOffset() ||
		st.GetMessages != 4 || st.GetFound != 1 {
		t.Errorf("%+v", st)
	}
}

func TestMessageAndRecord(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	run := put(t, s, newMessage("T", 0, 0), newMessage("T", 0, 1))
	m, err := s.Message(run[1].PhyOffset)
	if err != nil || string(m.Body) != string(run[1].Message.Body) || m.PhyOffset != run[1].PhyOffset || m.QueueOffset != 1 {
		t.Errorf("%+v %v", m, err)
	}
	for _, wrong := range []int64{-1, 1, 8, run[1].PhyOffset + 4, s.MaxPhyOffset(), s.MaxPhyOffset() - 1, math.MaxInt64} {
		if _, err := s.Record(wrong); !errors.Is(err, commitlog.ErrNotFound) {
			t.Errorf("record at %d: %v", wrong, err)
		}
	}
}

func TestTimes(t *testing.T) {
	c := newClock()
	cfg := smallConfig("/store")
	cfg.MappedFileSizeConsumeQueue = 200
	s := openStore(t, vfs.NewMem(c.Now), cfg, Options{Clock: c.Now})
	defer func() { closeStore(t, s) }()
	start := c.Now().UnixMilli()
	for n := range 25 { // one each second
		put(t, s, newMessage("T", 0, n))
		c.Advance(time.Second)
	}
	for _, q := range []struct{ at, want int64 }{
		// The rule: the hit, else the nearer neighbour, of two equally near the older.
		{0, 0}, {3000, 3}, {3400, 3}, {3500, 3}, {3501, 4}, {24_000, 24}, {3_600_000, 24}, {-5000, 0},
		{9_000, 9}, {10_000, 10}, {9_900, 10}, {9_100, 10}, // between two files: the second is looked in
	} {
		if got := s.OffsetByTime("T", 0, start+q.at); got != q.want {
			t.Errorf("OffsetByTime(+%d) = %d, want %d", q.at, got, q.want)
		}
	}
	if got := s.OffsetByTime("None", 0, start); got != 0 {
		t.Error(got)
	}
	if s.EarliestTime("T", 0) != start || s.TimeOf("T", 0, 7) != start+7000 || s.TimeOf("T", 0, 25) != -1 || s.EarliestTime("None", 0) != -1 {
		t.Error("times")
	}
}

func TestQueryRounds(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	var run []*message.Message
	for n := range 100 {
		run = append(run, newMessage("T", 0, n))
	}
	put(t, s, run...)
	r := s.Query("T", "shared", 1000, 0, math.MaxInt64)
	if len(r.Records) != 64 { // maxMsgsNumBatch, the newest, oldest first
		t.Fatalf("%d records", len(r.Records))
	}
	for i, rec := range r.Records {
		if rec.QueueOffset() != int64(36+i) {
			t.Fatalf("record %d is %d", i, rec.QueueOffset())
		}
	}
	if last := r.Records[63]; r.IndexLastUpdatePhyOffset != last.PhyOffset() || r.IndexLastUpdateTimestamp != last.StoreTimestamp() {
		t.Errorf("last update %d %d", r.IndexLastUpdatePhyOffset, r.IndexLastUpdateTimestamp)
	}
	if r := s.Query("T", "none", 32, 0, math.MaxInt64); len(r.Records) != 0 {
		t.Error(len(r.Records))
	}
	// compat: keys of one hash are found together; the client looks at them ("Aa" and "BB" have one in Java).
	aa, bb := newMessage("T", 0, 500), newMessage("T", 0, 501)
	aa.Properties, bb.Properties = "KEYS\x01Aa", "KEYS\x01BB"
	put(t, s, aa, bb)
	if r := s.Query("T", "Aa", 32, 0, math.MaxInt64); len(r.Records) != 2 {
		t.Error(len(r.Records))
	}
}

func TestDeleteTopics(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, smallConfig("/store"), Options{})
	put(t, s, newMessage("Dead", 0, 0), newMessage("Dead", 1, 0), newMessage("Alive", 0, 0), newMessage("%LMQ%x", 0, 0),
		newMessage("SCHEDULE_TOPIC_XXXX", 2, 0), newMessage("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0, 0))
	if err := s.DeleteTopics(func(topic string) bool { return topic == "Alive" }); err != nil {
		t.Fatal(err)
	}
	want := []string{"%LMQ%x", "Alive", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"}
	if got := s.Topics(); !slices.Equal(got, want) {
		t.Errorf("topics %v", got)
	}
	if got := s.Get("Dead", 0, 0, 32, nil); got.Status != NoMessageInQueue {
		t.Errorf("%+v", got)
	}
	// Made again: it begins at 0.
	if p := put(t, s, newMessage("Dead", 0, 1))[0]; p.QueueOffset != 0 {
		t.Error(p.QueueOffset)
	}
	if got := readAll(t, s, "Dead", 0); len(got) != 1 || string(got[0].Body()) != "body-Dead-0-1" {
		t.Error(len(got))
	}
	if got := s.Queues("Dead"); !slices.Equal(got, []int32{0}) {
		t.Error(got)
	}
	closeStore(t, s)
	s = openStore(t, mem, smallConfig("/store"), Options{})
	if got := readAll(t, s, "Dead", 0); len(got) != 1 {
		t.Error(len(got))
	}
	closeStore(t, s)
}

func TestOnlyOneAtATime(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, smallConfig("/store"), Options{})
	if _, err := tryOpen(mem, smallConfig("/store"), Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	put(t, s, newMessage("T", 0, 0))
	closeStore(t, s)
	p := &Put{Message: newMessage("T", 0, 1)}
	s.Put([]*Put{p})
	if !errors.Is(p.Err, ErrClosed) {
		t.Errorf("put after close: %v", p.Err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	s = openStore(t, mem, smallConfig("/store"), Options{})
	closeStore(t, s)
}

func TestOpenThenCloseWithoutStart(t *testing.T) {
	mem := vfs.NewMem(nil)
	s, err := Open(smallConfig("/store"), Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if ok, _ := s.exists("/store/abort"); ok {
		t.Error("the abort file is left")
	}
}

func TestConfigRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"storePathCommitLog":            func(c *Config) { c.StorePathCommitLog = "/a,/b" },
		"readOnlyCommitLogStorePaths":   func(c *Config) { c.ReadOnlyCommitLogStorePaths = "/a" },
		"mappedFileSizeConsumeQueueExt": func(c *Config) { c.MappedFileSizeConsumeQueueExt = 100 },
		"enableDLegerCommitLog":         func(c *Config) { c.EnableDLegerCommitLog = true },
		"flushDiskType":                 func(c *Config) { c.FlushDiskType = "SYNC" },
		"brokerRole=SLAVE":              func(c *Config) { c.BrokerRole = Slave },
		"brokerRole=X":                  func(c *Config) { c.BrokerRole = "X" },
		"mappedFileSizeCommitLog=0":     func(c *Config) { c.MappedFileSizeCommitLog = 0 },
		"more than 2 GiB":               func(c *Config) { c.MaxIndexNum = 200_000_000 },
		"storePathRootDir":              func(c *Config) { c.StorePathRootDir = "" },
		"mappedFileSizeConsumeQueue=1":  func(c *Config) { c.MappedFileSizeConsumeQueue = 1 },
	} {
		cfg := smallConfig("/store")
		change(&cfg)
		if _, err := tryOpen(vfs.NewMem(nil), cfg, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %s", err, want)
		}
	}
	// The size of queue files is rounded up to whole entries, and a folder of consumequeue_ext is left alone.
	mem := vfs.NewMem(nil)
	if err := mem.MkdirAll("/store/consumequeue_ext/T/0"); err != nil {
		t.Fatal(err)
	}
	cfg := smallConfig("/store")
	cfg.MappedFileSizeConsumeQueue = 990
	s := openStore(t, mem, cfg, Options{})
	put(t, s, newMessage("T", 0, 0))
	closeStore(t, s)
	if info, err := mem.Stat("/store/consumequeue/T/0/00000000000000000000"); err != nil || info.Size() != 1000 {
		t.Error(err)
	}
	if _, err := mem.Stat("/store/consumequeue_ext/T/0"); err != nil {
		t.Error(err)
	}
}
