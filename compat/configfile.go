package compat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
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

// ReadFile does not wait for the other end of a pipe that stands where the file should.
func (osFiles) ReadFile(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is a pipe and no file")}
	}
	return os.ReadFile(name)
}
func (osFiles) Rename(from, to string) error { return os.Rename(from, to) }
func (osFiles) Remove(name string) error     { return os.Remove(name) }
func (osFiles) MkdirAll(dir string) error    { return os.MkdirAll(dir, 0o755) }

func (osFiles) WriteFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return writeAll(f, data)
}

// writeFileLike is WriteFile of a file that gets mode and owner of model, when there is one, before it gets its text:
// it may hold secrets. Only root can give files away; for others the owner is theirs anyway, and the group is
// tried for.
func (f osFiles) writeFileLike(model, name string, data []byte) error {
	info, err := os.Stat(model)
	if err != nil || !info.Mode().IsRegular() {
		return f.WriteFile(name, data)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && file.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = file.Chown(-1, int(s.Gid))
	}
	if err := file.Chmod(info.Mode().Perm()); err != nil {
		return errors.Join(err, file.Close())
	}
	return writeAll(file, data)
}

func writeAll(f *os.File, data []byte) error {
	_, err := f.Write(data)
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
// by decode. from is the file that was taken, "" when there is neither (no error). A damaged path that its .bak
// stands in for is put aside and told of in the log: the next write would make it the .bak. When there are files
// and none is any good they are left, and the error says why, for each.
func LoadConfigFile(files FileSystem, path string, log *slog.Logger, decode func([]byte) error) (from string, err error) {
	from, bad, err := readEither(files, path, decode)
	if from == "" || len(bad) == 0 {
		return from, err
	}
	if errors.Is(bad[0].why, fs.ErrPermission) { // not damaged, and newer than its .bak
		return "", fmt.Errorf("%s: %w; make it readable for the user that the server runs as", path, bad[0].why)
	}
	log.Error("DAMAGED CONFIGURATION FILE: its .bak, the state before the last write, is used instead", "file", path, "error", bad[0].why, "used", from)
	return from, putAside(files, path, bad, log)
}

// LoadConfigFileOrNone is LoadConfigFile for a table that a server can start without. Damaged files that nothing
// stands in for are put aside, and lost, what that means for the users, goes into the log with them; from is ""
// then. Files that may not be read are an error still: they are not damaged.
func LoadConfigFileOrNone(files FileSystem, path string, log *slog.Logger, lost string, decode func([]byte) error) (from string, err error) {
	from, err = LoadConfigFile(files, path, log, decode)
	if err == nil || from != "" || errors.Is(err, fs.ErrPermission) {
		return from, err
	}
	_, bad, _ := readEither(files, path, decode)
	for _, d := range bad {
		log.Error("DAMAGED CONFIGURATION FILE, AND NOTHING TO STAND IN FOR IT: starting without it", "file", d.name, "error", d.why, "consequence", lost)
	}
	return "", putAside(files, path, bad, log)
}

// damaged is a file that can't be taken, and why.
type damaged struct {
	name string
	why  error
}

func readEither(files FileSystem, path string, decode func([]byte) error) (from string, bad []damaged, err error) {
	var errs []error
	for _, name := range []string{path, path + ".bak"} {
		data, err := files.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue
		case err == nil && len(data) == 0:
			err = errors.New("empty file")
		case err == nil:
			err = decode(data)
		}
		if err == nil {
			return name, bad, nil
		}
		bad = append(bad, damaged{name, err})
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", bad, errors.Join(errs...)
}

// putAside renames damaged files to X.damaged-<time>, so that no write replaces them.
func putAside(files FileSystem, path string, bad []damaged, log *slog.Logger) error {
	at := time.Now().UTC().Format("20060102T150405.000")
	for _, d := range bad {
		to := d.name + ".damaged-" + at
		if err := files.Rename(d.name, to); err != nil {
			return fmt.Errorf("the damaged file %s (%w) can't be put aside; move it away by hand: %w", d.name, d.why, err)
		}
		log.Warn("damaged configuration file kept aside; put it back, mended, while the server is stopped", "file", d.name, "as", to)
	}
	return files.SyncDir(filepath.Dir(path))
}

// WriteConfigFile replaces the text of path, keeping the old text as path.bak. When it returns nil the new text
// is durable; after an error the old one is still read. Text that is there already is not written again: the .bak
// stays what was before it. Mode and owner of the old file go on.
func WriteConfigFile(files FileSystem, path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	if old, err := files.ReadFile(path); err == nil && len(data) > 0 && bytes.Equal(old, data) {
		return files.SyncDir(dir) // an earlier write may have failed there
	}
	write := files.WriteFile
	if f, ok := files.(interface {
		writeFileLike(model, name string, data []byte) error
	}); ok {
		write = func(name string, data []byte) error { return f.writeFileLike(path, name, data) }
	}
	if err := write(path+".tmp", data); err != nil {
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
