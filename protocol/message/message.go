// Package message is a message as it is stored and sent: the commit-log record (which is also an
// element of a pulled body), the properties text, message ids and system flags, and the names that are reserved.
// The layouts are drawn in record.go and batch.go.
package message

import "net/netip"

// Message is one message to be stored or taken from a record.
type Message struct {
	Topic                     string
	QueueId                   int32
	Flag                      int32 // the application's
	SysFlag                   int32 // SysFlag bits
	BornTimestamp             int64 // ms, the client's clock
	BornHost                  netip.AddrPort
	StoreTimestamp            int64 // ms, stamped by the store under the append lock
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte
	Properties                string // the stored text: name U+0001 value U+0002 …
	QueueOffset               int64  // stamped by the store
	PhyOffset                 int64  // stamped by the store
}

// Property returns the value of a property and whether it is there.
func (m *Message) Property(name string) (string, bool) { return Property(m.Properties, name) }

// OffsetMsgId is the id that names the place of a stored message.
func (m *Message) OffsetMsgId() string { return OffsetMsgId(m.StoreHost, m.PhyOffset) }
