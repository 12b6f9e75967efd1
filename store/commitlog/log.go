// Package commitlog is the commit log: records back to back in files of a fixed size, one appender,
// flushing and recovery. The files are the official ones to the byte.
//
//	file 00000000000000000000                          file 00000000001073741824
//	+----------+----------+- ... -+-------+---------+  +----------+----------+------------+
//	| record 1 | record 2 |       | blank | ignored |  | record n | record   | zeros      |
//	+----------+----------+- ... -+-------+---------+  +----------+----------+------------+
//	^ MinOffset                                                              ^ MaxOffset
//
// A record (drawn in protocol/message/record.go) never spans files, nor does a batch. Where one and 8 more bytes
// do not fit, a blank record closes the file. The file behind the newest is made in advance.
//
// # Recovery
//
//  1. Open lists the files. An empty last one is removed (its creation was cut off); a file of another size, or
//     one that is missing between others, is an error that names it.
//  2. Recover scans from the record that the store chooses. A record counts when magic and sizes are right, its
//     physical offset is the place where it stands and, if asked for, the CRC of its body matches. A blank
//     record leads to the next file.
//  3. The first thing that is not a record is the end. What lies behind it in its file was never acknowledged
//     as durable: a torn record, records behind it, zeros.
//  4. The files up to there are synced, so that what a dead process had only written is durable before anyone is
//     shown it as such.
//  5. Start removes the files behind the end, as the official broker does; among them the one made in advance. But records
//     behind the end, in that file and in later ones, are kept aside first, in the folder damaged-<end> beside the log's:
//     after a power failure they are what was never flushed, after a damage of the disk what was.
//  6. The first Append makes what lies behind the end zeros, durably, before it writes: else what the scan has
//     refused could look valid to a later one once the bytes before it are mended.
//
// After a crash a last record that ends in zeros is not believed either: see torn.
package commitlog

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

// Options is what a log needs.
type Options struct {
	FS       vfs.FS
	Dir      string // folder of the files
	Aside    string // where records behind the end are kept, a dash and the end's offset follow; "": damaged beside Dir
	FileSize int64  // bytes of each file (mappedFileSizeCommitLog)
	Crashed  bool   // the process that wrote last was not stopped in order: its last record may be torn
	Clock    func() time.Time
	Log      *slog.Logger
	// SyncFlush: what is appended becomes visible (ConfirmOffset) only when it is durable.
	SyncFlush bool
	// Flush settings, keys and units as MessageStoreConfig (ms, 4 KiB pages). An interval of 0 or less is the
	// official default.
	FlushIntervalCommitLog, FlushCommitLogLeastPages, FlushCommitLogThoroughInterval int
	HotWindow                                                                        int64      // bytes behind the end that are read through the mapping, as far as this process has had them in memory
	MaxRecord                                                                        func() int // largest record in bytes; nil: what fits a file
	QueueOffsets                                                                     QueueOffsets
	// Confirmed is called (without locks, on the appender's or flusher's goroutine, must not block) when
	// ConfirmOffset has grown. May be nil.
	Confirmed func()
}

// QueueOffsets gives out queue offsets. Its methods are called under the append lock only.
type QueueOffsets interface {
	// Take returns the next offset of a queue and moves it on by n.
	Take(topic string, queueId int32, n int) int64
	// Untake takes back the last Take of a queue, whose write failed.
	Untake(topic string, queueId int32, n int)
}

// Errors of Put.Err, WaitFlushed and the readers.
var (
	ErrTooLarge  = errors.New("commitlog: record exceeds the maximum size")
	ErrFull      = errors.New("commitlog: no space left")
	ErrCreate    = errors.New("commitlog: a file can't be made")                   // wrapped with the cause
	ErrWriteStop = errors.New("commitlog: writes have stopped after an I/O error") // wrapped with the cause
	ErrClosed    = errors.New("commitlog: closed")
	ErrNotFound  = errors.New("commitlog: no such offset")
	ErrTimeout   = errors.New("commitlog: not durable in time")
	ErrDamaged   = errors.New("commitlog: damaged record") // wrapped with offset and cause
)

// Put is one thing to append: a message, or a batch of neighbours for one queue that never span files.
// Append fills in the results, and QueueOffset, PhyOffset and StoreTimestamp of the messages.
type Put struct {
	Message *message.Message
	Batch   []*message.Message
	// Copy says that the message was acknowledged once and is stored again, as a delayed one when it is due: the largest
	// record that may be sent (MaxRecord, maxMessageSize) may have been lowered since, and is not asked.
	Copy bool
	// Queues are further queues that a single message enters, in the order of its INNER_MULTI_DISPATCH. The append writes the
	// offsets that it gets there into its text.
	Queues []QueueName

	Err            error   // nil: appended
	PhyOffset      int64   // of the first record
	PhyOffsets     []int64 // of a batch: each record's
	End            int64   // log offset behind the last record; for WaitFlushed
	QueueOffset    int64   // of the first record
	StoreTimestamp int64   // ms
	Size           int32   // bytes of all records
}

