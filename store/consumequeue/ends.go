package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"rocketd/protocol/message"
)

// The ends of the queues, as a hint that spares the next start the reading of every file. All numbers are varints:
//
//	topic:  length, name | length in bytes, queue, queue, …
//	queue:  queueId, first file's number, number of files (0: look yourself), entries, expired entries,
//	        commit-log offset of the first entry that has not expired, commit-log offset behind the last message
//
// Whoever keeps it must see to it that nobody else has used the files since, and that the power was not cut. What may
// have changed in spite of that is noticed here: a topic's folder or a queue's last file that was modified after
// Options.EndsTime, that has another size or is gone, or a folder of several files that was, is looked into as without a
// hint.

// errEnds: the hint can't be read.
var errEnds = errors.New("consumequeue: the queues' ends are garbled")

// ends is what the hint says of one queue. Positions count entries.
type ends struct {
	queueId          int32
	first, files     int64
	entries, expired int64 // from first on
	minPhy, maxPhy   int64
}

// Len is the number of queues.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for _, tq := range s.topics {
			n += len(tq.dense) + len(tq.rare)
		}
		s.RUnlock()
	}
	return n
}

// AppendEnds appends the ends of all queues, as Options.Ends wants them, to dst.
func (t *Table) AppendEnds(dst []byte) []byte {
	var part []byte
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		topics := make([]*topicQueues, 0, len(s.topics))
		queues := make([][]*Queue, 0, len(s.topics))
		for _, tq := range s.topics {
			topics, queues = append(topics, tq), append(queues, tq.appendTo(nil))
		}
		s.RUnlock()
		for i, tq := range topics {
			dst = binary.AppendUvarint(dst, uint64(len(tq.topic)))
			dst = append(dst, tq.topic...)
			part = part[:0]
			for _, q := range queues[i] {
				part = q.appendEnds(part)
			}
			dst = binary.AppendUvarint(dst, uint64(len(part)))
			dst = append(dst, part...)
		}
	}
	return dst
}

func (q *Queue) appendEnds(dst []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := ends{queueId: q.queueId, minPhy: -1}
	// What is known of the last message is of the tail when there is one.
	if !q.dead && q.first < q.end && len(q.tail) == 0 && q.written > q.first && q.maxPhy > 0 {
		e.first, e.files = q.first/q.table.perFile, (q.end-q.first)/q.table.perFile
		e.entries, e.expired = q.written-q.first, q.min.Load()-q.first
		e.minPhy, e.maxPhy = q.minPhy, q.maxPhy
	}
	for _, v := range []int64{int64(e.queueId), e.first, e.files, e.entries, e.expired, e.minPhy, e.maxPhy} {
		dst = binary.AppendVarint(dst, v)
	}
	return dst
}

// splitEnds takes the hint apart: by topic what it says of the topic's queues.
func splitEnds(b []byte) (map[string][]byte, error) {
	topics := make(map[string][]byte)
	take := func() ([]byte, bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return nil, false
		}
		part := b[n : n+int(v)]
		b = b[n+int(v):]
		return part, true
	}
	for len(b) > 0 {
		topic, ok := take()
		queues, ok2 := take()
		if !ok || !ok2 {
			return nil, errEnds
		}
		topics[string(topic)] = queues
	}
	return topics, nil
}

// countEnds is how many queues a hint tells of.
func countEnds(topics map[string][]byte) (n int) {
	for _, queues := range topics {
		for len(queues) > 0 {
			_, rest, err := nextEnds(queues)
			if err != nil {
				break
			}
			queues = rest
			n++
		}
	}
	return n
}

