// Package offsets is the broker's table of consumer offsets: where each group stands in each queue, and its
// file config/consumerOffset.json. The rules are those of ConsumerOffsetManager of 4.9.8.
package offsets

import (
	"log/slog"
	"maps"
	"net/netip"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"rocketd/compat"
	"rocketd/protocol/message"
)

// Options is what a table needs.
type Options struct {
	Path string // consumerOffset.json, with Lmq lmqConsumerOffset.json
	// Lmq is enableLmq: groups that begin with %LMQ% have one offset a topic, whatever queue they name, in a part of the file of
	// their own (LmqConsumerOffsetManager of 4.9.8).
	Lmq bool
	// Older is read when there is no file at Path, "" = none: the offsets of before enableLmq. 4.9.8 begins without any.
	Older string
	Limit func() int // maxConsumerOffsets, as it is now; 0 or nil = no bound
	Files compat.FileSystem
	Log   *slog.Logger
}

// Table holds the offsets; it is safe for concurrent use. Commit and Query of a known queue allocate nothing.
type Table struct {
	o     Options
	saver *compat.Saver
	dirty atomic.Bool // something was committed since the last Save

	count   atomic.Int64 // offsets
	refused atomic.Int64

	mu struct { // taken before a queues' lock
		sync.RWMutex
		m map[key]*queues
	}
}

type key struct{ topic, group string }

// queues are the offsets of one group in one topic.
type queues struct {
	sync.Mutex
	m map[int32]int64
}

// Client is who commits; its address is only asked for when something is to be logged.
type Client interface{ RemoteAddr() netip.AddrPort }

// Open makes the table with what the file holds.
func Open(o Options) (*Table, error) {
	t := &Table{o: o}
	t.mu.m = make(map[key]*queues)
	if err := t.load(); err != nil {
		return nil, err
	}
	t.saver = compat.NewSaver(o.Files, o.Path, t.encode, o.Log)
	return t, nil
}

// Commit notes that group stands at offset in a queue. A smaller offset than before is taken too, as 4.9.8
// does. Without group or topic nothing is noted: 4.9.8 keeps it under the name "null", where nobody finds it.
// by is for the log.
func (t *Table) Commit(by Client, group, topic string, queueId int32, offset int64) {
	t.commit(by, group, topic, queueId, offset, false)
}

// Take is Commit for what a client says of itself, about any queue: false, there is no room for a further offset.
func (t *Table) Take(by Client, group, topic string, queueId int32, offset int64) bool {
	return t.commit(by, group, topic, queueId, offset, true)
}

func (t *Table) commit(by Client, group, topic string, queueId int32, offset int64, bounded bool) bool {
	if group == "" || topic == "" {
		return true
	}
	if t.light(group) {
		queueId = 0
	}
	q := t.of(group, topic, bounded)
	if q == nil {
		return false
	}
	q.Lock()
	old, known := q.m[queueId]
	if !known && bounded && !t.room() {
		q.Unlock()
		return false
	}
	q.m[queueId] = offset
	q.Unlock()
	if !known {
		t.count.Add(1)
	}
	if !t.dirty.Load() { // mostly true already: spares the other cores the write
		t.dirty.Store(true)
	}
	if known && offset < old {
		t.o.Log.Warn("consumer offset went back", "group", group, "topic", topic, "queueId", queueId,
			"offset", offset, "before", old, "client", by.RemoteAddr())
	}
	return true
}

// maxName is the most bytes of a group's or topic's name. Clients allow 255 and 127 characters; the official broker has no bound.
const maxName = 1024

// room tells, and counts, whether a further offset may be kept.
func (t *Table) room() bool {
	if t.o.Limit == nil {
		return true
	}
	if limit := t.o.Limit(); limit > 0 && t.count.Load() >= int64(limit) {
		t.refused.Add(1)
		return false
	}
	return true
}

// Refused is how many offsets were not kept since the start because there were too many, or the names too long.
func (t *Table) Refused() int64 { return t.refused.Load() }

