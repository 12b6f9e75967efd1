// Package stats counts what goes through a broker, by topic, by consumer group and by queue of the delayed messages,
// in the windows and under the names and keys of BrokerStatsManager of 4.9.8: what VIEW_BROKER_STATS_DATA tells.
//
// Who counts only adds to atomic values, after a look into a map under a read lock; nothing is allocated. Once in ten
// seconds Sample takes the growth of every item; that and readers share Table.mu, which nobody who counts takes.
//
// Memory is bounded twice: by limits on the number of items (what is beyond is not counted, and said once), and by
// histories that are given up when nothing was counted for a day: an item at rest takes some 100 bytes with its key,
// one that was busy all day about 1 KiB.
package stats

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of items.
const (
	topicLimit = 1 << 18
	groupLimit = 1 << 18 // pairs of topic and group
	queueLimit = 1 << 19 // queues of such pairs
)

// Names of the statistics (Stats of 4.9.8) that have items. The official broker knows more, for which nothing is ever
// counted: GROUP_GET_FROM_DISK_*, BROKER_GET_FROM_DISK_*, COMMERCIAL_*; and GROUP_GET_FALL_*, which it only logs.
const (
	TopicPutNums    = "TOPIC_PUT_NUMS"    // key: topic
	TopicPutSize    = "TOPIC_PUT_SIZE"    // key: topic
	GroupGetNums    = "GROUP_GET_NUMS"    // key: topic@group
	GroupGetSize    = "GROUP_GET_SIZE"    // key: topic@group
	GroupGetLatency = "GROUP_GET_LATENCY" // key: queueId@topic@group; ms
	SendBackNums    = "SNDBCK_PUT_NUMS"   // key: topic@group
	BrokerPutNums   = "BROKER_PUT_NUMS"   // key: cluster
	BrokerGetNums   = "BROKER_GET_NUMS"   // key: cluster
	QueuePutNums    = "QUEUE_PUT_NUMS"    // key: topic@queueId
	QueuePutSize    = "QUEUE_PUT_SIZE"    // key: topic@queueId
	QueueGetNums    = "QUEUE_GET_NUMS"    // key: topic@queueId@group
	QueueGetSize    = "QUEUE_GET_SIZE"    // key: topic@queueId@group
)

type topicGroup struct{ topic, group string }

type queueGroup struct {
	topic, group string
	queueId      int32
}

func ownTopicGroup(k topicGroup) topicGroup {
	return topicGroup{strings.Clone(k.topic), strings.Clone(k.group)}
}

func ownQueueGroup(k queueGroup) queueGroup {
	return queueGroup{strings.Clone(k.topic), strings.Clone(k.group), k.queueId}
}

// Table holds all statistics of a broker.
type Table struct {
	cluster  string
	log      *slog.Logger
	fullOnce sync.Once

	brokerPut, brokerGet Item

	topicPut Set[string]
	groupGet Set[topicGroup]
	sendBack Set[topicGroup]
	latency  Set[queueGroup]
	queuePut Set[queueGroup] // group ""
	queueGet Set[queueGroup]

	mu     sync.Mutex // guards clocks and the history of every item
	clocks [windows]clock
}

// New makes a table whose ticks count from start. cluster is the key of the statistics of the whole broker.
func New(cluster string, start time.Time, log *slog.Logger) *Table {
	t := &Table{cluster: cluster, log: log}
	t.topicPut.init(topicLimit, t.full)
	t.groupGet.init(groupLimit, t.full)
	t.sendBack.init(groupLimit, t.full)
	t.latency.init(queueLimit, t.full)
	t.queuePut.init(queueLimit, t.full)
	t.queueGet.init(queueLimit, t.full)
	for w := range t.clocks {
		t.clocks[w] = newClock(w, start)
	}
	return t
}

func (t *Table) full() {
	t.fullOnce.Do(func() {
		t.log.Warn("too many statistics: those of further topics and groups are not kept", "topics", topicLimit, "groups", groupLimit)
	})
}

