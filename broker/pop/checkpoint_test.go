package pop

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

var queueT = Key{"T", "G", 0}

// started runs a test with a table on a fresh store and a clock of its own.
func started(t *testing.T, limit int, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, newStore())
		b.open(limit)
		defer func() { b.Close() }()
		f(t, b)
	})
}

func (b *bed) wantAgain(list ...string) {
	b.tb.Helper()
	synctest.Wait()
	if got := b.again(); !reflect.DeepEqual(got, list) {
		b.tb.Errorf("come again: %q, want %q", got, list)
	}
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

func TestUnacknowledgedComesAgain(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 5)
		at := b.pop(queueT, 0, 3, 10*time.Second)
		b.ack(queueT, 0, at, 1)
		b.ack(queueT, 0, at, 1)
		if n := b.Inflight(b.queue(queueT)); n != 2 {
			t.Errorf("%d under way", n)
		}
		pass(10*time.Second - time.Millisecond)
		b.wantAgain()
		pass(time.Millisecond)
		b.wantAgain("G T 0", "G T 2")
		if b.Open() != 0 || b.Inflight(b.queue(queueT)) != 0 {
			t.Error("still under way")
		}
		got := b.store.queue("%RETRY%G_T", 0)
		if len(got) != 2 || got[0].ReconsumeTimes != 1 || got[0].BornHost != host {
			t.Errorf("copies: %+v", got)
		}
		b.ack(queueT, 0, at, 0) // too late
		pass(time.Hour)
		b.wantAgain()
	})
}

func TestAcknowledgedDoesNotComeAgain(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 40)
		first, second := b.pop(queueT, 0, 32, time.Second), b.pop(queueT, 32, 1, time.Second)
		other := Key{"T", "H", 0}
		b.pop(other, 0, 1, time.Second)
		for o := range int64(32) {
			b.ack(queueT, 0, first, o)
		}
		b.ack(queueT, 32, second, 32)
		pass(time.Minute)
		b.wantAgain("H T 0")
	})
}

func TestRunOfAcksIsOneRecord(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 10)
		one, two := b.pop(queueT, 0, 4, time.Hour), b.pop(queueT, 4, 4, time.Hour)
		before := b.store.MaxOffset(LogTopic, 0)
		run := []Ack{{queueT, 0, one, 0}, {queueT, 0, one, 1}, {queueT, 4, two, 7}, {queueT, 0, one, 2}, {queueT, 0, one, 9}, {Key{"T", "none", 0}, 0, one, 0}}
		if err := b.Acked(run); err != nil {
			t.Fatal(err)
		}
		if n := b.store.MaxOffset(LogTopic, 0) - before; n != 1 {
			t.Errorf("%d records", n)
		}
		if n := b.Inflight(b.queue(queueT)); n != 4 {
			t.Errorf("%d under way, want 3, 4, 5, 6", n)
		}
	})
}

func TestChangedInvisibleTime(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 3)
		at := b.pop(queueT, 0, 2, 10*time.Second)
		later, ok, err := b.Changed(Ack{queueT, 0, at, 1}, 60_000)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, ok, _ := b.Changed(Ack{queueT, 0, at, 1}, 1); ok {
			t.Error("changed by its old handle")
		}
		pass(11 * time.Second)
		b.wantAgain("G T 0")
		again, ok, err := b.Changed(Ack{queueT, 1, later, 1}, 1000) // sooner
		if err != nil || !ok || again <= later {
			t.Fatal(again, ok, err)
		}
		pass(time.Second)
		b.wantAgain("G T 1")
		if _, ok, _ := b.Changed(Ack{queueT, 1, again, 1}, 1); ok {
			t.Error("changed what has come again")
		}
	})
}

// TestTakenInTime: what falls due while its acknowledgement or its change is being recorded does not come again meanwhile, and nobody else
// may acknowledge or change it: it would come twice, or after its acknowledgement.
func TestTakenInTime(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 2)
		at := b.pop(queueT, 0, 2, time.Second)
		n := b.Checkpoints.mu.open[spot{b.queue(queueT), 0, at}]
		taking := func(bits uint32) {
			b.Checkpoints.mu.Lock()
			defer b.Checkpoints.mu.Unlock()
			n.taking = bits
		}
		taking(1)
		records := b.store.MaxOffset(LogTopic, 0)
		b.ack(queueT, 0, at, 0)
		if _, ok, err := b.Changed(Ack{queueT, 0, at, 0}, 1); ok || err != nil || b.store.MaxOffset(LogTopic, 0) != records {
			t.Errorf("changed: %v, %v", ok, err)
		}
		pass(5 * time.Second)
		b.wantAgain()
		taking(0)
		pass(takingPause)
		b.wantAgain("G T 0", "G T 1")
	})
}

