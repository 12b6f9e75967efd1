package remoting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"
)

// listener is the listening socket of a server. netpoll's own one stops listening only by closing all
// connections, waits for ever in a goroutine when descriptors run out, and tells nobody its backlog.
type listener struct {
	netpoll.Listener
	room    func(netip.Addr) bool // a further connection of this address can be taken
	refused func(reason string)
	stopped atomic.Bool
	once    sync.Once

	// spare is a descriptor held back: with it a connection can be accepted, and so refused, when there
	// is no other. Only the poller touches it.
	spare *os.File
}

// listen opens a port.
func listen(cfg ServerConfig) (*listener, error) {
	addr := net.JoinHostPort(cfg.BindAddress, strconv.Itoa(cfg.ListenPort))
	hint := cfg.PortHint
	if hint == "" {
		hint = "set listenPort in the configuration file (-c)"
	}
	// Go sets SO_REUSEADDR. The official server does not ask for keep-alive: idle connections are closed.
	ln, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", addr)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is taken, perhaps by another server of this kind; stop it, or choose another port (%s): %w", addr, hint, err)
	case errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("listen on %s: not allowed for this user; choose a port above 1023 (%s): %w", addr, hint, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s (listenPort, bindAddress): %w", addr, err)
	}
	inner, err := netpoll.ConvertListener(ln)
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if cfg.ServerSocketBacklog > 0 {
		// Go listens with the system's largest backlog; a second call changes it.
		if err := unix.Listen(inner.Fd(), cfg.ServerSocketBacklog); err != nil {
			inner.Close()
			return nil, fmt.Errorf("listen on %s with serverSocketBacklog %d: %w", addr, cfg.ServerSocketBacklog, err)
		}
	}
	spare, _ := os.Open(os.DevNull)
	return &listener{Listener: inner, spare: spare}, nil
}

// CheckListen tells whether a server with this configuration could open its port now, with the error that Start
// would give. It leaves the port alone: one that is open before its server is ready would tell peers a lie.
func CheckListen(cfg ServerConfig) error {
	ln, err := listen(cfg)
	if err != nil {
		return err
	}
	return ln.Close()
}

// Accept implements netpoll.Listener. It runs on a poller when a connection waits, and never fails:
// netpoll has no good answer to an error.
func (l *listener) Accept() (net.Conn, error) {
	if l.stopped.Load() {
		return nil, nil
	}
	nc, err := l.Listener.Accept()
	switch {
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		l.refuseOne()
		return nil, nil
	case err != nil || nc == nil:
		return nil, nil // the peer is gone already, or we are
	case !l.room(peerOf(nc)):
		l.refused("maxConnections")
		nc.Close()
		return nil, nil
	}
	return nc, nil
}

// peerOf is the address of the other side, in the form of Conn.RemoteAddr.
func peerOf(nc net.Conn) netip.Addr {
	if addr, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
		return addr.Addr().Unmap()
	}
	return netip.Addr{}
}

// refuseOne takes a connection that waits and closes it, with the descriptor held back for it. Otherwise
// the poller would be told of it again at once, for ever.
func (l *listener) refuseOne() {
	if l.spare != nil {
		l.spare.Close()
	}
	if nc, err := l.Listener.Accept(); err == nil && nc != nil {
		l.refused("no file descriptor left")
		nc.Close()
	} else {
		time.Sleep(time.Millisecond) // others were quicker; the poller may not spin
	}
	l.spare, _ = os.Open(os.DevNull)
}

// stop makes the socket listen no more. It stays open until close: its number may not be given to
// another socket while a poller knows it.
func (l *listener) stop() error {
	l.stopped.Store(true)
	return unix.Shutdown(l.Fd(), unix.SHUT_RDWR)
}

// Close implements netpoll.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.Listener.Close()
		if l.spare != nil {
			l.spare.Close()
		}
	})
	return nil
}

func (l *listener) port() int { return l.Addr().(*net.TCPAddr).Port }
