// Package inspect looks into the directory of a store that is not open here, official or ours: what is in it (Info),
// its records and entries (Dump), whether it holds together (Verify), and it mends what can be mended (Repair).
// All but Repair only read, and take no lock.
//
// Verify goes through the log once, from the first byte to the last, and compares on the way:
//
//	commit log  ──record──►  its entry in the consume queue     through a chunk of each queue, in a bounded cache
//	                  └────► its keys in the index               index files are read beside the log, in the same order
//
// then through what the queues have beyond that, the slots of the index, the checkpoint and the files of configuration.
// Memory is bounded by the number of queues, not by that of messages.
//
// In a store whose broker was not stopped (there is an abort file) what lies behind the place where the next start
// begins its recovery may lack in queues and index: the start adds it. That is told as a note; it is no finding.
package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"rocketd/store"
	"rocketd/store/vfs"
)

// ErrNoStore: the directory is none of a store.
var ErrNoStore = errors.New("not a store directory: neither commitlog nor consumequeue nor config is in it")

// Options says what to look at.
type Options struct {
	FS   vfs.FS
	Root string // ROOT of the store
	// Config is what broker.conf says: file sizes, messageDelayLevel, messageIndexEnable, storePathCommitLog. nil: sizes
	// are taken from the files, the rest is official defaults.
	Config *store.Config
	// Progress is told how far long work is, many times a second. May be nil.
	Progress func(Progress)
	Clock    func() time.Time // nil is time.Now
}

// Progress is how far one stage of long work is, in bytes or in queues.
type Progress struct {
	Stage       string
	Done, Total int64
}

// Dir is a store directory. Its methods are called by one goroutine.
type Dir struct {
	o      Options
	fs     vfs.FS
	log    commitLog
	queues queueTable
	index  indexFiles

	unitSizes map[string]int64 // of the files of consumequeue_ext, by folder; see extendedSize

	abort      bool  // a broker runs, or was not stopped
	running    bool  // a broker holds the lock
	known      int64 // see knownEnd; 0: not looked for yet
	checkpoint store.Checkpoint
	deliver    func(level int, storeTimestamp int64) int64
}

// Open lists the files of a store. An error says what can't be read at all; damage is left to Verify.
func Open(o Options) (*Dir, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Root = path.Clean(o.Root)
	d := &Dir{o: o, fs: o.FS}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Root, err)
	}
	return d, nil
}

func (d *Dir) open() (err error) {
	levels := store.DefaultConfig("").MessageDelayLevel
	if c := d.o.Config; c != nil {
		levels = c.MessageDelayLevel
		if strings.Contains(c.StorePathCommitLog, ",") || c.ReadOnlyCommitLogStorePaths != "" {
			return errors.New("a commit log in several folders is not served")
		}
	}
	l, err := store.ParseDelayLevels(levels)
	if err != nil {
		return err
	}
	d.deliver = l.DeliverTime
	names, err := d.fs.List(d.o.Root)
	if err != nil {
		return err
	}
	for _, e := range names {
		if e.IsDir() && strings.HasPrefix(e.Name(), "dledger-") {
			return fmt.Errorf("%s: the log of a DLedger broker is not served", e.Name())
		}
	}
	found := false
	for _, name := range []string{"commitlog", "consumequeue", "config"} {
		there, err := d.exists(d.path(name))
		if err != nil {
			return err
		}
		found = found || there
	}
	if !found {
		return ErrNoStore
	}
	if d.abort, err = d.exists(d.path("abort")); err != nil {
		return err
	}
	if d.running, err = vfs.Locked(d.fs, d.path("lock")); err != nil {
		return err
	}
	if d.checkpoint, err = store.ReadCheckpoint(d.fs, d.path("checkpoint")); err != nil {
		return err
	}
	if err := d.openLog(); err != nil {
		return err
	}
	if err := d.openQueues(); err != nil {
		return err
	}
	return d.openIndex()
}

// Running tells whether a broker has the store open now: what is read may change under the reader's eyes.
func (d *Dir) Running() bool { return d.running }

// path is the path of something in ROOT.
func (d *Dir) path(name string) string { return path.Join(d.o.Root, name) }

// short is a path as findings give it: from ROOT on.
func (d *Dir) short(name string) string { return strings.TrimPrefix(name, d.o.Root+"/") }

func (d *Dir) exists(name string) (bool, error) {
	_, err := d.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// list is the entries of a folder; one that is not there has none.
func (d *Dir) list(dir string) ([]fs.DirEntry, error) {
	entries, err := d.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// progress tells how far a stage is.
func (d *Dir) progress(stage string, done, total int64) {
	if d.o.Progress != nil {
		d.o.Progress(Progress{stage, done, total})
	}
}

// commonSize is the size that most files have; of two that are as common, the larger one.
func commonSize(count map[int64]int) (size int64) {
	best := 0
	for s, n := range count {
		if s > 0 && (n > best || n == best && s > size) {
			size, best = s, n
		}
	}
	return size
}
