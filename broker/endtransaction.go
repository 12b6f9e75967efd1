package broker

import (
	"errors"
	"strconv"

	"rocketd/broker/topics"
	"rocketd/broker/transaction"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/store"
)

// Behaviour: END_TRANSACTION (37) as EndTransactionProcessor of 4.9.8: its checks in its order with its remarks. A
// commit stores the message for its consumers and then the op message that resolves the half message; a rollback only
// the op. A transaction that has been ended, by whichever copy of its half message, is not ended again. After a kill between the two the half message looks open, and its producer is asked: it may be delivered
// twice, never lost. Neither waits for the disk. Clients send the request oneway. All ends of a connection that came
// together are appended with two calls.

// ending is one end of a transaction in hand.
type ending struct {
	call  *remoting.Call
	req   *header.EndTransactionRequest
	half  message.Message // its queue offset and place are those it was sent with
	final message.Message // what a commit stores
	op    message.Message
	put   store.Put

	waited bool // for the disk
}

const (
	halfNotFound = "Find prepared transaction message failed"
	// coldHalf is how many bytes behind the log's end a half message is read on a goroutine of its own.
	coldHalf = coldBehind
)

// endTransactions serves neighbouring ends of one connection.
func (b *Broker) endTransactions(calls []*remoting.Call, reqs []*header.EndTransactionRequest) {
	warm := make([]*ending, 0, len(calls))
	for i, c := range calls {
		e := &ending{call: c, req: reqs[i]}
		if b.store.MaxPhyOffset()-e.req.CommitLogOffset > coldHalf {
			if b.path.cold.run(func() { b.endCold(e) }) {
				continue
			}
		}
		warm = append(warm, e)
	}
	b.endRun(warm)
}

// endCold carries out one whose half message may have to come from the disk, on a goroutine of its own.
func (b *Broker) endCold(e *ending) {
	defer b.recovered(e.call, "", e.req.ProducerGroup)
	b.endRun([]*ending{e})
}

// endRun carries out ends and answers them.
func (b *Broker) endRun(run []*ending) {
	again, failed := b.endFirsts(run)
	for _, e := range again {
		if failed { // perhaps the one before it
			b.endRun([]*ending{e})
			continue
		}
		b.log.Debug("transaction ended already", "queueOffset", e.half.QueueOffset, "fromCheck", e.req.FromTransactionCheck)
		e.succeed()
	}
}

// endFirsts does so with those whose transaction nobody has ended. It returns the others, and whether one failed.
func (b *Broker) endFirsts(run []*ending) (again []*ending, failed bool) {
	start := b.clock()
	var finals, ops []*store.Put
	var committed, ended []*ending
	for _, e := range run {
		if !b.prepareEnd(e) {
			continue
		}
		if checks := b.path.checks; checks != nil && !checks.Begin(e.half.QueueOffset) {
			again = append(again, e)
			continue
		}
		if e.req.CommitOrRollback == message.TransactionCommit {
			e.put = store.Put{Message: &e.final, Copy: true}
			finals, committed = append(finals, &e.put), append(committed, e)
		} else {
			ended = append(ended, e)
		}
	}
	if len(finals) > 0 {
		b.store.Put(finals)
	}
	stored, size := 0, int64(0)
	for _, e := range committed {
		if e.put.Err != nil {
			b.stats.putFailed.Add(1)
			b.undoEnd(e)
			failed = true
			code, remark := b.endError(e.put.Err)
			e.call.Reply(e.call.Answer(code, remark, nil))
			continue
		}
		stored, size = stored+1, size+int64(e.put.Size)
		ended = append(ended, e)
	}
	if len(ended) == 0 {
		return again, failed
	}
	for _, e := range ended {
		e.op = transaction.OpMessage(e.half.QueueId, e.half.QueueOffset, b.storeHost(), start)
		e.put = store.Put{Message: &e.op, Copy: true}
		ops = append(ops, &e.put)
	}
	b.store.Put(ops)
	for _, e := range ended {
		if e.put.Err != nil { // the check will ask the producer; the answer is a success, as the official one
			b.stats.putFailed.Add(1)
			b.undoEnd(e)
			b.log.Warn("transaction op not stored: the half message looks open", "err", e.put.Err, "queueOffset", e.half.QueueOffset)
		} else {
			stored, size = stored+1, size+int64(e.put.Size)
		}
		e.succeed()
	}
	if stored > 0 {
		b.stats.put(stored, stored, size, b.clock().Sub(start))
	}
	return again, failed
}

