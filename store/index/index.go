package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/store/vfs"
)

// Options is what an index needs.
type Options struct {
	FS             vfs.FS
	Dir            string // ROOT/index
	MaxHashSlotNum int    // slots of a file
	MaxIndexNum    int    // entries of a file, counted from the unused entry 0
	Clock          func() time.Time
	Log            *slog.Logger
}

// Index is all index files of a store. Put is called by one goroutine (the dispatcher), Flush by one (the
// flusher); Query by any number.
type Index struct {
	fs       vfs.FS
	dir      string
	slotNum  int32
	indexNum int32
	clock    func() time.Time
	log      *slog.Logger
	scratch  []byte      // the flusher's
	failing  atomic.Bool // the last write failed

	mu sync.Mutex
	// Guarded by mu.
	files   []*file // oldest first; the last one is written
	damaged error   // the first failure that only a rebuild mends
	dirSync bool    // the folder has new files

	fullTimestamp int64 // see FullTimestamp
	again         int64 // the record that is indexed though it is the last one; -1: none
	shrunk        bool  // see Shrunk
}

// Open loads the headers of the files in a folder, which need not exist.
func Open(o Options) (*Index, error) {
	x := &Index{fs: o.FS, dir: o.Dir, slotNum: int32(o.MaxHashSlotNum), indexNum: int32(o.MaxIndexNum), clock: o.Clock, log: o.Log, again: -1}
	entries, err := x.fs.List(x.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("index: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || !isFileName(e.Name()) {
			x.log.Warn("not an index file, left alone", "file", path.Join(x.dir, e.Name()))
			continue
		}
		f := &file{name: e.Name(), path: path.Join(x.dir, e.Name())}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			x.log.Error("an index file is not there; its keys are indexed again", "file", f.path, "error", err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
		if info.Size() > x.fileSize() {
			x.log.Error("an index file is larger than maxHashSlotNum and maxIndexNum make it; it is not used", "file", f.path,
				"size", info.Size(), "expected", x.fileSize())
			continue
		}
		if f.header, err = x.readHeader(f.path); err != nil {
			return nil, err
		}
		x.files = append(x.files, f)
	}
	return x, nil
}

func (x *Index) readHeader(name string) (header, error) {
	in, err := x.fs.OpenRead(name)
	if err != nil {
		return header{}, fmt.Errorf("index: %w", err)
	}
	defer in.Close()
	var b [headerSize]byte
	if err := readFull(in, b[:], 0); err != nil {
		return header{}, fmt.Errorf("index: reading %s: %w", name, err)
	}
	return decodeHeader(b[:]), nil
}

func isFileName(name string) bool {
	return len(name) == len("yyyyMMddHHmmssSSS") && strings.Trim(name, "0123456789") == ""
}

// Empty tells whether there is no index file.
func (x *Index) Empty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.files) == 0
}

// EndPhyOffset is the commit-log offset of the last record that was indexed, 0 when there is none.
func (x *Index) EndPhyOffset() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.files); n > 0 {
		return x.files[n-1].header.endPhyOffset
	}
	return 0
}

// Damaged returns the failure after which the files can no longer be believed, nil when there was none.
func (x *Index) Damaged() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.damaged
}

// Failing tells whether writing files fails at the moment: new entries stay in memory until a Flush succeeds.
func (x *Index) Failing() bool { return x.failing.Load() }

// Put indexes the record at phyOffset under its unique key (if not empty) and each of its keys, which are parted by
// spaces. A record at or before the last one is passed over, so a part of the log can be dispatched again. After an
// error the entries are in memory and are written later, unless Damaged says that some are lost.
func (x *Index) Put(topic, uniqKey, keys string, phyOffset, storeTimestamp int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.files); n > 0 {
		h := &x.files[n-1].header
		if phyOffset < h.endPhyOffset || phyOffset == h.endPhyOffset && h.count > 1 && phyOffset != x.again {
			return nil
		}
	}
	x.again = -1
	// As IndexService#buildIndex of 4.9.8 the file is made even for a record without keys.
	if _, err := x.current(); err != nil {
		return err
	}
	var first error
	if uniqKey != "" {
		first = x.putKey(topic, uniqKey, phyOffset, storeTimestamp)
	}
	for keys != "" {
		key := keys
		if i := strings.IndexByte(keys, ' '); i >= 0 {
			key, keys = keys[:i], keys[i+1:]
		} else {
			keys = ""
		}
		if key == "" {
			continue
		}
		if err := x.putKey(topic, key, phyOffset, storeTimestamp); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (x *Index) putKey(topic, key string, phyOffset, storeTimestamp int64) error {
	f, err := x.current()
	if err != nil {
		return err
	}
	return x.put(f, keyHash(topic, key), phyOffset, storeTimestamp)
}

// current returns the file that is written, making a new one when there is none or it is full.
func (x *Index) current() (*file, error) {
	var last *file
	if n := len(x.files); n > 0 {
		if last = x.files[n-1]; last.header.count < x.indexNum {
			err := x.openWriter(last)
			if err != nil {
				x.damageLocked(err)
			}
			return last, err
		}
	}
	f, err := x.create(last)
	if err != nil {
		x.damageLocked(err)
		return nil, err
	}
	x.files = append(x.files, f)
	return f, nil
}

// openWriter prepares a file for writing.
func (x *Index) openWriter(f *file) error {
	if f.writer != nil {
		return nil
	}
	out, err := x.fs.Open(f.path)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	info, err := out.Stat()
	if err == nil && info.Size() < x.fileSize() {
		err = out.Truncate(x.fileSize())
	}
	if err != nil {
		out.Close()
		return fmt.Errorf("index: %w", err)
	}
	f.writer = &writer{file: out, written: f.header.count, pages: x.newPages(), synced: true}
	return nil
}

func (x *Index) newPages() []*slotPage {
	return make([]*slotPage, (x.slotNum+pageSlots-1)/pageSlots)
}

// create makes a new file behind last. Its header begins with what last ended with, until it has an entry.
func (x *Index) create(last *file) (*file, error) {
	if err := x.fs.MkdirAll(x.dir); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	for at := x.clock(); ; at = at.Add(time.Millisecond) {
		name := fileName(at)
		if last != nil && name <= last.name {
			// The clock went back, or two files in a millisecond: the order of the names must be that of the files.
			if t, err := time.ParseInLocation("20060102150405.000", last.name[:14]+"."+last.name[14:], time.Local); err == nil {
				at = t
			}
			continue
		}
		f := &file{name: name, path: path.Join(x.dir, name)}
		out, err := vfs.CreateSized(x.fs, f.path, x.fileSize())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("index: making %s: %w", f.path, err)
		}
		f.header.count = 1
		if last != nil {
			f.header.beginPhyOffset, f.header.endPhyOffset = last.header.endPhyOffset, last.header.endPhyOffset
			f.header.beginTimestamp, f.header.endTimestamp = last.header.endTimestamp, last.header.endTimestamp
		}
		// At once: after a kill the official broker judges the file by it, and indexes anew from where the newest one ends.
		// One without a header would be kept, and all that the files before it hold be put into it again.
		// What can't be written now is written with the entries.
		if _, err := out.WriteAt(f.header.append(nil), 0); err != nil {
			x.failing.Store(true)
		}
		f.writer = &writer{file: out, written: 1, pages: x.newPages(), fresh: true, dirty: true}
		x.dirSync = true
		return f, nil
	}
}

// fileName is the name of a file made at a time (UtilAll#timeMillisToHumanString of 4.9.8).
func fileName(at time.Time) string {
	return strings.Replace(at.Local().Format("20060102150405.000"), ".", "", 1)
}
