package broker

import (
	"context"
	"strings"
	"sync"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

// Times of routes: how old one may be (loadBalancePollNameServerInterval of 5.3.3), and how long a name server is
// waited for.
const (
	routeAge     = 30 * time.Second
	routeTimeout = 3 * time.Second
)

// routeSilence is how long a name server is asked for no route that did not answer the last time: each request would wait for it in
// a lane that is for administrators too.
const routeSilence = 5 * time.Second

// maxRoutes is how many routes are kept; with more topics all are asked for again.
const maxRoutes = 10_000

// routes is which queues topics have, on all brokers, as the name servers said lately.
type routes struct {
	mu struct {
		sync.Mutex
		m map[string]routeOf
	}
}

type routeOf struct {
	queues []body.MessageQueue
	at     time.Time
}

// subscribeQueues is the queues of a topic that consumers may read, on all brokers of the cluster; nil when no name
// server knows the topic. Without a name server those of this broker. It may wait for name servers.
func (b *Broker) subscribeQueues(topic string) []body.MessageQueue {
	r := &b.path.pop.routes
	now := b.clock()
	r.mu.Lock()
	known, ok := r.mu.m[topic]
	r.mu.Unlock()
	if ok && now.Sub(known.at) < routeAge {
		return known.queues
	}
	queues, answered := b.askRoute(topic)
	if !answered { // none can be reached
		if ok {
			return known.queues
		}
		return b.ownQueues(topic)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.m) >= maxRoutes || r.mu.m == nil {
		r.mu.m = make(map[string]routeOf)
	}
	if len(queues) == 0 {
		delete(r.mu.m, topic)
	} else {
		r.mu.m[strings.Clone(topic)] = routeOf{queues, now}
	}
	return queues
}

// askRoute asks the name servers one after the other, but none that is silent. False: none has answered.
func (b *Broker) askRoute(topic string) (queues []body.MessageQueue, answered bool) {
	for _, n := range b.registrar.servers() {
		if n.silent(b.clock()) {
			continue
		}
		req := protocol.NewRequest(protocol.GetRouteInfoByTopic, &header.GetRouteInfoRequest{Topic: topic}, nil)
		answer, err := b.client.Call(context.Background(), n.addr, b.signed(req), routeTimeout)
		n.asked(b.clock(), err)
		if err != nil {
			b.log.Warn("a name server was not asked for a route", "topic", topic, "namesrv", n.addr, "err", err)
			continue
		}
		if protocol.ResponseCode(answer.Code) != protocol.Success {
			return nil, true
		}
		route := new(body.TopicRouteData)
		if err := compat.Unmarshal(answer.Body, route); err != nil {
			b.log.Warn("a route can't be read", "topic", topic, "namesrv", n.addr, "err", err)
			continue
		}
		topic := strings.Clone(topic)
		for _, q := range route.QueueDatas {
			if topics.Readable(q.Perm) {
				for i := range min(q.ReadQueueNums, topics.MaxQueues) {
					queues = append(queues, body.MessageQueue{Topic: topic, BrokerName: q.BrokerName, QueueId: i})
				}
			}
		}
		return queues, true
	}
	return nil, false
}

// asked notes whether a name server has answered a question.
func (n *nameServer) asked(now time.Time, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.unanswered = (time.Time{}); err != nil {
		n.mu.unanswered = now
	}
}

// silent tells whether a name server has lately left a question unanswered. A clock that was set back ends that.
func (n *nameServer) silent(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	since := now.Sub(n.mu.unanswered)
	return !n.mu.unanswered.IsZero() && since >= 0 && since < routeSilence
}

// ownQueues is the queues that this broker has of a topic.
func (b *Broker) ownQueues(topic string) (queues []body.MessageQueue) {
	if t, ok := b.topics.Lookup(topic); ok && topics.Readable(t.Perm) {
		for i := range t.ReadQueueNums {
			queues = append(queues, b.messageQueue(t.TopicName, i))
		}
	}
	return queues
}