// of returns the offsets of a group in a topic, creating them; nil when it is bounded and there is no room. The names may point into a
// request: the table keeps copies.
func (t *Table) of(group, topic string, bounded bool) *queues {
	k := key{topic, group}
	t.mu.RLock()
	q := t.mu.m[k]
	t.mu.RUnlock()
	if q != nil {
		return q
	}
	if bounded && (len(group) > maxName || len(topic) > maxName) {
		t.refused.Add(1)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q = t.mu.m[k]; q == nil {
		if bounded && !t.room() {
			return nil
		}
		q = &queues{m: make(map[int32]int64, 4)}
		t.mu.m[key{strings.Clone(topic), strings.Clone(group)}] = q
	}
	return q
}

// Query returns where group stands in a queue, and whether that is known. A negative offset counts as unknown,
// as everywhere in 4.9.8.
func (t *Table) Query(group, topic string, queueId int32) (int64, bool) {
	if t.light(group) {
		queueId = 0
	}
	t.mu.RLock()
	q := t.mu.m[key{topic, group}]
	t.mu.RUnlock()
	if q == nil {
		return -1, false
	}
	q.Lock()
	offset, ok := q.m[queueId]
	q.Unlock()
	if !ok || offset < 0 {
		return -1, false
	}
	return offset, true
}

// light tells whether a group is one of light message queues.
func (t *Table) light(group string) bool {
	return t.o.Lmq && strings.HasPrefix(group, message.LmqTopicPrefix)
}

// Offsets are all offsets of a group in a topic, by queue; nil when there are none.
func (t *Table) Offsets(group, topic string) map[int32]int64 {
	t.mu.RLock()
	q := t.mu.m[key{topic, group}]
	t.mu.RUnlock()
	if q == nil {
		return nil
	}
	q.Lock()
	defer q.Unlock()
	return maps.Clone(q.m)
}

// Topics are the topics in which a group has an offset, sorted. Groups of light message queues are in none of these lists, as
// in 4.9.8: there may be very many of them.
func (t *Table) Topics(group string) []string {
	return t.list(func(k key) (string, bool) { return k.topic, k.group == group && !t.light(group) })
}

// Groups are the groups that have an offset in a topic, sorted.
func (t *Table) Groups(topic string) []string {
	return t.list(func(k key) (string, bool) { return k.group, k.topic == topic && !t.light(k.group) })
}

// ByGroup are the topics in which each group has an offset, sorted.
func (t *Table) ByGroup() map[string][]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[string][]string)
	for k := range t.mu.m {
		if !t.light(k.group) {
			all[k.group] = append(all[k.group], k.topic)
		}
	}
	for _, topics := range all {
		sort.Strings(topics)
	}
	return all
}

// Clone makes dest's offsets in a topic exactly those of src, unless src has none.
func (t *Table) Clone(src, dest, topic string) {
	from := t.Offsets(src, topic)
	if from == nil || dest == "" {
		return
	}
	q := t.of(dest, topic, true)
	if q == nil {
		return
	}
	q.Lock()
	t.count.Add(int64(len(from) - len(q.m)))
	q.m = from
	q.Unlock()
	t.dirty.Store(true)
}

func (t *Table) list(of func(key) (string, bool)) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for k := range t.mu.m {
		if name, ok := of(k); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// RemoveGroup forgets all offsets of a group.
func (t *Table) RemoveGroup(group string) {
	var of []string
	t.mu.Lock()
	for k, q := range t.mu.m {
		if k.group == group {
			q.Lock()
			t.count.Add(-int64(len(q.m)))
			q.Unlock()
			delete(t.mu.m, k)
			of = append(of, k.topic)
		}
	}
	t.mu.Unlock()
	t.dirty.Store(true)
	for _, topic := range of {
		t.o.Log.Info("consumer offsets removed", "group", group, "topic", topic)
	}
}
