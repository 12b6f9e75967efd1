package consumequeue

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// Options is what the queues need.
type Options struct {
	FS       vfs.FS
	Dir      string // ROOT/consumequeue
	FileSize int    // bytes of a file (mappedFileSizeConsumeQueue), rounded up to whole entries
	MaxOpen  int    // files kept open; 0 is 512
	// Crashed: the store was not closed. Files behind a missing one are no error then, if what they hold will be
	// dispatched again.
	Crashed bool
	// Ends is what AppendEnds of an earlier Table said at EndsTime, nil when that is not known. See ends.go for what
	// the caller vouches for.
	Ends     []byte
	EndsTime time.Time
	EndsMin  int // queues that Ends must tell of to spare looking into them
	// Ext is ROOT/consumequeue_ext, "" when there is none, and ExtFileSize the bytes of a file there. Units are read from it
	// in any case, but written only with EnableExt.
	Ext         string
	ExtFileSize int
	EnableExt   bool
	Log         *slog.Logger
}

const (
	shardCount     = 64
	defaultMaxOpen = 512
	// maxDenseQueueId is the largest queue id that is looked up by index; larger ones are rare.
	maxDenseQueueId = 1 << 14
)

// errDead: the queue was destroyed; the table may hold a new one.
var errDead = errors.New("consumequeue: queue destroyed")

// ErrTopic is the refusal of a topic that can't be the name of a folder. The broker lets none in; a damaged record
// may have one.
var ErrTopic = errors.New("consumequeue: not a topic")

// Table is all queues of a store.
type Table struct {
	fs      vfs.FS
	root    string
	perFile int64 // entries of a file
	log     *slog.Logger
	files   *descriptors
	seed    maphash.Seed

	// places keeps the making of a queue's files apart from the removing of an older queue's of the same name.
	places sync.RWMutex

	syncAll func(dir string) error // makes a whole file system durable; nil when the FS can't

	ext extFiles

	failing atomic.Bool // the last write of a tail failed

	lmq atomic.Int64 // light message queues

	lost    lost
	summary summary

	progressEvery time.Duration

	endsTime time.Time    // of the hint; before it files are as the hint says
	endsMin  int          // Options.EndsMin
	hints    atomic.Int64 // queues loaded by it

	crashed bool
	orphans map[*Queue][]int64 // files behind a gap; guarded by flush

	shards [shardCount]struct {
		sync.RWMutex
		topics    map[string]*topicQueues
		destroyed map[string]struct{} // topics of which a queue was destroyed
	}

	flush struct {
		sync.Mutex
		dirty    []*Queue            // with a tail, or not durable
		dirs     map[string]struct{} // with new or removed files
		manyDirs bool                // more than dirs holds
		damaged  error               // the first failure that only a rebuild mends
	}
}

// topicQueues is the queues of one topic. Guarded by the shard's lock.
type topicQueues struct {
	topic string
	dense []*Queue         // by queue id
	rare  map[int32]*Queue // beyond maxDenseQueueId
}

func newTable(o Options) *Table {
	t := &Table{
		fs:      o.FS,
		root:    o.Dir,
		perFile: int64(o.FileSize+EntrySize-1) / EntrySize,
		log:     o.Log,
		seed:    maphash.MakeSeed(),
		crashed: o.Crashed,
		orphans: make(map[*Queue][]int64),

		endsTime: o.EndsTime.Add(-endsMargin),
		endsMin:  o.EndsMin,

		progressEvery: progressEvery,
	}
	if o.MaxOpen <= 0 {
		o.MaxOpen = defaultMaxOpen
	}
	t.ext.root, t.ext.size, t.ext.write = o.Ext, int64(o.ExtFileSize), o.EnableExt && o.Ext != ""
	t.files = newDescriptors(o.MaxOpen, func(q *Queue, start int64) (vfs.File, error) {
		if start < 0 {
			return t.fs.Open(t.extPath(q, extPlace(start)))
		}
		return t.fs.Open(t.path(q, start))
	})
	if f, ok := o.FS.(interface{ SyncAll(dir string) error }); ok {
		t.syncAll = f.SyncAll
	}
	for i := range t.shards {
		t.shards[i].topics = make(map[string]*topicQueues)
	}
	t.flush.dirs = make(map[string]struct{})
	return t
}

