package commitlog

import (
	"errors"
	"io/fs"
	"sync"

	"rocketd/store/segment"
)

// nextFile makes the file behind the newest in advance, as the official AllocateMappedFileService does, so that
// no append waits for it. The appender asks for it; one goroutine makes it.
type nextFile struct {
	wanted chan int64 // start of the file to be made
	stop   chan struct{}
	done   sync.WaitGroup

	mu   sync.Mutex    // held while a file is made, and while it is taken into the queue
	file *segment.File // made and not in the queue
}

func (n *nextFile) init() {
	n.wanted = make(chan int64, 1)
	n.stop = make(chan struct{})
}

// close ends the goroutine.
func (n *nextFile) close() {
	close(n.stop)
	n.done.Wait()
}

// wantNext asks for the file of an offset.
func (l *Log) wantNext(start int64) {
	select {
	case l.next.wanted <- start:
	default: // the disk is slow and the appender has made its files itself
	}
}

// nextLoop is the goroutine of Start that makes files in advance.
func (l *Log) nextLoop() {
	for {
		select {
		case <-l.next.stop:
			return
		case start := <-l.next.wanted:
			if err := l.makeNext(start); err != nil {
				l.o.Log.Warn("commit log: making the next file", "path", l.name(start), "err", err)
			}
		}
	}
}

func (l *Log) makeNext(start int64) error {
	l.next.mu.Lock()
	defer l.next.mu.Unlock()
	if last := l.files.Last(); l.next.file != nil || last == nil || last.End() != start {
		return nil // made meanwhile
	}
	f, err := l.files.Create(start)
	if err == nil {
		l.next.file = f
	}
	return err
}

// forgetNextIfGone lets go of a file made in advance that someone has removed: what is written to it would be lost with
// this process. The official broker does that when it is started on a directory in use: it recovers, and removes the
// files behind the end, before it looks at the lock. next.mu is held.
func (l *Log) forgetNextIfGone() {
	f := l.next.file
	if f == nil {
		return
	}
	if _, err := l.o.FS.Stat(f.Path()); errors.Is(err, fs.ErrNotExist) {
		l.o.Log.Error("commit log: the file made in advance was removed by someone else; it is made again", "path", f.Path())
		l.next.file = nil
		if err := f.Drop(); err != nil {
			l.o.Log.Warn("commit log: closing the removed file", "path", f.Path(), "err", err)
		}
	}
}

// removeNext removes the file made in advance.
func (l *Log) removeNext() error {
	l.next.mu.Lock()
	defer l.next.mu.Unlock()
	l.forgetNextIfGone()
	f := l.next.file
	if f == nil {
		return nil
	}
	l.next.file = nil
	return errors.Join(f.Remove(), f.Drop(), l.o.FS.SyncDir(l.o.Dir))
}
