package acl

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// How changes are noticed: by the system's word, once nothing has happened for settle, and by a look every poll, for file
// systems that do not tell (NFS, some container volumes).
const (
	settle = 200 * time.Millisecond
	poll   = 5 * time.Second // the official period
)

// Start begins to look for changes of the files.
func (t *Table) Start() {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.o.Log.Warn("changes of ACL files are noticed with a delay", "delay", poll, "error", err)
	}
	t.wg.Add(1)
	go t.watch(w)
}

// Close ends Start's goroutine. The rules stay.
func (t *Table) Close() {
	t.once.Do(func() { close(t.stop) })
	t.wg.Wait()
}

// watch is the goroutine of Start. w may be nil.
func (t *Table) watch(w *fsnotify.Watcher) {
	defer t.wg.Done()
	var events chan fsnotify.Event
	var failures chan error
	if w != nil {
		defer w.Close()
		events, failures = w.Events, w.Errors
	}
	known := t.follow(w, nil)
	_ = t.Reload() // what has changed since Open
	period := time.NewTicker(poll)
	defer period.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	look := func() {
		known = t.follow(w, known)
		_ = t.Reload() // the log has it
	}
	for {
		select {
		case <-t.stop:
			return
		case <-events:
			quiet.Reset(settle)
		case <-failures:
			quiet.Reset(settle) // events were lost
		case <-quiet.C:
			look()
		case <-period.C:
			look()
		}
	}
}

// follow has w watch the folders that are there now, and the folders of files that are links.
func (t *Table) follow(w *fsnotify.Watcher, known map[string]bool) map[string]bool {
	if w == nil {
		return nil
	}
	_, dirs, err := t.o.paths()
	if err != nil {
		return known
	}
	now := make(map[string]bool, len(dirs))
	for _, dir := range dirs {
		if w.Add(dir) == nil { // a folder that was made anew is another one
			now[dir] = true
		}
	}
	for dir := range known {
		if !now[dir] {
			_ = w.Remove(dir) // gone, or no folder of ours any more
		}
	}
	return now
}
