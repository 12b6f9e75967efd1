package clients

import (
	"log/slog"
	"sync"
	"time"

	"rocketd/remoting"
)

// SubscriptionData is one topic that a group subscribes, as its members say it.
type SubscriptionData struct {
	ClassFilterMode bool
	Topic           string
	SubString       string
	TagsSet         []string
	CodeSet         []int32
	SubVersion      int64
	ExpressionType  string
}

// Values of a group's model and type.
const (
	Broadcasting     = "BROADCASTING"
	Clustering       = "CLUSTERING"
	ConsumeActively  = "CONSUME_ACTIVELY"
	ConsumePassively = "CONSUME_PASSIVELY"
)

// Consumers is the table of consumer groups; it is safe for concurrent use.
type Consumers struct {
	clock func() time.Time
	log   *slog.Logger

	mu struct {
		sync.RWMutex
		groups map[string]*ConsumerGroup
	}
}

// ConsumerGroup is one group's state. Its methods may be called at any time; each sees one moment.
type ConsumerGroup struct {
	name string

	mu struct {
		sync.RWMutex
		members          map[*remoting.Conn]*Member
		subscriptions    map[string]*SubscriptionData // a SubscriptionData is never changed, only replaced
		consumeType      string
		messageModel     string
		consumeFromWhere string
	}
}

// NewConsumers makes an empty table.
func NewConsumers(clock func() time.Time, log *slog.Logger) *Consumers {
	t := &Consumers{clock: clock, log: log}
	t.mu.groups = make(map[string]*ConsumerGroup)
	return t
}

// Group returns a group that has members, else nil.
func (t *Consumers) Group(name string) *ConsumerGroup {
	t.mu.RLock()
	g := t.mu.groups[name]
	t.mu.RUnlock()
	return g
}

// Subscription returns what the group subscribes of a topic.
func (g *ConsumerGroup) Subscription(topic string) (*SubscriptionData, bool) {
	g.mu.RLock()
	s, ok := g.mu.subscriptions[topic]
	g.mu.RUnlock()
	return s, ok
}

// MessageModel is BROADCASTING or CLUSTERING, by the latest heartbeat.
func (g *ConsumerGroup) MessageModel() string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.messageModel
}

// ConsumeType is CONSUME_ACTIVELY or CONSUME_PASSIVELY, by the latest heartbeat.
func (g *ConsumerGroup) ConsumeType() string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.mu.consumeType
}

// Conns are the connections of the group's members.
func (g *ConsumerGroup) Conns() []*remoting.Conn {
	g.mu.RLock()
	defer g.mu.RUnlock()
	conns := make([]*remoting.Conn, 0, len(g.mu.members))
	for c := range g.mu.members {
		conns = append(conns, c)
	}
	return conns
}
