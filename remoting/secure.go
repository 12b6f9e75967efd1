package remoting

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// secure is TLS between the frame loop and netpoll: crypto/tls reads what has arrived and writes to the socket
// through it, the frame loop takes decrypted bytes from it, and the write queue gives it the bytes to seal.
//
//	netpoll's input --> Read --> crypto/tls --> plain --> frame loop
//	socket <-- send, or Write <-- crypto/tls <-- send, sendWait <-- write queue
//
// The frame loop may not wait while complete frames are to be answered, and crypto/tls knows no other way than to
// read: so while the loop only asks whether a frame is there, Read returns errNotYet instead of waiting, which
// crypto/tls takes for a time-out that ends nothing. Frames up to plainSize are taken from the buffer, the bodies of larger ones
// are decrypted right into their slice.
type secure struct {
	of       *Conn
	conn     *tls.Conn
	arriving input
	sock     socket

	// The frame loop's.
	noWait bool          // Read may not wait
	plain  *bufio.Reader // decrypted bytes, nil = none

	shaken  atomic.Bool // the handshake is over
	direct  atomic.Bool // Write may use the socket: whoever holds writing is in, or waits for, crypto/tls
	pushing atomic.Bool // a goroutine is about to send what lies in sealed

	// Of the holder of the write queue's writing.
	sending []byte // sealed bytes that the socket has not taken
	waiting int    // bytes of the write queue that are among them

	mu struct {
		sync.Mutex
		sealed []byte // sealed bytes behind those
	}
}

// Sizes of TLS.
const (
	plainSize = 32 << 10  // of the buffer of decrypted bytes: two records
	sealSize  = 64 << 10  // most that is sealed before the socket has taken it
	sealedMax = 256 << 10 // of sealed bytes; what goes beyond sealSize are answers to key updates
	bodyPiece = 256 << 10 // a larger body whose bytes have not come gets its memory by and by
)

var plainPool = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, plainSize) }}

// errNotYet says that nothing has arrived. It looks like a time-out.
type notYet struct{}

var errNotYet net.Error = notYet{}

// Error implements error.
func (notYet) Error() string { return "nothing has arrived" }

// Timeout implements net.Error.
func (notYet) Timeout() bool { return true }

// Temporary implements net.Error; with it crypto/tls may read again.
func (notYet) Temporary() bool { return true }

var errSealedFull = errors.New("the peer asks for key updates and reads nothing")

// Read implements net.Conn for crypto/tls: what has arrived.
func (s *secure) Read(p []byte) (int, error) {
	if s.arriving.Len() == 0 {
		if s.noWait {
			return 0, errNotYet
		}
		if _, err := s.arriving.Peek(1); err != nil {
			return 0, io.EOF // as when a socket was closed: without a record that says so
		}
	}
	b, err := s.arriving.Next(min(len(p), s.arriving.Len()))
	if err != nil {
		return 0, io.EOF
	}
	n := copy(p, b)
	s.of.consume(n)
	return n, s.arriving.Release()
}

