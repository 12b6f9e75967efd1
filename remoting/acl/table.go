// Package acl is access control as the plain ACL of 4.9.8: accounts with a secret key, signed requests, permissions for
// topics and groups, white lists of addresses, all from YAML files that are read again when they change.
//
// A request passes Rules.Check (rules.go), which asks the address (pattern.go), the signature (signature.go) and the
// permissions (account.go) for what the request needs (request.go); the answer is a Decision that can explain itself
// (decision.go). Files are read by file.go and scalar.go, changed by edit.go, found and replaced by folder.go, and looked
// at for changes by watch.go. Table holds them together.
//
// Where the official check has a hole, the safe answer is given; each such place is marked "compat".
package acl

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v4"

	"rocketd/protocol"
)

// Options is what a Table needs.
type Options struct {
	Folder
	Clock func() time.Time
	Log   *slog.Logger
}

// Table is the access control of a broker. Check may be called from any goroutine and takes no lock.
type Table struct {
	o     Options
	rules atomic.Pointer[Rules] // replaced whole

	refused atomic.Uint64

	mu struct {
		sync.Mutex // held to read and change files; nothing is called with it but the log
		order      []string
		loaded     map[string]*loaded
	}

	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// loaded is what is known of one file.
type loaded struct {
	sum     [sha256.Size]byte // of the text that was read last, good or bad
	file    *file             // the last good one
	version Version           // of file; the time of reading when it says nothing
}

// Open reads all ACL files. Each must be right: a broker does not start with half of its rules. A default file that is not
// there is made, empty, for its owner only.
func Open(o Options) (*Table, error) {
	if o.Home == "" {
		return nil, errors.New("aclEnable=true: rocketmqHome (or environment variable ROCKETMQ_HOME) must say where conf/plain_acl.yml and conf/acl lie")
	}
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return nil, err
	}
	o.Home = home
	t := &Table{o: o, stop: make(chan struct{})}
	t.mu.loaded = make(map[string]*loaded)
	if err := t.ensureDefault(); err != nil {
		return nil, fmt.Errorf("ACL file: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.reloadLocked(); err != nil {
		return nil, fmt.Errorf("ACL file: %w", err)
	}
	for _, path := range t.mu.order {
		WarnModes(path, o.Log)
	}
	if r := t.rules.Load(); len(r.accounts) == 0 && len(r.global) == 0 {
		o.Log.Warn("ACCESS CONTROL LETS NOBODY IN: no ACL file has an account or a white list", "file", o.Default())
	}
	return t, nil
}

// Load reads the rules of a folder once, without a Table: for tools.
func Load(f Folder) (*Rules, error) {
	files, _, err := f.paths()
	if err != nil {
		return nil, err
	}
	all := make(map[string]*loaded)
	for _, path := range files {
		data, err := read(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parse(path, data)
		if err != nil {
			return nil, err
		}
		all[path] = &loaded{file: parsed}
	}
	return merge(files, all, slog.New(slog.DiscardHandler)), nil
}

func (t *Table) ensureDefault() error {
	path := t.o.Default()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Check answers nil for a request that is let in, and else the error that is its answer.
func (t *Table) Check(cmd *protocol.Command, from netip.Addr) error {
	d := t.rules.Load().Check(cmd, from)
	if d.Allowed() {
		return nil
	}
	t.refused.Add(1)
	return d.Err()
}

// Authorize answers nil when the sender of a request that Check has let in may also do this, which only its handler
// knows.
func (t *Table) Authorize(cmd *protocol.Command, from netip.Addr, topic string, need Permission) error {
	key, has := cmd.Field(fieldAccessKey)
	d := t.rules.Load().identify(key, has, from)
	d.Code = protocol.RequestCode(cmd.Code)
	if d.Reason == Permitted {
		wanted := [1]Resource{TopicResource(topic, need)}
		authorize(&d, wanted[:])
	}
	if d.Allowed() {
		return nil
	}
	t.refused.Add(1)
	return d.Err()
}

// Account is the access key of the account that a request names; "" = it names none of ours.
func (t *Table) Account(cmd *protocol.Command) string {
	key, _ := cmd.Field(fieldAccessKey)
	if a := t.rules.Load().accounts[key]; a != nil {
		return a.AccessKey
	}
	return ""
}

// Permits tells whether an account, "" = none, may do something with a topic from an address, signatures aside.
func (t *Table) Permits(accessKey string, from netip.Addr, topic string, need Permission) bool {
	wanted := [1]Resource{TopicResource(topic, need)}
	d := t.rules.Load().Ask(accessKey, from, 0, wanted[:])
	return d.Allowed()
}

// Signer is the access key of the account that has signed a request; false: none of ours has.
func (t *Table) Signer(cmd *protocol.Command) (accessKey string, signed bool) {
	if d := t.rules.Load().signer(cmd); d.Reason == Permitted {
		return d.AccessKey, true
	}
	return "", false
}

// Administrator answers nil for a request that an administrator has signed, and else what it lacks. White lists do not
// count.
func (t *Table) Administrator(cmd *protocol.Command) error {
	d := t.rules.Load().signer(cmd)
	if d.Reason == Permitted && !d.Account.Admin {
		d.Reason = NeedsAdmin
	}
	if d.Allowed() {
		return nil
	}
	t.refused.Add(1)
	return errors.New(d.text())
}

// Refused is how many requests were refused.
func (t *Table) Refused() uint64 { return t.refused.Load() }

// Reload reads files that have changed. Of one that is wrong the old rules stay, and the log says what is wrong and
// where.
func (t *Table) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reloadLocked()
}

func (t *Table) reloadLocked() error {
	paths, _, err := t.o.paths()
	if err != nil {
		return err
	}
	changed := !slices.Equal(paths, t.mu.order)
	var all []error
	next := make(map[string]*loaded, len(paths))
	for _, path := range paths {
		old := t.mu.loaded[path]
		now, err := t.readLocked(path, old)
		if err != nil {
			all = append(all, err)
		}
		changed = changed || now != old
		if now != nil {
			next[path] = now
		}
	}
	if t.rules.Load() == nil && len(all) > 0 { // at start nothing is taken by halves
		return errors.Join(all...)
	}
	t.mu.order, t.mu.loaded = paths, next
	if changed {
		t.rules.Store(merge(paths, next, t.o.Log))
	}
	return errors.Join(all...)
}

// readLocked reads a file when its text is another than the last time; else, and when it is wrong, old is what it says.
func (t *Table) readLocked(path string, old *loaded) (*loaded, error) {
	data, err := read(path)
	if err != nil {
		return old, err
	}
	sum := sha256.Sum256(data)
	if old != nil && old.sum == sum {
		return old, nil
	}
	f, err := parse(path, data)
	if err == nil && !f.data && old != nil && old.file.data {
		// As in 4.9.8; it may also be that somebody is writing it just now.
		err = &FileError{Place{Path: path}, "the file has become empty"}
	}
	if err != nil {
		if old != nil {
			old.sum = sum // said once
			t.o.Log.Error("a changed ACL file is wrong; its old rules stay in force", "error", err)
			return old, err
		}
		t.o.Log.Error("an ACL file is wrong; it is not used", "error", err)
		return &loaded{sum: sum, file: &file{path: path}}, err
	}
	now := &loaded{sum: sum, file: f, version: Version{Timestamp: t.o.Clock().UnixMilli()}}
	if f.version != nil {
		now.version = *f.version
	}
	for _, w := range f.warnings {
		t.o.Log.Warn("ACL file: "+w.text, "place", w.place.String())
	}
	t.o.Log.Info("ACL file read", "file", path, "accounts", len(f.accounts), "globalWhiteRemoteAddresses", len(f.global), "counter", now.version.Counter)
	return now, nil
}

// merge makes rules of all files.
func merge(paths []string, all map[string]*loaded, log *slog.Logger) *Rules {
	r := &Rules{accounts: make(map[string]*Account)}
	for _, path := range paths {
		l := all[path]
		if l == nil {
			continue
		}
		r.global = append(r.global, l.file.global...)
		for _, a := range l.file.accounts {
			if first := r.accounts[a.AccessKey]; first != nil {
				log.Warn("an accessKey is in two ACL files; the first counts", "accessKey", a.AccessKey, "first", first.Place.String(), "second", a.Place.String())
				continue
			}
			r.accounts[a.AccessKey] = a
		}
	}
	return r
}

// Update changes or adds an account (50) and puts the changed rules in force.
func (t *Table) Update(c Change) error {
	if err := c.check(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freshLocked()
	path := t.o.Default()
	if a := t.rules.Load().accounts[c.AccessKey]; a != nil {
		path = a.Place.Path
	}
	return t.changeLocked(path, c.update)
}

// Delete deletes an account (51) from every file that has it. False: none has.
func (t *Table) Delete(accessKey string) (bool, error) {
	if accessKey == "" {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freshLocked()
	found := false
	for _, path := range slices.Clone(t.mu.order) {
		switch err := t.changeLocked(path, remove(accessKey)); {
		case errors.Is(err, errAbsent):
		case err != nil:
			return false, err
		default:
			found = true
		}
	}
	return found, nil
}

// SetGlobal replaces the global white list of an ACL file, "" = the default one (53). False: path is no ACL file of this
// broker.
func (t *Table) SetGlobal(patterns []string, path string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if path == "" {
		path = t.o.Default()
	}
	t.freshLocked()
	if path = filepath.Clean(path); !slices.Contains(t.mu.order, path) {
		return false, nil
	}
	return true, t.changeLocked(path, replaceGlobal(patterns))
}

// freshLocked reads what others have changed, so that a change adds to it. A file that is wrong is not written to; another
// one's fault does not matter here.
func (t *Table) freshLocked() {
	if err := t.reloadLocked(); err != nil {
		t.o.Log.Warn("an ACL file is wrong while another is changed", "error", err)
	}
}

// changeLocked changes one file and reads it.
func (t *Table) changeLocked(path string, change func(*file, *yaml.Node) error) error {
	data, err := read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.New("the ACL file can't be read")
	}
	text, err := edited(path, data, t.o.Clock().UnixMilli(), change)
	if err != nil {
		return err
	}
	if again, err := read(path); err == nil && !bytes.Equal(again, data) {
		return errors.New("the ACL file is being changed by somebody else; try again")
	}
	if err := replace(path, text); err != nil {
		t.o.Log.Error("ACL file not written", "file", path, "error", err)
		return errors.New("the ACL file can't be written")
	}
	if err := t.reloadLocked(); err != nil {
		t.o.Log.Warn("an ACL file is wrong while another is changed", "error", err)
	}
	return nil
}

// FileVersion is the version of one file.
type FileVersion struct {
	Path string
	Version
}

// Versions are those of all files that have data, in the order of Folder, and that of the default file (52).
func (t *Table) Versions() (files []FileVersion, standard Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	standard = Version{Timestamp: t.o.Clock().UnixMilli()}
	for _, path := range t.mu.order {
		l := t.mu.loaded[path]
		if l == nil || !l.file.data {
			continue
		}
		files = append(files, FileVersion{path, l.version})
		if path == t.o.Default() {
			standard = l.version
		}
	}
	return files, standard
}
