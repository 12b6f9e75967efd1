package remoting

import (
	"context"
	"net/netip"
	"time"
)

// Conn is one connection, accepted or dialled.
type Conn struct{ skeleton struct{} }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() netip.AddrPort { panic("skeleton") }

// LocalAddr is our address of the connection.
func (c *Conn) LocalAddr() netip.AddrPort { panic("skeleton") }

// Active tells whether it is still open.
func (c *Conn) Active() bool { panic("skeleton") }

// Call sends a request to the peer and waits for its answer, at most timeout. Not for inline handlers.
func (c *Conn) Call(ctx context.Context, req *Command, timeout time.Duration) (*Command, error) {
	panic("skeleton")
}

// Go sends a request to the peer and calls done, once, with the answer or an error; never waits.
func (c *Conn) Go(req *Command, timeout time.Duration, done func(*Command, error)) { panic("skeleton") }

// Oneway queues a request that gets no answer; never waits. The error says the connection is closed or
// its queue is full.
func (c *Conn) Oneway(req *Command) error { panic("skeleton") }

// Close closes the connection; Events.Closed follows.
func (c *Conn) Close() { panic("skeleton") }
