package timer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
)

// TestRelease: what waits in files that are to go is stored again first, and delivered once.
func TestRelease(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		if got := (&Timer{o: Options{Store: r.queue}}).Release(500); got != 500 {
			t.Errorf("with no timer messages %d may go", got)
		}
		due := time.Now().Add(time.Minute)
		r.wait(time.Now(), "old")
		r.wait(due, "a")
		r.wait(due, "recalled")
		r.recall(due, "recalled")
		r.wait(due.Add(time.Hour), "b")
		r.wait(due, "c") // in a file that stays
		r.start()
		synctest.Wait()
		if got := r.timer.Release(500); got >= 500 {
			t.Fatalf("%d may go at once", got)
		}
		synctest.Wait()
		if got := r.timer.Release(500); got < 500 {
			t.Fatalf("%d may go", got)
		}
		if r.Again != 4 {
			t.Errorf("%d are stored again", r.Again)
		}
		r.Lock()
		r.MinPhy, r.First[ofTimers] = 500, 5
		r.Unlock()
		pass(time.Minute)
		r.check("old c a") // a has a later place now
		r.close()
		r.start()
		defer r.close()
		pass(time.Hour)
		r.check("old c a b")
		if n, _ := message.Property(r.Delivered[3].Properties, message.PropertyTimerRollTimes); n != "1" {
			t.Errorf("%s = %s", message.PropertyTimerRollTimes, n)
		}
	})
}

// TestReleaseFails: files stay while a message in them can't be stored again, or its copy is not durable.
func TestReleaseFails(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		due := time.Now().Add(time.Hour)
		for i := range 600 {
			r.wait(due, fmt.Sprint(i))
		}
		r.Fail = func(m *message.Message) error {
			if n, err := strconv.Atoi(string(m.Body)); err == nil && n >= 300 {
				return commitlog.ErrFull
			}
			return nil
		}
		r.start()
		defer r.close()
		r.timer.Release(40_000)
		pass(10 * time.Second)
		if got := r.timer.Release(40_000); got >= 40_000 {
			t.Errorf("%d may go although a message can't be stored", got)
		}
		var hold []func(error)
		r.Lock()
		r.Fail = nil
		r.Flushed = func(done func(error)) { hold = append(hold, done) }
		r.Unlock()
		pass(10 * time.Second)
		if got := r.timer.Release(40_000); got >= 40_000 {
			t.Errorf("%d may go although the copies are not durable", got)
		}
		r.Lock()
		r.Flushed = nil
		held := hold
		r.Unlock()
		for i, done := range held {
			if i == 0 {
				done(errors.New("fsync"))
			} else {
				done(nil)
			}
		}
		pass(10 * time.Second)
		if got := r.timer.Release(40_000); got < 40_000 {
			t.Errorf("%d may go", got)
		}
		pass(time.Hour)
		seen := map[string]int{}
		for _, name := range r.Bodies() {
			seen[name]++
		}
		if len(seen) != 600 || len(r.Bodies()) < 600 {
			t.Errorf("%d of 600 delivered", len(seen))
		}
		for name, n := range seen {
			if n > 1 {
				t.Errorf("%s came %d times: %s", name, n, strings.Join(r.Bodies()[:3], " "))
				break
			}
		}
	})
}
