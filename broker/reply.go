package broker

import (
	"net/netip"
	"strconv"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
	"rocketd/store/commitlog"
)

// Behaviour: SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2, as ReplyMessageProcessor of 4.9.8. A consumer that answers a
// message sends its reply like any message, to the cluster's reply topic. The broker hands it to the client that waits
// for it (REPLY_TO_CLIENT names it; it must have a producer here), waits for that client's answer, and then stores the
// reply, whatever the client said (storeReplyMessageEnable). What the replier is told is the outcome of the hand-over;
// a reply that is not stored is only logged. The official broker holds a thread until the client has answered.

// replyNotStored is the message id of the answer to a reply that is not stored, which clients must be able to read.
const replyNotStored = "0"

// replying is one reply in hand.
type replying struct {
	b    *Broker
	run  *sendRun // of its own: it lives as long as the client takes
	send *sending
}

// reply serves one reply.
func (b *Broker) reply(c *remoting.Call, req *header.SendMessageRequest) (*protocol.Command, error) {
	run := &sendRun{b: b, env: b.sendEnv()}
	r := &replying{b: b, run: run, send: run.next(c, req)}
	topic := b.admit(run, r.send, b.clock())
	if topic == nil {
		if run.created {
			b.topics.Saved(nil) // the topic stays
		}
		return nil, nil
	}
	m := &r.send.msg
	m.Topic, m.QueueId, m.Body, m.Properties = topic.TopicName, r.send.queueId, c.Command().Body, req.Properties
	b.fillMessage(r.send, m, topic)
	// 4.9.8 forgets the whole system flag, so that a compressed reply can't be read from its topic.
	m.SysFlag &= message.Compressed | message.CompressionBits

	to, ok := message.Property(req.Properties, message.PropertyMessageReplyToClient)
	if !ok {
		return r.pushed(protocol.SystemError, "reply message properties["+message.PropertyMessageReplyToClient+"] is null")
	}
	conn := b.producers.Find(to)
	if conn == nil {
		return r.pushed(protocol.SystemError, "push reply message fail, channel of <"+to+"> not found.")
	}
	if !b.pushed.takeOf(1, max(1, run.env.cfg.ReplyThreadPoolQueueCapacity)) {
		if r.send.created {
			b.topics.Saved(nil) // the topic stays
		}
		return nil, protocol.Errorf(protocol.SystemBusy, "[OVERLOAD]system busy, start flow control for a while")
	}
	conn.Go(r.push(), askPatience, func(got *protocol.Command, err error) {
		b.pushed.give()
		code, why := protocol.Success, ""
		if err != nil || got.Code != int32(protocol.Success) {
			code, why = protocol.SystemError, "push reply message to "+to+"fail." // compat: no space before fail
			b.log.Debug("reply not taken", "clientId", to, "err", err)
		}
		if answer, err := r.pushed(code, why); err != nil {
			c.ReplyError(err)
		} else if answer != nil {
			c.Reply(answer)
		}
	})
	return nil, nil
}

// push is the request that hands the reply to the client that waits for it.
func (r *replying) push() *protocol.Command {
	req, m := r.send.req, &r.send.msg
	now := r.b.clock().UnixMilli()
	text := message.AppendProperties(make([]byte, 0, len(m.Properties)+40), m.Properties, message.PropertyPushReplyTime)
	text = message.AppendProperty(text, message.PropertyPushReplyTime, strconv.FormatInt(now, 10))
	return protocol.NewRequest(protocol.PushReplyMessageToClient, &header.ReplyMessageRequest{
		ProducerGroup: req.ProducerGroup, Topic: req.Topic, DefaultTopic: req.DefaultTopic,
		DefaultTopicQueueNums: req.DefaultTopicQueueNums, QueueId: req.QueueId, SysFlag: req.SysFlag,
		BornTimestamp: req.BornTimestamp, Flag: req.Flag, Properties: string(text),
		ReconsumeTimes: req.ReconsumeTimes, UnitMode: req.UnitMode,
		BornHost: hostText(m.BornHost), StoreHost: hostText(m.StoreHost), StoreTimestamp: now,
	}, m.Body)
}

// hostText is "ip:port" as the official client parts it, at the last colon: an IPv6 address stands without brackets.
func hostText(a netip.AddrPort) string {
	return a.Addr().Unmap().String() + ":" + strconv.Itoa(int(a.Port()))
}

// pushed stores the reply when its hand-over has ended and makes the answer; nil, nil when that follows later.
func (r *replying) pushed(code protocol.ResponseCode, why string) (*protocol.Command, error) {
	s := r.send
	var until waits
	if s.created {
		until.add(r.b.topics.Saved)
	}
	filled := code == protocol.Success
	if filled {
		s.answer.MsgId, s.answer.QueueId, s.answer.QueueOffset = replyNotStored, s.queueId, 0
	}
	if r.run.env.cfg.StoreReplyMessageEnable && r.store(&until) {
		s.answer.MsgId, s.answer.QueueId = message.OffsetMsgId(r.b.storeHost(), s.put.PhyOffset), s.queueId
		s.answer.QueueOffset, filled = s.put.QueueOffset, true
	}
	var h any
	if filled {
		h = &s.answer
	}
	a := s.call.Answer(code, why, h)
	a.Fields = r.run.env.fields
	return until.answer(s.call, a)
}

// store stores the reply and adds to until that it is durable, where the replier waits for that; false: it could not be
// stored. Its text stays as the client wrote it, unless the reply is to be delayed.
func (r *replying) store(until *waits) bool {
	b, s, cfg := r.b, r.send, r.run.env.cfg
	m, t := &s.msg, sendText{}
	t.delay, _ = message.Property(m.Properties, message.PropertyDelayTimeLevel)
	t.wait, _ = message.Property(m.Properties, message.PropertyWaitStoreMsgOK)
	if level, err := strconv.ParseInt(t.delay, 10, 32); err == nil && level > 0 { // 4.9.8 ends in an exception if it is no number
		level := min(int(level), b.path.levels.Max())
		m.Properties = string(appendDelayedText(nil, m, m.Properties, cfg.BrokerClusterName, level, t))
		m.Topic, m.QueueId = topics.Schedule, int32(level-1)
	}
	s.put = store.Put{Message: m}
	err := error(commitlog.ErrTooLarge)
	if len(m.Properties) <= message.MaxPropertiesLength && len(m.Topic) <= message.MaxTopicLength {
		err = b.putOne(&s.put, b.clock())
	} else {
		b.stats.putFailed.Add(1)
	}
	if err != nil {
		b.log.Warn("reply not stored", "topic", s.req.Topic, "err", err)
		return false
	}
	counted := tally{b: b}
	counted.add(s)
	counted.flush()
	if t.waits() && b.store.SyncFlush() {
		until.add(func(done func(error)) {
			// A flush that comes late is no failure of a reply.
			b.store.WaitFlushed(s.put.End, compat.Millis(cfg.SyncFlushTimeout), func(error) { done(nil) })
		})
	}
	return true
}
