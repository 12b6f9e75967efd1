package locks

import (
	"fmt"
	"log/slog"
	"time"

	"rocketd/compat"
)

// The locks are kept in a file, config/rocketd-locks.json, which is ours alone. The official broker forgets them when it
// stops; then whoever asks first after the start gets every queue, while others still consume theirs, and messages of one
// queue are dealt with twice and out of order. A renewal changes nothing in the file.

// LoadedLifetime is how long a lock of an earlier process is held without being refreshed: a stock client that has not renewed
// its lock for so long stops to consume (ProcessQueue.REBALANCE_LOCK_MAX_LIVE_TIME).
const LoadedLifetime = 30 * time.Second

// Options is what a table with a file needs.
type Options struct {
	Path  string // rocketd-locks.json
	Files compat.FileSystem
	Clock func() time.Time
	Limit func() int // maxQueueLocks, as it is now; nil or 0 = no bound
	Log   *slog.Logger
}

// lost is what it means to start without the file.
const lost = "queues that are consumed in order may be consumed by two members at once for a moment"

// saved is a lock in the file.
type saved struct {
	Group, ClientId string
	MessageQueue    Queue
}

type file struct{ Locks []saved }

// Open makes a table with the locks of the file.
func Open(o Options) (*Table, error) {
	t := New(o.Clock)
	t.limit = o.Limit
	_, err := compat.LoadConfigFileOrNone(o.Files, o.Path, o.Log, lost, func(data []byte) error {
		f, now := new(file), o.Clock()
		if err := compat.Unmarshal(data, f); err != nil {
			return err
		}
		for _, l := range f.Locks {
			h := t.mu.groups[l.Group][l.MessageQueue]
			if h == nil {
				h = t.addLocked(l.Group, l.MessageQueue)
			}
			h.clientId, h.since = l.ClientId, now.Add(LoadedLifetime-Lifetime)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("queue locks: %w", err)
	}
	t.saver = compat.NewSaver(o.Files, o.Path, t.encode, o.Log)
	return t, nil
}

func (t *Table) encode() ([]byte, error) {
	t.mu.Lock()
	f := file{Locks: []saved{}}
	now := t.clock()
	for group, g := range t.mu.groups {
		for q, h := range g {
			if !h.dead(now) {
				f.Locks = append(f.Locks, saved{group, h.clientId, q})
			}
		}
	}
	t.mu.Unlock()
	return compat.MarshalPretty(&f)
}

// changed has the file written; it never waits.
func (t *Table) changed() {
	if t.saver != nil {
		t.saver.Changed(nil)
	}
}

// Close writes what is not yet written and ends the writer.
func (t *Table) Close() error {
	if t.saver == nil {
		return nil
	}
	return t.saver.Close()
}
