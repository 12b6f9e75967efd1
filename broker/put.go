package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

// faqSuffix is what 4.9.8 appends to remarks about things that do not exist (FAQUrl#suggestTodo).
const faqSuffix = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."

// answer answers the sends of a run whose Put is done, each when its conditions are met.
func (r *sendRun) answer(start time.Time) {
	b := r.b
	var flushTo int64
	r.left.Store(1)
	sync := b.store.SyncFlush()
	requests, stored, bytes := 0, 0, int64(0)
	t := tally{b: b}
	for _, s := range r.owed {
		if s.put.Err != nil {
			b.stats.putFailed.Add(1)
			code, remark := b.putError(s.put.Err)
			r.refuse(s, code, remark)
			continue
		}
		requests, stored, bytes = requests+1, stored+max(1, len(s.batch)), bytes+int64(s.put.Size)
		t.add(s)
		var left int32
		if s.flush = s.flush && sync; s.flush {
			flushTo = max(flushTo, s.put.End)
			left++
		}
		if s.created {
			left++
		}
		s.left.Store(left)
	}
	if stored > 0 {
		b.stats.put(requests, stored, bytes, b.clock().Sub(start))
		t.flush()
	}
	r.success(b.storeHost())
	if flushTo > 0 {
		r.left.Add(1)
		b.store.WaitFlushed(flushTo, compat.Millis(r.env.cfg.SyncFlushTimeout), func(err error) {
			for _, s := range r.owed {
				if s.put.Err == nil && s.flush {
					if err != nil {
						s.late.Store(true)
					}
					r.met(s)
				}
			}
			r.done()
		})
	}
	if r.created {
		r.left.Add(1)
		b.topics.Saved(func(err error) {
			// A failed write undoes neither topic nor message; the table tries again. But after a crash the topic
			// may be unknown, and its message not to be had: the client must not count on it.
			for _, s := range r.owed {
				if s.put.Err == nil && s.created {
					s.lost = err
					r.met(s)
				}
			}
			r.done()
		})
	}
	r.done()
}

// success fills in the headers of the stored sends' answers and gives those that need not wait.
func (r *sendRun) success(host netip.AddrPort) {
	b := r.b
	for _, s := range r.owed {
		if s.put.Err != nil {
			continue
		}
		if s.put.Batch == nil {
			r.ids = message.AppendOffsetMsgId(r.ids, host, s.put.PhyOffset)
		}
		for i, at := range s.put.PhyOffsets {
			if i > 0 {
				r.ids = append(r.ids, ',')
			}
			r.ids = message.AppendOffsetMsgId(r.ids, host, at)
		}
		s.idEnd = len(r.ids)
	}
	ids, from := string(r.ids), 0 // one string for all
	for _, s := range r.owed {
		if s.put.Err == nil {
			if s.due != 0 {
				s.answer.RecallHandle = b.recallHandle(s.realTopic, s.due, s.msg.Properties)
			}
			s.answer.MsgId, s.answer.QueueId, s.answer.QueueOffset = ids[from:s.idEnd], s.queueId, s.put.QueueOffset
			from = s.idEnd
		}
	}
	for _, s := range r.owed {
		if s.put.Err == nil && s.left.Load() == 0 {
			r.give(s)
		}
	}
}

// met counts one condition of a send as met and answers it when that was the last.
func (r *sendRun) met(s *sending) {
	if s.left.Add(-1) == 0 {
		r.give(s)
	}
}

// give gives the answer of a stored send.
func (r *sendRun) give(s *sending) {
	if s.lost != nil {
		r.refuse(s, protocol.SystemError, fmt.Sprintf("the topic[%s] is not durable: topics.json can't be written: %v", s.req.Topic, s.lost))
		return
	}
	code := protocol.Success
	if s.late.Load() {
		code = protocol.FlushDiskTimeout
	}
	a := s.call.Answer(code, "", &s.answer)
	a.Fields = r.env.fields
	s.call.Reply(a)
}

