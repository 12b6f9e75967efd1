package compat

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
)

var errFault = errors.New("fault")

// memFiles is a file system in memory: content is durable when WriteFile returns, names when SyncDir does. The
// failAt-th operation that changes something fails (0 = none), leaving half a file behind when it writes.
type memFiles struct {
	sync.Mutex
	files   map[string]string
	durable map[string]string   // names as of the last SyncDir
	renames []map[string]string // names after each change since then
	ops     int
	failAt  int
}

func newMemFiles(files map[string]string) *memFiles {
	m := &memFiles{files: make(map[string]string), durable: make(map[string]string)}
	for name, text := range files {
		m.files[name], m.durable[name] = text, text
	}
	return m
}

// step counts an operation. True: it fails.
func (m *memFiles) step() bool {
	m.ops++
	return m.ops == m.failAt
}

func (m *memFiles) changed() {
	now := make(map[string]string, len(m.files))
	for name, text := range m.files {
		now[name] = text
	}
	m.renames = append(m.renames, now)
}

func (m *memFiles) ReadFile(name string) ([]byte, error) {
	m.Lock()
	defer m.Unlock()
	text, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (m *memFiles) WriteFile(name string, data []byte) error {
	m.Lock()
	defer m.Unlock()
	fail := m.step()
	if fail {
		data = data[:len(data)/2]
	}
	m.files[name] = string(data)
	m.changed()
	if fail {
		return errFault
	}
	return nil
}

func (m *memFiles) Rename(from, to string) error {
	m.Lock()
	defer m.Unlock()
	if m.step() {
		return errFault
	}
	text, ok := m.files[from]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	delete(m.files, from)
	m.files[to] = text
	m.changed()
	return nil
}

func (m *memFiles) Remove(name string) error {
	m.Lock()
	defer m.Unlock()
	if m.step() {
		return errFault
	}
	delete(m.files, name)
	m.changed()
	return nil
}

func (m *memFiles) SyncDir(string) error {
	m.Lock()
	defer m.Unlock()
	if m.step() {
		return errFault
	}
	if n := len(m.renames); n > 0 {
		m.durable = m.renames[n-1]
	}
	m.renames = nil
	return nil
}

func (m *memFiles) MkdirAll(dir string) error {
	if dir != filepath.Clean(dir) {
		return errFault
	}
	return nil
}

// crashes returns what the disk may hold after a power cut: the names as of the last sync, or after any of the
// changes since.
func (m *memFiles) crashes() []*memFiles {
	all := []*memFiles{newMemFiles(m.durable)}
	for _, names := range m.renames {
		all = append(all, newMemFiles(names))
	}
	return all
}
