package clients

import (
	"log/slog"
	"sort"
	"sync"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/remoting"
)

// Consumers is the table of consumer groups; it is safe for concurrent use.
type Consumers struct {
	clock  func() time.Time
	log    *slog.Logger
	memory *Memory

	mu struct { // writers hold it while they change a group too; taken before a group's lock
		sync.RWMutex
		groups map[string]*ConsumerGroup
		byConn map[*remoting.Conn]map[string]struct{} // the groups that each connection is a member of
	}
}

// NewConsumers makes an empty table, which takes no more than memory allows.
func NewConsumers(clock func() time.Time, log *slog.Logger, memory *Memory) *Consumers {
	t := &Consumers{clock: clock, log: log, memory: memory}
	t.mu.groups = make(map[string]*ConsumerGroup)
	t.mu.byConn = make(map[*remoting.Conn]map[string]struct{})
	return t
}

// Group returns a group that has members, else nil.
func (t *Consumers) Group(name string) *ConsumerGroup {
	t.mu.RLock()
	g := t.mu.groups[name]
	t.mu.RUnlock()
	return g
}

// Register takes one group of a client's heartbeat. It returns whether the members should be told: the
// connection is new to the group, or the set of subscribed topics has changed. The error is ErrGroups or ErrBytes; then
// nothing changes.
func (t *Consumers) Register(c Client, d *body.ConsumerData) (changed bool, err error) {
	now := t.clock()
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.mu.groups[d.GroupName]
	before := int64(0)
	if g != nil {
		before = g.bytes
	}
	member := int64(0)
	if g == nil || !g.has(c.Conn) {
		member = memberSize(c.ClientId, d.GroupName)
	}
	reserved := max(0, member+subscriptionsSize(d.GroupName, d.SubscriptionDataSet)-before)
	if err := t.memory.take(reserved, len(t.mu.byConn[c.Conn]), member > 0); err != nil {
		return false, err
	}
	if g == nil {
		g = newConsumerGroup(d.GroupName)
		t.mu.groups[d.GroupName] = g
	}
	if t.mu.byConn[c.Conn] == nil {
		t.mu.byConn[c.Conn] = make(map[string]struct{})
	}
	t.mu.byConn[c.Conn][d.GroupName] = struct{}{}
	joined := g.join(c, d, now)
	if joined {
		said.Add(func() {
			t.log.Info("consumer joined", "group", d.GroupName, "clientId", c.ClientId,
				"consumeType", d.ConsumeType, "messageModel", d.MessageModel, "version", c.Version)
		})
	}
	added, removed, rival := g.subscribe(c.ClientId, d.SubscriptionDataSet, now)
	if rival != "" {
		said.Add(func() {
			t.log.Warn("members of one consumer group subscribe different topics, and take them from each other with every heartbeat",
				"group", d.GroupName, "clientId", c.ClientId, "otherClientId", rival, "lost", removed)
		})
	}
	if len(added) > 0 || len(removed) > 0 {
		said.Add(func() {
			t.log.Info("subscriptions changed", "group", d.GroupName, "clientId", c.ClientId, "added", added, "removed", removed)
		})
	}
	g.bytes = g.size()
	t.memory.give(reserved - member - (g.bytes - before))
	return joined || len(added) > 0 || len(removed) > 0, nil
}

// Unregister takes a connection out of a group and tells whether the group was there.
func (t *Consumers) Unregister(conn *remoting.Conn, group string) bool {
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.groups[group] == nil {
		return false
	}
	t.leaveLocked(conn, group, "unregistered", &said)
	return true
}

// OnClose takes an ended connection out of every group and returns these groups.
func (t *Consumers) OnClose(conn *remoting.Conn) (left []string) {
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	for group := range t.mu.byConn[conn] {
		left = append(left, group)
		t.leaveLocked(conn, group, "connection closed", &said)
	}
	return left
}

// leaveLocked ends one membership; a group without members goes.
func (t *Consumers) leaveLocked(conn *remoting.Conn, group, why string, said *compat.Notes) {
	if of := t.mu.byConn[conn]; of != nil {
		if delete(of, group); len(of) == 0 {
			delete(t.mu.byConn, conn)
		}
	}
	g := t.mu.groups[group]
	if g == nil {
		return
	}
	m, rest := g.leave(conn)
	if m != nil {
		t.memory.give(m.size)
		said.Add(func() { t.log.Info("consumer left", "group", group, "clientId", m.ClientId, "why", why) })
	}
	if rest == 0 {
		delete(t.mu.groups, group)
		t.memory.give(g.bytes)
		said.Add(func() { t.log.Info("consumer group has no members left", "group", group) })
	}
}

// Scan takes out the members whose last heartbeat is older than Expiry. It returns their connections, which
// the caller closes, and their groups.
func (t *Consumers) Scan() (expired []*remoting.Conn, left []string) {
	now := t.clock()
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, g := range t.mu.groups {
		dead := g.expired(now)
		for _, conn := range dead {
			t.leaveLocked(conn, name, "no heartbeat", &said)
		}
		if len(dead) > 0 {
			expired = append(expired, dead...)
			left = append(left, name)
		}
	}
	return expired, left
}

// Subscribers are the groups that subscribe a topic now, sorted.
func (t *Consumers) Subscribers(topic string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for name, g := range t.mu.groups {
		if _, ok := g.Subscription(topic); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
