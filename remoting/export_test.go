package remoting

import "time"

// Sweep looks at every connection as if it were now.
func (s *Server) Sweep(now time.Time) { s.end.sweep(now, nil) }

// Sweep looks at every connection as if it were now.
func (c *Client) Sweep(now time.Time) { c.end.sweep(now, nil) }

// Connections is the number of open connections.
func (c *Client) Connections() int { return c.end.count() }

// Queued is the number of bytes that wait for the peer to read.
func (c *Conn) Queued() int64 { return c.out.bytes.Load() }

// Handshaking is the number of TLS handshakes in progress.
func (s *Server) Handshaking() int {
	s.end.shakes.Lock()
	defer s.end.shakes.Unlock()
	return s.end.shakes.list.Len()
}
