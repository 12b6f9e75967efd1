package pop

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"rocketd/protocol/message"
	"rocketd/store"
)

// reopen kills the table, or stops it, and makes it anew on the same store.
func (b *bed) reopen(limit int) {
	b.Close()
	b.open(limit)
}

func TestStartReadsTheLog(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 10)
		at := b.pop(queueT, 0, 3, 10*time.Second)
		other := Key{"T", "H", 0}
		gone := b.pop(other, 0, 2, time.Minute)
		b.ack(queueT, 0, at, 0)
		b.ack(other, 0, gone, 0, 1)
		later, _, err := b.Changed(Ack{queueT, 0, at, 2}, time.Hour.Milliseconds())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Advanced(b.queue(Key{"T", "O", 3}), 7); err != nil {
			t.Fatal(err)
		}
		b.reopen(0)
		if b.Open() != 2 || b.Inflight(b.queue(queueT)) != 2 || b.Inflight(b.queue(other)) != 0 {
			t.Errorf("%d open, %d and %d under way", b.Open(), b.Inflight(b.queue(queueT)), b.Inflight(b.queue(other)))
		}
		for k, want := range map[Key]int64{queueT: 3, other: 2, {"T", "O", 3}: 7} {
			if b.mu.offsets[k] != want {
				t.Errorf("%v stands at %d, want %d", k, b.mu.offsets[k], want)
			}
		}
		pass(10 * time.Second)
		b.wantAgain("G T 1")
		b.ack(queueT, 2, later, 2)
		pass(2 * time.Hour)
		b.wantAgain()
	})
}

// After a kill a group stands where the last record says, not where it stood before it was set back or its topic deleted.
func TestSetBack(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 10)
		other, third := Key{"T", "H", 0}, Key{"U", "G", 0}
		b.fill("U", 10)
		b.pop(queueT, 0, 8, time.Hour)
		b.pop(other, 0, 6, time.Hour)
		b.pop(third, 0, 7, time.Hour)
		for k, offset := range map[Key]int64{queueT: 2, other: 0, {"V", "G", 0}: 5} { // the last is popped by nobody
			if err := b.SetBack(k, offset); err != nil {
				t.Fatal(err)
			}
		}
		b.pop(queueT, 2, 1, time.Minute)
		if err := b.Forget(func(k Key) bool { return k.Topic == "U" }); err != nil {
			t.Fatal(err)
		}
		b.mu.offsets = map[Key]int64{}
		b.reopen(0)
		if got := b.mu.offsets; len(got) != 1 || got[queueT] != 3 {
			t.Errorf("groups stand at %v", got)
		}
		if err := b.SetBack(queueT, 1); err != nil { // known from the log
			t.Fatal(err)
		}
		b.mu.offsets = map[Key]int64{}
		b.reopen(0)
		if got := b.mu.offsets; len(got) != 1 || got[queueT] != 1 {
			t.Errorf("then groups stand at %v", got)
		}
	})
}

// What was due while the broker was down comes at once.
func TestDueWhileDown(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 1)
		b.pop(queueT, 0, 1, time.Second)
		b.Close()
		pass(time.Hour)
		b.again()
		b.open(0)
		b.wantAgain("G T 0")
	})
}

func TestPlaceMovesBehindWhatIsSettled(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 10)
		at := b.pop(queueT, 0, 1, time.Hour)
		pass(6 * time.Second)
		if place, _ := b.saved(); place != 0 {
			t.Errorf("place %d before anything is settled", place)
		}
		b.ack(queueT, 0, at, 0)
		pass(6 * time.Second)
		place, saves := b.saved()
		if end := b.store.MaxOffset(LogTopic, 0); place != end || saves == 0 {
			t.Errorf("place %d, want %d; %d saves", place, end, saves)
		}
	})
}

// A checkpoint that waits for long is recorded anew, with what was acknowledged, and does not hold the place back.
func TestOldCheckpointIsRecordedAnew(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 10)
		at := b.pop(queueT, 0, 3, time.Hour)
		b.ack(queueT, 0, at, 1)
		before := b.store.MaxOffset(LogTopic, 0)
		pass(longAgo + 6*time.Second)
		if n := b.store.MaxOffset(LogTopic, 0) - before; n != 1 {
			t.Fatalf("%d records", n)
		}
		b.store.Lock() // what lies before is gone
		for i := range int(before) {
			b.store.queues[Key{Topic: LogTopic}][i].Body = nil
		}
		b.store.Unlock()
		b.mu.offsets = map[Key]int64{}
		b.reopen(0)
		b.ack(queueT, 0, at, 2)
		if n := b.mu.offsets[queueT]; n != 0 {
			t.Errorf("a record made anew moves the offset to %d", n)
		}
		pass(time.Hour)
		b.wantAgain("G T 0")
	})
}

