package namesrv

import (
	"bytes"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// largeRegistration is from how many bytes on a registration is large. A few bytes of it become a struct of a hundred and
// more, so that one of 16 MiB takes several hundred MiB while it is read; as many as there are processors are read at once.
const largeRegistration = 1 << 20

// registerBroker takes a broker's registration. Behaviour: RouteInfoManager#registerBroker of 4.9.8.
func (s *Server) registerBroker(c *remoting.Call, req *header.RegisterBrokerRequest) (*protocol.Command, error) {
	cmd := c.Command()
	if crc := req.BodyCrc32.Value; crc != 0 && crc != int32(crc32.ChecksumIEEE(cmd.Body)&0x7fffffff) {
		s.log.Warn("registration refused: crc32 does not match", "broker", req.BrokerName, "addr", req.BrokerAddr, "peer", c.Conn().RemoteAddr())
		return c.Answer(protocol.SystemError, "crc32 not match", &header.RegisterBrokerResponse{}), nil
	}
	if len(cmd.Body) > largeRegistration {
		// The connection waits for its turn, and nobody else: brokers with very many topics come all at once after a start.
		s.turns <- struct{}{}
		defer func() { <-s.turns }()
	}
	b, err := decodeRegistration(cmd, req.Compressed)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "Failed to decode RegisterBrokerBody: %v", err)
	}
	conn := c.Conn()
	result, err := s.routes.register(req, b, conn)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "%v", err)
	}
	if !conn.Active() { // it closed meanwhile, and the event may have come too early
		s.routes.linkClosed(conn, "closed while registering")
	}
	answer := c.Success(&result)
	answer.Body = s.kv.list(orderTopicConfig)
	return answer, nil
}

// decodeRegistration reads the body by the version of the broker; without a body there are no topics.
func decodeRegistration(cmd *protocol.Command, compressed bool) (*body.RegisterBrokerBody, error) {
	if cmd.Body == nil {
		return &body.RegisterBrokerBody{FilterServerList: []string{}}, nil
	}
	if string(bytes.TrimSpace(cmd.Body)) == "null" {
		return nil, errors.New("it is null")
	}
	if cmd.Version >= protocol.V3_0_11 { // those before it register with the table of topics alone
		return body.DecodeRegister(cmd.Body, compressed)
	}
	b := new(body.RegisterBrokerBody)
	return b, compat.Unmarshal(cmd.Body, &b.TopicConfigSerializeWrapper)
}

// register puts a broker into the table. Only a master whose data version is news changes topics, and topics that
// it does not name stay: a registration may carry just those that changed.
func (t *routeTable) register(req *header.RegisterBrokerRequest, b *body.RegisterBrokerBody, l link) (result header.RegisterBrokerResponse, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.roomLocked(req, b); err != nil {
		t.log.Warn("registration refused", "error", err, "topics", len(b.TopicConfigSerializeWrapper.TopicConfigTable))
		return result, err
	}
	// The table's own: the request's names keep its whole header.
	name, addr, id := strings.Clone(req.BrokerName), strings.Clone(req.BrokerAddr), req.BrokerId
	cluster, haAddr := strings.Clone(req.ClusterName), strings.Clone(req.HaServerAddr)
	set := t.setLocked(cluster, name)
	known := t.setAddrLocked(name, set, id, addr)
	prev := t.mu.live[addr]
	if prev != nil && prev.name != name { // a broker that was renamed: an address has one name
		t.dropAddrLocked(prev.name, addr)
		prev = nil
	}
	wrapper := &b.TopicConfigSerializeWrapper
	if id == 0 && (!known || prev == nil || prev.version != wrapper.DataVersion) {
		t.setTopicsLocked(name, set, wrapper.TopicConfigTable)
	}
	now := &registration{name: name, last: t.clock(), version: wrapper.DataVersion, link: l, haAddr: haAddr, filters: b.FilterServerList}
	if prev == nil {
		t.log.Info("broker registered", "broker", name, "addr", addr, "haServerAddr", haAddr)
	} else if b.FilterServerList == nil {
		now.filters = prev.filters
	}
	t.setLiveLocked(addr, now)
	if prev != nil && !slices.Equal(prev.filters, now.filters) || prev == nil && len(now.filters) > 0 {
		t.changedLocked(set)
	}
	if id != 0 {
		if masterAddr, known := set.addrs[0]; known {
			if master := t.mu.live[masterAddr]; master != nil {
				result = header.RegisterBrokerResponse{HaServerAddr: master.haAddr, MasterAddr: masterAddr}
			}
		}
	}
	return result, nil
}

// setLocked is the broker set of a name, made at need, and notes that it is in a cluster.
func (t *routeTable) setLocked(cluster, name string) *brokerSet {
	names := t.mu.clusters[cluster]
	if names == nil {
		names = make(map[string]bool)
		t.mu.clusters[cluster] = names
	}
	if !names[name] {
		t.mu.bytes += clusterSize(cluster, name)
	}
	names[name] = true
	set := t.mu.brokers[name]
	if set == nil {
		set = &brokerSet{cluster: cluster, addrs: make(map[int64]string), topics: make(map[string]bool)}
		t.mu.brokers[name] = set
	}
	return set
}

