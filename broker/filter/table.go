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
	changed := false
	t.mu.Lock()
	for i := range all {
		changed = t.registerLocked(group, &all[i]) || changed
	}
	now := t.o.Clock().UnixMilli()
	for topic, c := range t.mu.groups[group] {
		if !c.dead() && !subscribed(all, topic) {
			changed = true
			t.putLocked(c.dieAt(now))
			t.o.Log.Info("consumer expression not subscribed any more", "group", group, "topic", topic)
		}
	}
	t.mu.Unlock()
	if changed {
		t.saver.Changed(nil)
	}
}

func subscribed(all []body.SubscriptionData, topic string) bool {
	for i := range all {
		if all[i].Topic == topic {
			return true
		}
	}
	return false
}

// registerLocked takes one subscription and tells whether it changes the table. An older version changes nothing, the
// same version only wakes the dead.
func (t *Table) registerLocked(group string, s *body.SubscriptionData) bool {
	if IsTag(s.ExpressionType) || s.SubString == "" {
		return false
	}
	old := t.mu.topics[s.Topic][group]
	if old != nil {
		if s.SubVersion < old.Version || s.SubVersion == old.Version && !old.dead() {
			return false
		}
		same := old.Expression == s.SubString && old.Type == s.ExpressionType
		if s.SubVersion == old.Version || same {
			c := *old
			c.Version, c.DeadTime = s.SubVersion, 0
			t.putLocked(&c)
			return old.dead() || c.Version != old.Version
		}
	}
	if s.ExpressionType != TypeSQL92 {
		return t.refuseLocked(group, s, "there is no expression type of this name")
	}
	if t.fullLocked(group, s, old) {
		t.refused.Add(1)
		return t.refuseLocked(group, s, "there are as many expressions as maxExpressionBytes allows")
	}
	compiled, err := t.o.Compiled.Compile(s.SubString)
	if err != nil {
		return t.refuseLocked(group, s, err.Error())
	}
	c := &Consumer{
		Group: strings.Clone(group), Topic: strings.Clone(s.Topic),
		Expression: strings.Clone(s.SubString), Type: TypeSQL92, Version: s.SubVersion,
		BornTime: t.o.Clock().UnixMilli(), Place: t.o.Bloom.place(group, s.Topic), compiled: compiled,
	}
	t.putLocked(c)
	t.o.Log.Info("consumer expression", "group", group, "topic", c.Topic, "expression", shorten(c.Expression), "version", c.Version)
	if rest := compiled.Rest(); rest != "" {
		t.o.Log.Warn("the expression of a consumer is complete before its end, perhaps by a misspelt word; what follows means nothing, as to the official broker",
			"group", group, "topic", c.Topic, "expression", shorten(c.Expression), "withoutMeaning", shorten(rest))
	}
	return true
}

// refuseLocked forgets what the group had before: its pulls are to be told.
func (t *Table) refuseLocked(group string, s *body.SubscriptionData, why string) bool {
	t.o.Log.Warn("consumer expression refused, its pulls will be", "group", group, "topic", s.Topic, "type", s.ExpressionType,
		"expression", shorten(s.SubString), "reason", shorten(why))
	return t.removeLocked(s.Topic, group)
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

// fullLocked tells whether there is no room for the expression of a subscription in the place of old.
func (t *Table) fullLocked(group string, s *body.SubscriptionData, old *Consumer) bool {
	if t.o.Limit == nil {
		return false
	}
	limit := t.o.Limit()
	return limit > 0 && t.mu.bytes+int64(len(group)+len(s.Topic)+len(s.SubString))-old.size() > limit
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
	t.mu.Lock()
	limit := t.o.Clock().Add(-t.o.Keep()).UnixMilli()
	for topic, of := range t.mu.topics {
		for group, c := range of {
			if c.dead() && c.DeadTime <= limit {
				changed = t.removeLocked(topic, group) || changed
				t.o.Log.Info("consumer expression expired", "group", group, "topic", topic)
			}
		}
	}
	t.mu.Unlock()
	if changed {
		t.saver.Changed(nil)
	}
}
