package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

func lightConfig() Config {
	cfg := smallConfig("/store")
	cfg.EnableLmq, cfg.EnableMultiDispatch = true, true
	return cfg
}

// dispatched is a message for topic T, queue 2, that names further queues.
func dispatched(n int, names string) *message.Message {
	m := newMessage("T", 2, n)
	m.Properties += "\x02INNER_MULTI_DISPATCH\x01" + names + "\x02WAIT\x01true\x02"
	return m
}

// bodies reads the bodies of a queue's messages, whatever queue their records name.
func bodies(t *testing.T, s *Store, topic string, queueId int32) (all []string) {
	t.Helper()
	for offset := s.MinOffset(topic, queueId); offset < s.MaxOffset(topic, queueId); {
		r := s.Get(topic, queueId, offset, 32, nil)
		if r.Status != Found {
			t.Fatalf("%s %d: Get(%d) = %+v", topic, queueId, offset, r)
		}
		for _, rec := range records(t, r.Body) {
			all = append(all, string(rec.Body()))
		}
		offset = r.NextBeginOffset
	}
	return all
}

// lightQueues checks what the messages of fillLight must have become: by hand from the rules of 4.9.8.
func lightQueues(t *testing.T, s *Store) {
	t.Helper()
	body := func(n ...int) (all []string) {
		for _, n := range n {
			all = append(all, fmt.Sprintf("body-T-2-%d", n))
		}
		return all
	}
	for queue, want := range map[string][]string{
		"T 2": body(0, 1, 2, 3, 4), "%LMQ%a 0": body(0, 1, 3), "%LMQ%b 0": body(0), "Other 2": body(0, 2),
		"%LMQ%a 2": nil, "Other 0": nil,
	} {
		topic, id, _ := strings.Cut(queue, " ")
		if got := bodies(t, s, topic, int32(id[0]-'0')); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", queue, got, want)
		}
	}
}

func fillLight(t *testing.T, s *Store) {
	t.Helper()
	for n, c := range []struct{ names, offsets string }{
		{"%LMQ%a,%LMQ%b,Other", "0,0,0"}, {"%LMQ%a,%LMQ%a", "1,1"}, {"Other,T", "1,2"}, {"%LMQ%a,,", "2"}, {" ", ""},
	} {
		m := dispatched(n, c.names)
		p := put(t, s, m)[0]
		got, _ := m.Property("INNER_MULTI_QUEUE_OFFSET")
		_, waits := m.Property("WAIT")
		if got != c.offsets || p.QueueOffset != int64(n) || waits != (c.offsets == "") {
			t.Errorf("%q: offsets %q, want %q; queue offset %d, properties %q", c.names, got, c.offsets, p.QueueOffset, m.Properties)
		}
		r := s.Get("T", 2, int64(n), 1, nil)
		if stored := records(t, r.Body)[0].Properties(); stored != m.Properties || r.Count != 1 {
			t.Errorf("stored %q, want %q", stored, m.Properties)
		}
	}
}

// TestMultiDispatch: a message enters the queues that it names and its text tells its places there; so after a restart,
// a kill, and when the queues are made again.
func TestMultiDispatch(t *testing.T) {
	mem, cfg := vfs.NewMem(newClock().Now), lightConfig()
	var arrived []string
	s := openStore(t, mem, cfg, Options{Arrive: func(a Arrival) {
		arrived = append(arrived, fmt.Sprintf("%s %d %d", a.Topic, a.QueueId, a.QueueOffset))
	}})
	fillLight(t, s)
	lightQueues(t, s)
	killed := copyOf(mem)
	closeStore(t, s)
	if want := []string{"T 2 0", "%LMQ%a 0 0", "%LMQ%b 0 0", "Other 2 0", "T 2 1", "%LMQ%a 0 1", "%LMQ%a 0 1", "T 2 2", "Other 2 1", "T 2 2",
		"T 2 3", "%LMQ%a 0 2", "T 2 4"}; !slices.Equal(arrived, want) {
		t.Errorf("arrived %q, want %q", arrived, want)
	}
	without := copyOf(mem)
	if err := without.RemoveAll("/store/consumequeue"); err != nil {
		t.Fatal(err)
	}
	for name, disk := range map[string]*vfs.Mem{"restart": mem, "kill": killed, "no queues": without} {
		s := openStore(t, disk, cfg, Options{})
		lightQueues(t, s)
		m := dispatched(5, "%LMQ%b,%LMQ%a")
		put(t, s, m)
		if got, _ := m.Property("INNER_MULTI_QUEUE_OFFSET"); got != "1,3" {
			t.Errorf("%s: the next has offsets %q", name, got)
		}
		closeStore(t, s)
	}
}

