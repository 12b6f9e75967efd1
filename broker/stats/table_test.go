package stats

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"
)

var start = time.UnixMilli(1_700_000_000_000)

// run is a table with a clock of its own.
type run struct {
	*Table
	t   *testing.T
	now time.Time
}

func newRun(t *testing.T) *run {
	r := &run{Table: New("ClusterA", start, slog.New(slog.DiscardHandler)), t: t, now: start}
	r.Sample(r.now)
	return r
}

// pass lets time pass in steps of a second.
func (r *run) pass(d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(time.Second)
		r.Sample(r.now)
	}
}

func (r *run) want(name, key string, want Data) {
	r.t.Helper()
	if got, ok := r.View(name, key); !ok || got != want {
		r.t.Errorf("at %v %s %s: %+v (%t), want %+v", r.now.Sub(start), name, key, got, ok, want)
	}
}

func (r *run) none(name, key string) {
	r.t.Helper()
	if got, ok := r.View(name, key); ok {
		r.t.Errorf("%s %s: %+v, want none", name, key, got)
	}
}

// TestWindows: figures by hand after the rules of StatsItem: the list of a window begins with a zero one step before
// the item's first tick, and has at most 7 (minute, hour) or 25 entries (day).
func TestWindows(t *testing.T) {
	r := newRun(t)
	r.none(TopicPutNums, "TopicA")
	r.none(BrokerPutNums, "ClusterA")
	r.pass(3 * time.Second)
	r.Put("TopicA", 2, 12, 3600)
	r.want(TopicPutNums, "TopicA", Data{}) // no tick yet
	r.pass(7 * time.Second)                // the first tick, at 10 s; the list: (0 s, 0), (10 s, 12)
	r.want(TopicPutNums, "TopicA", Data{Minute: Snapshot{12, 1.2, 6}})
	r.want(TopicPutSize, "TopicA", Data{Minute: Snapshot{3600, 360, 1800}})
	r.want(BrokerPutNums, "ClusterA", Data{Minute: Snapshot{12, 1.2, 0}})
	r.none(BrokerGetNums, "ClusterA")
	r.Put("TopicA", 1, 6, 60)
	r.pass(50 * time.Second) // ticks at 10 ... 60 s and the zero: seven entries, 60 s
	r.want(TopicPutNums, "TopicA", Data{Minute: Snapshot{18, 0.3, 6}})
	r.pass(10 * time.Second) // now from 10 to 70 s: without the first 12
	r.want(TopicPutNums, "TopicA", Data{Minute: Snapshot{6, 0.1, 6}})
	r.pass(10 * time.Second)
	r.want(TopicPutNums, "TopicA", Data{})
	r.pass(10*time.Minute - 80*time.Second) // the hour's second tick, the first that the item sees
	r.want(TopicPutNums, "TopicA", Data{Hour: Snapshot{18, 18.0 / 600, 6}})
	r.pass(50 * time.Minute) // the day's; the hour's list: (0, 0), (10, 18) ... (60 min, 18)
	r.want(TopicPutNums, "TopicA", Data{Hour: Snapshot{18, 0.005, 6}, Day: Snapshot{18, 0.005, 6}})
	r.pass(23 * time.Hour)
	r.want(TopicPutNums, "TopicA", Data{Day: Snapshot{18, 18.0 / 86400, 6}})
	if r.topicPut.find("TopicA").past == nil {
		t.Error("a history was given up while a window shows it")
	}
	r.pass(time.Hour)
	r.want(TopicPutNums, "TopicA", Data{})
	if r.topicPut.find("TopicA").past != nil {
		t.Error("the history of a topic at rest is kept")
	}
	r.Put("TopicA", 1, 6, 60) // the item is old: its window is whole
	r.pass(10 * time.Second)
	r.want(TopicPutNums, "TopicA", Data{Minute: Snapshot{6, 0.1, 6}})
	r.want(BrokerPutNums, "ClusterA", Data{Minute: Snapshot{6, 0.1, 0}})
}

