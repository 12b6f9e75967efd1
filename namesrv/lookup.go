package namesrv

import (
	"maps"
	"slices"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// Bits of topicSysFlag (TopicSysFlag of 4.9.8).
const (
	flagUnit    int32 = 1
	flagUnitSub int32 = 2
)

// faq is what the official server puts behind the remark of a missing route.
const faq = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."

// null is the text that Java makes of a header field that is not there.
func null(c *remoting.Call, key, value string) string {
	if _, ok := c.Command().Field(key); !ok {
		return "null"
	}
	return value
}

// getRouteInfoByTopic answers where a topic's queues are. Clients from 4.9.4 on, and those that ask for it, get
// standard JSON, others bare numeric keys.
func (s *Server) getRouteInfoByTopic(c *remoting.Call, req *header.GetRouteInfoRequest) (*protocol.Command, error) {
	order := ""
	if s.config.Load().OrderMessageEnable {
		order, _ = s.kv.get(orderTopicConfig, req.Topic)
	}
	standard := c.Command().Version >= protocol.V4_9_4 || req.AcceptStandardJsonOnly
	route := s.routes.route(req.Topic, standard, order)
	if route == nil {
		remark := "No topic route info in name server for the topic: " + null(c, "topic", req.Topic) + faq
		return c.Answer(protocol.TopicNotExist, remark, nil), nil
	}
	answer := c.Success(nil)
	answer.Body = route
	return answer, nil
}

// success answers with a JSON body, in fastjson's form whatever the client's version.
func success(c *remoting.Call, v any) (*protocol.Command, error) {
	b, err := compat.Marshal(v)
	if err != nil {
		return nil, err
	}
	answer := c.Success(nil)
	answer.Body = b
	return answer, nil
}

func (s *Server) getBrokerClusterInfo(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return success(c, s.routes.clusterInfo())
}

func (s *Server) getAllTopicList(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	names, err := s.routes.allTopics()
	if err != nil {
		return nil, err
	}
	answer := c.Success(nil)
	answer.Body = names
	return answer, nil
}

// getTopicsByCluster answers the topics of a cluster's brokers. An unknown cluster has none; that is a success.
func (s *Server) getTopicsByCluster(c *remoting.Call, req *header.GetTopicsByClusterRequest) (*protocol.Command, error) {
	return success(c, s.routes.clusterTopics(req.Cluster))
}

func (s *Server) getSystemTopicList(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return success(c, s.routes.systemTopics())
}

func (s *Server) getUnitTopicList(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return success(c, s.routes.topicList(func(r *topicRoute) bool { return r.sysFlag()&flagUnit != 0 }))
}

func (s *Server) getHasUnitSubTopicList(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return success(c, s.routes.topicList(func(r *topicRoute) bool { return r.sysFlag()&flagUnitSub != 0 }))
}

func (s *Server) getHasUnitSubUnunitTopicList(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	return success(c, s.routes.topicList(func(r *topicRoute) bool { return r.sysFlag()&(flagUnit|flagUnitSub) == flagUnitSub }))
}

// sysFlag is the topic's flag at one of its brokers: the first by name (4.9.8 takes any).
func (r *topicRoute) sysFlag() int32 {
	first := ""
	for name := range r.queues {
		if first == "" || name < first {
			first = name
		}
	}
	return r.queues[first].TopicSysFlag
}

// allTopics returns the bytes of the list of all topics, which dashboards ask for again and again. The caller must not change
// them.
func (t *routeTable) allTopics() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock() // to the end: whoever takes the list away has the other lock
	if b := t.names.Load(); b != nil {
		return *b, nil
	}
	b, err := compat.Marshal(t.topicListLocked(func(*topicRoute) bool { return true }))
	if err != nil {
		return nil, err
	}
	t.names.Store(&b)
	return b, nil
}

// topicList returns the names of the topics that match, in order.
func (t *routeTable) topicList(match func(*topicRoute) bool) *body.TopicList {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.topicListLocked(match)
}

// topicListLocked is topicList under either lock.
func (t *routeTable) topicListLocked(match func(*topicRoute) bool) *body.TopicList {
	names := make([]string, 0, len(t.mu.topics))
	for name, r := range t.mu.topics {
		if match(r) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return &body.TopicList{TopicList: names}
}

// clusterTopics returns the names of all topics that a broker of the cluster has, in order.
func (t *routeTable) clusterTopics(cluster string) *body.TopicList {
	topics := make(map[string]bool)
	t.mu.RLock()
	for name := range t.mu.clusters[cluster] {
		if set := t.mu.brokers[name]; set != nil {
			maps.Copy(topics, set.topics)
		}
	}
	t.mu.RUnlock()
	return &body.TopicList{TopicList: slices.Sorted(maps.Keys(topics))}
}

// systemTopics returns the names of clusters and brokers, which are topics too, and the address of one broker.
func (t *routeTable) systemTopics() *body.TopicList {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := make(map[string]bool)
	for cluster, brokers := range t.mu.clusters {
		names[cluster] = true
		maps.Copy(names, brokers)
	}
	list := &body.TopicList{TopicList: slices.Sorted(maps.Keys(names))}
	for _, name := range slices.Sorted(maps.Keys(t.mu.brokers)) {
		addrs := t.mu.brokers[name].addrs
		for _, id := range slices.Sorted(maps.Keys(addrs)) {
			list.BrokerAddr = addrs[id]
			return list
		}
	}
	return list
}

// clusterInfo returns a copy of who is where.
func (t *routeTable) clusterInfo() *body.ClusterInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	info := &body.ClusterInfo{BrokerAddrTable: make(map[string]body.BrokerData), ClusterAddrTable: make(map[string][]string)}
	for name, set := range t.mu.brokers {
		info.BrokerAddrTable[name] = body.BrokerData{BrokerAddrs: maps.Clone(set.addrs), BrokerName: name, Cluster: set.cluster}
	}
	for cluster, names := range t.mu.clusters {
		info.ClusterAddrTable[cluster] = slices.Sorted(maps.Keys(names))
	}
	return info
}
