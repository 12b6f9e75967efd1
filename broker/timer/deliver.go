package timer

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

// delivery is one entry that is due: with a copy to be stored, or with none. Reused.
type delivery struct {
	key  key
	copy bool
	held bool // a recall that is in Timer.recalls
	put  store.Put
	msg  message.Message
	text []byte // of the copy's properties
}

// next is delivery number i of a run.
func (t *Timer) next(i int) *delivery {
	if i == len(t.batch) {
		t.batch = append(t.batch, new(delivery))
	}
	v := t.batch[i]
	v.copy, v.held = false, false
	return v
}

func (t *Timer) runSize() int {
	if t.run1 {
		return 1
	}
	return runCount
}

// deliver delivers what is due, at most one run, and returns how long to wait before the next.
func (t *Timer) deliver() time.Duration {
	used, size, wait := 0, 0, again
	for used < t.runSize() && size < runBytes {
		k, ok := t.pending.first()
		if !ok {
			wait = forever
			break
		}
		if k.offset() < t.low { // stored again
			t.pending.pop()
			continue
		}
		if wait = t.countdown(k.out); wait != again {
			break
		}
		if k.out > t.cleared {
			wait = t.clear()
			break
		}
		v := t.next(used)
		v.key = k
		n, err := t.prepare(v)
		if err != nil {
			wait = t.retry("timer message can't be read", err)
			break
		}
		t.pending.pop()
		used++
		size += n
	}
	if !t.store(t.batch[:used]) {
		return retryAfter
	}
	return wait
}

// clear waits for what was in the log when something fell due to be in the queue and read: a recall that was answered before may
// be among it. again: the next turn reads it.
func (t *Timer) clear() time.Duration {
	b := &t.barrier
	if b.log == 0 {
		b.log, b.at = t.o.Store.ConfirmOffset(), t.o.Clock().UnixMilli()
	}
	for n := 0; t.o.Store.DispatchedOffset() < b.log; n++ {
		if n == dispatchYields {
			return dispatchPause
		}
		runtime.Gosched() // mostly the dispatcher needs some microseconds, and a pause lasts a ms
	}
	t.cleared, b.log = b.at, 0
	return again
}

// prepare reads the message of an entry that is due and makes its copy, unless there is to be none; it returns how many bytes it read.
func (t *Timer) prepare(v *delivery) (size int, err error) {
	offset := v.key.offset()
	e, ok := t.o.Store.Entry(message.TopicTimer, queueId, offset)
	if !ok {
		if first, end := t.bounds(); offset < first || offset >= end {
			t.o.Log.Error("timer message is gone: its log file was deleted", "offset", offset, "minOffset", first, "due", v.key.out)
			return 0, nil
		}
		return 0, fmt.Errorf("no entry at offset %d", offset)
	}
	m, err := t.o.Store.Message(e.PhyOffset)
	switch {
	case err != nil && store.IsGone(err):
		t.o.Log.Error("timer message is gone", "offset", offset, "phyOffset", e.PhyOffset, "due", v.key.out, "err", err)
		return 0, nil
	case err != nil:
		return 0, err
	case v.key.recall():
		recalled, _ := message.Property(m.Properties, message.PropertyTimerDelUniqKey)
		if topic, _ := message.Property(m.Properties, message.PropertyRealTopic); !strings.HasPrefix(recalled, message.RecallKey(topic, "")) {
			t.o.Log.Warn("a recall of another topic's message does not count", "offset", offset, "phyOffset", e.PhyOffset, "topic", topic, "recalled", fmt.Sprintf("%.300q", recalled))
			return int(e.Size), nil
		}
		if old, ok := t.recalls[recalled]; ok && old != v.key {
			delete(t.late, old.offset())
		}
		t.recalls[recalled], v.held = v.key, true
		return int(e.Size), nil
	}
	topic, queue, ok := message.RealPlace(m.Properties)
	if !ok || message.IsNotAllowedSendTopic(topic) {
		t.o.Log.Error("timer message discarded: it has no topic and queue that it may be sent to", "offset", offset, "phyOffset", e.PhyOffset,
			"properties", fmt.Sprintf("%.400q", m.Properties))
		return int(e.Size), nil
	}
	if len(t.recalls) > 0 {
		uniqKey, _ := message.Property(m.Properties, message.PropertyUniqKey)
		if _, ok := t.recalls[message.RecallKey(topic, uniqKey)]; ok {
			return int(e.Size), nil
		}
	}
	t.fillCopy(v, m, topic, queue)
	return int(e.Size), nil
}

// fillCopy makes the copy of a message that is due: its properties text as it waited, with two times behind it, as
// TimerMessageStore#convert of 5.3.3 leaves it.
func (t *Timer) fillCopy(v *delivery, m message.Message, topic string, queue int32) {
	v.text = message.AppendProperties(v.text[:0], m.Properties, message.PropertyTimerEnqueueMs, message.PropertyTimerDequeueMs)
	v.text = message.AppendProperty(v.text, message.PropertyTimerEnqueueMs, strconv.FormatInt(m.StoreTimestamp, 10))
	v.text = message.AppendProperty(v.text, message.PropertyTimerDequeueMs, strconv.FormatInt(t.o.Clock().UnixMilli(), 10))
	v.msg = m
	v.msg.Properties = string(v.text)
	v.msg.Topic, v.msg.QueueId = topic, queue
	v.msg.PreparedTransactionOffset, v.msg.QueueOffset, v.msg.PhyOffset = 0, 0, 0
	v.put, v.copy = store.Put{Message: &v.msg, Copy: true}, true
}

// store stores the copies of a run with one call and moves the places behind those that are. False: one could not be stored;
// it and those behind it wait again.
func (t *Timer) store(run []*delivery) bool {
	if len(run) == 0 {
		return true
	}
	t.puts = t.puts[:0]
	for _, v := range run {
		if v.copy {
			t.puts = append(t.puts, &v.put)
		}
	}
	if len(t.puts) > 0 {
		t.o.Store.Put(t.puts)
	}
	failed := -1
	for i, v := range run {
		switch {
		case failed >= 0:
			t.pending.add(v.key)
			continue
		case !v.copy:
		case errors.Is(v.put.Err, commitlog.ErrTooLarge):
			// No later try can end otherwise, and others may not wait for it.
			t.o.Log.Error("timer message that can't be stored put aside", "err", v.put.Err, "offset", v.key.offset(),
				"topic", v.msg.Topic, "bodySize", len(v.msg.Body))
		case v.put.Err != nil:
			failed = i
			t.retry("timer message can't be delivered", v.put.Err)
			t.pending.add(v.key)
			continue
		default:
			t.standing.delivered.Add(1)
			if t.o.Delivered != nil {
				t.o.Delivered(&v.put)
			}
		}
		t.total--
		if !v.held || !t.late[v.key.offset()] { // else a restart must read it again as long as it counts
			t.places.done(v.key)
		}
	}
	for _, v := range run {
		v.msg, v.put = message.Message{}, store.Put{} // keep no bodies alive
	}
	clear(t.puts)
	if t.run1 = failed >= 0; t.run1 {
		return false
	}
	t.failed = 0
	t.forgetRecalls()
	return true
}

// forgetRecalls forgets the recalls of what can't be due any more.
func (t *Timer) forgetRecalls() {
	if len(t.recalls) == 0 {
		return
	}
	first, ok := t.pending.first()
	for recalled, k := range t.recalls {
		if !ok && t.pending.whole() || ok && k.out < first.out {
			delete(t.recalls, recalled)
			delete(t.late, k.offset())
		}
	}
}
