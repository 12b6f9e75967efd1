package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// ErrClosed says that the server closed the connection instead of answering.
var ErrClosed = errors.New("connection closed by the server")

// Conn is a client's connection. Any goroutine may send and wait for answers; one of its own reads.
type Conn struct {
	sock     net.Conn
	onServer func(*Frame) *Frame // what to answer to a request of the server; nil: nothing
	told     func(*Frame)        // takes what the server tells without wanting an answer; nil: nobody does

	mu struct {
		sync.Mutex
		next    int32
		answers map[int32]chan *Frame
		calls   []*Frame // requests of the server, in order
	}
	closed chan struct{} // closed when the server has closed or broken the stream
}

// Dial connects to a server. onServer, which may be nil, answers requests that the server makes of this client.
func Dial(addr string, onServer func(*Frame) *Frame) (*Conn, error) {
	sock, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return of(sock, onServer, nil), nil
}

// DialTold connects to a server that tells this client things without wanting an answer, as in the checks of transactions.
// told gets them in order, on the goroutine that reads: it must not wait for an answer of this connection.
func DialTold(addr string, told func(*Frame)) (*Conn, error) {
	sock, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return of(sock, nil, told), nil
}

// DialTLS connects with TLS and shakes hands.
func DialTLS(addr string, secure *tls.Config) (*Conn, error) {
	sock, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", addr, secure)
	if err != nil {
		return nil, err
	}
	return of(sock, nil, nil), nil
}

// of speaks over a connection.
func of(sock net.Conn, onServer func(*Frame) *Frame, told func(*Frame)) *Conn {
	c := &Conn{sock: sock, onServer: onServer, told: told, closed: make(chan struct{})}
	c.mu.answers = map[int32]chan *Frame{}
	go c.read()
	return c
}

// Close closes the connection from this side.
func (c *Conn) Close() { _ = c.sock.Close() }

// LocalAddr is the address that the server sees.
func (c *Conn) LocalAddr() string { return c.sock.LocalAddr().String() }

func (c *Conn) read() {
	defer close(c.closed)
	for {
		f, err := Read(c.sock)
		if err != nil {
			return
		}
		if f.IsOneway() && !f.IsResponse() && c.told != nil {
			c.told(f)
			continue
		}
		if !f.IsResponse() {
			c.mu.Lock()
			c.mu.calls = append(c.mu.calls, f)
			c.mu.Unlock()
			if c.onServer != nil && !f.IsOneway() {
				if back := c.onServer(f); back != nil {
					back.Opaque, back.Flag = f.Opaque, back.Flag|FlagResponse
					_ = c.Write(back.Encode())
				}
			}
			continue
		}
		c.mu.Lock()
		waiting := c.mu.answers[f.Opaque]
		delete(c.mu.answers, f.Opaque)
		c.mu.Unlock()
		if waiting != nil {
			waiting <- f
		}
	}
}

// Write sends bytes as they are.
func (c *Conn) Write(b []byte) error {
	if err := c.sock.SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	_, err := c.sock.Write(b)
	return err
}

// Pending is a request that was sent and not yet answered.
type Pending struct {
	conn   *Conn
	answer chan *Frame
}

// Send sends a request with an opaque of this connection's own.
func (c *Conn) Send(f *Frame) (*Pending, error) {
	p := &Pending{conn: c, answer: make(chan *Frame, 1)}
	c.mu.Lock()
	c.mu.next++
	f.Opaque = c.mu.next
	c.mu.answers[f.Opaque] = p.answer
	c.mu.Unlock()
	return p, c.Write(f.Encode())
}

// Wait returns the answer, ErrClosed when the server closed the connection first, or os.ErrDeadlineExceeded.
func (p *Pending) Wait(patience time.Duration) (*Frame, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case f := <-p.answer:
		return f, nil
	case <-p.conn.closed:
		select { // the answer may have come just before the end
		case f := <-p.answer:
			return f, nil
		default:
			return nil, ErrClosed
		}
	case <-timer.C:
		return nil, os.ErrDeadlineExceeded
	}
}

// Call sends a request and waits for its answer.
func (c *Conn) Call(f *Frame, patience time.Duration) (*Frame, error) {
	p, err := c.Send(f)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrClosed, err)
	}
	return p.Wait(patience)
}

// ClosedWithin tells whether the server closes the connection before the patience ends.
func (c *Conn) ClosedWithin(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.closed:
		return true
	case <-timer.C:
		return false
	}
}

// Requests returns what the server has asked of this client so far.
func (c *Conn) Requests() []*Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Frame(nil), c.mu.calls...)
}

// CallOnce dials, makes one call, and hangs up.
func CallOnce(addr string, f *Frame, patience time.Duration) (*Frame, error) {
	c, err := Dial(addr, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(f, patience)
}
