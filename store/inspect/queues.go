package inspect

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"rocketd/store"
	"rocketd/store/consumequeue"
)

const (
	// chunkSize is how much of a queue is read at once.
	chunkSize = 400 * consumequeue.EntrySize
	// minChunk is how much it is at least, when there are so many queues that chunks must be small.
	minChunk = 16 * consumequeue.EntrySize
	// chunkBytes is how much memory the chunks take that are kept.
	chunkBytes = 32 << 20
)

// queueTable is all queues that have a folder, and those whose records the log holds.
type queueTable struct {
	dir     string
	perFile int64 // entries of a file
	known   bool  // perFile is that of the broker, and no mere default
	byTopic map[string]map[int32]*queue
	stray   []string // names that are no queue's

	kept   int      // bytes of a chunk that is kept
	chunks []*queue // that have a chunk; a ring
	hand   int      // whose chunk goes next

	// What was read last of a queue that is looked through.
	through struct {
		q     *queue
		first int64
		data  []byte
	}
}

// queue is one consume queue. Positions count entries.
type queue struct {
	topic   string
	queueId int32
	files   []queueFile // in order; none: the queue has no folder, or an empty one
	// Other names in the folder: no names of files, and such that are no multiple of the file size.
	stray, misnamed []string

	chunk      []byte // entries from chunkFirst on
	chunkFirst int64

	check queueCheck
}

type queueFile struct {
	start  int64 // first entry
	name   string
	length int64 // bytes
}

func (d *Dir) openQueues() error {
	t := &d.queues
	t.dir = d.path("consumequeue")
	t.byTopic = map[string]map[int32]*queue{}
	topics, err := d.list(t.dir)
	if err != nil {
		return err
	}
	sizes := map[int64]int{}
	for n, e := range topics {
		d.progress("list queues", int64(n), int64(len(topics)))
		if !e.IsDir() {
			t.stray = append(t.stray, path.Join(t.dir, e.Name()))
			continue
		}
		if err := d.openTopic(e.Name(), sizes); err != nil {
			return err
		}
	}
	size := commonSize(sizes)
	if c := d.o.Config; c != nil {
		size = int64(c.MappedFileSizeConsumeQueue)
	}
	t.known = size > 0 || d.log.defaultSize()
	if t.perFile = (size + consumequeue.EntrySize - 1) / consumequeue.EntrySize; t.perFile == 0 {
		t.perFile = int64(store.DefaultConfig("").MappedFileSizeConsumeQueue) / consumequeue.EntrySize
	}
	t.each(func(q *queue) bool {
		all := q.files
		q.files = q.files[:0]
		for _, f := range all {
			start, err := strconv.ParseInt(f.name, 10, 64)
			if err != nil || start%(t.perFile*consumequeue.EntrySize) != 0 {
				q.misnamed = append(q.misnamed, f.name)
				continue
			}
			f.start = start / consumequeue.EntrySize
			q.files = append(q.files, f)
		}
		return true
	})
	return nil
}