// TestMultiDispatchRefused: what can't be stored takes no offsets, and harms neither its neighbours nor what comes later.
func TestMultiDispatchRefused(t *testing.T) {
	s := openStore(t, vfs.NewMem(newClock().Now), lightConfig(), Options{})
	long := dispatched(1, "%LMQ%a")
	long.Properties += "x\x01" + strings.Repeat("y", message.MaxPropertiesLength-len(long.Properties)-2)
	run := []*Put{{Message: dispatched(0, "%LMQ%a")}, {Message: long}, {Message: dispatched(2, "%LMQ%a,a/b")}, {Message: dispatched(3, "%LMQ%a")}, {Message: newMessage("T", 2, 4)},
		{Message: dispatched(5, "%LMQ%"+strings.Repeat("a", 251))}}
	s.Put(run)
	for _, name := range []string{"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "rmq_sys_wheel_timer", message.TopicPopLog} {
		// What lies there names the topic that it goes to next, whatever that is.
		forged := dispatched(6, "%LMQ%a,"+name)
		forged.Properties += "\x02REAL_TOPIC\x01Other\x02REAL_QID\x010"
		p := &Put{Message: forged}
		if s.Put([]*Put{p}); !errors.Is(p.Err, ErrQueueName) || s.MaxOffset(name, 2) != 0 {
			t.Errorf("%s: %v, %d messages", name, p.Err, s.MaxOffset(name, 2))
		}
	}
	if !errors.Is(run[5].Err, ErrQueueName) { // no file system has a folder of that name
		t.Error(run[5].Err)
	}
	if run[0].Err != nil || run[1].Err == nil || !errors.Is(run[2].Err, ErrQueueName) || run[3].Err != nil || run[4].Err != nil {
		t.Fatal(run[0].Err, run[1].Err, run[2].Err, run[3].Err, run[4].Err)
	}
	waitDispatched(t, s, run[4].End)
	if got := bodies(t, s, "%LMQ%a", 0); !slices.Equal(got, []string{"body-T-2-0", "body-T-2-3"}) {
		t.Errorf("light queue %q", got)
	}
	if run[4].QueueOffset != 2 {
		t.Errorf("queue offset %d", run[4].QueueOffset)
	}
	// A prepared message names the places it would have, and takes none.
	prepared := dispatched(5, "%LMQ%a")
	prepared.SysFlag = message.TransactionPrepared
	put(t, s, prepared)
	// An element of a batch is not dispatched, whatever it says.
	forged := newMessage("T", 2, 6)
	forged.Properties += "\x02INNER_MULTI_DISPATCH\x01%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x010"
	batch := &Put{Batch: []*message.Message{forged, newMessage("T", 2, 7)}}
	s.Put([]*Put{batch})
	if batch.Err != nil {
		t.Fatal(batch.Err)
	}
	waitDispatched(t, s, batch.End)
	if got, _ := prepared.Property("INNER_MULTI_QUEUE_OFFSET"); got != "2" || s.MaxOffset("%LMQ%a", 0) != 2 {
		t.Errorf("prepared: offsets %q; %d in the light queue", got, s.MaxOffset("%LMQ%a", 0))
	}
	closeStore(t, s)
}

// TestPlacesInALightQueue: a Get tells where records stand in the queue, whatever their own queue offset is.
func TestPlacesInALightQueue(t *testing.T) {
	s := openStore(t, vfs.NewMem(newClock().Now), lightConfig(), Options{})
	defer func() { closeStore(t, s) }()
	var last []*Put
	for i := range 6 {
		if last = put(t, s, newMessage("T", 2, i)); i%2 == 1 {
			last = put(t, s, dispatched(i, "%LMQ%a"))
		}
	}
	waitDispatched(t, s, last[0].End)
	for _, c := range []struct {
		topic   string
		queueId int32
		want    string
	}{{"%LMQ%a", 0, "[1 2]"}, {"T", 2, "[1 2 3 4 5 6 7 8]"}} {
		got := s.Get(c.topic, c.queueId, 1, 32, nil)
		var at []int64
		for n, r := range records(t, got.Body) {
			at = append(at, got.QueueOffset(n, r))
		}
		if fmt.Sprint(at) != c.want {
			t.Errorf("%s: %v, want %s", c.topic, at, c.want)
		}
	}
}

