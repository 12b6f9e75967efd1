package timer

import (
	"strconv"

	"rocketd/protocol/message"
	"rocketd/store"
)

// roll stores a run of the messages that wait in log files which are to go (Release) again, behind all others; more is true
// when there may be others. TimerMessageStore of 5.3.3 does so by the clock; here it is done when there is need. Their first
// copies count as gone from then on: low passes them. Files go when that is in the file of the places.
func (t *Timer) roll() (more bool, err error) {
	wish := t.wish.Load()
	if wish <= t.released.Load() {
		return false, nil
	}
	t.puts = t.puts[:0]
	low, used, size, met := t.low, 0, 0, false
	for low < t.read && low-t.low < readCount && used < t.runSize() && size < runBytes {
		e, ok := t.o.Store.Entry(message.TopicTimer, queueId, low)
		if ok && !e.IsBlank() && e.PhyOffset >= wish {
			met = true
			break
		}
		if !ok {
			first, _ := t.bounds()
			if low >= first {
				return false, nil // not readable now
			}
			low++
			continue
		}
		n, err := t.rollEntry(low, e, used)
		if err != nil {
			return false, err
		}
		if n > 0 {
			used++
			size += n
		}
		low++
	}
	if used > 0 {
		t.o.Store.PutAgain(t.puts)
		for i, p := range t.puts {
			if p.Err != nil {
				// Those before it are stored; low must not pass the others.
				t.passed(t.batch[i].key.offset())
				t.run1 = true
				return false, p.Err
			}
			if !t.looked(t.batch[i].key) { // its copy is counted when it is read
				t.total--
			}
		}
		t.run1, t.failed = false, 0
	}
	t.passed(low)
	_, end := t.bounds()
	if met || low == t.read && t.read == end {
		t.release(wish)
		return false, nil
	}
	return true, nil
}

// rollEntry makes the copy of an entry's message if that waits: delivery number i. It returns its size.
func (t *Timer) rollEntry(offset int64, e store.Entry, i int) (size int, err error) {
	code, err := t.code(offset, e)
	if err != nil || code == 0 || !t.waits(keyOf(code, offset)) {
		return 0, err
	}
	m, err := t.o.Store.Message(e.PhyOffset)
	if err != nil {
		if store.IsGone(err) {
			t.o.Log.Error("timer message is gone", "offset", offset, "phyOffset", e.PhyOffset, "err", err)
			return 0, nil
		}
		return 0, err
	}
	times := 0
	if text, ok := message.Property(m.Properties, message.PropertyTimerRollTimes); ok {
		times, _ = strconv.Atoi(text)
	}
	v := t.next(i)
	v.key, v.msg = keyOf(code, offset), m
	v.msg.Properties = message.SetProperty(m.Properties, message.PropertyTimerRollTimes, strconv.Itoa(times+1))
	v.msg.QueueOffset, v.msg.PhyOffset = 0, 0
	v.put = store.Put{Message: &v.msg, Copy: true}
	t.puts = append(t.puts, &v.put)
	return int(e.Size), nil
}

// looked tells whether an entry is a recall that has had its turn, and waits only so that a restart reads it again.
func (t *Timer) looked(k key) bool {
	if !k.recall() {
		return false
	}
	if !t.front.less(k) && !t.late[k.offset()] {
		return true
	}
	for _, held := range t.recalls {
		if held == k {
			return true
		}
	}
	return false
}

// passed moves low: nothing before it waits any more.
func (t *Timer) passed(low int64) {
	t.low = max(t.low, low)
	for offset := range t.late {
		if offset < t.low {
			delete(t.late, offset)
		}
	}
}
