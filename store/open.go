package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/store/commitlog"
	"rocketd/store/consumequeue"
	"rocketd/store/index"
	"rocketd/store/vfs"
)

// ErrLocked: another broker, ours or the official one, uses the directory.
var ErrLocked = vfs.ErrLocked

// recordOverhead is what a record may have beyond maxMessageSize (MessageExtEncoder of 4.9.8).
const recordOverhead = 64 << 10

// Store is one store directory in use.
type Store struct {
	o      Options
	config atomic.Pointer[Config]
	lock   io.Closer
	memory int64 // bytes of the machine, for the "in memory" rule

	log    *commitlog.Log
	queues *consumequeue.Table
	index  *index.Index
	stats  stats

	recoveredFrom int64 // log offset from which on Open has scanned

	// Putting: held for reading by every Put, for writing by Close.
	putting sync.RWMutex
	closed  bool

	// Dispatcher. It alone appends to queues and index; others look at the atomics.
	wake       chan struct{}
	live       bool                       // recovery is over: Arrive is called
	lost       map[consumequeue.Name]bool // recovery makes these queues again, apart from dispatch; nil: none
	scratch    dispatchScratch
	extended   bool         // entries get units in consumequeue_ext
	dispatched atomic.Int64 // log offset before which everything is in queues and index
	lastRecord atomic.Int64 // log offset of the last record dispatched; stored before dispatched
	lastStored atomic.Int64 // store timestamp of the last record dispatched

	wrong wrongEntries
	mend  mender

	// Flusher, or who holds flushing. What the checkpoint file says now; remade: recovery has made entries that are in
	// memory only.
	flushing   sync.Mutex
	checkpoint checkpoint
	hint       hintState
	remade     bool

	// Cleaner.
	clean cleanState

	// Goroutines, in the order in which Close ends them.
	cleaner, mender, dispatcher, flusher worker
}

// worker is a goroutine of the store.
type worker struct {
	stop chan struct{}
	done chan struct{}
}

func (w *worker) start(run func(stop <-chan struct{})) {
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(w.done)
		run(w.stop)
	}()
}

// end stops the goroutine and waits for it; one that was never started is ended already.
func (w *worker) end() {
	if w.stop != nil {
		close(w.stop)
		<-w.done
		w.stop = nil
	}
}