// TestMultiDispatchOfWhatWaits: a message that waits, or that comes again to one group, is in no further queue: it gets there when it gets to
// its own topic, or has been there.
func TestMultiDispatchOfWhatWaits(t *testing.T) {
	s := openStore(t, vfs.NewMem(newClock().Now), lightConfig(), Options{})
	defer func() { closeStore(t, s) }()
	put(t, s, dispatched(0, "%LMQ%a"))
	var last []*Put
	for _, topic := range []string{message.TopicSchedule, message.TopicTransHalf, message.TopicTimer, message.TopicTransCheckMaxTime, "%RETRY%g", "%RETRY%g_T", "%DLQ%g"} {
		m := dispatched(1, "%LMQ%a")
		m.Topic, m.QueueId = topic, 0
		m.Properties += "\x02INNER_MULTI_QUEUE_OFFSET\x011" // of a copy
		last = put(t, s, m)
		if v, ok := m.Property("INNER_MULTI_QUEUE_OFFSET"); ok {
			t.Errorf("%s: it has the offsets %q", topic, v)
		}
		if v, _ := m.Property("INNER_MULTI_DISPATCH"); v != "%LMQ%a" {
			t.Errorf("%s: it names %q", topic, v)
		}
	}
	waitDispatched(t, s, last[0].End)
	if got := bodies(t, s, "%LMQ%a", 0); !slices.Equal(got, []string{"body-T-2-0"}) {
		t.Errorf("light queue %q", got)
	}
}

// TestMultiDispatchOff: without enableMultiDispatch the properties are like any; without enableLmq a %LMQ% name is like any.
func TestMultiDispatchOff(t *testing.T) {
	cfg := smallConfig("/store")
	s := openStore(t, vfs.NewMem(newClock().Now), cfg, Options{})
	m := dispatched(0, "%LMQ%a")
	text := m.Properties
	put(t, s, m)
	if m.Properties != text || s.MaxOffset("%LMQ%a", 0) != 0 {
		t.Errorf("properties %q, %d in the light queue", m.Properties, s.MaxOffset("%LMQ%a", 0))
	}
	closeStore(t, s)
	cfg.EnableMultiDispatch = true
	s = openStore(t, vfs.NewMem(newClock().Now), cfg, Options{})
	put(t, s, dispatched(0, "%LMQ%a"))
	if s.MaxOffset("%LMQ%a", 0) != 0 || s.MaxOffset("%LMQ%a", 2) != 1 {
		t.Errorf("%d in queue 0, %d in queue 2", s.MaxOffset("%LMQ%a", 0), s.MaxOffset("%LMQ%a", 2))
	}
	closeStore(t, s)
}

func TestLmqLimit(t *testing.T) {
	cfg := lightConfig()
	cfg.MaxLmqConsumeQueueNum = 1
	s := openStore(t, vfs.NewMem(newClock().Now), cfg, Options{})
	put(t, s, dispatched(0, "%LMQ%a"))
	if s.TooManyLmqQueues("%LMQ%a") {
		t.Error("one of one is too many")
	}
	put(t, s, dispatched(1, "%LMQ%b"))
	if !s.TooManyLmqQueues("%LMQ%a") || s.TooManyLmqQueues("T") {
		t.Error("two of one are not too many, or bear on others")
	}
	if err := s.DeleteTopics(func(string) bool { return false }); err != nil || s.MaxOffset("%LMQ%a", 0) != 1 {
		t.Errorf("light queues go with unused topics: %v", err)
	}
	if err := s.DeleteLmq("%LMQ%b"); err != nil || s.TooManyLmqQueues("%LMQ%a") || s.MaxOffset("%LMQ%b", 0) != 0 {
		t.Errorf("the light queue is not removed: %v", err)
	}
	closeStore(t, s)
}