func (t *Table) dir(q *Queue) string {
	return path.Join(t.root, q.topic, strconv.Itoa(int(q.queueId)))
}

func (t *Table) path(q *Queue, start int64) string {
	return path.Join(t.dir(q), fmt.Sprintf("%020d", start*EntrySize))
}

// Find returns a queue, nil when there is none. It allocates nothing.
func (t *Table) Find(topic string, queueId int32) *Queue {
	s := &t.shards[maphash.String(t.seed, topic)%shardCount]
	s.RLock()
	defer s.RUnlock()
	return s.topics[topic].find(queueId)
}

func (q *topicQueues) find(queueId int32) *Queue {
	if q == nil {
		return nil
	}
	if uint32(queueId) < uint32(len(q.dense)) {
		return q.dense[queueId]
	}
	return q.rare[queueId]
}

// findOrCreate returns a queue, a new empty one when there is none. The topic is copied when it is kept.
func (t *Table) findOrCreate(topic string, queueId int32) *Queue {
	if q := t.Find(topic, queueId); q != nil {
		return q
	}
	s := &t.shards[maphash.String(t.seed, topic)%shardCount]
	s.Lock()
	defer s.Unlock()
	tq := s.topics[topic]
	if q := tq.find(queueId); q != nil {
		return q
	}
	if tq == nil {
		tq = &topicQueues{topic: strings.Clone(topic)}
		s.topics[tq.topic] = tq
	}
	q := &Queue{table: t, topic: tq.topic, queueId: queueId, minPhy: -1}
	if strings.HasPrefix(topic, message.LmqTopicPrefix) {
		t.lmq.Add(1)
	}
	// A process that is killed loses the tails, and the next start makes them again from the log. The official broker
	// makes those of delayed messages wrongly: it does not know the levels yet, takes the hash of the tag for the time of
	// delivery (CommitLog#checkMessageAndReturnSize of 4.9.8) and delivers at once.
	q.eager = topic == message.TopicSchedule
	// For the same reason the first entry of a topic that was deleted and made again is written at once: the official broker
	// would put what the log still has of the older topic before what it misses of this one, which it then takes for
	// repeated. The older records are passed over when the queue has a newer one.
	_, q.successor = s.destroyed[topic]
	q.unfit = topic == "" || topic == "." || topic == ".." || len(topic) > message.MaxFolderName || strings.ContainsAny(topic, "/\x00")
	if queueId >= 0 && queueId < maxDenseQueueId {
		if missing := int(queueId) + 1 - len(tq.dense); missing > 0 {
			tq.dense = append(tq.dense, make([]*Queue, missing)...)
		}
		tq.dense[queueId] = q
	} else {
		if tq.rare == nil {
			tq.rare = make(map[int32]*Queue)
		}
		tq.rare[queueId] = q
	}
	return q
}

// Append adds an entry to a queue, making the queue when it is new; see Queue.Append.
func (t *Table) Append(topic string, queueId int32, queueOffset int64, e Entry) error {
	return t.AppendUnit(topic, queueId, queueOffset, e, nil)
}

// AppendUnit is Append, with a unit in consumequeue_ext when that is enabled: the entry's tagsCode becomes its address. nil
// is none.
func (t *Table) AppendUnit(topic string, queueId int32, queueOffset int64, e Entry, u *Unit) error {
	if !t.ext.write {
		u = nil
	}
	for {
		err := t.findOrCreate(topic, queueId).append(queueOffset, e, u)
		if !errors.Is(err, errDead) {
			return err
		}
	}
}

