package commitlog

import (
	"fmt"
	"strconv"

	"rocketd/protocol/message"
)

// QueueName names a queue.
type QueueName struct {
	Topic   string
	QueueId int32
}

// encodeFurtherLocked encodes a message that enters further queues, alone in e: its text tells the offsets that it has there,
// which only the append lock gives. The text is written anew without WAIT, as MultiDispatch#wrapMultiDispatch of 4.9.8 does.
// An error is that of the Put, whose offsets have been given back.
func (l *Log) encodeFurtherLocked(e *encoder) error {
	p := e.units[0].put
	m := p.Message
	var list []byte
	for i, q := range p.Queues {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, l.takeFurtherLocked(p, i, q), 10)
	}
	text := make([]byte, 0, len(m.Properties)+len(list)+len(message.PropertyInnerMultiQueueOffset)+2)
	text = message.AppendProperties(text, m.Properties, message.PropertyInnerMultiQueueOffset, message.PropertyWaitStoreMsgOK)
	text = message.AppendProperty(text, message.PropertyInnerMultiQueueOffset, string(list))
	m.Properties = string(text)
	err := message.CheckSizes(m)
	limit := l.o.FileSize - message.BlankRecordSize
	if n := message.RecordSize(m); err == nil && int64(n) > limit {
		err = fmt.Errorf("record of %d bytes, at most %d", n, limit)
	}
	if err != nil {
		l.untakeFurtherLocked(p)
		return fmt.Errorf("commitlog: with the offsets of its further queues: %w", err)
	}
	e.buf = message.AppendRecord(e.buf[:0], m)
	e.units[0].to = len(e.buf)
	return nil
}

// ownPlace tells whether the i-th further queue of a Put has given its offset already: it is the message's own, or was named
// before.
func (p *Put) ownPlace(i int) bool {
	q := p.Queues[i]
	if q.Topic == p.Message.Topic && q.QueueId == p.Message.QueueId {
		return true
	}
	for _, earlier := range p.Queues[:i] {
		if earlier == q {
			return true
		}
	}
	return false
}

// takeFurtherLocked takes an offset of the i-th further queue. A record that enters no queue takes none, but names them.
func (l *Log) takeFurtherLocked(p *Put, i int, q QueueName) int64 {
	if !p.queued() {
		return l.o.QueueOffsets.Take(q.Topic, q.QueueId, 0)
	}
	if p.ownPlace(i) {
		next := l.o.QueueOffsets.Take(q.Topic, q.QueueId, 0)
		if q.Topic == p.Message.Topic && q.QueueId == p.Message.QueueId {
			return next // its own offset is taken later
		}
		return next - 1
	}
	return l.o.QueueOffsets.Take(q.Topic, q.QueueId, 1)
}

func (l *Log) untakeFurtherLocked(p *Put) {
	if len(p.Queues) == 0 || !p.queued() {
		return
	}
	for i, q := range p.Queues {
		if !p.ownPlace(i) {
			l.o.QueueOffsets.Untake(q.Topic, q.QueueId, 1)
		}
	}
}
