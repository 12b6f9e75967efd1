package broker

import "rocketd/remoting"

// Refusal is how often a limit has kept a peer from something since the start.
type Refusal struct {
	Key   string // configuration key of the limit; of those that are no keys their name
	Count int64
}

// Refusals are the limits of a broker's tables in the order of LimitConfig, ready for whoever shows them; those of
// connections are in the statistics of the ports.
func (b *Broker) Refusals() []Refusal {
	return []Refusal{
		{"maxTopics", b.topics.Refused()},
		{"maxSubscriptionGroups", b.groups.Refused()},
		{"maxClientGroups", b.memory.RefusedGroups()},
		{"maxClientBytes", b.memory.RefusedBytes()},
		{"maxConsumerOffsets", b.offsets.Refused()},
		{"maxQueueLocks", b.locks.Refused()},
		{"maxExpressionBytes", b.filters.Refused()},
		{"maxRequestModes", b.path.pop.modes.Refused()},
		{"queues popped", b.path.pop.checkpoints.Refused()},
		{"maxJsonBytes", b.bodies.refused.Load()},
		{"maxHeldPulls", b.path.held.Refused()},
		{"maxPopPollingSize", b.path.pop.held.Refused() + b.path.pop.notices.Refused()},
	}
}

// tellRefusals logs the limits that have been met since the last time, one line for all: what a peer does again and again
// does not fill the log.
func (b *Broker) tellRefusals(before []Refusal) []Refusal {
	now := b.Refusals()
	var met []any
	for i, r := range now {
		if before != nil && r.Count > before[i].Count {
			met = append(met, r.Key, r.Count-before[i].Count)
		}
	}
	if met != nil {
		b.log.Warn("limits have kept peers from something: clients ask for more than a broker keeps; if they are in the right, raise the keys named here", met...)
	}
	return now
}

// PortStats are the counters of the main port and of the fast one, with those of the limits of connections.
func (b *Broker) PortStats() (main, fast remoting.Stats) { return b.server.Stats(), b.fast.Stats() }
