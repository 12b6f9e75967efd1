// Package store keeps messages: the commit log and what is derived from it (consume queues, index),
// the checkpoint, cleaning and recovery. The files are those of the official 4.9.8 broker to the byte.
//
// Locks, in the order in which they may be taken: cleaning, consume-queue table, one consume queue,
// append lock of the commit log, flusher.
package store

import (
	"log/slog"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
	"rocketd/store/vfs"
)

// Options is what a store needs beside its Config.
type Options struct {
	FS    vfs.FS
	Clock func() time.Time
	Log   *slog.Logger
	// DeliverTime is when a delayed message of a level, stored at storeTimestamp, is due (ms); it becomes the
	// tagsCode of its entry in SCHEDULE_TOPIC_XXXX.
	DeliverTime func(level int, storeTimestamp int64) int64
	// Arrive is called by the dispatcher for every message that has entered its consume queue, after it can
	// be read. It must not block.
	Arrive func(Arrival)
	// TopicExists tells cleaning which topics are alive.
	TopicExists func(topic string) bool
}

// Arrival is a message that can be pulled now. Properties point into a buffer valid during the call only.
type Arrival struct {
	Topic          string
	QueueId        int32
	QueueOffset    int64
	TagsCode       int64
	StoreTimestamp int64
	Properties     string
}

// Store is one store directory in use.
type Store struct{ skeleton struct{} }

// Put is one message or batch to append (see commitlog.Put).
type Put = commitlog.Put

// Open locks the directory, loads and recovers it (normal or abnormal by the abort file) and waits until
// dispatch has caught up. The error names the file and what to do. ErrLocked when another broker uses it.
func Open(cfg Config, o Options) (*Store, error) { panic("skeleton") }

// Start begins flushing, dispatching and cleaning.
func (s *Store) Start() { panic("skeleton") }

// Close stops writes, finishes dispatch, flushes, writes the checkpoint, removes the abort file and unlocks.
func (s *Store) Close() error { panic("skeleton") }

// Config is the configuration in force.
func (s *Store) Config() *Config { panic("skeleton") }

// SetConfig swaps in a changed configuration (maxMessageSize and what else 4.9.8 applies live).
func (s *Store) SetConfig(*Config) { panic("skeleton") }

// Writable returns nil, or the reason why writes are refused now.
func (s *Store) Writable() error { panic("skeleton") }

// PageCacheBusy tells whether the append lock has been held longer than osPageCacheBusyTimeOutMills.
func (s *Store) PageCacheBusy() bool { panic("skeleton") }

// Put appends a run; each Put gets its result. The checks of size are made here (Put.Err is
// commitlog.ErrTooLarge, …); what a client sees is decided by the broker.
func (s *Store) Put(run []*Put) { panic("skeleton") }

// WaitFlushed calls done when the log is durable up to end (see commitlog).
func (s *Store) WaitFlushed(end int64, timeout time.Duration, done func(error)) { panic("skeleton") }

// SyncFlush tells whether flushDiskType is SYNC_FLUSH.
func (s *Store) SyncFlush() bool { panic("skeleton") }

// GetStatus is the outcome of a Get, named as the official GetMessageStatus (its name is a pull's remark).
type GetStatus int

// The statuses; spec/wire.md section 9 maps them to response codes.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
)

// Filter chooses messages in a Get. Both methods must be cheap and may run at once.
type Filter interface {
	// MatchQueue decides by the consume-queue entry alone.
	MatchQueue(tagsCode int64) bool
	// MatchRecord decides by the record; called only for entries that MatchQueue let pass.
	MatchRecord(r message.Record) bool
}

// GetResult is what a Get found.
type GetResult struct {
	Status          GetStatus
	NextBeginOffset int64
	MinOffset       int64
	MaxOffset       int64
	Body            []byte // the records, back to back; the caller's
	Count           int
	QueueOffsets    []int64 // of the records found, when asked for
	SuggestSlave    bool    // the reader is further behind than accessMessageInMemoryMaxRatio of memory
}

// Get reads messages of a queue from a queue offset, at most max and within the official limits of
// bytes; filter nil takes all.
func (s *Store) Get(topic string, queueId int32, offset int64, max int, filter Filter) GetResult {
	panic("skeleton")
}

// MinOffset and MaxOffset are a queue's bounds; 0, 0 for a queue that does not exist.
func (s *Store) MinOffset(topic string, queueId int32) int64 { panic("skeleton") }
func (s *Store) MaxOffset(topic string, queueId int32) int64 { panic("skeleton") }

// OffsetByTime is the official search (code 29; store-format.md section 3).
func (s *Store) OffsetByTime(topic string, queueId int32, timestamp int64) int64 { panic("skeleton") }

// EarliestTime is the store time of a queue's first message, -1 when there is none.
func (s *Store) EarliestTime(topic string, queueId int32) int64 { panic("skeleton") }

// TimeOf is the store time of the message at a queue offset, -1 when there is none.
func (s *Store) TimeOf(topic string, queueId int32, offset int64) int64 { panic("skeleton") }

// OnDisk tells whether the message at a queue offset counts as "on disk" (rule of code 14).
func (s *Store) OnDisk(topic string, queueId int32, offset int64) bool { panic("skeleton") }

// Entry is the consume-queue entry at a queue offset.
func (s *Store) Entry(topic string, queueId int32, offset int64) (e Entry, ok bool) {
	panic("skeleton")
}

// Entry is one entry of a consume queue.
type Entry struct {
	PhyOffset int64
	Size      int32
	TagsCode  int64
}

// Message reads the record at a commit-log offset.
func (s *Store) Message(phyOffset int64) (message.Message, error) { panic("skeleton") }

// Record reads the bytes of the record at a commit-log offset.
func (s *Store) Record(phyOffset int64) (message.Record, error) { panic("skeleton") }

// Query finds records by topic and key between two store times (ms), at most max (spec: section 4).
func (s *Store) Query(topic, key string, max int, begin, end int64) QueryResult { panic("skeleton") }

// QueryResult is the answer of a Query.
type QueryResult struct {
	Records                  []message.Record
	IndexLastUpdateTimestamp int64
	IndexLastUpdatePhyOffset int64
}

// Topics and Queues list what has consume queues.
func (s *Store) Queues(topic string) []int32 { panic("skeleton") }
func (s *Store) Topics() []string            { panic("skeleton") }

// DeleteTopics removes the queues of every topic for which alive is false (215, 316) and
// CleanExpired those below the log's minimum (306).
func (s *Store) DeleteTopics(alive func(topic string) bool) error { panic("skeleton") }
func (s *Store) CleanExpired() error                              { panic("skeleton") }

// Bounds of the commit log.
func (s *Store) MinPhyOffset() int64 { panic("skeleton") }
func (s *Store) MaxPhyOffset() int64 { panic("skeleton") }

// DispatchBehind is how many bytes dispatch is behind the log.
func (s *Store) DispatchBehind() int64 { panic("skeleton") }
