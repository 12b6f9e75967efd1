package pop

import (
	"strings"

	"rocketd/compat"
)

// consumerOrderInfo.json is the file of ConsumerOrderInfoManager of 5.3.3: by `topic@group` and queue id what is under way
// there. Of the offsets all but the first are told as distances to it.

type orderFile struct {
	Table map[string]map[int32]*orderEntry
}

type orderEntry struct {
	AttemptId string          `json:"a,omitempty"`
	Acked     int64           `json:"cm"`
	Invisible int64           `json:"i"`
	Consumed  int64           `json:"l"`
	Offsets   []int64         `json:"o"`
	Counts    map[int64]int32 `json:"oc,omitempty"`
	Visible   map[int64]int64 `json:"ot,omitempty"`
	PopTime   int64
}

// maxOrdered is how many messages a batch may have: they are told apart by bits.
const maxOrdered = 64

// DecodeOrders reads consumerOrderInfo.json into the table. To be called before Start.
func (c *Checkpoints) DecodeOrders(data []byte) error {
	f := new(orderFile)
	if err := compat.Unmarshal(data, f); err != nil {
		return err
	}
	for name, queues := range f.Table {
		topic, group, ok := strings.Cut(name, "@")
		for queueId, e := range queues {
			if !ok || e == nil || len(e.Offsets) == 0 || len(e.Offsets) > maxOrdered {
				continue
			}
			o := &order{popTime: e.PopTime, invisible: e.Invisible, consumed: e.Consumed, attemptId: e.AttemptId,
				acked: uint64(e.Acked), counts: e.Counts, visible: e.Visible}
			for i, offset := range e.Offsets {
				if i > 0 {
					offset += e.Offsets[0]
				}
				o.offsets = append(o.offsets, offset)
			}
			c.queue(Key{topic, group, queueId}).order = o
		}
	}
	return nil
}

// orderSpan is how long a batch stays in the table that nobody acknowledges or pops again (CLEAN_SPAN_FROM_LAST of
// 5.3.3), ms.
const orderSpan = 24 * 3600 * 1000

// EncodeOrders is the text of consumerOrderInfo.json. Batches that are acknowledged whole or forgotten are left out.
func (c *Checkpoints) EncodeOrders() ([]byte, error) {
	now := c.now()
	f := &orderFile{Table: make(map[string]map[int32]*orderEntry)}
	c.queues.RLock()
	c.mu.Lock()
	for k, q := range c.queues.m {
		o := q.order
		if o == nil {
			continue
		}
		if now-o.consumed > orderSpan {
			q.order = nil
			continue
		}
		e := &orderEntry{AttemptId: o.attemptId, Acked: int64(o.acked), Invisible: o.invisible, Consumed: o.consumed,
			Counts: cloned(o.counts), Visible: cloned(o.visible), PopTime: o.popTime}
		for i, offset := range o.offsets {
			if i > 0 {
				offset -= o.offsets[0]
			}
			e.Offsets = append(e.Offsets, offset)
		}
		name := k.Topic + "@" + k.Group
		if f.Table[name] == nil {
			f.Table[name] = make(map[int32]*orderEntry)
		}
		f.Table[name][k.QueueId] = e
	}
	c.mu.Unlock()
	c.queues.RUnlock()
	return compat.MarshalPretty(f)
}

func cloned[V int32 | int64](m map[int64]V) map[int64]V {
	if len(m) == 0 {
		return nil
	}
	n := make(map[int64]V, len(m))
	for k, v := range m {
		n[k] = v
	}
	return n
}

// OrdersChanged tells whether EncodeOrders has changed since it was asked last.
func (c *Checkpoints) OrdersChanged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.mu.dirty
	c.mu.dirty = false
	return changed
}
