package message

import (
	"encoding/binary"
	"net/netip"
)

// A host in a record or id: the address (4 bytes, or 16 of IPv6), then the port as int32.
const (
	hostSize   = 4 + 4
	hostSizeV6 = 16 + 4
)

// isV6 tells whether a host takes 16 address bytes. An IPv4 address mapped into IPv6 is IPv4, as Java's
// InetAddress makes of it; no address at all is written as 0.0.0.0.
func isV6(h netip.AddrPort) bool { return h.Addr().Is6() && !h.Addr().Is4In6() }

// sizeOf is how many bytes a host takes.
func sizeOf(h netip.AddrPort) int {
	if isV6(h) {
		return hostSizeV6
	}
	return hostSize
}

// appendHost appends address and port of h.
func appendHost(dst []byte, h netip.AddrPort) []byte {
	var b [hostSizeV6]byte
	return append(dst, b[:putHost(b[:], h)]...)
}

// putHost writes h at the start of b and returns how many bytes it took.
func putHost(b []byte, h netip.AddrPort) int {
	n := 4
	switch {
	case isV6(h):
		a := h.Addr().As16()
		n = copy(b, a[:])
	case h.Addr().IsValid():
		a := h.Addr().Unmap().As4()
		copy(b, a[:])
	default:
		clear(b[:n])
	}
	binary.BigEndian.PutUint32(b[n:], uint32(h.Port()))
	return n + 4
}

// readHost reads a host that fills b. Of a port beyond 65535, which no broker writes, the low bits count.
func readHost(b []byte) netip.AddrPort {
	n := len(b) - 4
	a, _ := netip.AddrFromSlice(b[:n])
	return netip.AddrPortFrom(a, uint16(binary.BigEndian.Uint32(b[n:])))
}
