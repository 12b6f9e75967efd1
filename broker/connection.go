package broker

import (
	"rocketd/broker/clients"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// consumerConnections (203) lists a consumer group's members and subscriptions.
func (b *Broker) consumerConnections(c *remoting.Call, req *header.GetConsumerConnectionListRequest) (*protocol.Command, error) {
	g := b.consumers.Group(req.ConsumerGroup)
	if g == nil {
		return nil, protocol.Errorf(protocol.ConsumerNotOnline, "the consumer group[%s] not online", req.ConsumerGroup)
	}
	subscriptions := make(map[string]body.SubscriptionData)
	for topic, s := range g.Subscriptions() {
		subscriptions[topic] = *s
	}
	return withBody(c.Success(nil), &body.ConsumerConnection{
		ConnectionSet:     connections(g.Members()),
		SubscriptionTable: subscriptions,
		ConsumeType:       g.ConsumeType(),
		MessageModel:      g.MessageModel(),
		ConsumeFromWhere:  g.ConsumeFromWhere(),
	})
}

// producerConnections (204) lists a producer group's members.
func (b *Broker) producerConnections(c *remoting.Call, req *header.GetProducerConnectionListRequest) (*protocol.Command, error) {
	members := b.producers.Members(req.ProducerGroup)
	if members == nil {
		return nil, protocol.Errorf(protocol.SystemError, "the producer group[%s] not exist", req.ProducerGroup)
	}
	return withBody(c.Success(nil), &body.ProducerConnection{ConnectionSet: connections(members)})
}

func connections(members []clients.Member) []body.Connection {
	set := make([]body.Connection, 0, len(members))
	for _, m := range members {
		set = append(set, body.Connection{
			ClientId: m.ClientId, ClientAddr: m.Conn.RemoteAddr().String(), Language: m.Language.String(), Version: m.Version,
		})
	}
	return set
}

// allProducers (328) lists every producer group's members. compat: the address has the leading slash of Java's
// socket addresses.
func (b *Broker) allProducers(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	info := &body.ProducerTableInfo{Data: make(map[string][]body.ProducerInfo)}
	for group, members := range b.producers.All() {
		for _, m := range members {
			info.Data[group] = append(info.Data[group], body.ProducerInfo{
				ClientId: m.ClientId, RemoteIP: "/" + m.Conn.RemoteAddr().String(), Language: m.Language.String(),
				Version: m.Version, LastUpdateTimestamp: m.LastUpdate.UnixMilli(),
			})
		}
	}
	return withBody(c.Success(nil), info)
}