// TestKeys: each name under its official key.
func TestKeys(t *testing.T) {
	r := newRun(t)
	r.Get("GroupA", "TopicA", 10, 1000)
	r.Get("GroupA", "TopicA", 20, 2000)
	r.Latency("GroupA", "TopicA", 3, 4*time.Millisecond)
	r.SendBack("GroupA", "TopicA")
	r.PutBack("SCHEDULE_TOPIC_XXXX", 300)
	r.QueuePut("SCHEDULE_TOPIC_XXXX", 2, 1, 300)
	r.Delivered("SCHEDULE_CONSUMER", "SCHEDULE_TOPIC_XXXX", 2, "TopicB", 250)
	r.Get("Group@odd", "TopicA", 1, 1)
	r.pass(10 * time.Second)
	one := func(sum int64, calls float64) Data {
		return Data{Minute: Snapshot{sum, float64(sum) / 10, float64(sum) / calls}}
	}
	for _, c := range []struct {
		name, key string
		want      Data
	}{
		{GroupGetNums, "TopicA@GroupA", one(30, 2)},
		{GroupGetSize, "TopicA@GroupA", one(3000, 2)},
		{GroupGetNums, "TopicA@Group@odd", one(1, 1)},
		{GroupGetLatency, "3@TopicA@GroupA", one(4, 1)},
		{SendBackNums, "TopicA@GroupA", one(1, 1)},
		{TopicPutNums, "SCHEDULE_TOPIC_XXXX", one(1, 1)},
		{QueuePutNums, "SCHEDULE_TOPIC_XXXX@2", one(1, 1)},
		{QueuePutSize, "SCHEDULE_TOPIC_XXXX@2", one(300, 1)},
		{QueueGetNums, "SCHEDULE_TOPIC_XXXX@2@SCHEDULE_CONSUMER", one(1, 1)},
		{QueueGetSize, "SCHEDULE_TOPIC_XXXX@2@SCHEDULE_CONSUMER", one(250, 1)},
		{GroupGetNums, "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER", one(1, 1)},
		{TopicPutSize, "TopicB", one(250, 1)},
		{BrokerPutNums, "ClusterA", Data{Minute: Snapshot{1, 0.1, 0}}},
		{BrokerGetNums, "ClusterA", Data{Minute: Snapshot{31, 3.1, 0}}},
	} {
		r.want(c.name, c.key, c.want)
	}
	for _, c := range [][2]string{
		{"", ""}, {"NO_SUCH", "TopicA"}, {TopicPutNums, ""}, {TopicPutNums, "TopicC"}, {GroupGetNums, "TopicA"},
		{GroupGetLatency, "TopicA@GroupA"}, {GroupGetLatency, "x@TopicA@GroupA"}, {GroupGetLatency, "03@TopicA@GroupA"},
		{QueuePutNums, "SCHEDULE_TOPIC_XXXX"}, {QueuePutNums, "SCHEDULE_TOPIC_XXXX@99999999999"},
		{QueueGetNums, "a@1"}, {BrokerPutNums, "other"}, {BrokerGetNums, ""},
	} {
		r.none(c[0], c[1])
	}
	if got := r.GroupGetTps("GroupA", "TopicA"); got != 3 {
		t.Errorf("GroupGetTps = %v, want 3", got)
	}
	if got := r.GroupGetTps("none", "TopicA"); got != 0 {
		t.Errorf("GroupGetTps of nobody = %v", got)
	}
}

// TestDeleted: a topic and a group take theirs with them, and nothing else.
func TestDeleted(t *testing.T) {
	r := newRun(t)
	fill := func() {
		for _, topic := range []string{"TopicA", "TopicB"} {
			r.Put(topic, 1, 1, 1)
			r.QueuePut(topic, 0, 1, 1)
			for _, group := range []string{"GroupA", "GroupB"} {
				r.Get(group, topic, 1, 1)
				r.SendBack(group, topic)
				r.Latency(group, topic, 0, time.Millisecond)
				r.Delivered(group, topic, 0, "Other", 1)
			}
		}
	}
	fill()
	all := map[string][]string{ // keys by name
		TopicPutNums: {"TopicA", "TopicB"}, QueuePutNums: {"TopicA@0", "TopicB@0"},
		GroupGetNums: {"TopicA@GroupA", "TopicA@GroupB", "TopicB@GroupA", "TopicB@GroupB"},
		SendBackNums: {"TopicA@GroupA", "TopicA@GroupB", "TopicB@GroupA", "TopicB@GroupB"},
		QueueGetNums: {"TopicA@0@GroupA", "TopicA@0@GroupB", "TopicB@0@GroupA", "TopicB@0@GroupB"},

		GroupGetLatency: {"0@TopicA@GroupA", "0@TopicA@GroupB", "0@TopicB@GroupA", "0@TopicB@GroupB"},
	}
	left := func(gone map[string]bool) {
		t.Helper()
		for name, keys := range all {
			for _, key := range keys {
				if _, ok := r.View(name, key); ok == gone[key] {
					t.Errorf("%s %s: there %t", name, key, ok)
				}
			}
		}
	}
	left(nil)
	r.TopicDeleted("TopicA")
	left(map[string]bool{"TopicA": true, "TopicA@0": true, "TopicA@GroupA": true, "TopicA@GroupB": true,
		"TopicA@0@GroupA": true, "TopicA@0@GroupB": true, "0@TopicA@GroupA": true, "0@TopicA@GroupB": true})
	fill()
	r.GroupDeleted("GroupA")
	left(map[string]bool{"TopicA@GroupA": true, "TopicB@GroupA": true, "TopicA@0@GroupA": true, "TopicB@0@GroupA": true,
		"0@TopicA@GroupA": true, "0@TopicB@GroupA": true})
}

