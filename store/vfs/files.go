package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
)

// Files serves whole small files on an FS: what configuration files and the checkpoint need. It is the
// interface that package compat asks for.
type Files struct{ FS FS }

// ReadFile returns the content of a file.
func (f Files) ReadFile(name string) ([]byte, error) {
	file, err := f.FS.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	n, err := file.ReadAt(b, 0)
	if err != nil && err != io.EOF { // EOF: someone cut it meanwhile
		return nil, err
	}
	return b[:n], nil
}

// WriteFile makes data the durable content of a file, which is created where needed. A crash meanwhile may
// leave anything in it, so write to another name and rename.
func (f Files) WriteFile(name string, data []byte) error {
	file, err := f.FS.Create(name)
	if errors.Is(err, fs.ErrExist) {
		if file, err = f.FS.Open(name); err == nil {
			if err = file.Truncate(0); err != nil {
				file.Close()
			}
		}
	}
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Rename renames a file, replacing another.
func (f Files) Rename(oldname, newname string) error { return f.FS.Rename(oldname, newname) }

// Remove removes a file.
func (f Files) Remove(name string) error { return f.FS.Remove(name) }

// SyncDir makes the entries of a directory durable.
func (f Files) SyncDir(dir string) error { return f.FS.SyncDir(dir) }

// MkdirAll makes a directory and its parents.
func (f Files) MkdirAll(dir string) error { return f.FS.MkdirAll(dir) }

// MkdirAllSync makes a directory and its parents, durably: the names of those that it makes are synced in the
// directory above.
func MkdirAllSync(f FS, dir string) error {
	var missing []string
	for at := path.Clean(dir); ; at = path.Dir(at) {
		_, err := f.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, at)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := f.MkdirAll(dir); err != nil {
		return err
	}
	for _, m := range missing {
		if err := f.SyncDir(path.Dir(m)); err != nil {
			return err
		}
	}
	return nil
}
