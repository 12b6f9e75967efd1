package timer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
)

// pass lets the fake clock go on and everything that is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// check compares what was delivered, in its order.
func (r *rig) check(want string) {
	r.t.Helper()
	if got := strings.Join(r.Bodies(), " "); got != want {
		r.t.Errorf("delivered %q, want %q", got, want)
	}
}

func run(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		f(t, r)
	})
}

// TestOrder: in the order of times to the millisecond, whatever the order of sending.
func TestOrder(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		began := time.Now()
		for name, after := range map[string]time.Duration{"c": 2500, "a": 7, "d": 3 * 3600 * 1000, "b": 2499, "now": 0, "past": -5} {
			r.wait(began.Add(after*time.Millisecond), name)
		}
		r.start()
		defer r.close()
		synctest.Wait()
		r.check("past now")
		pass(6 * time.Millisecond)
		r.check("past now")
		pass(time.Millisecond)
		r.check("past now a")
		pass(time.Hour)
		r.check("past now a b c")
		if late := r.Delivered[4].At.Sub(began); late != 2500*time.Millisecond {
			t.Errorf("c was delivered after %v", late)
		}
		// One that comes while others wait.
		r.wait(time.Now().Add(3*time.Millisecond), "e")
		r.timer.Arrived()
		pass(3 * time.Millisecond)
		r.check("past now a b c e")
		pass(2*time.Hour - 11*time.Millisecond)
		r.check("past now a b c e")
		pass(time.Millisecond)
		r.check("past now a b c e d")
	})
}

// TestCopy: the copy has its topic and queue, and the properties that the official one leaves.
func TestCopy(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		began := time.Now().UnixMilli()
		r.wait(time.Now().Add(1500*time.Millisecond), "k")
		r.start()
		defer r.close()
		pass(1500 * time.Millisecond)
		m := r.Delivered[0]
		want := text(began+1500, "T", 3, "k") + fmt.Sprintf("\x02TIMER_ENQUEUE_MS\x01%d\x02TIMER_DEQUEUE_MS\x01%d", began, began+1500)
		if m.Topic != "T" || m.QueueId != 3 || m.Properties != want || m.Flag != 7 || m.ReconsumeTimes != 2 || m.BornTimestamp != 11 {
			t.Errorf("copy %+v\nproperties %q, want %q", m.Message, m.Properties, want)
		}
	})
}

// TestRestart: after a stop each is delivered once; after a kill nothing is lost.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(*rig)
		want string
	}{
		{"stop", (*rig).close, "a b b2 c d e"},
		{"kill", (*rig).kill, "a b b2 b b2 c d e"}, // a was saved
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, r *rig) {
				began := time.Now()
				at := func(ms time.Duration) time.Time { return began.Add(ms * time.Millisecond) }
				r.wait(at(9000), "d")
				r.wait(at(4500), "b")
				r.wait(at(10), "a")
				r.wait(at(4500), "b2")
				r.start()
				pass(4500 * time.Millisecond)
				r.check("a b b2")
				c.stop(r)
				r.wait(at(4400), "c") // overdue when it is read
				r.wait(at(9000), "e")
				r.start()
				defer r.close()
				pass(10 * time.Second)
				if c.name == "kill" { // c is due before the others
					if got := strings.Join(r.Bodies(), " "); got != "a b b2 c b b2 d e" {
						t.Errorf("delivered %q", got)
					}
					return
				}
				r.check(c.want)
			})
		})
	}
}

// TestClockBack: a clock that is set back delays what was sent before by no more, and what is sent then comes at its time;
// neither comes twice over restarts.
func TestClockBack(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var back atomic.Int64
		r.clock = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
		now := func() time.Time { return r.clock() }
		r.wait(now().Add(time.Second), "a")
		r.start()
		pass(time.Second)
		r.check("a")
		pass(5 * time.Second) // the places are saved
		r.kill()
		r.start()
		back.Store(int64(time.Hour))
		synctest.Wait()
		r.wait(now().Add(2*time.Second), "b")
		r.wait(now().Add(3*time.Second), "gone")
		r.recall(now().Add(3*time.Second), "gone")
		r.timer.Arrived()
		pass(1900 * time.Millisecond)
		a := strings.Count(strings.Join(r.Bodies(), ""), "a") // once more after the kill, perhaps
		if slices.Contains(r.Bodies(), "b") {
			t.Fatalf("delivered %v", r.Bodies())
		}
		r.close()
		r.start()
		pass(200 * time.Millisecond)
		r.close()
		r.start()
		pass(2 * time.Hour)
		r.close()
		got := strings.Join(r.Bodies(), "")
		if got != strings.Repeat("a", a)+"b" {
			t.Errorf("delivered %v", got)
		}
	})
}

