package filter

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// TableOptions is what a table of expressions needs.
type TableOptions struct {
	Path     string // consumerFilter.json
	Files    compat.FileSystem
	Clock    func() time.Time
	Log      *slog.Logger
	Bloom    *Bloom
	Compiled *Compiled
	Limit    func() int64         // maxExpressionBytes, as it is now; nil or 0 = no bound
	Keep     func() time.Duration // filterDataCleanTimeSpan: how long an expression is kept that nobody subscribes
}

// Table holds the expressions by which consumer groups subscribe topics, as their heartbeats bring them
// (ConsumerFilterManager of 4.9.8); it is safe for concurrent use. It owns config/consumerFilter.json.
type Table struct {
	o     TableOptions
	saver *compat.Saver

	refused atomic.Int64

	mu struct {
		sync.RWMutex
		bytes  int64                           // of the expressions and their names
		topics map[string]map[string]*Consumer // by topic and group
		groups map[string]map[string]*Consumer // by group and topic: the same ones
	}
}

// OpenTable makes the table with what the file holds.
func OpenTable(o TableOptions) (*Table, error) {
	t := &Table{o: o}
	t.mu.topics = map[string]map[string]*Consumer{}
	t.mu.groups = map[string]map[string]*Consumer{}
	if err := t.load(); err != nil {
		return nil, err
	}
	t.saver = compat.NewSaver(o.Files, o.Path, t.encode, o.Log)
	return t, nil
}

// Find returns the expression by which a group subscribes a topic, or has until lately; nil when there is none.
func (t *Table) Find(topic, group string) *Consumer {
	t.mu.RLock()
	c := t.mu.topics[topic][group]
	t.mu.RUnlock()
	return c
}

// Bits appends the bit map of a message to dst, which is empty: the bits of the groups whose expression takes it, for
// the consume-queue extension. Nothing when no group subscribes the topic by an expression. As
// CommitLogDispatcherCalcBitMap of 4.9.8.
func (t *Table) Bits(dst []byte, topic, properties string) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	of := t.mu.topics[topic]
	if len(of) == 0 {
		return dst
	}
	bits := slices.Grow(dst, t.o.Bloom.bits/8)[:t.o.Bloom.bits/8]
	clear(bits)
	for _, c := range of {
		if c.compiled.Match(properties) {
			c.Place.set(bits)
		}
	}
	return bits
}

// Register takes all that a heartbeat says of a group: the expressions among its subscriptions are kept, and those of topics that
// it subscribes no more die. An expression that is refused is not kept; pulls then say so.
//
// Expressions are compiled before the table is locked: one may be long, and every message is looked up here. What there is to compile is
// asked again under the lock, since others may have changed the table meanwhile.
func (t *Table) Register(group string, all []body.SubscriptionData) {
	expressions := false
	for i := range all {
		expressions = expressions || !IsTag(all[i].ExpressionType)
	}
	t.mu.RLock()
	known := len(t.mu.groups[group]) > 0
	t.mu.RUnlock()
	if !expressions && !known {
		return
	}
	r := registration{t: t, group: group, all: all, compiled: make(map[string]outcome)}
	for !r.take() {
		for _, expression := range r.missing {
			e, err := t.o.Compiled.Compile(expression)
			r.compiled[expression] = outcome{e, err}
		}
	}
	if r.changed {
		t.saver.Changed(nil)
	}
	r.said.Write()
}

// shorten bounds what a log line shows of a client's text.
func shorten(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}

// Unregister is told that a group has no member any more: its expressions die.
func (t *Table) Unregister(group string) {
	changed := false
	t.mu.Lock()
	now := t.o.Clock().UnixMilli()
	for _, c := range t.mu.groups[group] {
		if !c.dead() {
			changed = true
			t.putLocked(c.dieAt(now))
		}
	}
	t.mu.Unlock()
	if changed {
		t.o.Log.Info("consumer expressions not subscribed any more", "group", group)
		t.saver.Changed(nil)
	}
}

// dieAt is the consumer, dead.
func (c *Consumer) dieAt(now int64) *Consumer {
	dead := *c
	dead.DeadTime = max(now, c.BornTime) // a clock that was put back keeps nobody alive
	return &dead
}

// size is what a consumer takes, roughly: its texts, and what they are compiled to.
func (c *Consumer) size() int64 {
	if c == nil {
		return 0
	}
	return int64(len(c.Group) + len(c.Topic) + len(c.Expression))
}

// fullLocked tells whether there is no room for the expression of a subscription in the place of so many bytes.
func (t *Table) fullLocked(group string, s *body.SubscriptionData, old int64) bool {
	if t.o.Limit == nil {
		return false
	}
	limit := t.o.Limit()
	return limit > 0 && t.mu.bytes+int64(len(group)+len(s.Topic)+len(s.SubString))-old > limit
}

// Refused is how many expressions were refused since the start because there were too many.
func (t *Table) Refused() int64 { return t.refused.Load() }

func (t *Table) putLocked(c *Consumer) {
	t.mu.bytes += c.size() - t.mu.topics[c.Topic][c.Group].size()
	put(t.mu.topics, c.Topic, c.Group, c)
	put(t.mu.groups, c.Group, c.Topic, c)
}

func put(m map[string]map[string]*Consumer, a, b string, c *Consumer) {
	if m[a] == nil {
		m[a] = map[string]*Consumer{}
	}
	m[a][b] = c
}

func (t *Table) removeLocked(topic, group string) bool {
	if t.mu.topics[topic][group] == nil {
		return false
	}
	t.mu.bytes -= t.mu.topics[topic][group].size()
	remove(t.mu.topics, topic, group)
	remove(t.mu.groups, group, topic)
	return true
}

func remove(m map[string]map[string]*Consumer, a, b string) {
	delete(m[a], b)
	if len(m[a]) == 0 {
		delete(m, a)
	}
}

// Expire forgets the expressions that have been dead for too long.
func (t *Table) Expire() {
	changed := false
	var gone []*Consumer
	t.mu.Lock()
	limit := t.o.Clock().Add(-t.o.Keep()).UnixMilli()
	for topic, of := range t.mu.topics {
		for group, c := range of {
			if c.dead() && c.DeadTime <= limit {
				changed = t.removeLocked(topic, group) || changed
				gone = append(gone, c)
			}
		}
	}
	t.mu.Unlock()
	if changed {
		t.saver.Changed(nil)
	}
	for _, c := range gone {
		t.o.Log.Info("consumer expression expired", "group", c.Group, "topic", c.Topic)
	}
}
