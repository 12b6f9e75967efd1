package remoting

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// watchFilesEvery is the distance of two looks at the files of TLS (FileWatchService of 4.9.8).
const watchFilesEvery = 500 * time.Millisecond

// TLS holds the certificates of a process' servers and clients, and loads them again when a file has changed: new
// connections get the new ones, open ones go on. A nil *TLS is no TLS.
type TLS struct {
	cfg  TLSConfig
	mode TLSMode
	log  *slog.Logger

	server, client atomic.Pointer[tls.Config] // nil = could not be loaded

	loading sync.Mutex // held while files are loaded
	files   []string   // those that count, as of the last load; guarded by loading
	own     *tls.Certificate

	stop    chan struct{}
	stopped sync.WaitGroup
	start   sync.Once
	once    sync.Once
}

// NewTLS loads the certificates. Those that can't be loaded are an error when TLS is enforced, or dials; else plain
// connections are served without them, as 4.9.8 does, and a file that is mended is taken.
func NewTLS(cfg TLSConfig, log *slog.Logger) (*TLS, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t := &TLS{cfg: cfg, mode: cfg.mode(), log: log, stop: make(chan struct{})}
	err := t.Reload()
	switch {
	case err == nil:
	case t.mode == TLSEnforcing && t.server.Load() == nil, cfg.Dials() && t.client.Load() == nil:
		return nil, err
	case t.mode == TLSPermissive:
		log.Error("TLS can't be served; plain connections can", "error", err)
	}
	return t, nil
}

// Mode is what the server does with TLS and plain connections.
func (t *TLS) Mode() TLSMode { return t.mode }

// Reload loads all files again. What can't be loaded, of the server's side and the client's, stays as it was.
func (t *TLS) Reload() error {
	t.loading.Lock()
	defer t.loading.Unlock()
	cfg, err := t.cfg.withFile()
	t.files = []string{t.cfg.path()}
	for _, side := range []TLSSide{cfg.Server, cfg.Client} {
		t.files = append(t.files, side.CertPath, side.KeyPath, side.TrustCertPath)
	}
	t.files = slices.DeleteFunc(t.files, func(path string) bool { return path == "" || path == defaultTLSFile && !exists(path) })
	if err != nil {
		return err
	}
	var all []error
	if t.mode != TLSDisabled {
		server, err := t.serverConfig(cfg)
		if err == nil {
			t.server.Store(server)
			if text := soonOver(server.Certificates, time.Now()); text != "" && !testMode(cfg) {
				t.log.Warn("THE CERTIFICATE IS NOT GOOD FOR LONG: clients that check it will not connect; renew tls.server.certPath", "certificate", text)
			}
		} else {
			all = append(all, err)
		}
	}
	client, err := clientConfig(cfg)
	switch {
	case err == nil:
		t.client.Store(client)
	case t.cfg.Dials():
		all = append(all, err)
	}
	return errors.Join(all...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Start begins to watch the files, if there are any. Further calls do nothing.
func (t *TLS) Start() {
	if t == nil {
		return
	}
	t.start.Do(func() {
		t.log.Info("TLS", "mode", t.mode, "files", t.watched())
		if len(t.watched()) > 0 {
			seen := t.look()
			t.stopped.Add(1)
			go t.watch(seen)
		}
	})
}

// Close ends the watch.
func (t *TLS) Close() {
	if t == nil {
		return
	}
	t.once.Do(func() { close(t.stop) })
	t.stopped.Wait()
}

func (t *TLS) watched() []string {
	t.loading.Lock()
	defer t.loading.Unlock()
	return t.files
}

// stamp tells two states of a file apart. Its text is of a file that could not be looked at.
type stamp struct {
	path  string
	size  int64
	time  time.Time
	inode string
	err   string
}

// look returns the states of the files.
func (t *TLS) look() (seen []stamp) {
	for _, path := range t.watched() {
		s := stamp{path: path}
		if info, err := os.Stat(path); err != nil {
			s.err = err.Error()
		} else {
			s.size, s.time, s.inode = info.Size(), info.ModTime(), inode(info)
		}
		seen = append(seen, s)
	}
	return seen
}

// watch loads the files when they have changed and then stayed the same for one look: certificate and key are
// written one after the other. When they still do not fit, the next change is waited for.
func (t *TLS) watch(loaded []stamp) {
	defer t.stopped.Done()
	ticker := time.NewTicker(watchFilesEvery)
	defer ticker.Stop()
	last := loaded
	for {
		select {
		case <-t.stop:
			return
		case <-ticker.C:
		}
		seen := t.look()
		settled := slices.Equal(seen, last)
		last = seen
		if slices.Equal(seen, loaded) || !settled {
			continue
		}
		if err := t.Reload(); err != nil {
			t.log.Warn("TLS files have changed and are not taken; what was loaded stays", "error", err)
		} else {
			t.log.Info("TLS files have changed and are loaded; open connections go on", "files", t.watched())
		}
		// The properties file may name others now.
		loaded = seen
		if again := t.look(); len(again) != len(seen) {
			loaded, last = again, again
		}
	}
}
