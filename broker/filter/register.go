package filter

import (
	"strings"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// registration is one group's part of a heartbeat on its way into the table. Its fields belong to the caller of Register.
type registration struct {
	t        *Table
	group    string
	all      []body.SubscriptionData
	compiled map[string]outcome // by expression
	missing  []string           // expressions to be compiled first
	changed  bool
	said     compat.Notes
}

// take takes everything, at one moment; false: something has to be compiled first, and nothing is taken.
func (r *registration) take() bool {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.missLocked(); len(r.missing) > 0 {
		return false
	}
	for i := range r.all {
		r.changed = r.oneLocked(&r.all[i]) || r.changed
	}
	now := t.o.Clock().UnixMilli()
	for topic, c := range t.mu.groups[r.group] {
		if !c.dead() && !subscribed(r.all, topic) {
			r.changed = true
			t.putLocked(c.dieAt(now))
			r.said.Add(func() { t.o.Log.Info("consumer expression not subscribed any more", "group", r.group, "topic", topic) })
		}
	}
	return true
}

func subscribed(all []body.SubscriptionData, topic string) bool {
	for i := range all {
		if all[i].Topic == topic {
			return true
		}
	}
	return false
}

// missLocked finds what oneLocked may have to compile, whatever it makes of the subscriptions before: of a topic that is
// named twice everything. Where there is no room even without all that the group has, nothing is compiled.
func (r *registration) missLocked() {
	r.missing = r.missing[:0]
	mine := int64(0)
	for _, c := range r.t.mu.groups[r.group] {
		mine += c.size()
	}
	topics := make(map[string]int, len(r.all))
	for i := range r.all {
		topics[r.all[i].Topic]++
	}
	for i := range r.all {
		s := &r.all[i]
		if s.ExpressionType != TypeSQL92 || s.SubString == "" || r.t.fullLocked(r.group, s, mine) {
			continue
		}
		old := r.t.mu.topics[s.Topic][r.group]
		if topics[s.Topic] == 1 && old != nil && (s.SubVersion <= old.Version || old.Expression == s.SubString && old.Type == s.ExpressionType) {
			continue
		}
		if _, ok := r.compiled[s.SubString]; !ok {
			r.missing = append(r.missing, s.SubString)
		}
	}
}

// oneLocked takes one subscription and tells whether it changes the table. An older version changes nothing, the same
// version only wakes the dead.
func (r *registration) oneLocked(s *body.SubscriptionData) bool {
	t, group := r.t, r.group
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
		return r.refuseLocked(s, "there is no expression type of this name")
	}
	o, ok := r.compiled[s.SubString]
	if !ok || t.fullLocked(group, s, old.size()) {
		t.refused.Add(1)
		return r.refuseLocked(s, "there are as many expressions as maxExpressionBytes allows")
	}
	if o.err != nil {
		return r.refuseLocked(s, o.err.Error())
	}
	c := &Consumer{
		Group: strings.Clone(group), Topic: strings.Clone(s.Topic),
		Expression: strings.Clone(s.SubString), Type: TypeSQL92, Version: s.SubVersion,
		BornTime: t.o.Clock().UnixMilli(), Place: t.o.Bloom.place(group, s.Topic), compiled: o.expression,
	}
	t.putLocked(c)
	r.said.Add(func() {
		t.o.Log.Info("consumer expression", "group", group, "topic", c.Topic, "expression", shorten(c.Expression), "version", c.Version)
		if rest := c.compiled.Rest(); rest != "" {
			t.o.Log.Warn("the expression of a consumer is complete before its end, perhaps by a misspelt word; what follows means nothing, as to the official broker",
				"group", group, "topic", c.Topic, "expression", shorten(c.Expression), "withoutMeaning", shorten(rest))
		}
	})
	return true
}

// refuseLocked forgets what the group had before: its pulls are to be told.
func (r *registration) refuseLocked(s *body.SubscriptionData, why string) bool {
	r.said.Add(func() {
		r.t.o.Log.Warn("consumer expression refused, its pulls will be", "group", r.group, "topic", s.Topic, "type", s.ExpressionType,
			"expression", shorten(s.SubString), "reason", shorten(why))
	})
	return r.t.removeLocked(s.Topic, r.group)
}