// setAddrLocked makes an address that of a broker id and tells whether the id had one before.
func (t *routeTable) setAddrLocked(name string, set *brokerSet, id int64, addr string) (known bool) {
	for other, a := range set.addrs { // a slave has become master: an address has one id
		if a == addr && other != id {
			delete(set.addrs, other)
			t.changedLocked(set)
		}
	}
	old, known := set.addrs[id]
	if known && old == addr { // an empty address is one too, and has to be in the set to be removed with it
		return true
	}
	set.addrs[id] = addr
	t.changedLocked(set)
	if other := t.mu.live[old]; known && other != nil && other.name == name {
		t.log.Warn("two brokers of one name and id at different addresses: clients see the one that registered last; "+
			"give one another brokerName (or brokerId), unless this is a broker that came back at a new address",
			"cluster", set.cluster, "broker", name, "brokerId", id, "before", old, "now", addr)
	}
	t.log.Info("broker address changed", "cluster", set.cluster, "broker", name, "brokerId", id, "from", old, "to", addr)
	return known
}

func (t *routeTable) setTopicsLocked(name string, set *brokerSet, topics map[string]*body.TopicConfig) {
	changed := 0
	for _, c := range topics {
		if c == nil || c.TopicName == "" {
			continue
		}
		q := body.QueueData{BrokerName: name, Perm: c.Perm, ReadQueueNums: c.ReadQueueNums, WriteQueueNums: c.WriteQueueNums, TopicSysFlag: c.TopicSysFlag}
		if t.setQueuesLocked(name, set, c.TopicName, q) {
			changed++
		}
	}
	if changed > 0 {
		t.log.Info("topics registered", "broker", name, "topics", len(topics), "changed", changed)
	}
}

// unregisterBroker removes a broker that says good-bye.
func (s *Server) unregisterBroker(c *remoting.Call, req *header.UnRegisterBrokerRequest) (*protocol.Command, error) {
	s.routes.unregister(req.BrokerName, req.BrokerAddr)
	return c.Success(nil), nil
}

// unregister removes an address from its broker set. 4.9.8 removes by broker id whatever address the id has by now,
// so a late good-bye takes the successor with it; nobody can want that.
func (t *routeTable) unregister(name, addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.mu.live[addr]; r != nil && r.name == name {
		t.dropLiveLocked(addr)
	}
	removed := t.dropAddrLocked(name, addr)
	t.log.Info("broker unregistered", "broker", name, "addr", addr, "removed", removed)
}

// queryDataVersion answers whether a broker's table has changed since it registered last. An unchanged one counts
// as a sign of life.
func (s *Server) queryDataVersion(c *remoting.Call, req *header.QueryDataVersionRequest) (*protocol.Command, error) {
	if c.Command().Body == nil {
		return nil, protocol.Errorf(protocol.SystemError, "QUERY_DATA_VERSION without a DataVersion in its body")
	}
	var version body.DataVersion
	if err := compat.Unmarshal(c.Command().Body, &version); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "Failed to decode DataVersion: %v", err)
	}
	mine, known := s.routes.touch(req.BrokerAddr, version)
	answer := c.Success(&header.QueryDataVersionResponse{Changed: !known || mine != version})
	if known {
		var err error
		if answer.Body, err = compat.Marshal(mine); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// touch returns the data version that a broker registered with. When it is the given one the broker lives on.
func (t *routeTable) touch(addr string, version body.DataVersion) (body.DataVersion, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.mu.live[addr]
	if r == nil {
		return body.DataVersion{}, false
	}
	if r.version == version {
		r.last = t.clock()
	}
	return r.version, true
}

// wipeWritePerm takes the write permission of a broker from all of its topics.
func (s *Server) wipeWritePerm(c *remoting.Call, req *header.WipeWritePermOfBrokerRequest) (*protocol.Command, error) {
	n := s.routes.setWritePerm(req.BrokerName, false)
	s.log.Info("write permission wiped", "broker", req.BrokerName, "peer", c.Conn().RemoteAddr(), "topics", n)
	return c.Success(&header.WipeWritePermOfBrokerResponse{WipeTopicCount: n}), nil
}

// addWritePerm gives all topics of a broker the permission to read and write, whatever they had.
func (s *Server) addWritePerm(c *remoting.Call, req *header.AddWritePermOfBrokerRequest) (*protocol.Command, error) {
	n := s.routes.setWritePerm(req.BrokerName, true)
	s.log.Info("write permission added", "broker", req.BrokerName, "peer", c.Conn().RemoteAddr(), "topics", n)
	return c.Success(&header.AddWritePermOfBrokerResponse{AddTopicCount: n}), nil
}

// setWritePerm returns the number of topics. A wiped permission stays so until it is added again or the broker is
// gone; in 4.9.8 any change of any topic at the broker gives it back.
func (t *routeTable) setWritePerm(name string, write bool) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.mu.brokers[name]
	if set == nil {
		return 0
	}
	set.drained = !write
	for topic := range set.topics {
		r := t.mu.topics[topic]
		q := r.queues[name]
		q.Perm &^= permWrite
		if write {
			q.Perm = permRead | permWrite
		}
		r.queues[name] = q
		r.changedLocked()
	}
	return int32(len(set.topics))
}

// deleteTopic forgets a topic, at all brokers or at those of one cluster.
func (s *Server) deleteTopic(c *remoting.Call, req *header.DeleteTopicFromNamesrvRequest) (*protocol.Command, error) {
	n := s.routes.deleteTopic(req.Topic, req.ClusterName)
	s.log.Info("topic deleted", "topic", req.Topic, "cluster", req.ClusterName, "brokers", n, "peer", c.Conn().RemoteAddr())
	return c.Success(nil), nil
}

// deleteTopic returns at how many brokers the topic was. cluster "" means all.
func (t *routeTable) deleteTopic(topic, cluster string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.mu.topics[topic]
	if r == nil {
		return 0
	}
	n := 0
	for _, name := range slices.Collect(maps.Keys(r.queues)) {
		if cluster == "" || t.mu.clusters[cluster][name] {
			t.dropQueuesLocked(name, topic)
			n++
		}
	}
	return n
}
