package compat

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteNewFile writes a file unless there is one that holds something: then it stays as it is and made is false. The file appears
// whole or not at all, whoever else does the same at the same moment. Missing folders are made.
func WriteNewFile(path string, text []byte, mode fs.FileMode) (made bool, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 600
	if err != nil {
		return false, err
	}
	tmp := f.Name()
	defer os.Remove(tmp)
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return false, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return true, os.Rename(tmp, path)
	}
	if err := os.Link(tmp, path); errors.Is(err, fs.ErrExist) {
		return false, nil // somebody else was quicker
	} else if err != nil {
		return false, err
	}
	return true, OSFiles.SyncDir(filepath.Dir(path))
}
