// Package store keeps messages: the commit log and what is derived from it (consume queues, index),
// the checkpoint, cleaning and recovery. The files are those of the official 4.9.8 broker to the byte.
//
// A message's way: Put appends it to the log; when it may be seen (at once, or with sync flush when it is durable) the
// log wakes the dispatcher, which adds its entry to the queue and its keys to the index, both in memory, and tells
// Arrive. The flusher writes queues and index to their files, and now and then the checkpoint: where recovery has to
// begin after a crash.
//
// Filters. A Get hands its Filter the tagsCode of each entry (MatchQueue), then the record of each entry that passed
// (MatchRecord, where Record.Properties is the text to look at; neither allocates). With enableConsumeQueueExt each entry has a
// unit in consumequeue_ext, in which its real tagsCode stands beside the store time and a bit map; a Filter that is a
// UnitFilter too is asked about that between the two. What is not there is not asked about: an entry whose unit can't be read
// passes the first stage. The bit map is what Options.FilterBitMap gave when the message was dispatched, so MatchUnit can
// spare reading records that no filter of the group takes; it is only a hint, MatchRecord has the last word.
//
// Locks, in the order in which they may be taken: Store.putting or mender.working (never both), Store.flushing, append lock of the commit log (or one
// consume queue, or the index), consume-queue table, flusher of the log.
package store

import (
	"log/slog"
	"time"

	"rocketd/store/vfs"
)

// Options is what a store needs beside its Config.
type Options struct {
	FS    vfs.FS
	Clock func() time.Time // nil is time.Now
	Log   *slog.Logger     // nil is silence
	// DeliverTime is when a delayed message of a level (from 1 on; beyond the last it counts as the last), stored at
	// storeTimestamp, is due (ms); it becomes the tagsCode of its entry in SCHEDULE_TOPIC_XXXX. nil is by
	// messageDelayLevel.
	DeliverTime func(level int, storeTimestamp int64) int64
	// FilterBitMap appends the bit map of a message to dst, which is empty: for each filter that takes it the bits that
	// the filter's MatchUnit will look for. Nothing appended: the unit has none, as for a topic without such filters
	// (CommitLogDispatcherCalcBitMap of 4.9.8; it is for the function to heed enableCalcFilterBitMap). It is called by the
	// dispatcher for each message that enters a queue, only with enableConsumeQueueExt, and during Open too, from records
	// that recovery dispatches again. The strings are valid during the call only. nil: no unit has a bit map.
	FilterBitMap func(dst []byte, topic, properties string) []byte
	// Arrive is called by the dispatcher for every message that has entered its consume queue, after it can
	// be read, in commit-log order. It must not block. nil: nobody waits.
	Arrive func(Arrival)
	// Release is asked by the cleaner before it deletes log files, up to where it may (a log offset, at most end): messages
	// in them that somebody still needs have to be stored again first, which the function sets going. It must not wait; the
	// cleaner asks again in its next run. It may be called before Open returns. nil: everything may go.
	Release func(end int64) int64
}

// Arrival is a message that can be pulled now. Its strings point into a buffer valid during the call only.
type Arrival struct {
	Topic          string
	QueueId        int32
	QueueOffset    int64
	TagsCode       int64
	StoreTimestamp int64
	Properties     string

	sysFlag int32
}
