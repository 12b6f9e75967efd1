// Package commitlog is the commit log: records back to back in files of a fixed size, one appender,
// flushing and recovery. The files are the official ones to the byte (spec/store-format.md section 2).
package commitlog

import (
	"errors"
	"log/slog"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// Options is what a log needs.
type Options struct {
	FS       vfs.FS
	Dir      string // folder of the files
	FileSize int64  // bytes of each file (mappedFileSizeCommitLog)
	Clock    func() time.Time
	Log      *slog.Logger
	// SyncFlush: what is appended becomes visible (ConfirmOffset) only when it is durable.
	SyncFlush bool
	// Flush settings, keys and units as MessageStoreConfig (ms, 4 KiB pages).
	FlushIntervalCommitLog, FlushCommitLogLeastPages, FlushCommitLogThoroughInterval int
	HotWindow                                                                        int64      // bytes behind the end that are read through the mapping
	MaxRecord                                                                        func() int // largest record in bytes
	QueueOffsets                                                                     QueueOffsets
	// Confirmed is called (without locks, on the appender's or flusher's goroutine, must not block) when
	// ConfirmOffset has grown.
	Confirmed func()
}

// QueueOffsets gives out queue offsets. Its methods are called under the append lock only.
type QueueOffsets interface {
	// Take returns the next offset of a queue and moves it on by n.
	Take(topic string, queueId int32, n int) int64
	// Untake takes back the last Take of a queue, whose write failed.
	Untake(topic string, queueId int32, n int)
}

// Errors of Put.Err.
var (
	ErrTooLarge  = errors.New("commitlog: record exceeds the maximum size")
	ErrFull      = errors.New("commitlog: no space left")
	ErrWriteStop = errors.New("commitlog: writes have stopped after an I/O error") // wrapped with the cause
	ErrClosed    = errors.New("commitlog: closed")
	ErrNotFound  = errors.New("commitlog: no such offset")
)

// Put is one thing to append: a message, or a batch of neighbours for one queue that never span files.
// Append fills in the results.
type Put struct {
	Message *message.Message
	Batch   []*message.Message

	Err            error   // nil: appended
	PhyOffset      int64   // of the first record
	PhyOffsets     []int64 // of a batch: each record's
	End            int64   // log offset behind the last record; for WaitFlushed
	QueueOffset    int64   // of the first record
	StoreTimestamp int64   // ms
	Size           int32   // bytes of all records
}

// Log is the commit log.
type Log struct{ skeleton struct{} }

// Open loads the files in Dir. Recover must follow before anything is appended.
func Open(o Options) (*Log, error) { panic("skeleton") }

// Recover finds the end of the valid records, scanning from the given offset (the start of a file), and
// calls each for every record from there; what lies behind the end is zeroed before the next append.
// each gets records in order; its error stops the recovery.
func (l *Log) Recover(from int64, checkCRC bool, each func(phyOffset int64, r message.Record) error) error {
	panic("skeleton")
}

// FileStarts returns the first offset of each file and the store timestamp of its first record (0: none),
// oldest first; the store chooses from it where recovery begins.
func (l *Log) FileStarts() []FileStart { panic("skeleton") }

// FileStart describes one file for recovery and cleaning.
type FileStart struct {
	Offset         int64
	FirstTimestamp int64     // ms, 0 when the first record is not valid
	Modified       time.Time // last write
}

// Start begins background flushing.
func (l *Log) Start() { panic("skeleton") }

// Append appends the run with one lock and, as far as it fits the file, one write; it fills each Put's
// results. It does not wait for flushing. Any number of goroutines may call it.
func (l *Log) Append(run []*Put) { panic("skeleton") }

// WaitFlushed calls done, once, when everything before end is durable, or with an error when timeout
// passes first (ErrTimeout) or flushing has failed. Never waits itself.
func (l *Log) WaitFlushed(end int64, timeout time.Duration, done func(error)) { panic("skeleton") }

// MinOffset, MaxOffset, ConfirmOffset and FlushedOffset: the first available offset, the end of written
// data, the end of what may be dispatched and read, the end of what is durable.
func (l *Log) MinOffset() int64     { panic("skeleton") }
func (l *Log) MaxOffset() int64     { panic("skeleton") }
func (l *Log) ConfirmOffset() int64 { panic("skeleton") }
func (l *Log) FlushedOffset() int64 { panic("skeleton") }

// LastFlushedTimestamp is the store timestamp of the newest durable record, for the checkpoint.
func (l *Log) LastFlushedTimestamp() int64 { panic("skeleton") }

// LockedSince is when the append that runs now took the lock (zero: none), for the page-cache-busy rule.
func (l *Log) LockedSince() time.Time { panic("skeleton") }

// Read appends size bytes at offset to dst. ErrNotFound below MinOffset or beyond MaxOffset.
func (l *Log) Read(dst []byte, offset int64, size int) ([]byte, error) { panic("skeleton") }

// Scan calls each for every record from offset (a record's start) up to ConfirmOffset and returns the
// offset behind the last one. Records point into a buffer that is valid during the call only.
func (l *Log) Scan(offset int64, each func(phyOffset int64, r message.Record) error) (next int64, err error) {
	panic("skeleton")
}

// DeleteBefore removes the files that end at or before offset, oldest first, at most max, never the last;
// it returns how many.
func (l *Log) DeleteBefore(offset int64, max int) (int, error) { panic("skeleton") }

// Flush makes everything appended durable.
func (l *Log) Flush() error { panic("skeleton") }

// Close flushes and closes. The pre-created next file is removed while unused, as the official one does.
func (l *Log) Close() error { panic("skeleton") }
