package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Open loads the queues of a folder: which files there are, not yet what they hold (Recover). As the official
// broker it refuses files of another size than the configured one.
func Open(o Options) (*Table, error) {
	t := newTable(o)
	t.openExt()
	if err := t.load(o.Ends); err != nil {
		t.Summarise()
		return nil, err
	}
	return t, nil
}

// load notes what is in the folder. ends is Options.Ends.
func (t *Table) load(ends []byte) error {
	topics, err := t.fs.List(t.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("consumequeue: %w", err)
	}
	known, err := splitEnds(ends)
	if err != nil {
		t.log.Warn("the hint of the queues' ends is not used", "error", err)
	}
	if countEnds(known) < t.endsMin {
		known = nil
	}
	err = t.phase("reading the folders of topics", len(topics), func(i int) error {
		if !topics[i].IsDir() {
			return lostLink(topics[i])
		}
		if queues, ok := known[topics[i].Name()]; ok {
			if done, err := t.loadHinted(topics[i].Name(), topics[i], queues); done || err != nil {
				return err
			}
		}
		return t.loadTopic(topics[i].Name())
	})
	if err != nil {
		return err
	}
	return t.removeLost()
}

// inParallel calls f for 0 to n-1 on a few goroutines and returns the first error. Loading many small files
// waits for the disk more than for the processor.
func inParallel(n int, f func(i int) error) error {
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Pointer[error]
	)
	for range min(n, 4*runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(takenAtOnce)) - takenAtOnce
				if i >= n {
					return
				}
				for end := min(n, i+takenAtOnce); i < end; i++ {
					if err := f(i); err != nil {
						failed.CompareAndSwap(nil, &err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// takenAtOnce is how many neighbours inParallel gives to one goroutine.
const takenAtOnce = 32

// loadTopic loads the queues of a topic's folder.
func (t *Table) loadTopic(topic string) error {
	dir := path.Join(t.root, topic)
	queues, err := t.fs.List(dir)
	if err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	for _, entry := range queues {
		queueId, err := strconv.ParseInt(entry.Name(), 10, 32)
		if err != nil || strconv.FormatInt(queueId, 10) != entry.Name() {
			continue // as the official broker
		}
		if !entry.IsDir() {
			if err := lostLink(entry); err != nil {
				return err
			}
			continue
		}
		files, err := t.fs.List(path.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("consumequeue: %w", err)
		}
		if err := t.loadQueue(topic, int32(queueId), files); err != nil {
			return err
		}
	}
	return nil
}

// lostLink is an error when the folder of a topic or a queue is a link that leads nowhere: its disk is not mounted, and without
// it the queue offsets would begin at 0 again.
func lostLink(entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink == 0 {
		return nil
	}
	if _, err := entry.Info(); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	return nil
}

// loadQueue notes the files of a queue.
func (t *Table) loadQueue(topic string, queueId int32, files []fs.DirEntry) error {
	files = slices.DeleteFunc(files, func(file fs.DirEntry) bool {
		if isFileName(file.Name()) {
			return false
		}
		t.notice(slog.LevelWarn, "not a consume-queue file, left alone; the official broker does not start with it", "file", path.Join(t.root, topic, strconv.Itoa(int(queueId)), file.Name()))
		return true
	})
	if len(files) == 0 {
		t.lost.mu.Lock()
		defer t.lost.mu.Unlock()
		if t.lost.empty == nil {
			t.lost.empty = make(map[Name]struct{})
		}
		t.lost.empty[Name{topic, queueId}] = struct{}{}
		return nil
	}
	q := t.findOrCreate(topic, queueId)
	q.mu.Lock()
	defer q.mu.Unlock()
	size := t.perFile * EntrySize
	for i, file := range files {
		name := path.Join(t.dir(q), file.Name())
		offset, err := strconv.ParseInt(file.Name(), 10, 64)
		if err != nil {
			return fmt.Errorf("consumequeue: %s is not a consume-queue file; move it away: %w", name, err)
		}
		info, err := file.Info()
		if err != nil {
			return fmt.Errorf("consumequeue: %w", err)
		}
		if info.Size() == 0 {
			// A creation that was cut off.
			if err := t.extend(name); err != nil {
				return err
			}
		} else if info.Size() != size {
			t.oddSize(q, fmt.Errorf("consumequeue: %s has %d bytes, mappedFileSizeConsumeQueue says %d; configure the size that the files were made with",
				name, info.Size(), size))
			return nil
		}
		if offset%size != 0 {
			return fmt.Errorf("consumequeue: the name of %s is no multiple of mappedFileSizeConsumeQueue %d; configure the size that the files were made with", name, size)
		}
		start := offset / EntrySize
		if i == 0 {
			q.first, q.end = start, start
		}
		if start != q.end && t.crashed {
			// The name of the file between was lost with the power. Truncate sees whether that matters.
			t.addOrphan(q, start)
			continue
		}
		if start != q.end {
			t.lose(q, fmt.Errorf("consumequeue: %s/%020d is missing: %s follows a gap", t.dir(q), q.end*EntrySize, name))
			return nil
		}
		t.lost.sized.Store(true)
		q.end += t.perFile
	}
	if t.crashed {
		t.addDirs(q) // whoever made the files may have died before their names were synced
	}
	return nil
}

// isFileName tells whether a name is that of a queue file: 20 digits.
func isFileName(name string) bool {
	return len(name) == 20 && strings.Trim(name, "0123456789") == ""
}

func (t *Table) addOrphan(q *Queue, start int64) {
	t.flush.Lock()
	defer t.flush.Unlock()
	t.orphans[q] = append(t.orphans[q], start)
}

// extend gives a file its full length.
func (t *Table) extend(name string) error {
	f, err := t.fs.Open(name)
	if err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(t.perFile * EntrySize); err != nil {
		return fmt.Errorf("consumequeue: %w", err)
	}
	t.notice(slog.LevelWarn, "an empty consume-queue file was given its length", "file", strings.TrimPrefix(name, t.root+"/"))
	return nil
}
