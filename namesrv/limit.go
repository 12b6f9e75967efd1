package namesrv

import (
	"errors"
	"fmt"
	"sync/atomic"

	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// bound is how much a table may keep, and how often it has refused more.
type bound struct {
	limit   func() int64 // bytes, as it is now; 0 or nil = no bound
	refused atomic.Int64
}

// allows tells, and counts, whether a table that takes used bytes may take so many more.
func (b *bound) allows(used, more int64) bool {
	if b.limit == nil || more <= 0 {
		return true
	}
	if limit := b.limit(); limit <= 0 || used+more <= limit {
		return true
	}
	b.refused.Add(1)
	return false
}

// What things take in memory, in bytes: their structs and places in maps, roughly. Texts come on top.
const (
	queuesBytes  = 300 // a topic at a broker; with the answers that are kept for clients
	clusterBytes = 200 // a broker name of a cluster
	brokerBytes  = 600 // an address: its registration and its place in a broker set
)

// maxName is the most bytes of a broker's names and addresses. The official name server has no bound.
const maxName = 1024

// Why a registration is refused.
var (
	errRoutesFull = errors.New("brokers and topics take as much as maxRouteBytes allows")
	errNameLength = fmt.Errorf("a name or address of the broker is longer than %d bytes", maxName)
)

func queuesSize(name, topic string) int64    { return queuesBytes + int64(len(name)+2*len(topic)) }
func clusterSize(cluster, name string) int64 { return clusterBytes + int64(len(cluster)+len(name)) }
func (r *registration) size(addr string) int64 {
	n := brokerBytes + int64(len(r.name)+2*len(addr)+len(r.haAddr))
	for _, f := range r.filters {
		n += 16 + int64(len(f))
	}
	return n
}

// roomLocked tells whether a registration can be taken: the names are no longer than they may be, and what it brings that is
// new has room. What a broker has registered already it always may again.
func (t *routeTable) roomLocked(req *header.RegisterBrokerRequest, b *body.RegisterBrokerBody) error {
	if max(len(req.BrokerName), len(req.BrokerAddr), len(req.ClusterName), len(req.HaServerAddr)) > maxName {
		t.bound.refused.Add(1)
		return errNameLength
	}
	more := (&registration{name: req.BrokerName, haAddr: req.HaServerAddr, filters: b.FilterServerList}).size(req.BrokerAddr)
	old := t.mu.live[req.BrokerAddr]
	if old != nil {
		more -= old.size(req.BrokerAddr)
	}
	if !t.mu.clusters[req.ClusterName][req.BrokerName] {
		more += clusterSize(req.ClusterName, req.BrokerName)
	}
	wrapper := &b.TopicConfigSerializeWrapper
	if same := old != nil && old.name == req.BrokerName && old.version == wrapper.DataVersion; req.BrokerId == 0 && !same {
		set := t.mu.brokers[req.BrokerName]
		for _, c := range wrapper.TopicConfigTable {
			if c != nil && (set == nil || !set.topics[c.TopicName]) {
				more += queuesSize(req.BrokerName, c.TopicName)
			}
		}
	}
	if !t.bound.allows(t.mu.bytes, more) {
		return errRoutesFull
	}
	return nil
}

// setLiveLocked puts a registration in the place of the one before.
func (t *routeTable) setLiveLocked(addr string, r *registration) {
	t.dropLiveLocked(addr)
	t.mu.live[addr] = r
	t.mu.bytes += r.size(addr)
}

// dropLiveLocked forgets a registration, if there is one.
func (t *routeTable) dropLiveLocked(addr string) {
	if r := t.mu.live[addr]; r != nil {
		t.mu.bytes -= r.size(addr)
		delete(t.mu.live, addr)
	}
}

// Refusal is how often a limit has kept a peer from something since the start.
type Refusal struct {
	Key   string // configuration key of the limit
	Count int64
}

// Refusals are the limits of a name server's tables, ready for whoever shows them; those of connections are in the
// statistics of the port.
func (s *Server) Refusals() []Refusal {
	return []Refusal{{"maxRouteBytes", s.routes.bound.refused.Load()}, {"maxKvConfigBytes", s.kv.bound.refused.Load()}}
}

// tellRefusals logs the limits that have been met since the last time.
func (s *Server) tellRefusals(before []Refusal) []Refusal {
	now := s.Refusals()
	for i, r := range now {
		if before != nil && r.Count > before[i].Count {
			s.log.Warn("a limit has kept peers from something; if they are in the right, raise it", "key", r.Key, "refused", r.Count-before[i].Count)
		}
	}
	return now
}

// PortStats are the counters of the port, with those of the limits of connections.
func (s *Server) PortStats() remoting.Stats { return s.remote.Stats() }
