package compat

import (
	"errors"
	"io/fs"
)

// ReadOrBak reads a properties file; when it is missing, because an update was interrupted, what its .bak has.
func ReadOrBak(read func(name string) ([]byte, error), path string) ([]byte, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		bak, bakErr := read(path + ".bak")
		if !errors.Is(bakErr, fs.ErrNotExist) {
			return bak, bakErr
		}
	}
	return data, err
}

// EditConfigFile puts changed keys into a properties file, which is made when there is none, and leaves all else as it stands there.
func EditConfigFile(files FileSystem, path string, changed []KeyValue) error {
	data, err := ReadOrBak(files.ReadFile, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return WriteConfigFile(files, path, EditProperties(data, changed))
}