// TestRecall: what is recalled is not delivered, over a restart either, and others are.
func TestRecall(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(5 * time.Second)
		for _, name := range []string{"a", "b", "c"} {
			r.wait(due, name)
		}
		r.recall(due, "b")
		r.recall(due, "no such")
		r.recall(due.Add(-time.Second), "c") // of another time: nothing
		r.start()
		pass(time.Second)
		r.close()
		r.start()
		defer r.close()
		pass(time.Minute)
		r.check("a c")
		if n := len(r.timer.recalls); n != 0 {
			t.Errorf("%d recalls are kept", n)
		}
	})
}

// TestRecallOfAnotherTopic: who may send to one topic recalls nothing of another, whatever his message says.
func TestRecallOfAnotherTopic(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Second)
		r.wait(due, "kept")
		r.wait(due, "recalled")
		r.enter(text(due.UnixMilli(), "Other", 0, "kept")+"\x02TIMER_DEL_UNIQKEY\x01T+kept", "0")
		r.enter(text(due.UnixMilli(), "Other", 0, "kept")+"\x02TIMER_DEL_UNIQKEY\x01kept", "0")
		r.recall(due, "recalled")
		r.start()
		defer r.close()
		pass(2 * time.Second)
		r.check("kept")
	})
}

// TestRecallFarBehind: a message and its recall became due while the broker was down, and many others lie between them.
func TestRecallFarBehind(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Second)
		r.wait(due, "recalled")
		for range 2*readCount + 1 {
			r.wait(due.Add(time.Hour), "far")
		}
		r.recall(due, "recalled")
		pass(time.Minute)
		r.start()
		defer r.close()
		pass(time.Second)
		r.check("")
	})
}

// TestRecallNotDispatched: a recall that is in the log and not yet in the queue when its message falls due counts.
func TestRecallNotDispatched(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Second)
		r.wait(due, "recalled")
		r.wait(due, "other")
		r.start()
		defer r.close()
		r.lag(100)
		pass(time.Second + 50*time.Millisecond)
		r.check("")
		r.recall(due, "recalled")
		r.lag(0)
		pass(time.Millisecond)
		r.check("other")
	})
}

// TestRecallAfterClockBack: the same when the clock was set back since others were delivered, so that their time is still to come.
func TestRecallAfterClockBack(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var back atomic.Int64
		r.clock = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
		r.wait(r.clock().Add(time.Second), "first")
		r.start()
		defer r.close()
		pass(time.Second)
		r.check("first")
		back.Store(int64(time.Hour))
		due := r.clock().Add(2 * time.Second)
		r.wait(due, "recalled")
		r.wait(due, "other")
		r.timer.Arrived()
		pass(time.Second)
		r.lag(100)
		pass(time.Second + 50*time.Millisecond)
		r.check("first")
		r.recall(due, "recalled")
		r.lag(0)
		pass(time.Second)
		r.check("first other")
	})
}

// TestRecallBesideFailure: a recall that has been looked at holds for what could not be stored then.
func TestRecallBesideFailure(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Second)
		r.wait(due, "a")
		r.wait(due, "b")
		r.recall(due, "b")
		r.Fail = func(*message.Message) error { return commitlog.ErrFull }
		r.start()
		pass(5 * time.Second)
		r.close()
		r.Lock()
		r.Fail = nil
		r.Unlock()
		r.start()
		defer r.close()
		pass(time.Second)
		r.check("a")
	})
}