// Put counts calls that stored messages of a topic with so many bytes of records.
func (t *Table) Put(topic string, calls, messages, bytes int64) {
	t.topicPut.item(topic, strings.Clone).Add(calls, messages, bytes)
	t.brokerPut.Add(0, messages, 0) // compat: 4.9.8 counts no calls here, so its average is 0
}

// PutBack counts a copy of a message that went to a topic because a consumer sent it back. compat: 4.9.8 does not
// count it for the whole broker.
func (t *Table) PutBack(topic string, bytes int64) {
	t.topicPut.item(topic, strings.Clone).Add(1, 1, bytes)
}

// QueuePut counts a call that stored messages in one queue. The official broker does so for delayed messages only.
func (t *Table) QueuePut(topic string, queueId int32, messages, bytes int64) {
	t.queuePut.item(queueGroup{topic, "", queueId}, ownQueueGroup).Add(1, messages, bytes)
}

// SendBack counts a message of a topic that a group has sent back.
func (t *Table) SendBack(group, topic string) {
	t.sendBack.item(topicGroup{topic, group}, ownTopicGroup).Add(1, 1, 0)
}

// Get counts a pull that found messages.
func (t *Table) Get(group, topic string, messages, bytes int64) {
	t.groupGet.item(topicGroup{topic, group}, ownTopicGroup).Add(1, messages, bytes)
	t.brokerGet.Add(0, messages, 0)
}

// Latency counts how long a pull that found messages took.
func (t *Table) Latency(group, topic string, queueId int32, took time.Duration) {
	t.latency.item(queueGroup{topic, group, queueId}, ownQueueGroup).Add(1, took.Milliseconds(), 0)
}

// Behind notes how many bytes of the log are behind what a group has got last of a queue (the official
// GROUP_GET_FALL_SIZE, which no request shows).
func (t *Table) Behind(group, topic string, queueId int32, bytes int64) {
	if i := t.latency.find(queueGroup{topic, group, queueId}); i != nil {
		i.behind.Store(bytes)
	}
}

// TooFarBehind returns the groups that are more than so many bytes behind in some queue, with the most of each.
func (t *Table) TooFarBehind(bytes int64) map[string]int64 {
	found := make(map[string]int64)
	t.latency.eachKey(func(k queueGroup, i *Item) {
		if n := i.behind.Load(); n > bytes {
			found[k.group] = max(found[k.group], n)
		}
	})
	return found
}

// Delivered counts a delayed message that went from its level's queue to its real topic.
func (t *Table) Delivered(group, from string, queueId int32, to string, bytes int64) {
	t.queueGet.item(queueGroup{from, group, queueId}, ownQueueGroup).Add(1, 1, bytes)
	t.groupGet.item(topicGroup{from, group}, ownTopicGroup).Add(1, 1, bytes)
	t.Put(to, 1, 1, bytes)
}

// TopicDeleted forgets a topic.
func (t *Table) TopicDeleted(topic string) {
	t.topicPut.remove(func(k string) bool { return k == topic })
	ofPair := func(k topicGroup) bool { return k.topic == topic }
	ofQueue := func(k queueGroup) bool { return k.topic == topic }
	t.groupGet.remove(ofPair)
	t.sendBack.remove(ofPair)
	t.latency.remove(ofQueue)
	t.queuePut.remove(ofQueue)
	t.queueGet.remove(ofQueue)
}

// GroupDeleted forgets a group.
func (t *Table) GroupDeleted(group string) {
	ofPair := func(k topicGroup) bool { return k.group == group }
	ofQueue := func(k queueGroup) bool { return k.group == group }
	t.groupGet.remove(ofPair)
	t.sendBack.remove(ofPair)
	t.latency.remove(ofQueue)
	t.queueGet.remove(ofQueue)
}