func (d *Dir) openTopic(topic string, sizes map[int64]int) error {
	dir := path.Join(d.queues.dir, topic)
	queues, err := d.fs.List(dir)
	if err != nil {
		return err
	}
	for _, e := range queues {
		queueId, err := strconv.ParseInt(e.Name(), 10, 32)
		if err != nil || !e.IsDir() || strconv.FormatInt(queueId, 10) != e.Name() {
			d.queues.stray = append(d.queues.stray, path.Join(dir, e.Name()))
			continue
		}
		files, err := d.fs.List(path.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		q := d.queues.add(topic, int32(queueId))
		for _, f := range files {
			if !queueFileName(f) {
				q.stray = append(q.stray, f.Name())
				continue
			}
			info, err := f.Info()
			if err != nil {
				return err
			}
			sizes[info.Size()]++
			q.files = append(q.files, queueFile{name: f.Name(), length: info.Size()})
		}
	}
	return nil
}

func queueFileName(e fs.DirEntry) bool {
	return !e.IsDir() && len(e.Name()) == 20 && strings.Trim(e.Name(), "0123456789") == ""
}

// find returns a queue, nil when there is none.
func (t *queueTable) find(topic string, queueId int32) *queue { return t.byTopic[topic][queueId] }

// add makes a queue that is not there yet.
func (t *queueTable) add(topic string, queueId int32) *queue {
	topic = strings.Clone(topic)
	queues := t.byTopic[topic]
	if queues == nil {
		queues = map[int32]*queue{}
		t.byTopic[topic] = queues
	}
	q := &queue{topic: topic, queueId: queueId}
	q.check.first = -1
	queues[queueId] = q
	return q
}

// each calls f for every queue, in order of topic and id, until it returns false.
func (t *queueTable) each(f func(q *queue) bool) {
	topics := make([]string, 0, len(t.byTopic))
	for topic := range t.byTopic {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	for _, topic := range topics {
		ids := make([]int32, 0, len(t.byTopic[topic]))
		for id := range t.byTopic[topic] {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !f(t.byTopic[topic][id]) {
				return
			}
		}
	}
}

func (t *queueTable) len() (n int) {
	for _, queues := range t.byTopic {
		n += len(queues)
	}
	return n
}

func (t *queueTable) folder(q *queue) string {
	return path.Join(t.dir, q.topic, strconv.Itoa(int(q.queueId)))
}

// fileAt is the file that holds an entry, nil when there is none.
func (q *queue) fileAt(entry, perFile int64) *queueFile {
	start := entry - entry%perFile
	i := sort.Search(len(q.files), func(i int) bool { return q.files[i].start >= start })
	if i < len(q.files) && q.files[i].start == start {
		return &q.files[i]
	}
	return nil
}

// place is the file and the byte in it of an entry, for findings.
func (d *Dir) place(q *queue, entry int64) (file string, offset int64) {
	t := &d.queues
	start := entry - entry%t.perFile
	return d.short(fmt.Sprintf("%s/%020d", t.folder(q), start*consumequeue.EntrySize)), (entry - start) * consumequeue.EntrySize
}

// entry reads an entry of a queue; ok is false when the files have no such place. It keeps the neighbours, for queues
// that are read in turn.
func (d *Dir) entry(q *queue, n int64) (e consumequeue.Entry, ok bool, err error) {
	if at := (n - q.chunkFirst) * consumequeue.EntrySize; at >= 0 && at < int64(len(q.chunk)) {
		return consumequeue.Decode(q.chunk[at:]), true, nil
	}
	b, err := d.readEntries(q, n, d.queues.room(q))
	if q.chunk, q.chunkFirst = b, n; err != nil || len(b) == 0 {
		return e, false, err
	}
	return consumequeue.Decode(b), true, nil
}

// look is entry for who looks through one queue after the other.
func (d *Dir) look(q *queue, n int64) (e consumequeue.Entry, ok bool, err error) {
	t := &d.queues.through
	if at := (n - t.first) * consumequeue.EntrySize; t.q == q && at >= 0 && at < int64(len(t.data)) {
		return consumequeue.Decode(t.data[at:]), true, nil
	}
	if t.data == nil {
		t.data = make([]byte, chunkSize)
	}
	b, err := d.readEntries(q, n, t.data[:chunkSize])
	if t.q, t.first, t.data = q, n, b; err != nil || len(b) == 0 {
		return e, false, err
	}
	return consumequeue.Decode(b), true, nil
}

// readEntries reads entries from one on into b, as many as fit and stand in one file. It returns b, cut to what was read.
func (d *Dir) readEntries(q *queue, n int64, b []byte) ([]byte, error) {
	f := q.fileAt(n, d.queues.perFile)
	if f == nil || n < 0 {
		return b[:0], nil
	}
	at := (n - f.start) * consumequeue.EntrySize
	size := min(int64(len(b)), min(f.length, d.queues.perFile*consumequeue.EntrySize)-at)
	if size < consumequeue.EntrySize {
		return b[:0], nil
	}
	b = b[:size-size%consumequeue.EntrySize]
	name := path.Join(d.queues.folder(q), f.name)
	in, err := d.fs.OpenRead(name)
	if err != nil {
		return b[:0], err
	}
	defer in.Close()
	k, err := in.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return b[:0], fmt.Errorf("reading %s: %w", name, err)
	}
	return b[:k-k%consumequeue.EntrySize], nil
}

// room is memory for a queue's chunk: its own, or new, or that of the queue whose turn it is.
func (t *queueTable) room(q *queue) []byte {
	if cap(q.chunk) > 0 {
		return q.chunk[:cap(q.chunk)]
	}
	if t.kept == 0 {
		t.kept = min(chunkSize, max(minChunk, chunkBytes/max(1, t.len())))
		t.kept -= t.kept % consumequeue.EntrySize
	}
	if len(t.chunks) < chunkBytes/t.kept {
		t.chunks = append(t.chunks, q)
		return make([]byte, t.kept)
	}
	old := t.chunks[t.hand]
	b := old.chunk[:cap(old.chunk)]
	old.chunk = nil
	t.chunks[t.hand] = q
	t.hand = (t.hand + 1) % len(t.chunks)
	return b
}

// valid is the official test for a place that has been written.
func valid(e consumequeue.Entry) bool { return e.PhyOffset >= 0 && e.Size > 0 }

// bounds is the first and the end of a queue's valid entries, by its first file and by a search in its last one that
// has any: first in its beginning, for most of many queues are short.
func (d *Dir) bounds(q *queue) (first, end int64, err error) {
	if len(q.files) == 0 {
		return 0, 0, nil
	}
	first = q.files[0].start
	for i := len(q.files) - 1; i >= 0; i-- {
		start := q.files[i].start
		ends := func(k int) bool {
			e, ok, readErr := d.look(q, start+int64(k))
			if readErr != nil && err == nil {
				err = readErr
			}
			return !ok || !valid(e)
		}
		ends(0)
		n := sort.Search(min(chunkSize/consumequeue.EntrySize, int(d.queues.perFile)), ends)
		if n == chunkSize/consumequeue.EntrySize {
			n += sort.Search(int(d.queues.perFile)-n, func(k int) bool { return ends(n + k) })
		}
		if n > 0 || i == 0 {
			return first, start + int64(n), err
		}
	}
	return first, first, err
}

// minOffset is the first queue offset in [first, end) whose record is in a log that begins at minPhyOffset.
func (d *Dir) minOffset(q *queue, first, end, minPhyOffset int64) (n int64, err error) {
	n = first + int64(sort.Search(int(end-first), func(k int) bool {
		e, ok, readErr := d.look(q, first+int64(k))
		if readErr != nil && err == nil {
			err = readErr
		}
		return ok && !e.IsBlank() && e.PhyOffset >= minPhyOffset
	}))
	return n, err
}
