package acl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Folder is where ACL files lie: every *.yml and *.yaml below HOME/conf/acl, in the order of their names, then the
// default file. Of an access key that is there twice the first counts.
type Folder struct {
	Home string // rocketmqHome
	File string // the default file, below Home; "" = conf/plain_acl.yml
}

// Default is the path of the default file.
func (f Folder) Default() string {
	name := f.File
	if name == "" {
		name = "conf/plain_acl.yml"
	}
	return filepath.Join(f.Home, name)
}

// dir is the folder of the other files.
func (f Folder) dir() string { return filepath.Join(f.Home, "conf", "acl") }

// maxDepth is how deep folders below conf/acl are followed, maxFiles how many files are read.
const (
	maxDepth = 8
	maxFiles = 1000
)

// paths are the files that are there, and the folders in which others may appear.
func (f Folder) paths() (files, dirs []string, err error) {
	dirs = append(dirs, filepath.Dir(f.Default()))
	err = walk(f.dir(), 0, &files, &dirs)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if len(files) > maxFiles {
		return nil, nil, fmt.Errorf("%s has %d ACL files, more than %d", f.dir(), len(files), maxFiles)
	}
	if _, statErr := os.Stat(f.Default()); statErr == nil && !slices.Contains(files, f.Default()) {
		files = append(files, f.Default())
	}
	return files, dirs, err
}

// walk lists the ACL files of a folder. Names with a dot in front are left out: editors and volumes of containers keep
// their own things there.
func walk(dir string, depth int, files, dirs *[]string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	*dirs = append(*dirs, dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(path) // a link counts as what it leads to
		switch {
		case err != nil:
		case info.IsDir() && depth < maxDepth:
			if err := walk(path, depth+1, files, dirs); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case info.Mode().IsRegular() && (strings.HasSuffix(path, ".yml") || strings.HasSuffix(path, ".yaml")):
			*files = append(*files, path)
		}
	}
	return nil
}

// read reads a file, no more than one byte past the bound.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxBytes+1))
}

// replace writes a file whole or not at all: a temporary file with the same mode and owner is synced and takes its
// place. A link stays a link.
func replace(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".acl-*") // mode 600
	if err != nil {
		return err
	}
	err = fill(tmp, path, data)
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fill gives a new file mode, owner and text.
func fill(tmp *os.File, model string, data []byte) error {
	var err error
	if info, statErr := os.Stat(model); statErr == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok && tmp.Chown(int(s.Uid), int(s.Gid)) != nil {
			_ = tmp.Chown(-1, int(s.Gid)) // only root can give files away
		}
		err = tmp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = tmp.Write(data)
	}
	if err == nil {
		err = tmp.Sync()
	}
	return errors.Join(err, tmp.Close())
}

// WarnModes says of a file with secret keys when others than the owner and the group can read secrets, or others than the owner can change the rules.
func WarnModes(path string, log *slog.Logger) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o026 != 0 {
		log.Warn("OTHERS MAY READ OR CHANGE AN ACL FILE OR AN ACCOUNT, which holds secret keys; chmod 600 it", "file", path, "mode", info.Mode().Perm().String())
	}
	if info, err := os.Stat(filepath.Dir(path)); err == nil && info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		log.Warn("OTHERS MAY REPLACE AN ACL FILE OR AN ACCOUNT: everybody can write to its folder", "folder", filepath.Dir(path), "mode", info.Mode().Perm().String())
	}
}