// TestLimit: what is beyond the limit is not kept, and room comes back.
func TestLimit(t *testing.T) {
	full := 0
	var s Set[string]
	s.init(2, func() { full++ })
	own := func(k string) string { return k }
	for i := range 4 {
		s.item(fmt.Sprint(i), own).Add(1, 1, 1)
	}
	if full != 2 || s.find("2") != nil || s.find("1") == nil {
		t.Errorf("full %d times, third %v", full, s.find("2"))
	}
	s.remove(func(k string) bool { return k == "0" })
	if s.item("2", own) == nil {
		t.Error("no room after a removal")
	}
}

// TestClockJumps: a clock that is set back or stands still brings neither a panic nor a division by zero, and ticks go
// on from the new time.
func TestClockJumps(t *testing.T) {
	r := newRun(t)
	r.Put("TopicA", 1, 10, 10)
	r.now = r.now.Add(-24 * time.Hour)
	r.pass(time.Minute)
	r.Put("TopicA", 1, 10, 10)
	r.pass(2 * time.Minute)
	r.Put("TopicA", 1, 6, 10)
	r.pass(time.Minute)
	if got, _ := r.View(TopicPutNums, "TopicA"); got.Minute != (Snapshot{6, 0.1, 6}) {
		t.Errorf("%+v", got)
	}
	r.now = r.now.Add(48 * time.Hour) // asleep: one tick, not thousands
	r.Sample(r.now)
	if got := r.clocks[minuteWindow].next.Sub(r.now); got != 10*time.Second {
		t.Errorf("next tick in %v", got)
	}
}

// TestConcurrent: nothing that is counted while samples are taken is lost or counted twice.
func TestConcurrent(t *testing.T) {
	r := newRun(t)
	const each = 2000
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range each {
				r.Put("TopicA", 1, 1, 1)
				r.Get("GroupA", fmt.Sprint("Topic", i%7), 1, 1)
			}
		})
	}
	for range 5 {
		r.pass(10 * time.Second)
		r.View(TopicPutNums, "TopicA")
	}
	wg.Wait()
	r.pass(10 * time.Second)
	got, ok := r.View(TopicPutNums, "TopicA")
	if !ok || got.Minute.Sum != 4*each || got.Minute.Avgpt != 1 {
		t.Errorf("%+v, want %d", got, 4*each)
	}
}

// TestAllocations: counting allocates nothing.
func TestAllocations(t *testing.T) {
	r := newRun(t)
	count := func() {
		r.Put("TopicA", 1, 1, 100)
		r.Get("GroupA", "TopicA", 1, 100)
		r.Latency("GroupA", "TopicA", 1, time.Millisecond)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPut(b *testing.B) {
	t := New("ClusterA", start, slog.New(slog.DiscardHandler))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			t.Put("TopicA", 1, 1, 100)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	t := New("ClusterA", start, slog.New(slog.DiscardHandler))
	for b.Loop() {
		t.Get("GroupA", "TopicA", 32, 3200)
		t.Latency("GroupA", "TopicA", 1, time.Millisecond)
	}
}

// BenchmarkSample is what 100,000 topics cost once in ten seconds; they rest.
func BenchmarkSample(b *testing.B) {
	t := New("ClusterA", start, slog.New(slog.DiscardHandler))
	for i := range 100_000 {
		t.Put(fmt.Sprint("Topic", i), 1, 1, 100)
	}
	now := start
	for range 7 {
		now = now.Add(10 * time.Second)
		t.Sample(now)
	}
	for b.Loop() {
		now = now.Add(10 * time.Second)
		t.Sample(now)
	}
}
