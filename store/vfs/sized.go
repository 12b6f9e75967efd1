package vfs

import "errors"

// errNotWhole: the file system cannot make a file whole.
var errNotWhole = errors.New("vfs: files can't be made whole")

// CreateSized makes a file of a size, all zeros; an existing one is an error, and after an error there is none. Where the
// system can do it, the file has its size as soon as it has its name: a process that is killed in between leaves
// nothing, while the official broker refuses to start with an empty file.
func CreateSized(fsys FS, name string, size int64) (File, error) {
	if w, ok := fsys.(interface {
		createWhole(name string, size int64) (File, error)
	}); ok {
		if f, err := w.createWhole(name, size); !errors.Is(err, errNotWhole) {
			return f, err
		}
	}
	f, err := fsys.Create(name)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		_ = fsys.Remove(name)
		return nil, err
	}
	return f, nil
}
