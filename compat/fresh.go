package compat

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Fresh is the names of a table that have been added and are perhaps not in its file yet. The zero value has none. Its lock is taken
// last, so a table may hold its own meanwhile.
type Fresh struct {
	count atomic.Int32 // len(mu.names)
	mu    struct {
		sync.Mutex
		names   map[string]struct{}
		written []string // those in the text that is being written
	}
}

// Add notes a name. The table's lock must be held from before this call until the name is in the table.
func (f *Fresh) Add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.names == nil {
		f.mu.names = make(map[string]struct{})
	}
	f.mu.names[name] = struct{}{}
	f.count.Store(int32(len(f.mu.names)))
}

// Has tells whether a name is perhaps not in the file: what depends on it must wait for a write that is done.
func (f *Fresh) Has(name string) bool {
	if f.count.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, fresh := f.mu.names[name]
	return fresh
}

// Writing is called by the encode function of the Saver, with the table's lock held and before it looks at what the table has: so a
// name that it finds is there.
func (f *Fresh) Writing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.written = slices.Collect(maps.Keys(f.mu.names))
}

// Saved has the file written as Saver.Changed has, and the names in it are fresh no more before done (nil: nobody waits) is called.
func (f *Fresh) Saved(s *Saver, done func(error)) {
	s.Changed(func(err error) {
		if err == nil {
			f.settle()
		}
		if done != nil {
			done(err)
		}
	})
}

// settle notes that the text last made is durable.
func (f *Fresh) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.mu.written {
		delete(f.mu.names, name)
	}
	f.mu.written = nil
	f.count.Store(int32(len(f.mu.names)))
}
