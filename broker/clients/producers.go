package clients

import (
	"log/slog"
	"sort"
	"sync"
	"time"

	"rocketd/compat"
	"rocketd/remoting"
)

// Producers is the table of producer groups; it is safe for concurrent use.
type Producers struct {
	clock  func() time.Time
	log    *slog.Logger
	memory *Memory

	mu struct {
		sync.RWMutex
		groups map[string]map[*remoting.Conn]*Member
		byConn map[*remoting.Conn]map[string]struct{} // the groups that each connection is a member of
		byId   map[string]*remoting.Conn              // the newest connection of each client id
		order  map[string][]*remoting.Conn            // of groups that Next was asked for, until their members change
		turn   int
	}
}

// NewProducers makes an empty table, which takes no more than memory allows.
func NewProducers(clock func() time.Time, log *slog.Logger, memory *Memory) *Producers {
	t := &Producers{clock: clock, log: log, memory: memory}
	t.mu.groups = make(map[string]map[*remoting.Conn]*Member)
	t.mu.byConn = make(map[*remoting.Conn]map[string]struct{})
	t.mu.byId = make(map[string]*remoting.Conn)
	t.mu.order = make(map[string][]*remoting.Conn)
	return t
}

// Register takes one group of a client's heartbeat. The error is ErrGroups or ErrBytes; then nothing changes.
func (t *Producers) Register(c Client, group string) error {
	now := t.clock()
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.mu.groups[group]
	before := g[c.Conn]
	if before != nil && before.ClientId == c.ClientId {
		before.LastUpdate, before.AccessKey = now, c.AccessKey
		if t.mu.byId[c.ClientId] == nil {
			t.nameLocked(c, &said)
		}
		return nil
	}
	size := memberSize(c.ClientId, group)
	if before != nil {
		size = before.size
	} else if err := t.memory.take(size, len(t.mu.byConn[c.Conn]), true); err != nil {
		return err
	}
	if g == nil {
		g = make(map[*remoting.Conn]*Member)
		t.mu.groups[group] = g
	}
	g[c.Conn] = &Member{c, now, size}
	delete(t.mu.order, group)
	if before != nil { // the same connection under another name
		t.forgetIdLocked(c.Conn, before.ClientId)
	}
	t.nameLocked(c, &said)
	if t.mu.byConn[c.Conn] == nil {
		t.mu.byConn[c.Conn] = make(map[string]struct{})
	}
	t.mu.byConn[c.Conn][group] = struct{}{}
	said.Add(func() {
		t.log.Info("producer joined", "group", group, "clientId", c.ClientId, "version", c.Version)
	})
	return nil
}

// nameLocked gives a client id to its newest connection, but not while an open one of another account bears it: what is sent to
// the client would go to whoever takes its name.
func (t *Producers) nameLocked(c Client, said *compat.Notes) {
	switch old := t.mu.byId[c.ClientId]; {
	case old == c.Conn:
	case old != nil && t.accountLocked(old) != c.AccessKey && old.Active():
		said.Add(func() {
			t.log.Debug("a client has the id of one of another account; that one keeps it", "clientId", c.ClientId, "accessKey", c.AccessKey)
		})
	default:
		t.mu.byId[c.ClientId] = c.Conn
	}
}

// accountLocked is the account of a connection's producer.
func (t *Producers) accountLocked(conn *remoting.Conn) string {
	for group := range t.mu.byConn[conn] {
		return t.mu.groups[group][conn].AccessKey
	}
	return ""
}

// Unregister takes a connection out of a group.
func (t *Producers) Unregister(conn *remoting.Conn, group string) {
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked(conn, group, "unregistered", &said)
}

// OnClose takes an ended connection out of every group.
func (t *Producers) OnClose(conn *remoting.Conn) {
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	for group := range t.mu.byConn[conn] {
		t.leaveLocked(conn, group, "connection closed", &said)
	}
}

// leaveLocked ends one membership; a group without members goes, and so does a client id that no group of
// the connection bears any more.
func (t *Producers) leaveLocked(conn *remoting.Conn, group, why string, said *compat.Notes) {
	m := t.mu.groups[group][conn]
	if m == nil {
		return
	}
	said.Add(func() { t.log.Info("producer left", "group", group, "clientId", m.ClientId, "why", why) })
	t.memory.give(m.size)
	delete(t.mu.order, group)
	if delete(t.mu.groups[group], conn); len(t.mu.groups[group]) == 0 {
		delete(t.mu.groups, group)
	}
	of := t.mu.byConn[conn]
	if delete(of, group); len(of) == 0 {
		delete(t.mu.byConn, conn)
	}
	t.forgetIdLocked(conn, m.ClientId)
}

// forgetIdLocked removes a client id that no group of its connection bears any more.
func (t *Producers) forgetIdLocked(conn *remoting.Conn, id string) {
	if t.mu.byId[id] != conn {
		return
	}
	for group := range t.mu.byConn[conn] {
		if t.mu.groups[group][conn].ClientId == id {
			return
		}
	}
	delete(t.mu.byId, id)
}

// Scan takes out the members whose last heartbeat is older than Expiry and returns their connections, which
// the caller closes.
func (t *Producers) Scan() (expired []*remoting.Conn) {
	now := t.clock()
	var said compat.Notes
	defer said.Write()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, g := range t.mu.groups {
		for conn, m := range g {
			if now.Sub(m.LastUpdate) > Expiry {
				expired = append(expired, conn)
				t.leaveLocked(conn, name, "no heartbeat", &said)
			}
		}
	}
	return expired
}

// Members are the members of a group, by client id; nil when the group does not exist.
func (t *Producers) Members(group string) []Member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sortedMembers(t.mu.groups[group])
}

// Next returns the connection of a member of a group, another one each time, for a question that any of them can
// answer which may; nil when none is open. As ProducerManager#getAvailableChannel of 4.9.8. may is called with the table locked.
func (t *Producers) Next(group string, may func(*Client) bool) *remoting.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	members, ok := t.mu.order[group]
	if !ok {
		for _, m := range sortedMembers(t.mu.groups[group]) {
			members = append(members, m.Conn)
		}
		if members == nil {
			return nil
		}
		t.mu.order[group] = members
	}
	for range members {
		t.mu.turn++
		conn := members[t.mu.turn%len(members)]
		if m := t.mu.groups[group][conn]; m != nil && conn.Active() && may(&m.Client) {
			return conn
		}
	}
	return nil
}

// All returns every group with its members.
func (t *Producers) All() map[string][]Member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[string][]Member, len(t.mu.groups))
	for name, g := range t.mu.groups {
		all[name] = sortedMembers(g)
	}
	return all
}

// Find returns the newest connection of a client id, nil when there is none.
func (t *Producers) Find(clientId string) *remoting.Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.byId[clientId]
}

func sortedMembers(g map[*remoting.Conn]*Member) []Member {
	var all []Member
	for _, m := range g {
		all = append(all, *m)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ClientId < all[j].ClientId })
	return all
}