// Log is the commit log. Locks, in the order in which they may be taken: append, then next, then those of the
// segment queue; flush.sync, then flush.mu.
type Log struct {
	o     Options
	files *segment.Queue

	// Positions. Stored by the appender (written), the flusher (flushed) or recovery, read by anyone.
	written     atomic.Int64 // MaxOffset: the end of the records
	writtenTime atomic.Int64 // store timestamp of the last of them, ms; stored after written
	flushed     atomic.Int64 // FlushedOffset
	flushedTime atomic.Int64 // store timestamp of the last durable record, ms
	lockedSince atomic.Int64 // unix ns of the append that runs, 0: none

	// warmFrom is where recovery began to read: what lies before may be on the disk only. Set by Recover, before others read.
	warmFrom int64
	ahead    ahead // of the cold files

	stopped atomic.Pointer[error] // set once, by the first sync that failed

	append  appender
	next    nextFile
	flush   flusher
	buffers sync.Pool // of *encoder
	closing sync.Once
	closed  error
}

// Open loads the files in Dir. Recover must follow before anything is appended; until then all that the files hold
// can be read.
func Open(o Options) (*Log, error) {
	if o.FileSize <= message.BlankRecordSize {
		return nil, fmt.Errorf("commitlog: file size %d", o.FileSize)
	}
	if o.Aside == "" {
		o.Aside = path.Join(path.Dir(o.Dir), "damaged")
	}
	if err := vfs.MkdirAllSync(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("commitlog: %w", err)
	}
	files, err := segment.Open(o.FS, o.Dir, o.FileSize, o.Log)
	if errors.Is(err, segment.ErrSize) {
		err = fmt.Errorf("%w; set mappedFileSizeCommitLog to the size that the files were made with, or, when only this one differs, bring it back from a copy or see `rocketd store verify`", err)
	}
	if err != nil {
		return nil, fmt.Errorf("commitlog: %w", err)
	}
	l := &Log{o: o, files: files}
	if last := files.Last(); last != nil {
		// Until Recover knows better: what is there is read to find out where to begin.
		l.written.Store(last.End())
		l.flushed.Store(last.End())
	}
	l.buffers.New = func() any { return new(encoder) }
	l.flush.init()
	l.SetFlush(o.FlushIntervalCommitLog, o.FlushCommitLogLeastPages, o.FlushCommitLogThoroughInterval)
	l.next.init()
	return l, nil
}

// NotStopped makes Recover treat the log as Options.Crashed does. To be called between Open and Recover.
func (l *Log) NotStopped() { l.o.Crashed = true }

// The official flush intervals (ms).
const (
	defaultInterval = 500
	defaultThorough = 10_000
)

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// Start begins background flushing and making files in advance. It removes the files behind the end.
func (l *Log) Start() {
	l.append.mu.Lock()
	if l.append.recovered {
		if err := l.removeBehindEndLocked(); err != nil { // the next append tries again
			l.o.Log.Error("commit log", "err", err)
		} else if f := l.append.file; f != nil {
			l.wantNext(f.End())
		}
	}
	l.append.mu.Unlock()
	l.flush.done.Go(l.flushLoop)
	l.next.done.Go(l.nextLoop)
}

// MinOffset is the first available offset; 0 when there is no file.
func (l *Log) MinOffset() int64 {
	if files := l.files.Files(); len(files) > 0 {
		return files[0].Start()
	}
	return 0
}

// MaxOffset is the end of written data.
func (l *Log) MaxOffset() int64 { return l.written.Load() }

// ConfirmOffset is the end of what may be dispatched and read.
func (l *Log) ConfirmOffset() int64 {
	if l.o.SyncFlush {
		return l.flushed.Load()
	}
	return l.written.Load()
}

// FlushedOffset is the end of what is durable.
func (l *Log) FlushedOffset() int64 { return l.flushed.Load() }

// LastFlushedTimestamp is the store timestamp of the newest durable record (ms), for the checkpoint.
func (l *Log) LastFlushedTimestamp() int64 { return l.flushedTime.Load() }

// LockedSince is when the append that runs now took the lock (zero: none), for the page-cache-busy rule.
func (l *Log) LockedSince() time.Time {
	ns := l.lockedSince.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// stopError is why writes have stopped for good, nil while they have not.
func (l *Log) stopError() error {
	if err := l.stopped.Load(); err != nil {
		return *err
	}
	return nil
}

// stop ends writing for good.
func (l *Log) stop(cause error) error {
	err := fmt.Errorf("%w: %w", ErrWriteStop, cause)
	if l.stopped.CompareAndSwap(nil, &err) {
		l.o.Log.Error("commit log: writes have stopped", "dir", l.o.Dir, "flushed", l.flushed.Load(), "written", l.written.Load(), "err", cause)
	}
	return l.stopError()
}

// confirmed tells the owner that ConfirmOffset has grown.
func (l *Log) confirmed() {
	if l.o.Confirmed != nil {
		l.o.Confirmed()
	}
}

// Close stops appends, flushes and closes. The pre-created next file is removed while unused, as the official one
// does. Who still waits for a flush that failed gets ErrClosed. A second Close does nothing.
func (l *Log) Close() error {
	l.closing.Do(func() {
		l.append.mu.Lock()
		l.append.closed = true
		l.append.mu.Unlock()
		l.next.close()
		l.flush.close()
		err := l.Flush()
		l.failWaiters(ErrClosed)
		l.closed = errors.Join(err, l.removeNext(), l.files.Close())
	})
	return l.closed
}

// name is the path of the file that holds an offset, for messages.
func (l *Log) name(offset int64) string {
	return path.Join(l.o.Dir, segment.Name(offset-offset%l.o.FileSize))
}
