package locks

import (
	"reflect"
	"sync"
	"testing"
	"time"
)

// clock is a time that a test turns.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func queue(id int32) Queue { return Queue{Topic: "TopicA", BrokerName: "broker-a", QueueId: id} }

func queues(ids ...int32) []Queue {
	all := make([]Queue, len(ids))
	for i, id := range ids {
		all[i] = queue(id)
	}
	return all
}

func TestLock(t *testing.T) {
	c := &clock{time.UnixMilli(1_700_000_000_000)}
	table := New(c.time)
	step := func(what, group, client string, ask, want []Queue) {
		t.Helper()
		if got := table.Lock(group, client, ask); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	step("free queues", "G", "c1", queues(0, 1), queues(0, 1))
	step("one is taken", "G", "c2", queues(1, 2), queues(2))
	step("another group", "H", "c2", queues(0, 1), queues(0, 1))
	step("asked twice", "I", "c1", queues(0, 1, 0, 0), queues(0, 1))
	step("again", "G", "c1", queues(0, 1, 2), queues(0, 1))

	c.now = c.now.Add(60 * time.Second) // REBALANCE_LOCK_MAX_LIVE_TIME of 4.9.8; not yet over: 4.9.8 compares with >
	step("at the end of its life", "G", "c2", queues(0), []Queue{})
	step("refreshed", "G", "c1", queues(0), queues(0))
	c.now = c.now.Add(time.Millisecond)
	step("queue 1 has expired, 0 has not", "G", "c2", queues(0, 1), queues(1))
	c.now = c.now.Add(60*time.Second + time.Millisecond)
	if table.Locked("G", "c2", queue(1)) {
		t.Error("an expired lock counts")
	}
	step("its holder comes back", "G", "c2", queues(1), queues(1))
	step("nothing", "G", "c2", nil, []Queue{})
}

func TestUnlock(t *testing.T) {
	c := &clock{time.UnixMilli(1_700_000_000_000)}
	table := New(c.time)
	table.Lock("G", "c1", queues(0, 1))
	table.Unlock("G", "c2", queues(0))
	if !table.Locked("G", "c1", queue(0)) {
		t.Error("another client has unlocked")
	}
	table.Unlock("G", "c1", queues(0, 5))
	table.Unlock("none", "c1", queues(0))
	if table.Locked("G", "c1", queue(0)) || !table.Locked("G", "c1", queue(1)) {
		t.Error("not exactly queue 0 was unlocked")
	}
	if got := table.Lock("G", "c2", queues(0, 1)); !reflect.DeepEqual(got, queues(0)) {
		t.Errorf("%v, want queue 0", got)
	}
}

// Dead entries go, so a stream of short-lived groups does not fill the memory.
func TestSweep(t *testing.T) {
	c := &clock{time.UnixMilli(1_700_000_000_000)}
	table := New(c.time)
	for i := range int32(100) {
		table.Lock("G", "c1", queues(i))
	}
	table.Lock("H", "c1", queues(0))
	c.now = c.now.Add(2 * Lifetime)
	table.Lock("I", "c1", queues(0))
	if n := len(table.mu.groups); n != 1 {
		t.Errorf("%d groups left, want 1", n)
	}
}

// TestSweepIsShort: of very many dead locks one call removes a few only, oldest first, and looks at none that is alive; at the limit
// dead ones make room however many there are.
func TestSweepIsShort(t *testing.T) {
	c := &clock{time.UnixMilli(1_700_000_000_000)}
	table := New(c.time)
	const all = 10 * sweepRun
	table.limit = func() int { return all + 3 }
	var many []int32
	for i := range int32(all) {
		many = append(many, i)
	}
	table.Lock("dead", "c1", queues(many...))
	c.now = c.now.Add(Lifetime)
	table.Lock("alive", "c1", queues(0, 1))
	c.now = c.now.Add(time.Millisecond)
	if got := table.Lock("new", "c2", queues(0)); len(got) != 1 {
		t.Error("not locked")
	}
	if n := len(table.mu.groups["dead"]); n != all-sweepRun-1 {
		t.Errorf("%d are left, want %d", n, all-sweepRun-1)
	}
	for range 10 {
		table.Lock("new", "c2", queues(0))
	}
	if table.mu.groups["dead"] != nil || table.mu.old.Len() != 3 || !table.Locked("alive", "c1", queue(1)) {
		t.Errorf("%d are left", table.mu.old.Len())
	}

	c.now = c.now.Add(2 * Lifetime)
	many = many[:2*sweepRun]
	table.limit = func() int { return len(many) }
	table.Lock("mine", "c1", queues(many...))
	c.now = c.now.Add(2 * Lifetime)
	other := queues(many...)
	for i := range other {
		other[i].Topic = "TopicB"
	}
	if got := table.Lock("mine", "c1", other); len(got) != len(other) || table.Refused() != 0 { // in the group that was just swept
		t.Errorf("%d of %d locked, %d refused", len(got), len(other), table.Refused())
	}
	if !table.Locked("mine", "c1", other[0]) || !table.Locked("mine", "c1", other[len(other)-1]) || table.mu.old.Len() != len(other) {
		t.Error("not locked, or dead ones are left")
	}
}

// TestRefreshAllocatesLittle: a client that refreshes its locks makes nothing new for them.
func TestRefreshAllocatesLittle(t *testing.T) {
	table := New(time.Now)
	one := queues(7)
	table.Lock("G", "c1", one)
	if n := testing.AllocsPerRun(100, func() { table.Lock("G", "c1", one) }); n > 1 { // the answer
		t.Errorf("%v allocations", n)
	}
}

func TestConcurrentLocks(t *testing.T) {
	table := New(time.Now)
	var wg sync.WaitGroup
	var mu sync.Mutex
	holders := map[Queue]int{}
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			got := table.Lock("G", string(rune('a'+i)), queues(0, 1, 2, 3))
			mu.Lock()
			defer mu.Unlock()
			for _, q := range got {
				holders[q]++
			}
		}()
	}
	wg.Wait()
	for _, q := range queues(0, 1, 2, 3) {
		if holders[q] != 1 {
			t.Errorf("queue %d has %d holders", q.QueueId, holders[q])
		}
	}
}
