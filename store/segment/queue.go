package segment

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"

	"rocketd/store/vfs"
)

// ErrSize: a file has another size than the configured one, which follows in the text.
var ErrSize = errors.New("the configured file size is")

// Queue is the files of a folder, in order and without gaps. Readers take no lock: the list is immutable and
// replaced as a whole.
type Queue struct {
	fs   vfs.FS
	dir  string
	size int64

	mu    sync.Mutex // one change at a time
	files atomic.Pointer[[]*File]
}

// Open opens all files of a folder, which must exist. An empty last file, left by a creation that was cut off, is
// removed. Errors name the file: one of another size than size, one whose name is not a multiple of it, and
// one that is missing between two others.
func Open(fsys vfs.FS, dir string, size int64, log *slog.Logger) (*Queue, error) {
	q := &Queue{fs: fsys, dir: dir, size: size}
	starts, err := q.scan(log)
	if err != nil {
		return nil, err
	}
	files := make([]*File, 0, len(starts))
	for _, start := range starts {
		name := path.Join(dir, Name(start))
		file, err := fsys.Open(name)
		if err != nil {
			for _, f := range files {
				f.Drop()
			}
			return nil, err
		}
		files = append(files, newFile(fsys, name, start, size, file))
	}
	q.files.Store(&files)
	return q, nil
}

// scan returns the offsets of the files that are there, having checked names and sizes.
func (q *Queue) scan(log *slog.Logger) (starts []int64, err error) {
	entries, err := q.fs.List(q.dir)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, e := range entries { // in order of their names, so of their offsets
		name := path.Join(q.dir, e.Name())
		start, ok := ParseName(e.Name())
		if e.IsDir() || !ok {
			log.Warn("not a file of the store", "path", name)
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if start%q.size != 0 {
			return nil, fmt.Errorf("%s: its offset is not a multiple of the file size: %w %d", name, ErrSize, q.size)
		}
		starts, sizes = append(starts, start), append(sizes, info.Size())
	}
	for n := len(starts); n > 0 && sizes[n-1] == 0; n-- {
		name := path.Join(q.dir, Name(starts[n-1]))
		log.Warn("removing an empty file: its creation was cut off", "path", name)
		if err := q.fs.Remove(name); err != nil {
			return nil, err
		}
		starts, sizes = starts[:n-1], sizes[:n-1]
	}
	for i, start := range starts {
		name := path.Join(q.dir, Name(start))
		if sizes[i] != q.size {
			return nil, fmt.Errorf("%s: got %d bytes, %w %d", name, sizes[i], ErrSize, q.size)
		}
		if i > 0 && start != starts[i-1]+q.size {
			return nil, fmt.Errorf("%s is missing: the file behind %s is %s", path.Join(q.dir, Name(starts[i-1]+q.size)), Name(starts[i-1]), name)
		}
	}
	return starts, nil
}

// Files are the files, oldest first. The slice is not to be changed.
func (q *Queue) Files() []*File { return *q.files.Load() }

// Last is the newest file, nil when there is none.
func (q *Queue) Last() *File {
	files := q.Files()
	if len(files) == 0 {
		return nil
	}
	return files[len(files)-1]
}

// Find returns the file that holds an offset, nil when there is none.
func (q *Queue) Find(offset int64) *File {
	files := q.Files()
	if len(files) == 0 || offset < files[0].start {
		return nil
	}
	i := (offset - files[0].start) / q.size
	if i >= int64(len(files)) {
		return nil
	}
	return files[i]
}

// View holds the file of an offset for reading; false when there is none.
func (q *Queue) View(offset int64) (View, bool) {
	f := q.Find(offset)
	if f == nil || !f.hold() {
		return View{}, false
	}
	return View{f}, true
}

// Create makes the file of an offset without taking it into the queue: see Add.
func (q *Queue) Create(start int64) (*File, error) { return Create(q.fs, q.dir, start, q.size) }

// Add takes a file behind the last into the queue, which owns it from now on.
func (q *Queue) Add(f *File) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.Files()
	if n := len(old); n > 0 && old[n-1].End() != f.start {
		panic(fmt.Sprintf("segment: adding %s behind %s", f.path, old[n-1].path))
	}
	files := append(old[:len(old):len(old)], f)
	q.files.Store(&files)
}

// RemoveFirst deletes the oldest file, RemoveLast the newest. When that fails it stays in the queue.
func (q *Queue) RemoveFirst() error {
	return q.remove(func(files []*File) (*File, []*File) { return files[0], files[1:] })
}

// RemoveLast deletes the newest file.
func (q *Queue) RemoveLast() error {
	return q.remove(func(files []*File) (*File, []*File) { return files[len(files)-1], files[:len(files)-1] })
}

// MoveLast takes the newest file out of the queue and out of the folder, to a name in another folder of the same disk.
func (q *Queue) MoveLast(name string) error {
	return q.take(func(files []*File) (*File, []*File) { return files[len(files)-1], files[:len(files)-1] }, func(f *File) error {
		if err := q.fs.Rename(f.path, name); err != nil {
			return err
		}
		return q.fs.SyncDir(path.Dir(name))
	})
}

func (q *Queue) remove(choose func([]*File) (*File, []*File)) error {
	return q.take(choose, (*File).Remove)
}

func (q *Queue) take(choose func([]*File) (*File, []*File), away func(*File) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	f, rest := choose(q.Files())
	if err := away(f); err != nil {
		return err
	}
	q.files.Store(&rest)
	return errors.Join(f.Drop(), q.fs.SyncDir(q.dir))
}

// Close closes all files; one that is being read when its reader is done.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, f := range q.Files() {
		errs = append(errs, f.Drop())
	}
	q.files.Store(&[]*File{})
	return errors.Join(errs...)
}
