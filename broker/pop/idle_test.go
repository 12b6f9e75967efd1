package pop

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// kept is how many queues there are.
func (b *bed) kept() int {
	b.queues.RLock()
	defer b.queues.RUnlock()
	if len(b.queues.list) != len(b.queues.m) {
		b.tb.Errorf("%d queues listed, %d found", len(b.queues.list), len(b.queues.m))
	}
	return len(b.queues.m)
}

// TestIdleQueuesAreForgotten: groups come and go, and the table is no larger than those that are there.
func TestIdleQueuesAreForgotten(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.o.QueueLimit = 100
		b.fill("T", 1)
		for i := range 1000 {
			k := Key{"T", fmt.Sprint("G", i), 0}
			if !b.Room(k) {
				t.Fatalf("group %d: no room, %d queues", i, b.kept())
			}
			if i%2 == 0 { // the others find nothing
				b.ack(k, 0, b.pop(k, 0, 1, time.Minute), 0)
			} else {
				b.Take(k).Release()
			}
			pass(time.Second)
		}
		pass(time.Minute)
		synctest.Wait()
		if n := b.kept(); n != 0 {
			t.Errorf("%d queues are kept", n)
		}
	})
}

// TestQueuesThatAreNeededStay: each for one reason alone, and it goes when that has gone.
func TestQueuesThatAreNeededStay(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		want := func(what string, n int) {
			t.Helper()
			pass(time.Minute)
			synctest.Wait()
			if got := b.kept(); got != n {
				t.Fatalf("%s: %d queues, want %d", what, got, n)
			}
		}
		b.fill("T", 3)
		q := b.Take(queueT)
		want("taken", 1)
		q.Release()
		want("released", 0)

		at := b.pop(queueT, 0, 2, time.Hour)
		b.ack(queueT, 0, at, 0)
		want("under way", 1)
		b.ack(queueT, 0, at, 1)
		want("acknowledged", 0)

		b.pop(queueT, 1, 1, time.Second)
		b.refuse(errFull)
		pass(2 * time.Second)
		want("to come again", 1)
		b.refuse(nil)
		pass(5 * time.Minute) // the pause before the next try
		want("has come again", 0)
		b.wantAgain("G T 1")

		q = b.Take(queueT)
		b.PoppedOrderly(q, "", time.Now().UnixMilli(), 1000, []int64{2}, nil)
		q.Release()
		want("in order", 1)
		pass(23 * time.Hour)
		want("a day later", 1)
		pass(time.Hour)
		want("more than a day later", 0)

		b.mu.Lock()
		b.unsaved = errFull
		b.mu.Unlock()
		b.ack(queueT, 0, b.pop(queueT, 0, 1, time.Minute), 0)
		want("its place is in no file", 1)
		b.mu.Lock()
		b.unsaved = nil
		b.mu.Unlock()
		want("its place is in the file", 0)
		q = b.Take(queueT)
		if err := b.Advanced(q, 3); err != nil {
			t.Error(err)
		}
		q.Release()
		if err := b.Forget(func(Key) bool { return true }); err != nil {
			t.Error(err)
		}
		want("deleted", 0)
	})
}

// TestForgottenQueueStandsNowhere: where the group of a forgotten queue stands the file of offsets says alone, when it was set back or
// deleted too; a start after a kill moves nobody. One that is still known is told of in the log.
func TestForgottenQueueStandsNowhere(t *testing.T) {
	for _, forgotten := range []bool{true, false} {
		started(t, 0, func(t *testing.T, b *bed) {
			b.fill("T", 9)
			b.ack(queueT, 0, b.pop(queueT, 0, 5, time.Minute), 0, 1, 2, 3, 4)
			if forgotten {
				pass(time.Minute)
				synctest.Wait()
			}
			if known := b.Known(queueT) != nil; known == forgotten {
				t.Fatalf("known: %v", known)
			}
			records := b.store.MaxOffset(LogTopic, 0)
			if err := b.SetBack(queueT, 2); err != nil {
				t.Fatal(err)
			}
			if told := b.store.MaxOffset(LogTopic, 0) > records; told == forgotten {
				t.Errorf("recorded: %v", told)
			}
			place, _ := b.saved()
			killed := newBed(t, b.store) // with the file of offsets as it is
			killed.mu.place, killed.mu.placed = place, place > 0
			killed.open(0)
			defer killed.Close()
			want := map[Key]int64{}
			if !forgotten {
				want[queueT] = 2
			}
			killed.mu.Lock()
			defer killed.mu.Unlock()
			if !reflect.DeepEqual(killed.mu.offsets, want) {
				t.Errorf("moved to %v, want %v", killed.mu.offsets, want)
			}
		})
	}
}

// TestForgettingBesidePops: nothing is lost or comes twice that is popped while queues are forgotten and made again.
func TestForgettingBesidePops(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		const groups, rounds = 8, 200
		b.fill("T", rounds)
		var wg sync.WaitGroup
		want := make([]int, groups)
		for g := range groups {
			wg.Add(1)
			go func() {
				defer wg.Done()
				k, r := Key{"T", fmt.Sprint("G", g), 0}, rand.New(rand.NewPCG(1, uint64(g)))
				for o := range int64(rounds) {
					q := b.Take(k)
					at := time.Now().UnixMilli()
					err := b.Popped(q, o, at, 20_000, []int64{o}, o+1)
					if err == nil && b.Known(k) != q {
						t.Error("another queue while this one is taken")
					}
					q.Release()
					if err != nil {
						t.Error(err)
						return
					}
					pass(time.Duration(r.IntN(20_000)) * time.Millisecond)
					switch r.IntN(3) {
					case 0:
						want[g]++ // not acknowledged
					case 1:
						b.Acked([]Ack{{k, o, at, o}})
					default:
						if at, ok, err := b.Changed(Ack{k, o, at, o}, 1000); err != nil || !ok {
							t.Error(ok, err)
						} else {
							b.Acked([]Ack{{k, o, at, o}})
						}
					}
					pass(time.Duration(r.IntN(30_000)) * time.Millisecond)
				}
			}()
		}
		wg.Wait()
		pass(time.Minute)
		synctest.Wait()
		all := 0
		for _, n := range want {
			all += n
		}
		if got := b.again(); len(got) != all {
			t.Errorf("%d have come again, want %d", len(got), all)
		}
		if b.Open() != 0 || b.kept() != 0 {
			t.Errorf("%d checkpoints, %d queues are left", b.Open(), b.kept())
		}
	})
}

// TestManyIdleQueues: a look at all is made in small pieces, and those that are used are found again.
func TestManyIdleQueues(t *testing.T) {
	b := newBed(t, newStore())
	b.Checkpoints = New(Options{Clock: time.Now})
	const all = 3*idleRun + 7
	for i := range int32(all) {
		b.Take(Key{"T", "G", i}).Release()
	}
	b.forgetIdle()
	for i := int32(0); i < all; i += 2 {
		b.Take(Key{"T", "G", i}).Release()
	}
	b.forgetIdle()
	if n := b.kept(); n != (all+1)/2 {
		t.Errorf("%d queues, want %d", n, (all+1)/2)
	}
	for i := range int32(all) {
		if known := b.Known(Key{"T", "G", i}) != nil; known != (i%2 == 0) {
			t.Fatalf("queue %d known: %v", i, known)
		}
	}
	b.forgetIdle()
	if n := b.kept(); n != 0 {
		t.Errorf("%d queues are left", n)
	}
}
