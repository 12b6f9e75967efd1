package pop

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// waiters notes who has gone on, and why.
type waiters struct {
	sync.Mutex
	woken []string
}

type waiter struct {
	name string
	all  *waiters
}

func (w *waiter) Wake(why Reason) {
	w.all.Lock()
	defer w.all.Unlock()
	w.all.woken = append(w.all.woken, w.name+[...]string{" arrived", " timed out", " stopped"}[why])
}

// want waits until all have gone on that will, and compares.
func (w *waiters) want(t *testing.T, list ...string) {
	t.Helper()
	synctest.Wait()
	w.Lock()
	defer w.Unlock()
	slices.Sort(w.woken)
	if !reflect.DeepEqual(w.woken, list) {
		t.Errorf("woken: %q, want %q", w.woken, list)
	}
	w.woken = nil
}

type tagFilter int64

func (f tagFilter) MatchQueue(tagsCode int64) bool         { return tagsCode == int64(f) }
func (f tagFilter) MatchProperties(properties string) bool { return properties != "no" }

// holding runs a test with a holder and a func that holds a request for a minute.
func holding(t *testing.T, all, each int, f func(h *Holder, w *waiters, hold func(name string, n Held) Outcome)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := NewHolder(HolderOptions{Clock: time.Now, Limits: func() (int, int) { return all, each }, Workers: 2})
		h.Start()
		defer h.Close()
		w := new(waiters)
		f(h, w, func(name string, n Held) Outcome {
			n.Topic, n.Waiter = "T", &waiter{name, w}
			if n.Deadline == 0 {
				n.Deadline = time.Now().Add(time.Minute).UnixMilli()
			}
			return h.Hold(&n)
		})
	})
}

func TestArrivalWakesOneOfEachGroup(t *testing.T) {
	holding(t, 100, 100, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		g, q := Key{Group: "G", QueueId: -1}, Key{Group: "G", QueueId: 1}
		for name, n := range map[string]Held{
			"queue 1": {Key: q}, "other group": {Key: Key{Group: "H", QueueId: -1}},
			"queue 2": {Key: Key{Group: "G", QueueId: 2}, Retry: "%RETRY%G_T"}, "filter": {Key: Key{Group: "F", QueueId: -1}, Filter: tagFilter(7)},
		} {
			hold(name, n)
		}
		hold("first", Held{Key: g})
		hold("second", Held{Key: g})
		h.Arrive("U", 1, 0, "")
		w.want(t)
		h.Arrive("T", 1, 5, "")
		w.want(t, "first arrived", "other group arrived", "queue 1 arrived")
		h.Arrive("T", 0, 7, "no")
		w.want(t, "second arrived")
		h.Arrive("T", 0, 7, "yes")
		w.want(t, "filter arrived")
		h.Arrive("%RETRY%G_T", 0, 0, "")
		w.want(t, "queue 2 arrived")
		if h.Len() != 0 || h.Count(g) != 0 {
			t.Errorf("%d held", h.Len())
		}
		h.Arrive("T", 0, 0, "")
		w.want(t)
	})
}

func TestHeldGoesOnInTime(t *testing.T) {
	holding(t, 100, 100, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		at := func(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }
		k := Key{Group: "G", QueueId: -1}
		hold("late", Held{Key: k, Deadline: at(3 * time.Second)})
		hold("early", Held{Key: k, Deadline: at(time.Second)})
		hold("free", Held{Key: k, Deadline: at(time.Hour), Next: at(2 * time.Second)})
		if out := hold("over", Held{Key: k, Deadline: at(0)}); out != HeldLate {
			t.Errorf("outcome %v", out)
		}
		pass(time.Second - time.Millisecond)
		w.want(t)
		pass(time.Millisecond)
		w.want(t, "early timed out")
		pass(time.Second)
		w.want(t, "free arrived")
		pass(time.Second)
		w.want(t, "late timed out")
	})
}

func TestLimitsOfHeld(t *testing.T) {
	holding(t, 3, 2, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		k := Key{Group: "G", QueueId: 0}
		for i, want := range []Outcome{HeldNow, HeldNow, HeldFull} {
			if out := hold("each", Held{Key: k}); out != want {
				t.Errorf("%d: %v, want %v", i, out, want)
			}
		}
		k.QueueId = 1
		for i, want := range []Outcome{HeldNow, HeldFull} {
			if out := hold("all", Held{Key: k}); out != want {
				t.Errorf("%d: %v, want %v", i, out, want)
			}
		}
		h.Arrive("T", 0, 0, "")
		w.want(t, "each arrived")
		if hold("again", Held{Key: k}) != HeldNow {
			t.Error("no room")
		}
	})
}

func TestOwnerGone(t *testing.T) {
	holding(t, 9, 9, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		k := Key{Group: "G", QueueId: -1}
		hold("gone", Held{Key: k, Owner: "a"})
		hold("gone too", Held{Key: k, Owner: "a", Retry: "R"})
		hold("stays", Held{Key: k, Owner: "b"})
		h.OwnerGone("a")
		if h.Len() != 1 {
			t.Errorf("%d held", h.Len())
		}
		h.Close()
		w.want(t, "stays stopped")
		if hold("closed", Held{Key: k}) != HeldLate {
			t.Error("held after Close")
		}
	})
}

func TestNotify(t *testing.T) {
	holding(t, 9, 9, func(h *Holder, w *waiters, hold func(string, Held) Outcome) {
		hold("any", Held{Key: Key{Group: "G", QueueId: -1}, Filter: tagFilter(1)})
		hold("one", Held{Key: Key{Group: "G", QueueId: 1}})
		hold("two", Held{Key: Key{Group: "G", QueueId: 2}})
		hold("H", Held{Key: Key{Group: "H", QueueId: 1}})
		h.Notify(Key{"T", "G", 1})
		w.want(t, "any arrived", "one arrived")
		n := &Held{Key: Key{"T", "G", 3}, Deadline: time.Now().Add(time.Hour).UnixMilli(), Waiter: &waiter{"now", w}}
		h.Hold(n)
		h.Now(n)
		h.Now(n)
		w.want(t, "now arrived")
	})
}
