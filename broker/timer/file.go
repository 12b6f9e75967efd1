package timer

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"rocketd/compat"
)

// saveTimeout is how long a save waits for the log to be durable, lowPeriod the time between two looks for low.
const (
	saveTimeout = 15 * time.Second
	lowPeriod   = 10 * time.Second
)

// file is the state of the config file.
type file struct {
	saver *compat.Saver
	mu    struct {
		sync.Mutex
		places places // what is in the file, or to be written next
		busy   bool   // a write is under way
		closed bool
	}
}

// placesFile is the JSON of config/rocketd-timer.json.
type placesFile struct {
	DeliveredTime   int64   `json:"deliveredTime"`   // ms: what is due before it has been delivered
	DeliveredOffset int64   `json:"deliveredOffset"` // of what is due at that time: up to this queue offset
	DeliveredRecall bool    `json:"deliveredRecall"` // of what is due at that time only recalls
	ReadOffset      int64   `json:"readOffset"`      // queue offset from which on nothing has been delivered
	LowOffset       int64   `json:"lowOffset"`       // queue offset before which everything has been delivered
	LateOffsets     []int64 `json:"lateOffsets"`     // what waits though it should have been delivered
}

// lost is what it means to start without the file.
const lost = "timer messages that are still in the store are delivered again, also those that were delivered before"

// load reads the file, or its .bak.
func (t *Timer) load() error {
	var f placesFile
	_, err := compat.LoadConfigFileOrNone(t.o.Files, t.o.Path, t.o.Log, lost, func(b []byte) error {
		f = placesFile{}
		return compat.Unmarshal(b, &f)
	})
	if err != nil {
		return err
	}
	p := places{front: key{f.DeliveredTime, f.DeliveredOffset | messageBit}, read: f.ReadOffset, low: f.LowOffset, late: map[int64]bool{}}
	if f.DeliveredRecall {
		p.front.at = f.DeliveredOffset
	}
	if p.read < 0 || p.low < 0 || f.DeliveredOffset < 0 || f.DeliveredOffset >= messageBit {
		return fmt.Errorf("%s: negative offset", t.o.Path)
	}
	for _, offset := range f.LateOffsets {
		p.late[offset] = true
	}
	t.places = p
	t.file.mu.places = p.clone()
	t.file.saver = compat.NewSaver(t.o.Files, t.o.Path, t.encode, t.o.Log)
	return nil
}

func (t *Timer) encode() ([]byte, error) {
	t.file.mu.Lock()
	defer t.file.mu.Unlock()
	p := &t.file.mu.places
	return compat.MarshalPretty(&placesFile{
		DeliveredTime: p.front.out, DeliveredOffset: p.front.offset(), DeliveredRecall: p.front.recall() && p.front != key{},
		ReadOffset: p.read, LowOffset: p.low, LateOffsets: slices.Sorted(maps.Keys(p.late)),
	})
}

// save has the places written when it is time; it returns when that is next, and does not wait.
func (t *Timer) save() time.Duration {
	now := t.o.Clock()
	if since := now.Sub(t.savedAt); since >= 0 && since < t.o.SavePeriod {
		return min(longestWait, t.o.SavePeriod-since)
	}
	t.savedAt = now
	if since := now.Sub(t.lowAt); (since < 0 || since >= lowPeriod) && t.allKnown() {
		t.lowAt = now
		t.passed(t.lowest())
	}
	t.write(nil)
	return longestWait
}

// allKnown tells whether everything that waits, or that a restart has to read again, is in pending.
func (t *Timer) allKnown() bool { return t.started && t.pending.whole() && len(t.recalls) == 0 }

// lowest is the least offset that waits, when all are known.
func (t *Timer) lowest() int64 { return t.pending.lowest(t.read) }

// write has the places written as they are once the log is durable up to what they count; then done is called. It does not
// wait, and does nothing while a write is under way.
func (t *Timer) write(done func()) {
	f := &t.file.mu
	f.Lock()
	same, skip := f.places.equal(&t.places), f.busy || f.closed
	f.Unlock()
	switch {
	case skip:
		return
	case same:
		if done != nil {
			done()
		}
		return
	case len(t.late) > lateLimit:
		if !t.warned {
			t.o.Log.Warn("too many late timer messages: their places are not saved, and a restart delivers twice what is delivered until they have gone", "late", len(t.late))
		}
		t.warned = true
		return
	}
	t.warned = false
	p, end := t.places.clone(), t.o.Store.MaxPhyOffset()
	f.Lock()
	f.busy = true
	f.Unlock()
	t.o.Store.WaitFlushed(end, saveTimeout, func(err error) {
		f.Lock()
		if err != nil || f.closed {
			f.busy = false
			f.Unlock()
			if err != nil {
				t.o.Log.Warn("places of timer messages not saved: what was delivered is not durable", "err", err)
			}
			return
		}
		f.places = p
		f.Unlock()
		t.file.saver.Changed(func(err error) {
			f.Lock()
			f.busy = false
			f.Unlock()
			if err == nil && done != nil {
				done()
			}
		})
	})
}

// release has the places written and then lets the log files before an offset go. If it can't be now, the next turn tries again.
func (t *Timer) release(end int64) {
	t.write(func() {
		for {
			was := t.released.Load()
			if was >= end || t.released.CompareAndSwap(was, end) {
				return
			}
		}
	})
}

// closeFile writes the last places when the log is durable up to what they count.
func (t *Timer) closeFile() error {
	f := &t.file.mu
	f.Lock()
	same := f.places.equal(&t.places)
	f.Unlock()
	if !same && len(t.late) <= lateLimit {
		if t.allKnown() {
			t.passed(t.lowest())
		}
		outcome := make(chan error, 1)
		t.o.Store.WaitFlushed(t.o.Store.MaxPhyOffset(), saveTimeout, func(err error) { outcome <- err })
		if err := <-outcome; err != nil {
			t.o.Log.Warn("places of timer messages not saved: what was delivered is not durable", "err", err)
		} else {
			f.Lock()
			f.places = t.places.clone()
			f.Unlock()
			t.file.saver.Changed(nil)
		}
	}
	f.Lock()
	f.closed = true
	f.Unlock()
	return t.file.saver.Close()
}