// TestNothingStaysTaken: neither do acknowledgements and changes that succeed leave such a mark, nor those that fail.
func TestNothingStaysTaken(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 300)
		var run []Ack
		for i := range int64(150) { // more than one record has room for
			run = append(run, Ack{queueT, 2 * i, b.pop(queueT, 2*i, 2, time.Second), 2 * i})
		}
		b.store.failing(errFull)
		if b.Acked(run) == nil {
			t.Error("acknowledged without a record")
		}
		if _, ok, err := b.Changed(run[0], 1); ok || err == nil {
			t.Error("changed without a record")
		}
		if b.Forget(func(Key) bool { return true }) == nil {
			t.Error("forgotten without a record")
		}
		b.store.failing(nil)
		if err := b.Acked(run); err != nil {
			t.Error(err)
		}
		for i := range run {
			if n := b.Checkpoints.mu.open[spot{b.queue(queueT), run[i].StartOffset, run[i].PopTime}]; n == nil || n.taking != 0 || n.acked != 1 {
				t.Fatalf("checkpoint %d: %+v", i, n)
			}
		}
	})
}

func TestFailedCopiesAreTriedAgain(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 2)
		b.pop(queueT, 0, 2, time.Second)
		b.refuse(errFull)
		pass(time.Second)
		b.wantAgain()
		pass(9 * time.Second)
		b.refuse(nil)
		b.store.failing(errFull)
		pass(time.Second) // 10 s after the first try
		b.wantAgain("G T 0", "G T 1")
		if n := len(b.store.queue("%RETRY%G_T", 0)); n != 0 || b.Open() != 1 {
			t.Fatalf("%d copies, %d open", n, b.Open())
		}
		b.store.failing(nil)
		pass(20 * time.Second)
		b.wantAgain("G T 0", "G T 1")
		if n := len(b.store.queue("%RETRY%G_T", 0)); n != 2 || b.Open() != 0 {
			t.Errorf("%d copies, %d open", n, b.Open())
		}
	})
}

func TestWhatCannotBeStoredIsNotTaken(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 3)
		at := b.pop(queueT, 0, 2, time.Minute)
		b.store.failing(errFull)
		q := b.queue(queueT)
		if err := b.Popped(q, 2, at, 1000, []int64{2}, 3); !errors.Is(err, errFull) {
			t.Error(err)
		}
		if err := b.Acked([]Ack{{queueT, 0, at, 0}}); !errors.Is(err, errFull) {
			t.Error(err)
		}
		if _, ok, err := b.Changed(Ack{queueT, 0, at, 1}, 1000); ok || !errors.Is(err, errFull) {
			t.Error(ok, err)
		}
		b.store.failing(nil)
		if b.Open() != 1 || b.Inflight(q) != 2 {
			t.Errorf("%d open, %d under way", b.Open(), b.Inflight(q))
		}
		pass(time.Minute)
		b.wantAgain("G T 0", "G T 1")
	})
}

func TestLimitOfCheckpoints(t *testing.T) {
	started(t, 2, func(t *testing.T, b *bed) {
		b.fill("T", 9)
		at := b.pop(queueT, 0, 3, time.Minute)
		b.pop(queueT, 3, 3, time.Minute)
		q := b.queue(queueT)
		if err := b.Popped(q, 6, at, 1000, []int64{6}, 7); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		b.ack(queueT, 0, at, 0, 1, 2)
		b.pop(queueT, 6, 1, time.Minute)
	})
}

func TestSamePopTwiceInAMillisecond(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 2)
		at := b.pop(queueT, 0, 2, time.Minute)
		if err := b.Popped(b.queue(queueT), 0, at, 1000, []int64{0}, 1); !errors.Is(err, ErrSame) {
			t.Error(err)
		}
	})
}

func TestMessageThatIsGone(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.pop(queueT, 5, 2, time.Second) // its queue is empty
		pass(time.Second)
		b.wantAgain()
		if b.Open() != 0 {
			t.Error("still open")
		}
	})
}

func TestForget(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 9)
		b.fill("U", 9)
		for i := range int64(3) {
			b.pop(queueT, i, 1, time.Second)
		}
		b.pop(Key{"U", "G", 0}, 0, 1, time.Second)
		b.PoppedOrderly(b.queue(queueT), "", time.Now().UnixMilli(), 60_000, []int64{5}, nil)
		if err := b.Forget(func(k Key) bool { return k.Topic == "T" }); err != nil {
			t.Fatal(err)
		}
		if b.Busy(b.queue(queueT), 0, "", 0) != 0 || b.Inflight(b.queue(queueT)) != 0 {
			t.Error("still under way")
		}
		b.reopen(0)
		pass(time.Minute)
		b.wantAgain("G U 0")
	})
}

// TestLimitOfQueues: at the limit a group gets nothing from a queue that it has never popped, and goes on with the others.
func TestLimitOfQueues(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.o.QueueLimit = 2
		b.queue(queueT)
		other := Key{Topic: "T", Group: "G", QueueId: 1}
		if !b.Room(other) {
			t.Fatal("no room below the limit")
		}
		b.queue(other)
		if third := (Key{Topic: "T", Group: "G", QueueId: 2}); b.Room(third) || b.Refused() != 1 {
			t.Errorf("room beyond the limit, %d refused", b.Refused())
		}
		if !b.Room(queueT) || !b.Room(other) || b.Refused() != 1 {
			t.Errorf("no room for what is there, %d refused", b.Refused())
		}
	})
}
