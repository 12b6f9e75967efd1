package message

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
)

const upperHex = "0123456789ABCDEF"

// OffsetMsgId is the id that the broker gives: upper-case hex of store host (4 or 16 bytes), port (4)
// and commit-log offset (8).
func OffsetMsgId(host netip.AddrPort, phyOffset int64) string {
	var b [56]byte
	return string(AppendOffsetMsgId(b[:0], host, phyOffset))
}

// AppendOffsetMsgId appends the id to dst.
func AppendOffsetMsgId(dst []byte, host netip.AddrPort, phyOffset int64) []byte {
	var raw [28]byte
	b := appendHost(raw[:0], host)
	b = binary.BigEndian.AppendUint64(b, uint64(phyOffset))
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// ParseOffsetMsgId reads an id of 32 or 56 hex digits (of either case). A port beyond 65535 is an error.
func ParseOffsetMsgId(id string) (host netip.AddrPort, phyOffset int64, err error) {
	if len(id) != 32 && len(id) != 56 {
		return host, 0, fmt.Errorf("message: offset id of %d characters, must be 32 or 56", len(id))
	}
	var raw [28]byte
	n, err := hex.Decode(raw[:], []byte(id))
	if err != nil {
		return host, 0, fmt.Errorf("message: offset id: %w", err)
	}
	b := raw[:n]
	if port := binary.BigEndian.Uint32(b[n-12:]); port > 0xFFFF {
		return host, 0, fmt.Errorf("message: offset id with port %d", port)
	}
	return readHost(b[:n-8]), int64(binary.BigEndian.Uint64(b[n-8:])), nil
}
