package namesrv

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// Bits of a topic's perm (PermName of 4.9.8).
const (
	permWrite int32 = 2
	permRead  int32 = 4
)

// link is a broker's connection. It is compared: the registration of a link that has closed goes with it.
type link interface{ Close() }

// routeTable is who has which topics where. It owns all of its state; answers are made once and kept as bytes
// until something changes that they show.
type routeTable struct {
	log   *slog.Logger
	clock func() time.Time
	bound bound // maxRouteBytes

	mu struct {
		sync.RWMutex
		bytes    int64 // that all of it takes, roughly
		topics   map[string]*topicRoute
		brokers  map[string]*brokerSet      // by broker name
		clusters map[string]map[string]bool // cluster name to broker names
		live     map[string]*registration   // by broker address
	}
	names atomic.Pointer[[]byte] // the list of all topics; made under the read lock, nil = not made
}

// topicRoute is one topic: its queues at each broker.
type topicRoute struct {
	queues  map[string]body.QueueData // by broker name; written under the lock
	answers [2]atomic.Pointer[answer] // made under the read lock: bare keys, standard JSON; nil = not made
}

// answer is the bytes of a route and the order of queues that they contain.
type answer struct {
	order string
	bytes []byte
}

// brokerSet is the members of one broker name.
type brokerSet struct {
	cluster string // the first one registered
	addrs   map[int64]string
	topics  map[string]bool // those with queues here
	drained bool            // WIPE_WRITE_PERM_OF_BROKER: registrations do not give the write permission back
}

// registration is a broker that lives.
type registration struct {
	name    string
	last    time.Time
	version body.DataVersion
	link    link
	haAddr  string
	filters []string // filter servers of brokers before 4.3
}

func newRouteTable(log *slog.Logger, clock func() time.Time) *routeTable {
	t := &routeTable{log: log, clock: clock}
	t.mu.topics = make(map[string]*topicRoute)
	t.mu.brokers = make(map[string]*brokerSet)
	t.mu.clusters = make(map[string]map[string]bool)
	t.mu.live = make(map[string]*registration)
	return t
}

// route returns the bytes of a topic's TopicRouteData, nil when there is none. The caller must not change them.
func (t *routeTable) route(topic string, standard bool, order string) []byte {
	form := 0
	if standard {
		form = 1
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := t.mu.topics[topic]
	if r == nil {
		return nil
	}
	if a := r.answers[form].Load(); a != nil && a.order == order {
		return a.bytes
	}
	return t.makeAnswerLocked(r, form, order)
}

// makeAnswerLocked needs the read lock: whoever takes an answer away has the other.
func (t *routeTable) makeAnswerLocked(r *topicRoute, form int, order string) []byte {
	data := body.TopicRouteData{FilterServerTable: map[string][]string{}, OrderTopicConf: order}
	for _, name := range slices.Sorted(maps.Keys(r.queues)) {
		data.QueueDatas = append(data.QueueDatas, r.queues[name])
		set := t.mu.brokers[name]
		if set == nil {
			continue
		}
		data.BrokerDatas = append(data.BrokerDatas, body.BrokerData{BrokerAddrs: set.addrs, BrokerName: name, Cluster: set.cluster})
		for _, addr := range set.addrs {
			if l := t.mu.live[addr]; l != nil && len(l.filters) > 0 {
				data.FilterServerTable[addr] = l.filters
			}
		}
	}
	if len(data.BrokerDatas) == 0 || len(data.QueueDatas) == 0 {
		return nil
	}
	marshal := compat.Marshal
	if form == 1 {
		marshal = compat.MarshalStandard
	}
	b, err := marshal(&data)
	if err != nil { // the struct has no type that could not be written
		t.log.Error("route not written", "error", err)
		return nil
	}
	r.answers[form].Store(&answer{order, b})
	return b
}

// changedLocked forgets the answers of a topic.
func (r *topicRoute) changedLocked() {
	for i := range r.answers {
		r.answers[i].Store(nil)
	}
}

// changedLocked forgets the answers that show a broker set.
func (t *routeTable) changedLocked(set *brokerSet) {
	for topic := range set.topics {
		t.mu.topics[topic].changedLocked()
	}
}

// setQueuesLocked writes the queues of a topic at a broker and tells whether that is news.
func (t *routeTable) setQueuesLocked(name string, set *brokerSet, topic string, q body.QueueData) bool {
	if set.drained {
		q.Perm &^= permWrite
	}
	r := t.mu.topics[topic]
	if r == nil {
		topic = strings.Clone(topic) // it may point into a text
		r = &topicRoute{queues: make(map[string]body.QueueData, 1)}
		t.mu.topics[topic] = r
		t.names.Store(nil)
	}
	old, known := r.queues[name]
	if known && old == q {
		return false
	}
	if !known {
		t.mu.bytes += queuesSize(name, topic)
	}
	r.queues[name] = q
	set.topics[topic] = true
	r.changedLocked()
	return true
}

// dropQueuesLocked removes the queues of a topic at a broker, and the topic with its last queues.
func (t *routeTable) dropQueuesLocked(name, topic string) bool {
	r := t.mu.topics[topic]
	if r == nil {
		return false
	}
	if _, ok := r.queues[name]; !ok {
		return false
	}
	delete(r.queues, name)
	t.mu.bytes -= queuesSize(name, topic)
	r.changedLocked()
	if set := t.mu.brokers[name]; set != nil {
		delete(set.topics, topic)
	}
	if len(r.queues) == 0 {
		delete(t.mu.topics, topic)
		t.names.Store(nil)
	}
	return true
}

// dropAddrLocked removes the address from the members of a broker set, and the set with its last member.
func (t *routeTable) dropAddrLocked(name, addr string) bool {
	set := t.mu.brokers[name]
	if set == nil {
		return false
	}
	found := false
	for id, a := range set.addrs {
		if a == addr {
			delete(set.addrs, id)
			found = true
		}
	}
	if !found {
		return false
	}
	if len(set.addrs) > 0 {
		t.changedLocked(set)
		return true
	}
	for topic := range set.topics {
		t.dropQueuesLocked(name, topic)
	}
	delete(t.mu.brokers, name)
	for cluster, names := range t.mu.clusters {
		if names[name] {
			t.mu.bytes -= clusterSize(cluster, name)
		}
		delete(names, name)
		if len(names) == 0 {
			delete(t.mu.clusters, cluster)
		}
	}
	return true
}

// linkClosed removes the brokers that registered by a link, at once. A broker that has registered again since then,
// by another link, stays.
func (t *routeTable) linkClosed(l link, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, r := range t.mu.live {
		if r.link == l {
			t.dropLiveLocked(addr)
			t.dropAddrLocked(r.name, addr)
			t.log.Info("broker removed: its connection ended", "broker", r.name, "addr", addr, "reason", why)
		}
	}
}

// expire removes the brokers that have not registered for two minutes, and closes their connections.
func (t *routeTable) expire() {
	var silent []link
	now := t.clock()
	t.mu.Lock()
	for addr, r := range t.mu.live {
		if now.Sub(r.last) > brokerExpiry {
			t.dropLiveLocked(addr)
			t.dropAddrLocked(r.name, addr)
			silent = append(silent, r.link)
			t.log.Warn("broker removed: no registration for too long", "broker", r.name, "addr", addr, "last", r.last)
		}
	}
	t.mu.Unlock()
	for _, l := range silent {
		l.Close() // its Closed event takes the lock
	}
}
