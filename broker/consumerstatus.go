package broker

import (
	"strings"
	"sync"

	"rocketd/broker/clients"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// consumerStatus (223) asks the members of a group, or the one of a client id, where they stand in a topic (221), and
// answers with what came by client id. A member that does not answer is left out, as in Broker2Client#getConsumeStatus
// of 4.9.8. That asks one member after the other, and looks whether one is too old when it is its turn; here all are
// looked at first, then asked at once. A group without members is an exception there.
func (b *Broker) consumerStatus(c *remoting.Call, req *header.GetConsumerStatusRequest) (*protocol.Command, error) {
	var members []clients.Member
	group := b.consumers.Group(req.Group)
	if group != nil {
		members = group.Members()
	}
	if len(members) == 0 {
		return nil, protocol.Errorf(protocol.SystemError, "No Any Consumer online in the consumer group: [%s]", req.Group)
	}
	if strings.TrimSpace(req.ClientAddr) != "" {
		one, ok := group.Find(req.ClientAddr)
		if members = members[:0]; ok {
			members = append(members, one)
		}
	}
	for _, m := range members {
		if err := mayAskOffsets(m.Version); err != nil {
			return nil, err
		}
	}
	g := &gathered{call: c, left: len(members), table: make(map[string]map[body.MessageQueue]int64, len(members))}
	if len(members) == 0 {
		g.answer()
		return nil, nil
	}
	if !b.asked.take(len(members)) {
		return nil, tooManyAsked()
	}
	ask := protocol.NewRequest(protocol.GetConsumerStatusFromClient, &header.GetConsumerStatusRequest{Topic: req.Topic, Group: req.Group}, nil)
	for _, m := range members {
		m.Conn.Go(ask, statusPatience, func(got *protocol.Command, err error) {
			b.asked.give()
			status := new(body.GetConsumerStatusBody)
			if err == nil && got.Code == int32(protocol.Success) && len(got.Body) > 0 {
				err = compat.Unmarshal(got.Body, status)
			} else {
				status = nil
			}
			if err != nil {
				b.log.Error("no status of a consumer", "topic", req.Topic, "group", req.Group, "clientId", m.ClientId, "err", err)
				status = nil
			}
			g.add(m.ClientId, status)
		})
	}
	return nil, nil
}

// gathered collects the members' answers; whoever brings the last one answers the call.
type gathered struct {
	call *remoting.Call

	mu    sync.Mutex
	left  int // members that have not answered yet
	table map[string]map[body.MessageQueue]int64
}

// add notes a member's answer, nil for none.
func (g *gathered) add(clientId string, status *body.GetConsumerStatusBody) {
	g.mu.Lock()
	if status != nil {
		if status.MessageQueueTable == nil {
			status.MessageQueueTable = map[body.MessageQueue]int64{}
		}
		g.table[clientId] = status.MessageQueueTable
	}
	g.left--
	last := g.left == 0
	g.mu.Unlock()
	if last {
		g.answer()
	}
}

// answer writes what has come; nobody changes it any more.
func (g *gathered) answer() {
	answer, err := withBody(g.call.Answer(protocol.Success, unsetRemark, nil), &body.GetConsumerStatusBody{
		ConsumerTable: g.table, MessageQueueTable: map[body.MessageQueue]int64{},
	})
	if err != nil {
		g.call.ReplyError(err)
		return
	}
	g.call.Reply(answer)
}