// undoEnd has one that could not be carried out ended by whoever comes next.
func (b *Broker) undoEnd(e *ending) {
	if checks := b.path.checks; checks != nil {
		checks.Undo(e.half.QueueOffset)
	}
}

// succeed answers one that is carried out, with the official remark.
func (e *ending) succeed() {
	remark := ""
	if e.req.CommitOrRollback == message.TransactionRollback {
		remark = unsetRemark
	}
	e.call.Reply(e.call.Answer(protocol.Success, remark, nil))
}

// prepareEnd checks an end and makes what it stores; false: it has been answered, or nothing is due.
func (b *Broker) prepareEnd(e *ending) bool {
	refuse := func(code protocol.ResponseCode, remark string) bool {
		e.call.Reply(e.call.Answer(code, remark, nil))
		return false
	}
	if b.config().BrokerRole == store.Slave {
		return refuse(protocol.SlaveNotAvailable, unsetRemark)
	}
	switch e.req.CommitOrRollback {
	case message.TransactionCommit, message.TransactionRollback:
	case message.TransactionNot: // the producer does not know; no answer
		e.call.Drop()
		return false
	default: // an exception in 4.9.8
		return refuse(protocol.SystemError, "commitOrRollback field wrong")
	}
	m, err := b.store.Message(e.req.CommitLogOffset)
	if err != nil && b.awaitHalf(e) {
		return false
	}
	if err != nil || m.Topic != topics.TransHalf { // 4.9.8 takes any message for a half message
		return refuse(protocol.SystemError, halfNotFound)
	}
	if err := b.may(e.call, message.OwnTopic(m.Topic, m.Properties), acl.Pub); err != nil { // compat: officially anybody may end it
		e.call.ReplyError(err)
		return false
	}
	e.half = m
	switch group, ok := m.Property(message.PropertyProducerGroup); {
	case !ok || group != e.req.ProducerGroup:
		return refuse(protocol.SystemError, "The producer group wrong")
	case m.QueueOffset != e.req.TranStateTableOffset:
		return refuse(protocol.SystemError, "The transaction state table offset wrong")
	case m.PhyOffset != e.req.CommitLogOffset:
		return refuse(protocol.SystemError, "The commit log offset wrong")
	}
	if e.req.CommitOrRollback == message.TransactionCommit {
		if err := b.prepareFinal(e); errors.Is(err, errTimer) {
			return refuse(protocol.MessageIllegal, timerRemark(b.config()))
		} else if err != nil {
			return refuse(protocol.MessageIllegal, endIllegal(b.config()))
		}
	}
	return true
}

// awaitHalf has an end carried out later whose half message is appended but, with sync flush, not durable yet: its send
// did not wait for that (WAIT=false). False: it is not so.
func (b *Broker) awaitHalf(e *ending) bool {
	end := b.store.MaxPhyOffset()
	if e.waited || !b.store.SyncFlush() || e.req.CommitLogOffset < 0 || e.req.CommitLogOffset >= end {
		return false
	}
	e.waited = true
	b.store.WaitFlushed(end, compat.Millis(b.config().SyncFlushTimeout), func(error) {
		if !b.path.cold.run(func() { b.endCold(e) }) { // too many wait; the check will ask
			e.call.Reply(e.call.Answer(protocol.SystemError, halfNotFound, nil))
		}
	})
	return true
}