// done ends one of the uses of the run; the last recycles it.
func (r *sendRun) done() {
	if r.left.Add(-1) == 0 {
		r.release()
	}
}

// putOne stores a single message and counts it; since is when that began.
func (b *Broker) putOne(p *store.Put, since time.Time) error {
	b.store.Put([]*store.Put{p})
	if p.Err != nil {
		b.stats.putFailed.Add(1)
		return p.Err
	}
	b.stats.put(1, 1, int64(p.Size), b.clock().Sub(since))
	return nil
}

// putStatus is a failed put as PutMessageStatus of 4.9.8 names it.
func putStatus(err error) string {
	switch {
	case err == nil:
		return "PUT_OK"
	case errors.Is(err, commitlog.ErrTooLarge), errors.Is(err, store.ErrQueueName):
		return "MESSAGE_ILLEGAL"
	case errors.Is(err, commitlog.ErrCreate):
		return "CREATE_MAPEDFILE_FAILED"
	}
	if unavailable(err) != nil {
		return "SERVICE_NOT_AVAILABLE"
	}
	return "UNKNOWN_ERROR"
}

// unavailable is the reason why a store takes no writes that an error tells of, nil when it tells of something else.
func unavailable(err error) error {
	for _, e := range []error{commitlog.ErrClosed, commitlog.ErrFull, commitlog.ErrWriteStop, store.ErrDiskFull, store.ErrFiles} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}

// putError is what a producer is told of a failed put.
func (b *Broker) putError(err error) (protocol.ResponseCode, string) {
	switch status := putStatus(err); status {
	case "MESSAGE_ILLEGAL":
		return protocol.MessageIllegal, illegalRemark(b.config())
	case "SERVICE_NOT_AVAILABLE":
		return protocol.ServiceNotAvailable, b.notAvailable(err)
	case "CREATE_MAPEDFILE_FAILED":
		return protocol.SystemError, "create mapped file failed, server is busy or broken."
	default:
		return protocol.SystemError, status
	}
}

func illegalRemark(cfg *Config) string {
	return fmt.Sprintf("the message is illegal, maybe msg body or properties length not matched. msg body length limit %dB, msg properties length limit 32KB.",
		cfg.MaxMessageSize)
}

// notAvailable is the remark of a store that takes no writes, with the used shares of its disks: the official one, and
// behind it which of the reasons it is. Paths, which an error of the operating system has, are not for producers.
func (b *Broker) notAvailable(err error) string {
	cause := unavailable(err)
	if cause == store.ErrDiskFull {
		cause = err // with the limit
	}
	cfg := b.config()
	return fmt.Sprintf("service not available now. It may be caused by one of the following reasons: "+
		"the broker's disk is full [CL: %5.2f CQ: %5.2f INDEX: %5.2f], messages are put to the slave, message store has been shut down, etc. Cause: %v",
		b.diskUsed(cfg.CommitLogDir()), b.diskUsed(filepath.Join(cfg.StorePathRootDir, "consumequeue")), b.diskUsed(filepath.Join(cfg.StorePathRootDir, "index")), cause)
}

// topicText is TopicConfig#toString of 4.9.8, part of a remark.
func topicText(c *topics.Config) string {
	perm := []byte("---")
	if topics.Readable(c.Perm) {
		perm[0] = 'R'
	}
	if topics.Writeable(c.Perm) {
		perm[1] = 'W'
	}
	if topics.Inherited(c.Perm) {
		perm[2] = 'X'
	}
	return fmt.Sprintf("TopicConfig [topicName=%s, readQueueNums=%d, writeQueueNums=%d, perm=%s, topicFilterType=%s, topicSysFlag=%d, order=%t]",
		c.TopicName, c.ReadQueueNums, c.WriteQueueNums, perm, c.TopicFilterType, c.TopicSysFlag, c.Order)
}