// Open locks the directory, loads and recovers it (normal or abnormal by the abort file) and waits until
// dispatch has caught up. The error names the file and what to do. ErrLocked when another broker uses it.
func Open(cfg Config, o Options) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.DeliverTime == nil {
		levels, err := ParseDelayLevels(cfg.MessageDelayLevel)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		o.DeliverTime = levels.DeliverTime
	}
	s := &Store{o: o, memory: totalMemory(), wake: make(chan struct{}, 1), mend: mender{wake: make(chan struct{}, 1)}}
	s.config.Store(&cfg)
	s.stats.started = o.Clock()
	if err := s.openLocked(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

func (s *Store) openLocked() error {
	cfg := s.Config()
	for _, dir := range []string{cfg.StorePathRootDir, cfg.CommitLogDir(), s.path("consumequeue")} {
		if err := vfs.MkdirAllSync(s.o.FS, dir); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	lockTime := s.lockTime() // before this session writes it
	lock, err := s.o.FS.Lock(s.path("lock"), []byte("lock"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.lock = lock
	crashed, err := s.exists(s.path("abort"))
	if err != nil {
		return err
	}
	if s.checkpoint, err = s.takeCheckpoint(); err != nil {
		return err
	}
	if err := s.openLog(crashed); err != nil {
		return err
	}
	if !crashed && s.notStopped() {
		crashed = true
		s.log.NotStopped()
	}
	s.hint.lockTime = s.lockTime()
	h := s.readHint(crashed, lockTime)
	if err := s.load(crashed, h); err != nil {
		return err
	}
	if err := s.recover(crashed, h); err != nil {
		return err
	}
	if err := s.mark(); err != nil {
		return err
	}
	s.restampHint(h)
	return nil
}

func (s *Store) openLog(crashed bool) (err error) {
	cfg := s.Config()
	s.log, err = commitlog.Open(commitlog.Options{
		FS:                             s.o.FS,
		Dir:                            cfg.CommitLogDir(),
		Aside:                          s.path("damaged"),
		FileSize:                       int64(cfg.MappedFileSizeCommitLog),
		Crashed:                        crashed,
		Clock:                          s.o.Clock,
		Log:                            s.o.Log,
		SyncFlush:                      cfg.FlushDiskType == SyncFlush,
		FlushIntervalCommitLog:         cfg.FlushIntervalCommitLog,
		FlushCommitLogLeastPages:       cfg.FlushCommitLogLeastPages,
		FlushCommitLogThoroughInterval: cfg.FlushCommitLogThoroughInterval,
		HotWindow:                      min(s.memory/8, hotWindow),
		MaxRecord:                      s.maxRecord,
		QueueOffsets:                   (*queueOffsets)(s),
		Confirmed:                      s.confirmed,
	})
	return err
}

// load opens queues and index.
func (s *Store) load(crashed bool, h hint) (err error) {
	cfg, began := s.Config(), s.o.Clock()
	s.extended = cfg.EnableConsumeQueueExt
	s.queues, err = consumequeue.Open(consumequeue.Options{
		FS:       s.o.FS,
		Dir:      s.path("consumequeue"),
		FileSize: cfg.MappedFileSizeConsumeQueue,
		Crashed:  crashed,
		Ends:     h.ends(),
		EndsTime: h.at(),
		EndsMin:  hintAbove,
		Log:      s.o.Log,

		Ext:         s.path("consumequeue_ext"),
		ExtFileSize: cfg.MappedFileSizeConsumeQueueExt,
		EnableExt:   cfg.EnableConsumeQueueExt,
	})
	if err != nil {
		return err
	}
	s.index, err = index.Open(index.Options{
		FS:             s.o.FS,
		Dir:            s.path("index"),
		MaxHashSlotNum: cfg.MaxHashSlotNum,
		MaxIndexNum:    cfg.MaxIndexNum,
		Clock:          s.o.Clock,
		Log:            s.o.Log,
	})
	if took := s.o.Clock().Sub(began); err == nil && took > progressInterval {
		s.o.Log.Info("the folders were read", "topics", len(s.queues.Topics()), "took", took)
	}
	return err
}

// hotWindow is how many bytes behind the log's end are read through the mapping: what a machine of usual size
// surely has in its page cache.
const hotWindow = 512 << 20

// queueOffsets lets the log take queue offsets from the queues, which are opened after it.
type queueOffsets Store

func (q *queueOffsets) Take(topic string, queueId int32, n int) int64 {
	return q.queues.Take(topic, queueId, n)
}

func (q *queueOffsets) Untake(topic string, queueId int32, n int) {
	q.queues.Untake(topic, queueId, n)
}

// path is the path of something in ROOT.
func (s *Store) path(name string) string { return s.Config().StorePathRootDir + "/" + name }

func (s *Store) exists(name string) (bool, error) {
	_, err := s.o.FS.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	return true, nil
}

// abandon closes what an Open that failed has opened; the abort file is left as it was.
func (s *Store) abandon() error {
	var errs []error
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Start begins flushing, dispatching and cleaning.
func (s *Store) Start() {
	s.log.Start()
	s.flusher.start(func(stop <-chan struct{}) {
		if s.remade {
			if err := s.saveCheckpoint(); err != nil {
				s.o.Log.Error("the checkpoint after recovery was not written; it is tried again", "error", err)
			}
		} else {
			s.renewHint()
		}
		s.flushLoop(stop)
	})
	s.dispatcher.start(s.dispatchLoop)
	s.mender.start(s.mendLoop)
	s.cleaner.start(s.cleanLoop)
}

// Close stops writes, finishes dispatch, flushes, writes the checkpoint, removes the abort file and unlocks. The
// abort file stays, and an error tells why, when something could not be made durable.
func (s *Store) Close() error {
	s.putting.Lock()
	if s.closed {
		s.putting.Unlock()
		return nil
	}
	s.closed = true
	s.putting.Unlock()

	s.cleaner.end()
	s.endMending()
	var errs []error
	if err := s.log.Flush(); err != nil { // with sync flush only what is durable is dispatched
		errs = append(errs, err)
	}
	s.dispatcher.end()
	s.flusher.end()
	if behind := s.DispatchBehind(); behind > 0 {
		errs = append(errs, fmt.Errorf("store: %d bytes of the log were not dispatched", behind))
	}
	if err := s.saveCheckpoint(); err != nil {
		errs = append(errs, err)
	}
	if err := s.queues.Close(); err != nil {
		errs = append(errs, err)
	}
	if _, err := s.index.Close(); err != nil {
		errs = append(errs, err)
	}
	if err := s.log.Close(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		errs = append(errs, s.removeAbort())
	}
	errs = append(errs, s.lock.Close())
	return errors.Join(errs...)
}

// Config is the configuration in force.
func (s *Store) Config() *Config { return s.config.Load() }

// SetConfig swaps in a changed configuration (maxMessageSize and what else 4.9.8 applies live).
func (s *Store) SetConfig(cfg *Config) {
	s.config.Store(cfg)
	s.log.SetFlush(cfg.FlushIntervalCommitLog, cfg.FlushCommitLogLeastPages, cfg.FlushCommitLogThoroughInterval)
}

// maxRecord is the size of the largest record.
func (s *Store) maxRecord() int { return s.Config().MaxMessageSize + recordOverhead }

// SyncFlush tells whether flushDiskType is SYNC_FLUSH.
func (s *Store) SyncFlush() bool { return s.Config().FlushDiskType == SyncFlush }

// MinPhyOffset and MaxPhyOffset are the bounds of the commit log.
func (s *Store) MinPhyOffset() int64 { return s.log.MinOffset() }
func (s *Store) MaxPhyOffset() int64 { return s.log.MaxOffset() }

// ConfirmOffset is the log offset up to which messages may be seen: with sync flush what is durable, else what is appended.
// Whatever was answered as stored lies before it.
func (s *Store) ConfirmOffset() int64 { return s.log.ConfirmOffset() }

// DispatchedOffset is the log offset up to which messages are in their queues.
func (s *Store) DispatchedOffset() int64 { return s.dispatched.Load() }

// DispatchBehind is how many bytes dispatch is behind the log.
func (s *Store) DispatchBehind() int64 {
	return max(0, s.log.ConfirmOffset()-s.dispatched.Load())
}
