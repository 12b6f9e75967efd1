package transaction

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
)

// begin says what Begin says of half messages, one after the other.
func (f *fixture) begin(halves ...int64) (first []bool) {
	for _, half := range halves {
		first = append(first, f.checks.Begin(half))
	}
	return first
}

func (f *fixture) wantBegin(what string, want bool, halves ...int64) {
	f.tb.Helper()
	for i, first := range f.begin(halves...) {
		if first != want {
			f.tb.Errorf("%s: half message %d: %v, want %v", what, halves[i], first, want)
		}
	}
}

// TestEndDuringCheck: an end that is taken up when a round has found no op, and before the producer is asked, keeps it from being
// asked; neither the copy nor the half message can then be ended a second time.
func TestEndDuringCheck(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.open()
		f.half("racing")
		f.half("open")
		f.checks.o.Stored = func(p *store.Put) { // the moment between the copy and its check
			if p.QueueOffset == 2 {
				f.wantBegin("between copy and check", true, 0)
			}
		}
		f.checks.Start()
		f.pass(time.Minute)
		f.want("racing", f.times("racing"), "")
		f.want("open", f.times("open"), "60:1")
		f.wantBegin("racing again", false, 2, 0)
		f.op(0)
		f.pass(time.Minute)
		f.want("racing, with its op", f.times("racing"), "")
		f.want("open", f.times("open"), "60:1 120:2")
		f.want("place", f.place(), "4 1")
	})
}

// TestEndedOnce: of the ends that name a half message or one of its copies, in whatever order they come, the first counts; one that
// could not be carried out leaves the transaction open for the next.
func TestEndedOnce(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second int64
	}{
		{"half message, copy", 0, 1}, {"copy, half message", 1, 0}, {"half message, second copy", 0, 2}, {"second copy, half message", 2, 0},
		{"first copy, second", 1, 2}, {"second copy, first", 2, 1}, {"half message twice", 0, 0}, {"copy twice", 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture) {
				f.run()
				f.half("x")
				f.pass(2*time.Minute + time.Second) // its copies are 1 and 2
				f.wantBegin("first", true, c.first)
				f.wantBegin("second", false, c.second)
				f.checks.Undo(c.first)
				f.wantBegin("after it has failed", true, c.second)
				f.wantBegin("the other", false, c.first)
				f.op(c.second)
				f.pass(time.Minute)
				f.want("checks", f.times("x"), "60:1 120:2")
				if c.second == 0 || c.first == 0 {
					f.wantBegin("a round later", false, 0)
				}
			})
		})
	}
}

// TestEndBeforeCopy: what is being ended when the round comes is moved on, so that nothing behind it waits, but nobody is asked; when
// the end fails, the next round asks.
func TestEndBeforeCopy(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		f.half("x")
		f.wantBegin("at once", true, 0)
		f.pass(61 * time.Second)
		f.want("being ended", f.times("x"), "")
		f.checks.Undo(0)
		f.pass(time.Minute)
		f.want("failed", f.times("x"), "120:2")
	})
}

// TestEndsForgotten: what is known of ends goes one round after the checks have passed it, and is bounded until then.
func TestEndsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		for i := range int64(1000) {
			f.half("x")
			f.wantBegin("first", true, i)
			f.op(i)
		}
		f.pass(61 * time.Second)
		f.wantBegin("passed just now", false, 0, 999)
		f.pass(time.Minute)
		if n := len(f.checks.ends.words); n != 1 {
			t.Errorf("%d words are held", n) // of 960 to 1023
		}
		f.wantBegin("long passed", true, 0)
		if n := len(f.checks.ends.words); n != 1 {
			t.Errorf("%d words are held after a late end", n)
		}
		f.master = false // another broker's messages may come to these places
		f.pass(time.Minute)
		f.wantBegin("after another master", true, 999)
	})
	c := New(Options{})
	for i := range int64(endBound + 10) {
		c.Begin(i << 6)
	}
	if n := len(c.ends.words); n != endBound {
		t.Errorf("%d words are held", n)
	}
}

// TestEndsBesideRounds: while rounds go on, each transaction is ended by its half message and, at any time, by each copy that its producer
// is asked about. Just one of these ends is carried out, and once its op is there nobody is asked any more.
func TestEndsBesideRounds(t *testing.T) {
	const count = 300
	f := newFixture(t)
	var seconds atomic.Int64
	f.now = func() time.Time { return f.start.Add(time.Duration(seconds.Load()) * time.Second) }
	f.s.CheckMax = 1000
	f.open()
	for i := range count {
		f.half("x", "FROM="+strconv.Itoa(i))
	}
	var ended [count]atomic.Int64
	var ending sync.WaitGroup
	end := func(first int, at int64) {
		ending.Go(func() {
			if f.checks.Begin(at) {
				f.op(at)
				ended[first].Add(1)
			}
		})
	}
	of := make([]int, count, 1<<16) // of which the half message at a place is a copy
	for i := range of {
		of[i] = i
	}
	f.checks.o.Stored = func(p *store.Put) {
		from, _ := message.Property(p.Message.Properties, "FROM")
		first, err := strconv.Atoi(from)
		if err != nil {
			t.Error(err)
		}
		if of = append(of, first); p.QueueOffset != int64(len(of)-1) {
			t.Errorf("copy at %d, want %d", p.QueueOffset, len(of)-1)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		seconds.Add(60)
		f.asked = nil
		for first := range count {
			if first%20 == round {
				end(first, int64(first))
			}
		}
		f.checks.round()
		for _, a := range f.asked {
			if at := a.h.TranStateTableOffset; r.IntN(8) == 0 {
				end(of[at], at)
			}
		}
	}
	ending.Wait()
	for first := range count {
		if n := ended[first].Load(); n != 1 {
			t.Errorf("transaction %d was ended %d times", first, n)
		}
	}
	seconds.Add(60)
	f.asked = nil
	f.checks.round()
	if len(f.asked) != 0 {
		t.Errorf("%d are asked about in the end", len(f.asked))
	}
}

// TestLateEndsForgotten: a transaction that was ended by a copy is known for an hour of rounds at least, and two at most; and no more of
// them than there is room for.
func TestLateEndsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		f.half("slow")
		f.pass(61 * time.Second)
		f.wantBegin("the answer", true, 1)
		f.op(1)
		f.pass(50 * time.Minute)
		f.wantBegin("in the end, by itself", false, 0)
		f.pass(75 * time.Minute)
		f.wantBegin("two hours later", true, 0)
	})
	c := New(Options{})
	moved := c.ends.reset()
	for i := range int64(3 * lateBound) {
		moved[2*i] = 2*i + 1
		c.Begin(2 * i)
		c.ends.unmove(2 * i)
	}
	if n, m := len(c.ends.late), len(c.ends.older); n > lateBound+1 || m > lateBound+1 || n+m < lateBound {
		t.Errorf("%d and %d are held", n, m)
	}
}

func BenchmarkBegin(b *testing.B) {
	c := New(Options{})
	b.ReportAllocs()
	for i := range int64(b.N) {
		c.Begin(i)
		if i&0xFFFF == 0 {
			c.ends.drop(i)
		}
	}
}
