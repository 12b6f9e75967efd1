package remoting

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// crowdedShare is what a connection may have buffered and still be served when all of them together have more than half
// of their bound. It is above what a client in health needs: a few messages under way, the bodies of a few pulls.
const crowdedShare = 1 << 20

// boundBuffered looks at what all connections together have us keep. Each of them may be within its own bounds, and a thousand
// of them beyond the memory of the machine. Past the bound those with the most are closed, until the rest is within half of it.
func (e *endpoint) boundBuffered(conns []*Conn) {
	limit := e.limits.buffered
	if limit <= 0 {
		return
	}
	sum := int64(0)
	for _, c := range conns {
		sum += c.buffered()
	}
	e.crowded.Store(sum > limit/2)
	if sum <= limit {
		return
	}
	type load struct {
		conn  *Conn
		bytes int64
	}
	loads := make([]load, 0, len(conns))
	for _, c := range conns {
		loads = append(loads, load{c, c.buffered()})
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, l := range loads {
		if sum <= limit/2 {
			return
		}
		l.conn.end(ClosedCrowded)
		sum -= l.bytes
	}
}

// room tells whether a further connection of an address can be taken. At the bound one of the address that has the most
// gives way, if that has more than twice as many as the newcomer would have: so a flood from one address, which may
// always have all of the room while nobody else wants it, does not shut others out.
func (e *endpoint) room(addr netip.Addr) bool {
	limit := e.limits.connections
	if limit <= 0 {
		return true
	}
	e.mu.Lock()
	if len(e.mu.conns) < limit {
		e.mu.Unlock()
		return true
	}
	var most map[*Conn]struct{}
	for _, of := range e.mu.from {
		if len(of) > len(most) {
			most = of
		}
	}
	var out *Conn
	if len(most) > 2*(len(e.mu.from[addr])+1) {
		for c := range most {
			if c.reason.Load() == nil {
				out = c
				break
			}
		}
	}
	e.mu.Unlock()
	if out == nil {
		return false
	}
	out.end(ClosedForRoom)
	return true
}

// otherFiles is how many descriptors are left to others than connections when these are bounded by what the process may
// open: a quarter of them, and this many at most. The store keeps some hundred files open.
const otherFiles = 4096

// withinDescriptors lowers a bound of connections to what the process may open: past that, files could not be opened either,
// and writing would end.
func withinDescriptors(connections, port int, log *slog.Logger) int {
	var files unix.Rlimit
	if connections <= 0 || unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return connections
	}
	room := files.Cur - min(files.Cur/4, otherFiles)
	if uint64(connections) <= room {
		return connections
	}
	log.Info("maxConnections lowered: the process may not open more files (ulimit -n)", "port", port, "maxConnections", connections, "now", room, "files", files.Cur)
	return int(room)
}