// LoseShort removes the queues that Recover has found shorter than a hint says, at either end, and notes those that are not there at all:
// see Lost. What the hint says of records at or behind phyOffset does not count. Light message queues, which may not be
// configured now, are left alone.
func (t *Table) LoseShort(hint []byte, phyOffset int64) error {
	known, err := splitEnds(hint)
	if err != nil {
		return nil // Open has said so
	}
	for topic, queues := range known {
		if strings.HasPrefix(topic, message.LmqTopicPrefix) {
			continue
		}
		for len(queues) > 0 {
			var e ends
			if e, queues, err = nextEnds(queues); err != nil {
				break
			}
			end := e.first*t.perFile + e.entries
			if e.entries == 0 || e.maxPhy > phyOffset {
				continue
			}
			q := t.Find(topic, e.queueId)
			if q != nil && (q.known || q.Max() >= end && q.Min() <= e.first*t.perFile) {
				continue
			}
			if q == nil {
				t.noteLost(Name{topic, e.queueId}, fmt.Errorf("consumequeue: %s/%s/%d has gone, it had entries up to %d", t.root, topic, e.queueId, end))
				continue
			}
			if err := t.remove(q, fmt.Errorf("consumequeue: %s has entries %d to %d, it had %d to %d", t.dir(q), q.Min(), q.Max(), e.first*t.perFile, end)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextEnds reads the first queue of b and returns what is behind it.
func nextEnds(b []byte) (e ends, rest []byte, err error) {
	var id int64
	for _, v := range []*int64{&id, &e.first, &e.files, &e.entries, &e.expired, &e.minPhy, &e.maxPhy} {
		x, n := binary.Varint(b)
		if n <= 0 {
			return e, nil, errEnds
		}
		*v, b = x, b[n:]
	}
	e.queueId = int32(id)
	if int64(e.queueId) != id || e.first < 0 || e.files < 0 || e.entries < 0 || e.expired < 0 || e.expired > e.entries {
		return e, nil, errEnds
	}
	return e, b, nil
}

// loadHinted loads a topic's queues by the hint; false when its folder must be looked into.
func (t *Table) loadHinted(topic string, folder fs.DirEntry, queues []byte) (bool, error) {
	info, err := folder.Info()
	if err != nil || info.ModTime().After(t.endsTime) {
		return false, nil
	}
	for len(queues) > 0 {
		var e ends
		if e, queues, err = nextEnds(queues); err != nil {
			return false, err
		}
		if t.hinted(topic, e) {
			continue
		}
		dir := path.Join(t.root, topic, strconv.Itoa(int(e.queueId)))
		files, err := t.fs.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("consumequeue: %w", err)
		}
		if err := t.loadQueue(topic, e.queueId, files); err != nil {
			return false, err
		}
	}
	return true, nil
}

// hinted makes a queue of what the hint says, if its last file is as it was then.
func (t *Table) hinted(topic string, e ends) bool {
	end := (e.first + e.files) * t.perFile
	first := e.first * t.perFile
	if e.files == 0 || e.entries == 0 || e.entries > end-first || e.entries <= end-first-t.perFile {
		return false
	}
	last := strconv.FormatInt((end-t.perFile)*EntrySize, 10)
	dir := t.root + "/" + topic + "/" + strconv.Itoa(int(e.queueId))
	if e.files > 1 { // one of them may have been removed
		if info, err := t.fs.Stat(dir); err != nil || info.ModTime().After(t.endsTime) {
			return false
		}
	}
	info, err := t.fs.Stat(dir + "/" + "00000000000000000000"[min(20, len(last)):] + last)
	if err != nil || info.Size() != t.perFile*EntrySize || info.ModTime().After(t.endsTime) {
		return false
	}
	q := t.findOrCreate(topic, e.queueId)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first, q.end = first, end
	q.written, q.synced = first+e.entries, first+e.entries
	q.minPhy, q.maxPhy = e.minPhy, e.maxPhy
	q.min.Store(first + e.expired)
	q.max.Store(q.written)
	q.known = true
	t.lost.sized.Store(true)
	t.hints.Add(1)
	return true
}

// Hinted is how many queues were loaded without looking into their files.
func (t *Table) Hinted() int { return int(t.hints.Load()) }

// endsMargin is by how much a file's time of modification may lag behind the clock: the system's clock ticks.
const endsMargin = 20 * time.Millisecond
