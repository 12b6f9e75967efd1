package broker

import (
	"errors"
	"sync/atomic"
	"time"

	"rocketd/broker/clients"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/remoting/acl"
)

// Behaviour: requests of administrators that consumers answer, as AdminBrokerProcessor#callConsumer and Broker2Client
// of 4.9.8. The official broker keeps an administrator's thread for each until the consumer has answered; here the
// answer is written when it comes, and no lane is held.

// How long a consumer may take (Broker2Client of 4.9.8).
const (
	askPatience    = 10 * time.Second // for a request that is handed on
	statusPatience = 5 * time.Second  // for its offsets
)

// maxAsked bounds the questions that wait for consumers at once, over all administrators. 4.9.8 has 16 threads for
// them.
const maxAsked = 1024

// consumerCalls counts the questions that wait for clients.
type consumerCalls struct{ open atomic.Int64 }

// take counts n more; false: more than maxAsked would wait.
func (a *consumerCalls) take(n int) bool { return a.takeOf(n, maxAsked) }

// takeOf counts n more; false: more than limit would wait.
func (a *consumerCalls) takeOf(n, limit int) bool {
	if a.open.Add(int64(n)) > int64(limit) {
		a.open.Add(-int64(n))
		return false
	}
	return true
}

// give takes one off.
func (a *consumerCalls) give() { a.open.Add(-1) }

// tooManyAsked is the answer when no more questions may wait.
func tooManyAsked() error {
	return protocol.Errorf(protocol.SystemBusy, "[OVERLOAD]system busy, %d requests wait for consumers", maxAsked)
}

// consumerRunningInfo (307) asks a consumer how it is; the request goes on as it is, with jstackEnable if it has it.
func (b *Broker) consumerRunningInfo(c *remoting.Call, req *header.GetConsumerRunningInfoRequest) (*protocol.Command, error) {
	ask := protocol.NewRequest(protocol.GetConsumerRunningInfo, nil, c.Command().Body)
	ask.Fields = acl.Unsigned(c.Command().Fields)
	return b.askConsumer(c, req.ConsumerGroup, req.ClientId, ask)
}

// consumeMessageDirectly (309) has a consumer consume one stored message, named by its offset message id, and answers
// what came of it. The message is looked up first, as in 4.9.8.
func (b *Broker) consumeMessageDirectly(c *remoting.Call, req *header.ConsumeMessageDirectlyResultRequest) (*protocol.Command, error) {
	_, phyOffset, err := message.ParseOffsetMsgId(req.MsgId)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "msgId must be an offset message id: %v", err)
	}
	record, err := b.store.Record(phyOffset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "can not find message by the offset, %d", phyOffset)
	}
	ask := protocol.NewRequest(protocol.ConsumeMessageDirectly, nil, record[:record.Size()])
	for _, f := range acl.Unsigned(c.Command().Fields) {
		if f.Key != "brokerName" {
			ask.Fields = append(ask.Fields, f)
		}
	}
	ask.SetField("brokerName", b.config().BrokerName)
	return b.askConsumer(c, req.ConsumerGroup, req.ClientId, ask)
}

// askConsumer hands a request on to one member of a group, and its answer back.
func (b *Broker) askConsumer(c *remoting.Call, group, clientId string, ask *protocol.Command) (*protocol.Command, error) {
	var to clients.Member
	found := false
	if g := b.consumers.Group(group); g != nil {
		to, found = g.Find(clientId)
	}
	if !found {
		if _, named := c.Command().Field("clientId"); !named {
			clientId = "null" // as Java writes it
		}
		return nil, protocol.Errorf(protocol.SystemError, "The Consumer <%s> <%s> not online", group, clientId)
	}
	if to.Version < protocol.V3_1_8_SNAPSHOT {
		return nil, protocol.Errorf(protocol.SystemError,
			"The Consumer <%s> Version <%s> too low to finish, please upgrade it to V3_1_8_SNAPSHOT",
			clientId, protocol.OldVersionName(to.Version))
	}
	if !b.asked.take(1) {
		return nil, tooManyAsked()
	}
	to.Conn.Go(ask, askPatience, func(got *protocol.Command, err error) {
		b.asked.give()
		switch {
		case err == nil:
			c.Reply(relayed(c, got))
		case errors.Is(err, remoting.ErrTimeout):
			c.ReplyError(protocol.Errorf(protocol.ConsumeMsgTimeout,
				"consumer <%s> <%s> Timeout: wait response on the channel <%s> timeout, %d(ms)",
				group, clientId, to.Conn.RemoteAddr(), askPatience.Milliseconds()))
		default:
			// 4.9.8 waits its 10 s out when the consumer goes meanwhile.
			c.ReplyError(protocol.Errorf(protocol.SystemError, "invoke consumer <%s> <%s> Exception: send request to <%s> failed: %v",
				group, clientId, to.Conn.RemoteAddr(), err))
		}
	})
	return nil, nil
}

// relayed is a consumer's answer as an answer to c: code, remark, ext fields and body as they are.
func relayed(c *remoting.Call, got *protocol.Command) *protocol.Command {
	answer := c.Answer(protocol.ResponseCode(got.Code), got.Remark, nil)
	answer.Fields, answer.Body = got.Fields, got.Body
	if got.HasFields && len(got.Fields) == 0 {
		answer.Header = &header.Empty{}
	}
	return answer
}