// Take returns the next queue offset of a queue and moves it on by n. Called under the append lock only.
func (t *Table) Take(topic string, queueId int32, n int) int64 {
	q := t.findOrCreate(topic, queueId)
	offset := q.next
	q.next += int64(n)
	return offset
}

// Untake takes back the last Take of a queue. Called under the append lock only.
func (t *Table) Untake(topic string, queueId int32, n int) {
	if q := t.Find(topic, queueId); q != nil {
		q.next = max(0, q.next-int64(n))
	}
}

// ResetOffsets makes every queue give out offsets from its end on, once dispatch has caught up at the start.
// Nothing may be appended meanwhile.
func (t *Table) ResetOffsets() {
	for _, q := range t.All() {
		q.next = q.max.Load()
		q.old = q.next
	}
}

// All returns all queues, in no order.
func (t *Table) All() []*Queue {
	var all []*Queue
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for _, tq := range s.topics {
			all = tq.appendTo(all)
		}
		s.RUnlock()
	}
	return all
}

func (q *topicQueues) appendTo(all []*Queue) []*Queue {
	if q == nil {
		return all
	}
	for _, queue := range q.dense {
		if queue != nil {
			all = append(all, queue)
		}
	}
	for _, queue := range q.rare {
		all = append(all, queue)
	}
	return all
}

// LmqQueues is the number of light message queues, those of topics that begin with %LMQ%.
func (t *Table) LmqQueues() int64 { return t.lmq.Load() }

// Topics returns the topics that have queues, in order.
func (t *Table) Topics() []string {
	var topics []string
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for topic := range s.topics {
			topics = append(topics, topic)
		}
		s.RUnlock()
	}
	slices.Sort(topics)
	return topics
}

// Queues returns the queue ids of a topic, in order.
func (t *Table) Queues(topic string) []int32 {
	s := &t.shards[maphash.String(t.seed, topic)%shardCount]
	s.RLock()
	queues := s.topics[topic].appendTo(nil)
	s.RUnlock()
	ids := make([]int32, 0, len(queues))
	for _, q := range queues {
		ids = append(ids, q.queueId)
	}
	slices.Sort(ids)
	return ids
}

// Destroy removes a queue and its files. Messages of it that are dispatched later make a new one.
func (t *Table) Destroy(q *Queue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return nil
	}
	t.places.Lock()
	defer t.places.Unlock()
	t.forget(q)
	q.dead = true
	for start := q.first; start < q.end; start += t.perFile {
		t.files.drop(q, start)
	}
	q.tail = nil
	q.min.Store(0)
	q.max.Store(0)
	t.addDirs(q)
	if err := t.removeExt(q); err != nil {
		return err
	}
	if q.first == q.end {
		return nil
	}
	if err := t.fs.RemoveAll(t.dir(q)); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	// Only an empty folder goes.
	if left, err := t.fs.List(path.Join(t.root, q.topic)); err == nil && len(left) == 0 {
		if err := t.fs.Remove(path.Join(t.root, q.topic)); err != nil {
			return fmt.Errorf("consumequeue: %w", err)
		}
	}
	return nil
}

// forget takes q out of the table.
func (t *Table) forget(q *Queue) {
	s := &t.shards[maphash.String(t.seed, q.topic)%shardCount]
	s.Lock()
	defer s.Unlock()
	tq := s.topics[q.topic]
	if tq.find(q.queueId) != q {
		return
	}
	if strings.HasPrefix(q.topic, message.LmqTopicPrefix) {
		t.lmq.Add(-1)
	}
	if s.destroyed == nil {
		s.destroyed = make(map[string]struct{})
	}
	s.destroyed[q.topic] = struct{}{}
	if int(q.queueId) < len(tq.dense) && q.queueId >= 0 {
		tq.dense[q.queueId] = nil
	} else {
		delete(tq.rare, q.queueId)
	}
	if len(tq.appendTo(nil)) == 0 {
		delete(s.topics, q.topic)
	}
}
