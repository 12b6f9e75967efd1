package remoting

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"
)

// All settings of netpoll, which are global to the process, are made here. netpoll wants them in an
// init function.
func init() {
	err := netpoll.Configure(netpoll.Config{
		// A poller reads every socket that is its own, one after the other: a read takes 1-2 µs, so one
		// is enough for several cores of handlers.
		PollerNum: max(1, runtime.GOMAXPROCS(0)/4),
		// The first read of a connection; it doubles with need. The default of 8 KiB is held by every
		// idle connection.
		BufferSize: 4 << 10,
		// netpoll's own pool has 10,000 workers and then lets new work wait: as many peers that each
		// send half a frame would stop the server.
		// Runner is called by a poller, which while some peer sends without a pause never gives its processor away: so
		// it does here, or the task waits for the runtime to take it, some 10 ms.
		Runner: func(_ context.Context, task func()) {
			go task()
			if braked.Load() > 0 {
				runtime.Gosched()
			}
		},
		LoggerOutput: netpollLog{},
	})
	if err != nil {
		panic("netpoll: " + err.Error())
	}
}

// netpollLog takes what netpoll prints. It concerns sockets that broke, which is reported by us where
// it matters.
type netpollLog struct{}

// Write implements io.Writer.
func (netpollLog) Write(line []byte) (int, error) {
	slog.Debug("netpoll", "text", strings.TrimSpace(string(line)))
	return len(line), nil
}

// input is what a connection reads from: netpoll's Reader, of which the frame loop needs this. A call
// for n bytes waits until they are there. Bytes from Peek and Next are valid until the next call; those from
// ReadString and ReadBinary are copies of our own.
type input interface {
	Len() int
	Peek(n int) ([]byte, error)
	Next(n int) ([]byte, error)
	Skip(n int) error
	ReadString(n int) (string, error)
	ReadBinary(n int) ([]byte, error)
	Release() error
}

// socket is what a connection writes to. send, sendWait and shut are called by the holder of the write
// queue's writing, and not after the connection's end.
type socket interface {
	sink
	// narrow makes the kernel keep as little as it can of what the peer sends and netpoll has not read yet; or lets it
	// keep again what is good for the peer's distance.
	narrow(on bool)
	// shut ends the traffic both ways, like shutdown(2).
	shut()
	Close() error
	IsActive() bool
}

// sink is the part of a socket that takes bytes; TLS is another.
type sink interface {
	// send hands over as much as the kernel takes without waiting, and returns how much that was.
	send(p []byte) (int, error)
	// sendWait hands over all of p, waiting for the peer to read.
	sendWait(p []byte) error
}

// pollSocket is a socket of netpoll.
type pollSocket struct {
	netpoll.Connection
	fd int
}

// newPollSocket wraps a connection of netpoll and learns its addresses. netpoll itself knows the
// local address of an accepted connection only as that of its listener.
func newPollSocket(nc netpoll.Connection) (s *pollSocket, remote, local netip.AddrPort) {
	s = &pollSocket{Connection: nc, fd: nc.(interface{ Fd() int }).Fd()}
	if sa, err := unix.Getpeername(s.fd); err == nil {
		remote = addrPort(sa)
	}
	if sa, err := unix.Getsockname(s.fd); err == nil {
		local = addrPort(sa)
	}
	return s, remote, local
}

// addrPort converts an address of a socket; an IPv4 address that came in IPv6 form is an IPv4 address.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// send implements socket. netpoll's Flush would wait for a slow peer; a plain write does not, and saves
// a copy. netpoll's own output buffer is empty here: sendWait leaves it so, or the connection is over.
func (s *pollSocket) send(p []byte) (int, error) {
	for {
		n, err := unix.Write(s.fd, p)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, err
		}
	}
}

// sendWait implements socket. After an error netpoll's poller may still read from p.
func (s *pollSocket) sendWait(p []byte) error {
	w := s.Writer()
	if _, err := w.WriteBinary(p); err != nil {
		return err
	}
	return w.Flush()
}

// narrow implements socket.
func (s *pollSocket) narrow(on bool) {
	bytes := 1
	if !on {
		bytes = receiveFar
		if info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && info.Rtt <= nearMicros {
			bytes = receiveNear
		}
	}
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
}

// shut implements socket.
func (s *pollSocket) shut() { unix.Shutdown(s.fd, unix.SHUT_RDWR) }