// Sample takes what is due by now; to be called about once a second.
func (t *Table) Sample(now time.Time) {
	t.mu.Lock()
	var due [windows]bool
	any := false
	for w := range t.clocks {
		due[w] = t.clocks[w].due(now)
		any = any || due[w]
	}
	t.mu.Unlock()
	if !any {
		return
	}
	sample := func(i *Item) {
		t.mu.Lock() // for each: a reader waits for one item, not for all
		for w, yes := range due {
			if yes {
				i.sample(w, t.clocks[w].tick)
			}
		}
		if due[dayWindow] {
			i.rest()
		}
		t.mu.Unlock()
	}
	sample(&t.brokerPut)
	sample(&t.brokerGet)
	t.topicPut.each(sample)
	t.groupGet.each(sample)
	t.sendBack.each(sample)
	t.latency.each(sample)
	t.queuePut.each(sample)
	t.queueGet.each(sample)
}

// Snapshot is what one window shows (StatsSnapshot of 4.9.8).
type Snapshot struct {
	Sum   int64
	Tps   float64 // of Sum, a second
	Avgpt float64 // Sum by calls
}

// Data is what VIEW_BROKER_STATS_DATA tells of an item.
type Data struct{ Minute, Hour, Day Snapshot }

// View returns the statistics of a name and a key; false: there are none.
func (t *Table) View(name, key string) (Data, bool) {
	i, size := t.lookup(name, key)
	if i == nil {
		return Data{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return Data{
		Minute: t.snapshotLocked(i, minuteWindow, size),
		Hour:   t.snapshotLocked(i, hourWindow, size),
		Day:    t.snapshotLocked(i, dayWindow, size),
	}, true
}

// GroupGetTps is how many messages of a topic a group has got a second in the last minute.
func (t *Table) GroupGetTps(group, topic string) float64 {
	i := t.groupGet.find(topicGroup{topic, group})
	if i == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshotLocked(i, minuteWindow, false).Tps
}

func (t *Table) snapshotLocked(i *Item, w int, size bool) Snapshot {
	grown, millis := i.grown(w, &t.clocks[w])
	s := Snapshot{Sum: grown.nums}
	if size {
		s.Sum = grown.size
	}
	if millis > 0 {
		s.Tps = float64(s.Sum) * 1000 / float64(millis)
	}
	if grown.times > 0 {
		s.Avgpt = float64(s.Sum) / float64(grown.times)
	}
	return s
}

// lookup finds the item of a name and a key, and tells whether it is its size that is asked for.
func (t *Table) lookup(name, key string) (i *Item, size bool) {
	switch name {
	case TopicPutNums, TopicPutSize:
		return t.topicPut.find(key), name == TopicPutSize
	case GroupGetNums, GroupGetSize, SendBackNums:
		topic, group, ok := strings.Cut(key, "@")
		if !ok {
			return nil, false
		}
		if name == SendBackNums {
			return t.sendBack.find(topicGroup{topic, group}), false
		}
		return t.groupGet.find(topicGroup{topic, group}), name == GroupGetSize
	case GroupGetLatency:
		queue, rest, ok := strings.Cut(key, "@")
		topic, group, okToo := strings.Cut(rest, "@")
		if n, isNumber := queueNumber(queue); ok && okToo && isNumber {
			return t.latency.find(queueGroup{topic, group, n}), false
		}
	case QueuePutNums, QueuePutSize:
		topic, queue, ok := strings.Cut(key, "@")
		if n, isNumber := queueNumber(queue); ok && isNumber {
			return t.queuePut.find(queueGroup{topic, "", n}), name == QueuePutSize
		}
	case QueueGetNums, QueueGetSize:
		topic, rest, ok := strings.Cut(key, "@")
		queue, group, okToo := strings.Cut(rest, "@")
		if n, isNumber := queueNumber(queue); ok && okToo && isNumber {
			return t.queueGet.find(queueGroup{topic, group, n}), name == QueueGetSize
		}
	case BrokerPutNums:
		if key == t.cluster && t.used(&t.brokerPut) {
			return &t.brokerPut, false
		}
	case BrokerGetNums:
		if key == t.cluster && t.used(&t.brokerGet) {
			return &t.brokerGet, false
		}
	}
	return nil, false
}

// used tells whether anything was ever counted for an item; before, the official broker has none.
func (t *Table) used(i *Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return i.old || i.nums.Load() != 0
}

// queueNumber reads a queue's number as it is written in keys.
func queueNumber(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && strconv.FormatInt(n, 10) == text
}