func TestBrokenRecords(t *testing.T) {
	for _, body := range [][]byte{nil, {}, {9}, {kindCheckpoint}, {kindAcks, 0xff, 0xff, 0xff, 0xff, 0x0f}, {kindOffset, 200, 1}} {
		err := readRecord(body, func(*image) { t.Error("a checkpoint") }, func(*ack) { t.Error("an ack") }, func(Key, int64) { t.Error("an offset") })
		if err == nil {
			t.Errorf("%v was read", body)
		}
	}
	started(t, 0, func(t *testing.T, b *bed) {
		b.fill("T", 1)
		b.store.Put([]*store.Put{{Message: &message.Message{Topic: LogTopic, Body: []byte("broken"), BornHost: host, StoreHost: host}}})
		b.pop(queueT, 0, 1, time.Second)
		b.reopen(0)
		pass(time.Second)
		b.wantAgain("G T 0")
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(appendCheckpoint(nil, &image{id: id{queueT, 5, 6}, invisible: 7, next: 9, acked: 1, offsets: []int64{5, 8}}))
	f.Add(appendAcks(nil, []ack{{id{queueT, 5, 6}, 3}}))
	f.Add(appendOffset(nil, queueT, 5))
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = readRecord(body, func(i *image) {
			if !slices.IsSorted(i.offsets) && i.offsets[0] >= 0 && i.offsets[len(i.offsets)-1] >= i.offsets[0] {
				t.Errorf("offsets %v", i.offsets)
			}
		}, func(*ack) {}, func(Key, int64) {})
	})
}

// However a group pops, acknowledges and changes, and the broker is restarted: what was acknowledged in time does not
// come again, and everything else comes exactly once.
func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var thrown any // rapid ends a run by a panic, which has to reach its own goroutine
		defer func() {
			if thrown != nil {
				panic(thrown)
			}
		}()
		synctest.Test(t, func(t *testing.T) {
			defer func() { thrown = recover() }()
			b := newBed(t, newStore())
			b.open(0)
			defer func() { b.Close() }()
			b.fill("T", 200)
			type under struct{ start, popTime, due int64 }
			open, gone := map[int64]under{}, map[int64]bool{} // by offset
			next := int64(0)
			due := func() {
				synctest.Wait()
				var want []string
				now := time.Now().UnixMilli()
				for o, u := range open {
					if u.due <= now {
						want = append(want, fmt.Sprintf("G T %d", o))
						delete(open, o)
						gone[o] = true
					}
				}
				got := b.again()
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					r.Fatalf("come again: %q, want %q", got, want)
				}
			}
			pick := func() (int64, bool) {
				for o := range int64(200) {
					if _, ok := open[o]; ok && rapid.Bool().Draw(r, "this") {
						return o, true
					}
				}
				return 0, false
			}
			for range rapid.IntRange(1, 30).Draw(r, "steps") {
				switch rapid.IntRange(0, 4).Draw(r, "step") {
				case 0:
					n := rapid.IntRange(1, 5).Draw(r, "n")
					span := time.Duration(rapid.IntRange(1, 1000).Draw(r, "span")) * time.Second
					at := b.pop(queueT, next, n, span)
					for i := range int64(n) {
						open[next+i] = under{next, at, at + span.Milliseconds()}
					}
					next += int64(n)
				case 1:
					if o, ok := pick(); ok {
						b.ack(queueT, open[o].start, open[o].popTime, o)
						delete(open, o)
					}
				case 2:
					if o, ok := pick(); ok {
						span := int64(rapid.IntRange(1, 1000).Draw(r, "span")) * 1000
						at, ok, err := b.Changed(Ack{queueT, open[o].start, open[o].popTime, o}, span)
						if !ok || err != nil {
							r.Fatal(ok, err)
						}
						open[o] = under{o, at, at + span}
					}
				case 3:
					pass(time.Duration(rapid.IntRange(1, 900).Draw(r, "pass")) * time.Second)
				case 4: // killed: the place stays where it was
					if b.unsaved = nil; rapid.Bool().Draw(r, "kill") {
						b.unsaved = errFull
					}
					b.reopen(0)
					b.unsaved = nil
				}
				due()
			}
			if n := b.Inflight(b.queue(queueT)); n != len(open) {
				r.Fatalf("%d under way, want %d", n, len(open))
			}
		})
	})
}
