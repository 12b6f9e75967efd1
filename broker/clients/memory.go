package clients

import (
	"errors"
	"sync/atomic"

	"rocketd/protocol/body"
)

// Limits are what clients may make the tables keep; 0 = no bound.
type Limits struct {
	Groups int   // producer groups, and consumer groups, of one connection
	Bytes  int64 // of all groups, members and subscriptions, roughly
}

// The refusals of a heartbeat.
var (
	ErrGroups = errors.New("the client has too many groups")
	ErrBytes  = errors.New("the clients of this broker have too many groups and subscriptions")
)

// Memory counts what both tables take. It is shared by them, and safe for concurrent use.
type Memory struct {
	limits        func() Limits
	used          atomic.Int64
	groups, bytes atomic.Int64 // refused
}

// NewMemory makes the account; limits is asked each time.
func NewMemory(limits func() Limits) *Memory { return &Memory{limits: limits} }

// Used is the bytes that are taken.
func (m *Memory) Used() int64 { return m.used.Load() }

// RefusedGroups is how many groups of heartbeats were refused by Limits.Groups since the start.
func (m *Memory) RefusedGroups() int64 { return m.groups.Load() }

// TooMany counts a heartbeat that has too many groups by itself.
func (m *Memory) TooMany() { m.groups.Add(1) }

// RefusedBytes is how many groups of heartbeats were refused by Limits.Bytes since the start.
func (m *Memory) RefusedBytes() int64 { return m.bytes.Load() }

// take takes bytes for one of a connection's groups, of which it has so many. What takes no more than before is never refused.
func (m *Memory) take(bytes int64, groups int, joins bool) error {
	l := m.limits()
	switch {
	case joins && l.Groups > 0 && groups >= l.Groups:
		m.groups.Add(1)
		return ErrGroups
	case m.used.Add(bytes) > l.Bytes && l.Bytes > 0 && bytes > 0:
		m.used.Add(-bytes)
		m.bytes.Add(1)
		return ErrBytes
	}
	return nil
}

// give gives bytes back.
func (m *Memory) give(bytes int64) { m.used.Add(-bytes) }

// What things take in memory, in bytes: their structs and places in maps, roughly. Texts come on top.
const (
	memberBytes       = 300 // the member, its places in three maps
	groupBytes        = 500
	subscriptionBytes = 250
	tagBytes          = 24 // and the same again in CodeSet
)

// memberSize is what a member of a group takes.
func memberSize(clientId, group string) int64 {
	return memberBytes + int64(len(clientId)+len(group))
}

// subscriptionsSize is what the subscriptions of a group take.
func subscriptionsSize(group string, all []body.SubscriptionData) int64 {
	n := groupBytes + int64(len(group))
	for i := range all {
		n += subscriptionSize(&all[i])
	}
	return n
}

func subscriptionSize(s *body.SubscriptionData) int64 {
	n := subscriptionBytes + int64(len(s.Topic)+len(s.SubString)+len(s.ExpressionType)+tagBytes*(len(s.TagsSet)+len(s.CodeSet)))
	for _, tag := range s.TagsSet {
		n += int64(len(tag))
	}
	return n
}