// Write implements net.Conn for crypto/tls: sealed records, and alerts and key updates, which the reader writes. It
// waits for the peer during the handshake only.
func (s *secure) Write(p []byte) (int, error) {
	if !s.shaken.Load() {
		return len(p), s.writeNow(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := p
	direct := s.direct.Load()
	if direct && len(s.mu.sealed) == 0 {
		n, err := s.sock.send(rest)
		if err != nil {
			return n, err
		}
		rest = rest[n:]
	}
	if len(s.mu.sealed)+len(rest) > sealedMax {
		return 0, errSealedFull
	}
	s.mu.sealed = append(s.mu.sealed, rest...)
	if !direct && s.pushing.CompareAndSwap(false, true) {
		go s.push()
	}
	return len(p), nil
}

// writeNow writes a part of the handshake.
func (s *secure) writeNow(p []byte) error {
	q := &s.of.out
	q.writing.Lock()
	defer q.writing.Unlock()
	if q.gone {
		return net.ErrClosed
	}
	n, err := s.sock.send(p)
	if err == nil && n < len(p) {
		err = s.sock.sendWait(p[n:])
	}
	return err
}

// push sends what the reader has sealed.
func (s *secure) push() {
	q := &s.of.out
	q.writing.Lock()
	defer q.writing.Unlock()
	s.pushing.Store(false)
	if q.gone {
		return
	}
	if _, err := s.drain(true); err != nil {
		s.of.end(ClosedByPeer)
	}
}

// drain gives sealed bytes to the socket. It is true when nothing is left.
func (s *secure) drain(wait bool) (bool, error) {
	for {
		if len(s.sending) == 0 {
			s.mu.Lock()
			s.sending, s.mu.sealed = s.mu.sealed, nil
			s.mu.Unlock()
		}
		if len(s.sending) == 0 {
			s.sending = nil
			return true, nil
		}
		if wait {
			if err := s.sock.sendWait(s.sending); err != nil {
				return false, err
			}
			s.sending = nil
			continue
		}
		n, err := s.sock.send(s.sending)
		if s.sending = s.sending[n:]; err != nil || len(s.sending) > 0 {
			return false, err
		}
	}
}

// send implements sink. Bytes count as taken when the socket has all that they were sealed into; until then the
// next call, which begins with the same bytes, goes on with them.
func (s *secure) send(p []byte) (int, error) { return s.take(p, false) }

// sendWait implements sink.
func (s *secure) sendWait(p []byte) error {
	_, err := s.take(p, true)
	return err
}

func (s *secure) take(p []byte, wait bool) (taken int, err error) {
	for {
		if empty, err := s.drain(wait); err != nil || !empty {
			return taken, err
		}
		taken += s.waiting
		p = p[s.waiting:]
		s.waiting = 0
		if len(p) == 0 {
			return taken, nil
		}
		n := min(len(p), sealSize)
		s.direct.Store(true)
		_, err := s.conn.Write(p[:n])
		s.direct.Store(false)
		if err != nil {
			return taken, err
		}
		s.waiting = n
	}
}

// bye says that nothing more will come. The caller holds writing.
func (s *secure) bye() {
	if empty, err := s.drain(false); err != nil || !empty {
		return
	}
	s.direct.Store(true)
	_ = s.conn.CloseWrite()
	s.direct.Store(false)
}

// ready tells whether n decrypted bytes are there; it decrypts what has arrived, of which crypto/tls may hold a part.
func (s *secure) ready(n int) (bool, error) {
	if s.Buffered() >= n {
		return true, nil
	}
	if n > plainSize {
		return false, nil // the frame loop takes it as it comes
	}
	s.noWait = true
	_, err := s.text().Peek(n)
	s.noWait = false
	if errors.Is(err, errNotYet) {
		return false, nil
	}
	return err == nil, err
}

// text is the buffer of decrypted bytes.
func (s *secure) text() *bufio.Reader {
	if s.plain == nil {
		s.plain = plainPool.Get().(*bufio.Reader)
		s.plain.Reset(s.conn)
	}
	return s.plain
}

// Buffered is the number of decrypted bytes.
func (s *secure) Buffered() int {
	if s.plain == nil {
		return 0
	}
	return s.plain.Buffered()
}

// Len implements input: decrypted bytes, and those that have arrived.
func (s *secure) Len() int { return s.Buffered() + s.arriving.Len() }

// Peek implements input; n is small.
func (s *secure) Peek(n int) ([]byte, error) { return s.text().Peek(n) }

// Next implements input, for completeness.
func (s *secure) Next(n int) ([]byte, error) { return s.ReadBinary(n) }

// Skip implements input.
func (s *secure) Skip(n int) error {
	_, err := s.text().Discard(n)
	return err
}

// ReadString implements input.
func (s *secure) ReadString(n int) (string, error) {
	if n <= plainSize {
		p, err := s.text().Peek(n)
		if err != nil {
			return "", err
		}
		text := string(p)
		return text, s.Skip(n)
	}
	var b strings.Builder
	for b.Len() < n {
		if _, err := s.text().Peek(1); err != nil {
			return "", err
		}
		p, _ := s.plain.Peek(min(s.plain.Buffered(), n-b.Len()))
		b.Write(p)
		if err := s.Skip(len(p)); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// ReadBinary implements input. A peer that only says that much will come gets little memory for it.
func (s *secure) ReadBinary(n int) ([]byte, error) {
	b := make([]byte, min(n, max(bodyPiece, 2*s.Len())))
	for at := 0; ; {
		read, err := io.ReadFull(s.text(), b[at:])
		if err != nil {
			return nil, err
		}
		if at += read; at == n {
			return b, nil
		}
		more := make([]byte, min(n, max(4*at, 2*s.Len())))
		copy(more, b)
		b = more
	}
}

// Release implements input: an idle connection keeps no buffer.
func (s *secure) Release() error {
	if s.plain != nil && s.plain.Buffered() == 0 {
		s.plain.Reset(nil)
		plainPool.Put(s.plain)
		s.plain = nil
	}
	return nil
}

// Close implements net.Conn for crypto/tls; the connection's owner closes.
func (s *secure) Close() error { return nil }

// LocalAddr implements net.Conn.
func (s *secure) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(s.of.local) }

// RemoteAddr implements net.Conn.
func (s *secure) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.of.remote) }

// SetDeadline implements net.Conn; the sweep bounds everything.
func (s *secure) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (s *secure) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (s *secure) SetWriteDeadline(time.Time) error { return nil }
