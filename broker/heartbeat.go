package broker

import (
	"errors"

	"rocketd/broker/clients"
	"rocketd/broker/filter"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// heartBeat (34) notes a client's groups. A consumer group that is new here is created, and its retry topic with
// it; the answer then waits for their files. Members are told of a change before the answer goes out.
//
// As ClientManageProcessor#heartBeat of 4.9.8.
func (b *Broker) heartBeat(c *remoting.Call, _ *header.Empty) (answer *protocol.Command, err error) {
	hb := new(body.HeartbeatData)
	if err := b.decodeBody(c, hb); err != nil {
		return nil, err
	}
	if n, most := max(len(hb.ConsumerDataSet), len(hb.ProducerDataSet)), b.config().MaxClientGroups; most > 0 && n > most {
		b.memory.TooMany()
		return nil, tooMuch(clients.ErrGroups)
	}
	cmd := c.Command()
	client := clients.Client{Conn: c.Conn(), ClientId: hb.ClientID, Language: cmd.Language, Version: cmd.Version, AccessKey: b.account(c)}
	var saved waits
	defer func() {
		if err != nil {
			saved.unheard()
		}
	}()
	for i := range hb.ConsumerDataSet {
		d := &hb.ConsumerDataSet[i]
		for j := range d.SubscriptionDataSet {
			d.SubscriptionDataSet[j].CodeSet = filter.SortCodes(d.SubscriptionDataSet[j].CodeSet)
		}
		group, _ := b.groups.FindOrCreate(d.GroupName)
		if b.groups.Unsaved(d.GroupName) { // made by this heartbeat, or by one that still waits or has failed
			saved.add(b.groups.Saved)
		}
		notify := true
		if group == nil {
			b.unknownGroup(d.GroupName, hb.ClientID, c.Conn())
		} else {
			notify = group.NotifyConsumerIdsChangedEnable
			var sysFlag int32
			if d.UnitMode {
				sysFlag = topics.FlagUnitSub
			}
			retry := topics.RetryTopic(d.GroupName)
			b.topics.CreateBySendBack(retry, group.RetryQueueNums, topics.PermRead|topics.PermWrite, sysFlag)
			if b.topics.Unsaved(retry) {
				saved.add(b.topics.Saved)
			}
		}
		changed, err := b.consumers.Register(client, d)
		if err != nil {
			return nil, tooMuch(err)
		}
		b.filters.Register(d.GroupName, d.SubscriptionDataSet)
		if changed && notify {
			b.notifyGroup(d.GroupName)
		}
	}
	for _, d := range hb.ProducerDataSet {
		if err := b.producers.Register(client, d.GroupName); err != nil {
			return nil, tooMuch(err)
		}
	}
	if !c.Conn().Active() {
		// The connection ended meanwhile, and its end may have been dealt with before it was registered.
		b.connClosed(c.Conn())
	}
	return saved.answer(c, c.Success(nil))
}

// tooMuch is the answer to a heartbeat that would have us keep too much; what went before in it stays.
func tooMuch(err error) error {
	if errors.Is(err, clients.ErrGroups) {
		return protocol.Errorf(protocol.SystemError, "the client has more groups than maxClientGroups allows")
	}
	return protocol.Errorf(protocol.SystemError, "the groups and subscriptions of all clients take more than maxClientBytes allows")
}

// unregisterClient (35) takes a client out of a producer and a consumer group.
func (b *Broker) unregisterClient(c *remoting.Call, req *header.UnregisterClientRequest) (*protocol.Command, error) {
	if req.ProducerGroup != "" {
		b.producers.Unregister(c.Conn(), req.ProducerGroup)
	}
	if req.ConsumerGroup != "" {
		notify := true
		if group := b.groups.Find(req.ConsumerGroup); group != nil {
			notify = group.NotifyConsumerIdsChangedEnable
		}
		left := b.consumers.Unregister(c.Conn(), req.ConsumerGroup)
		b.leftGroup(req.ConsumerGroup)
		if left && notify {
			b.notifyGroup(req.ConsumerGroup)
		}
	}
	return c.Success(&header.Empty{}), nil
}

// checkClientConfig (46) says whether a subscription's expression can be served; the remark of one that cannot be
// compiled says where it is wrong. A stock Java consumer asks when it starts.
func (b *Broker) checkClientConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	req := new(body.CheckClientRequestBody)
	if err := b.decodeBody(c, req); err != nil {
		return nil, err
	}
	s := req.SubscriptionData
	if s == nil || filter.IsTag(s.ExpressionType) {
		return c.Success(nil), nil
	}
	if !b.config().EnablePropertyFilter {
		r := noSuchFilter(s.ExpressionType)
		return nil, protocol.Errorf(r.code, "%s", r.remark)
	}
	if _, err := b.compile(s.ExpressionType, s.SubString); err != nil {
		return nil, protocol.Errorf(protocol.SubscriptionParseFailed, "%s", err.Error())
	}
	return c.Success(nil), nil
}

// consumerList (38) names the clients of a consumer group: what each client shares out the queues by.
func (b *Broker) consumerList(c *remoting.Call, req *header.GetConsumerListByGroupRequest) (*protocol.Command, error) {
	if g := b.consumers.Group(req.ConsumerGroup); g != nil {
		if ids := g.ClientIds(); len(ids) > 0 {
			return withBody(c.Success(&header.Empty{}), &body.GetConsumerListByGroupResponseBody{ConsumerIdList: ids})
		}
	}
	// The official answer has its header class, so no error without one.
	return c.Answer(protocol.SystemError, "no consumer for this group, "+req.ConsumerGroup, &header.Empty{}), nil
}

// notifyGroup tells the members of a group (40) that it has changed; they share out the queues anew.
func (b *Broker) notifyGroup(group string) {
	g := b.consumers.Group(group)
	if g == nil || !b.config().NotifyConsumerIdsChangedEnable {
		return
	}
	req := protocol.NewRequest(protocol.NotifyConsumerIdsChanged, &header.NotifyConsumerIdsChangedRequest{ConsumerGroup: group}, nil)
	for _, conn := range g.Conns() {
		if err := conn.Oneway(req); err != nil {
			b.log.Debug("consumer not notified", "group", group, "client", conn.RemoteAddr(), "err", err)
		}
	}
}

// leftGroup lets the expressions of a group die that has no member any more.
func (b *Broker) leftGroup(group string) {
	if b.consumers.Group(group) == nil {
		b.filters.Unregister(group)
	}
}

// connClosed is told by the servers that a connection has ended.
func (b *Broker) connClosed(conn *remoting.Conn) {
	b.producers.OnClose(conn)
	for _, group := range b.consumers.OnClose(conn) {
		b.leftGroup(group)
		b.notifyGroup(group)
	}
	b.pathClosed(conn)
}

// scanClients closes the connections of clients that have not been heard of for too long.
func (b *Broker) scanClients() {
	for _, conn := range b.producers.Scan() {
		conn.Close()
	}
	expired, left := b.consumers.Scan()
	for _, conn := range expired {
		conn.Close()
	}
	for _, group := range left {
		b.leftGroup(group)
		b.notifyGroup(group)
	}
}

// withBody puts v as JSON into an answer.
func withBody(answer *protocol.Command, v any) (*protocol.Command, error) {
	data, err := compat.Marshal(v)
	if err != nil {
		return nil, err
	}
	answer.Body = data
	return answer, nil
}
