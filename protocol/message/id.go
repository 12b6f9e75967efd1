package message

import "net/netip"

// OffsetMsgId is the id that the broker gives: upper-case hex of store host (4 or 16 bytes), port (4)
// and commit-log offset (8) (spec/message-format.md section 5).
func OffsetMsgId(host netip.AddrPort, phyOffset int64) string { panic("skeleton") }

// AppendOffsetMsgId appends the id to dst.
func AppendOffsetMsgId(dst []byte, host netip.AddrPort, phyOffset int64) []byte { panic("skeleton") }

// ParseOffsetMsgId reads an id of 32 or 56 hex digits.
func ParseOffsetMsgId(id string) (host netip.AddrPort, phyOffset int64, err error) {
	panic("skeleton")
}