// TestStorm: 100,000 due at once go in runs, between which sends are stored. between which sends are stored.
func TestStorm(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Second)
		const n = 100_000
		for i := range n {
			r.wait(due, fmt.Sprint(i))
		}
		r.start()
		defer r.close()
		pass(time.Second)
		if len(r.Delivered) != n {
			t.Fatalf("%d delivered", len(r.Delivered))
		}
		if slices.Max(r.Runs) > 256 { // COMPATIBILITY.md
			t.Errorf("a run of %d", slices.Max(r.Runs))
		}
	})
}

// TestBounded: a timer that may keep few in memory delivers all, once and in order.
func TestBounded(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.pending = 64
		began := time.Now()
		const n = 5000
		for i := range n {
			r.wait(began.Add(time.Duration(1+(i*7919)%n)*time.Millisecond), fmt.Sprint((i*7919)%n))
		}
		r.start()
		pass(n / 2 * time.Millisecond)
		if c := cap(r.timer.pending.keys); c > 64 {
			t.Errorf("%d keys in memory", c)
		}
		r.close()
		r.start()
		defer r.close()
		pass(n * time.Millisecond)
		for i, name := range r.Bodies() {
			if name != fmt.Sprint(i) {
				t.Fatalf("%d. is %s", i, name)
			}
		}
		if len(r.Delivered) != n {
			t.Errorf("%d delivered", len(r.Delivered))
		}
		if r.Reads > 200*n {
			t.Errorf("%d entries read", r.Reads)
		}
	})
}

// TestHashes: entries that an official broker has made again have no time; the record tells.
func TestHashes(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.hashes = true
		r.wait(time.Now().Add(time.Second), "a")
		r.enter("TAGS\x01x", "none")
		r.recall(time.Now().Add(time.Second), "a")
		r.wait(time.Now().Add(time.Second), "b")
		r.start()
		defer r.close()
		pass(time.Second)
		r.check("b")
	})
}

// TestDiscarded: what can't be delivered is passed over, the rest is not held up.
func TestDiscarded(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().UnixMilli()
		r.enter(text(due, message.TopicTransHalf, 0, "half"), "half")
		r.enter(text(due, message.TopicTimer, 0, "self"), "self")
		r.enter(fmt.Sprintf("TIMER_OUT_MS\x01%d\x02REAL_QID\x010", due), "no topic")
		r.enter(fmt.Sprintf("TIMER_OUT_MS\x01%d\x02REAL_TOPIC\x01T", due), "no queue")
		r.enter(text(due, "../T", 0, "x"), "illegal")
		r.enter(text(due, "%RETRY%../g", 0, "x"), "illegal too")
		r.enter(text(due, "T", -1, "x"), "negative")
		r.wait(time.Now(), "too large")
		r.wait(time.Now(), "gone")
		delete(r.Messages, r.Last())
		r.wait(time.Now(), "good")
		r.Fail = func(m *message.Message) error {
			if string(m.Body) == "too large" {
				return commitlog.ErrTooLarge
			}
			return nil
		}
		r.start()
		defer r.close()
		synctest.Wait()
		r.check("good")
	})
}

// TestFailures: what can't be stored or read now is tried again, and so is what comes behind it.
func TestFailures(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		for i := range 5 {
			r.wait(time.Now(), fmt.Sprint(i))
		}
		r.Fail = func(m *message.Message) error {
			if string(m.Body) == "2" {
				return commitlog.ErrFull
			}
			return nil
		}
		r.start()
		defer r.close()
		synctest.Wait()
		r.check("0 1 3 4")
		pass(10 * time.Second)
		r.check("0 1 3 4")
		r.Lock()
		r.Fail, r.ReadErr = nil, func(int64) error { return errors.New("input/output error") }
		r.Unlock()
		pass(10 * time.Second)
		r.Lock()
		r.ReadErr = nil
		r.Unlock()
		pass(time.Second)
		r.check("0 1 3 4 2 3 4")
	})
}

// TestPanic: a panic is survived and loses nothing.
func TestPanic(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.wait(time.Now(), "x")
		panics := 1
		r.Fail = func(*message.Message) error {
			if panics--; panics >= 0 {
				panic("on purpose")
			}
			return nil
		}
		r.start()
		defer r.close()
		pass(panicAfter + time.Second)
		r.check("x")
	})
}
