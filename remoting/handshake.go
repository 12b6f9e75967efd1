package remoting

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"time"
)

// tlsHandshake is the first byte of a TLS connection; no frame that is allowed begins with it.
const tlsHandshake = 0x16

// tlsError says why a connection has no TLS, or has it where it should not. It is closed without an answer.
type tlsError struct{ reason string }

// Error implements error.
func (e *tlsError) Error() string { return e.reason }

// handshakes are the TLS handshakes in progress, the oldest first. Each holds a goroutine, so there is a bound; past
// it the oldest is given up: a peer that means it is done within a few round trips.
type handshakes struct {
	sync.Mutex
	list list.List // of *handshake
}

type handshake struct {
	conn  *Conn
	since time.Time
}

// beginHandshake notes a handshake.
func (e *endpoint) beginHandshake(c *Conn) {
	var oldest *Conn
	e.shakes.Lock()
	if limit := e.limits.handshakes; limit > 0 && e.shakes.list.Len() >= limit {
		oldest = e.shakes.takeLocked(e.shakes.list.Front())
	}
	c.shaking = e.shakes.list.PushBack(&handshake{c, e.now()})
	e.shakes.Unlock()
	if oldest != nil {
		oldest.end(ClosedTLS)
	}
}

// endHandshake forgets it. Again, or after it was given up, it does nothing.
func (e *endpoint) endHandshake(c *Conn) {
	e.shakes.Lock()
	defer e.shakes.Unlock()
	if c.shaking != nil {
		e.shakes.takeLocked(c.shaking)
	}
}

func (h *handshakes) takeLocked(at *list.Element) *Conn {
	c := h.list.Remove(at).(*handshake).conn
	c.shaking = nil
	return c
}

// endLateHandshakes gives up those that take too long. It is part of the sweep.
func (e *endpoint) endLateHandshakes(now time.Time) {
	if e.limits.handshakeTime <= 0 {
		return
	}
	var late []*Conn
	e.shakes.Lock()
	for at := e.shakes.list.Front(); at != nil && now.Sub(at.Value.(*handshake).since) > e.limits.handshakeTime; at = e.shakes.list.Front() {
		late = append(late, e.shakes.takeLocked(at))
	}
	e.shakes.Unlock()
	for _, c := range late {
		c.end(ClosedTLS)
	}
}

// sniff looks at the first byte of a connection, which tells whether it is TLS, and then shakes hands. The server's
// mode says whether the connection may go on.
func (c *Conn) sniff() error {
	p, err := c.in.Peek(1)
	if err != nil {
		return err
	}
	c.sniffed = true
	t := c.owner.tls
	if p[0] != tlsHandshake {
		if t != nil && t.mode == TLSEnforcing {
			return &tlsError{"it begins without TLS, and tls.server.mode is enforcing"}
		}
		return nil
	}
	if t == nil || t.mode == TLSDisabled {
		return &tlsError{"it begins with a TLS handshake, and there is no TLS here"}
	}
	cfg := t.server.Load()
	if cfg == nil {
		return &tlsError{"it begins with a TLS handshake, and the certificate could not be loaded"}
	}
	return c.shakeHands(func(s *secure) *tls.Conn { return tls.Server(s, cfg) })
}

// shakeHands begins TLS on the connection. It waits for the peer; the sweep bounds that.
func (c *Conn) shakeHands(side func(*secure) *tls.Conn) error {
	e := c.owner
	e.beginHandshake(c)
	defer e.endHandshake(c)
	s := &secure{of: c, arriving: c.arriving, sock: c.sock}
	s.conn = side(s)
	if err := s.conn.HandshakeContext(context.Background()); err != nil {
		return &tlsError{"TLS handshake: " + err.Error()}
	}
	c.out.writing.Lock()
	s.shaken.Store(true)
	c.out.seal = s
	c.out.writing.Unlock()
	c.in, c.secure = s, s
	e.stats.handshakes.Add(1)
	return nil
}

// brokeTLS tells whether an error of reading is one of TLS, not the peer's end.
func brokeTLS(err error) bool {
	return !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrClosed)
}

// ready tells whether n bytes can be taken without waiting.
func (c *Conn) ready(n int) (bool, error) {
	if c.secure != nil {
		return c.secure.ready(n)
	}
	return c.in.Len() >= n, nil
}

// farewell tells a TLS peer that nothing more will come, unless the socket takes no more.
func (c *Conn) farewell() {
	if !c.out.writing.TryLock() {
		return
	}
	defer c.out.writing.Unlock()
	if !c.out.gone && c.out.seal != nil {
		c.out.seal.bye()
	}
}