// prepareFinal makes the message that a commit stores: the half message in its real topic and queue, its properties
// text as it is, but for one with a delay level or a time, which waits for that first. An error: it can be nowhere.
func (b *Broker) prepareFinal(e *ending) error {
	topic, queueId, ok := message.RealPlace(e.half.Properties)
	if !ok || topics.SendForbidden(topic) {
		return errFinal
	}
	m := &e.final
	*m = e.half
	m.Topic, m.QueueId = topic, queueId
	m.SysFlag = message.ResetTransactionValue(m.SysFlag, message.TransactionCommit)
	m.PreparedTransactionOffset = e.req.CommitLogOffset
	delay, _ := m.Property(message.PropertyDelayTimeLevel)
	level := int64(0)
	if delay != "" {
		var err error
		if level, err = strconv.ParseInt(delay, 10, 32); err != nil {
			return errFinal
		}
	}
	timed := b.path.timer.Load() != nil
	if n := min(int(level), b.path.levels.Max()); n > 0 {
		text := message.RemoveProperty(m.Properties, message.PropertyTransactionPrepared)
		if timed {
			text = withoutTimer(text) // the level counts
		}
		m.Properties = string(appendDelayedText(nil, m, text, b.config().BrokerClusterName, n, sendText{delay: delay}))
		m.Topic, m.QueueId = topics.Schedule, int32(n-1)
	} else if timed {
		return b.putOffFinal(m)
	}
	return nil
}

// errFinal: the message of a transaction can be nowhere.
var errFinal = errors.New("no place for the message of a transaction")

// putOffFinal makes a message that is committed one that waits until it is due, if it has to: the delay counts from the
// commit on, as in 5.3.3.
func (b *Broker) putOffFinal(m *message.Message) error {
	t := timerTextOf(m.Properties)
	if !t.set() {
		return nil
	}
	due, err := t.due(b.clock(), b.config())
	if err != nil || due == 0 {
		return err
	}
	b.ownTimerTopic()
	text := message.RemoveProperty(m.Properties, message.PropertyTransactionPrepared)
	m.Properties = string(appendTimerText(nil, m, text, b.config().BrokerClusterName, due))
	if len(m.Properties) > message.MaxPropertiesLength-timerRoom {
		return errFinal
	}
	m.Topic, m.QueueId = topics.Timer, 0
	return nil
}

// endError is what a producer is told of a final message that could not be stored.
func (b *Broker) endError(err error) (protocol.ResponseCode, string) {
	switch status := putStatus(err); status {
	case "MESSAGE_ILLEGAL":
		return protocol.MessageIllegal, endIllegal(b.config())
	case "SERVICE_NOT_AVAILABLE":
		return protocol.ServiceNotAvailable, "Service not available now."
	case "CREATE_MAPEDFILE_FAILED":
		return protocol.SystemError, "Create mapped file failed."
	default:
		return protocol.SystemError, status
	}
}

func endIllegal(cfg *Config) string {
	return "The message is illegal, maybe msg body or properties length not matched. msg body length limit " +
		strconv.Itoa(cfg.MaxMessageSize) + "B, msg properties length limit 32KB."
}

// resumeCheck (323) has a half message that was given up checked again: a copy of it, with no check done, goes to the
// half messages. As AdminBrokerProcessor#resumeCheckHalfMessage of 4.9.8, which takes any message; but the body stays
// compressed where it is.
func (b *Broker) resumeCheck(c *remoting.Call, req *header.ResumeCheckHalfMessageRequest) (*protocol.Command, error) {
	failed := protocol.Errorf(protocol.SystemError, "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC.")
	_, at, err := message.ParseOffsetMsgId(req.MsgId)
	if err != nil {
		return nil, failed
	}
	m, err := b.store.Message(at)
	if err != nil {
		return nil, failed
	}
	m.Topic, m.QueueId = topics.TransHalf, 0
	m.Properties = message.SetProperty(m.Properties, message.PropertyTransactionCheckTimes, "0")
	m.PreparedTransactionOffset, m.QueueOffset, m.PhyOffset = 0, 0, 0
	if err := b.putOne(&store.Put{Message: &m, Copy: true}, b.clock()); err != nil {
		b.log.Warn("half message not put back", "err", err, "offsetMsgId", req.MsgId)
		return nil, protocol.Errorf(protocol.SystemError, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
	}
	return c.Success(nil), nil
}
