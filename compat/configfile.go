package compat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files of configuration are written the official way, made safe:
//
//	X.tmp   the new text, synced before anything else is touched
//	X.bak   what X was before; X becomes it by a rename
//	X       the new text, by a rename; then the directory is synced
//
// At every moment X or X.bak is a whole file. (The official servers copy X to X.bak, delete X and rename X.tmp,
// and sync nothing.) Read is X, and X.bak when X is missing or can't be understood.

// FileSystem is what configuration files need of a file system. Names are paths. Its methods may be called from
// several goroutines, but not for the same name at once. A missing file's error is fs.ErrNotExist.
type FileSystem interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error // creates or empties, writes and syncs
	Rename(from, to string) error             // replaces to
	Remove(name string) error
	SyncDir(dir string) error
	MkdirAll(dir string) error
}

// OSFiles is the operating system's file system.
var OSFiles FileSystem = osFiles{}

type osFiles struct{}

func (osFiles) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }
func (osFiles) Rename(from, to string) error         { return os.Rename(from, to) }
func (osFiles) Remove(name string) error             { return os.Remove(name) }
func (osFiles) MkdirAll(dir string) error            { return os.MkdirAll(dir, 0o755) }

func (osFiles) WriteFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (osFiles) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LoadConfigFile gives the text of path to decode, or that of path.bak when path is missing, empty or refused
// by decode. from is the file that was taken, "" when there is neither (no error). When there are files and none
// is any good the error says why, for each.
func LoadConfigFile(files FileSystem, path string, decode func([]byte) error) (from string, err error) {
	var errs []error
	for _, name := range []string{path, path + ".bak"} {
		data, err := files.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && len(data) == 0:
			err = errors.New("empty file")
		case err == nil:
			err = decode(data)
		}
		if err == nil {
			return name, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", errors.Join(errs...)
}

// WriteConfigFile replaces the text of path, keeping the old text as path.bak. When it returns nil the new text
// is durable; after an error the old one is still read.
func WriteConfigFile(files FileSystem, path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	if err := files.WriteFile(path+".tmp", data); err != nil {
		return err
	}
	if err := files.Rename(path, path+".bak"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := files.Rename(path+".tmp", path); err != nil {
		return err
	}
	return files.SyncDir(dir)
}
