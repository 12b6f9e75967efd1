package clients

import (
	"sync"
	"time"

	"rocketd/protocol/body"
	"rocketd/remoting"
)

// ConsumerGroup is one group's state. Its methods may be called at any time; each sees one moment.
type ConsumerGroup struct {
	name  string
	bytes int64 // that it takes in memory without its members; guarded by the table's lock

	mu struct {
		sync.RWMutex
		members          map[*remoting.Conn]*Member
		subscriptions    map[string]*body.SubscriptionData // a SubscriptionData is never changed, only replaced
		consumeType      body.ConsumeType
		messageModel     body.MessageModel
		consumeFromWhere body.ConsumeFromWhere
		subscriber       string    // client id of the heartbeat that the subscriptions are of
		quarrelled       time.Time // when it was last told that members differ
	}
}

// quarrelPeriod is how often the log is told at most that a group's members subscribe different topics: they do so
// with every heartbeat.
const quarrelPeriod = 5 * time.Minute

func newConsumerGroup(name string) *ConsumerGroup {
	g := &ConsumerGroup{name: name}
	g.mu.members = make(map[*remoting.Conn]*Member)
	g.mu.subscriptions = make(map[string]*body.SubscriptionData)
	return g
}

// join notes a member's heartbeat and tells whether its connection is new.
func (g *ConsumerGroup) join(c Client, d *body.ConsumerData, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.consumeType, g.mu.messageModel, g.mu.consumeFromWhere = d.ConsumeType, d.MessageModel, d.ConsumeFromWhere
	if m := g.mu.members[c.Conn]; m != nil && m.ClientId == c.ClientId {
		m.LastUpdate = now
		return false
	} else if m != nil { // the same connection under another name: 4.9.8 replaces it and tells nobody
		*m = Member{c, now, m.size}
		return false
	}
	g.mu.members[c.Conn] = &Member{c, now, memberSize(c.ClientId, g.name)}
	return true
}

// subscribe makes the group's topics exactly those of a heartbeat: two members who differ fight, as with
// 4.9.8. A topic that stays is replaced only by a larger subVersion.
//
// rival is the other member whose topics were taken away, when that is to be told: the group's pulls are refused by
// turns, and nobody sees why (bug reports #5473 and alibaba/rocketmq#212 of the official server).
func (g *ConsumerGroup) subscribe(clientId string, set []body.SubscriptionData, at time.Time) (added, removed []string, rival string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := make(map[string]bool, len(set))
	for i := range set {
		s := &set[i]
		now[s.Topic] = true
		old := g.mu.subscriptions[s.Topic]
		if old == nil {
			added = append(added, s.Topic)
		}
		if old == nil || s.SubVersion > old.SubVersion {
			one := *s // what stays does not keep the others of its heartbeat
			g.mu.subscriptions[s.Topic] = &one
		}
	}
	for topic := range g.mu.subscriptions {
		if !now[topic] {
			delete(g.mu.subscriptions, topic)
			removed = append(removed, topic)
		}
	}
	if len(removed) > 0 && g.mu.subscriber != clientId && g.isMemberLocked(g.mu.subscriber) && at.Sub(g.mu.quarrelled) >= quarrelPeriod {
		rival, g.mu.quarrelled = g.mu.subscriber, at
	}
	g.mu.subscriber = clientId
	return added, removed, rival
}

// has tells whether a connection is a member's.
func (g *ConsumerGroup) has(conn *remoting.Conn) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.members[conn] != nil
}

// size is what the group takes in memory, its members aside.
func (g *ConsumerGroup) size() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := subscriptionsSize(g.name, nil)
	for _, s := range g.mu.subscriptions {
		n += subscriptionSize(s)
	}
	return n
}

func (g *ConsumerGroup) isMemberLocked(clientId string) bool {
	for _, m := range g.mu.members {
		if m.ClientId == clientId {
			return true
		}
	}
	return false
}

// leave takes a member out; it returns the member (nil: there was none) and how many are left.
func (g *ConsumerGroup) leave(conn *remoting.Conn) (*Member, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.mu.members[conn]
	delete(g.mu.members, conn)
	return m, len(g.mu.members)
}

func (g *ConsumerGroup) expired(now time.Time) (dead []*remoting.Conn) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for conn, m := range g.mu.members {
		if now.Sub(m.LastUpdate) > Expiry {
			dead = append(dead, conn)
		}
	}
	return dead
}

// Name is the group's name.
func (g *ConsumerGroup) Name() string { return g.name }

// Subscription returns what the group subscribes of a topic; it must not be changed.
func (g *ConsumerGroup) Subscription(topic string) (*body.SubscriptionData, bool) {
	g.mu.RLock()
	s, ok := g.mu.subscriptions[topic]
	g.mu.RUnlock()
	return s, ok
}

// Subscriptions returns all that the group subscribes, by topic.
func (g *ConsumerGroup) Subscriptions() map[string]*body.SubscriptionData {
	g.mu.RLock()
	defer g.mu.RUnlock()
	all := make(map[string]*body.SubscriptionData, len(g.mu.subscriptions))
	for topic, s := range g.mu.subscriptions {
		all[topic] = s
	}
	return all
}

// MessageModel is BROADCASTING or CLUSTERING, by the latest heartbeat.
func (g *ConsumerGroup) MessageModel() body.MessageModel {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.messageModel
}

// ConsumeType is CONSUME_ACTIVELY or CONSUME_PASSIVELY, by the latest heartbeat.
func (g *ConsumerGroup) ConsumeType() body.ConsumeType {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.consumeType
}

// ConsumeFromWhere is where a new group begins, by the latest heartbeat.
func (g *ConsumerGroup) ConsumeFromWhere() body.ConsumeFromWhere {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.consumeFromWhere
}

// Conns are the connections of the group's members, in no order.
func (g *ConsumerGroup) Conns() []*remoting.Conn {
	g.mu.RLock()
	defer g.mu.RUnlock()
	conns := make([]*remoting.Conn, 0, len(g.mu.members))
	for c := range g.mu.members {
		conns = append(conns, c)
	}
	return conns
}

// Members are the group's members, by client id.
func (g *ConsumerGroup) Members() []Member {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return sortedMembers(g.mu.members)
}

// ClientIds are the members' ids, sorted, each once. A client that has come back by a new connection while its
// old one is not yet known dead counts once: 4.9.8 lists it twice, and then nobody consumes the second share.
func (g *ConsumerGroup) ClientIds() []string {
	members := g.Members()
	ids := make([]string, 0, len(members))
	for _, m := range members {
		if n := len(ids); n == 0 || ids[n-1] != m.ClientId {
			ids = append(ids, m.ClientId)
		}
	}
	return ids
}

// Find returns the member of an id; of two the one heard of last.
func (g *ConsumerGroup) Find(clientId string) (Member, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var found *Member
	for _, m := range g.mu.members {
		if m.ClientId == clientId && (found == nil || m.LastUpdate.After(found.LastUpdate)) {
			found = m
		}
	}
	if found == nil {
		return Member{}, false
	}
	return *found, true
}
