package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

const (
	recordMagic = 0xDAA320A7
	bornIPv6    = 0x10
	storeIPv6   = 0x20
)

// Message is one stored message: a record of the commit log, and an element of a pull's, view's or query's body.
type Message struct {
	Size                      int
	BodyCRC                   uint32
	QueueId                   int32
	Flag                      int32
	QueueOffset               int64
	PhyOffset                 int64
	SysFlag                   int32
	BornTimestamp             int64
	BornHost                  netip.AddrPort
	StoreTimestamp            int64
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte
	Topic                     string
	Properties                map[string]string
	PropertiesText            string
}

// MsgId is the message's offset id: the store host and the physical offset in upper-case hex.
func (m *Message) MsgId() string {
	ip := m.StoreHost.Addr().AsSlice()
	return fmt.Sprintf("%X%08X%016X", ip, m.StoreHost.Port(), m.PhyOffset)
}

// Messages decodes a body of concatenated records.
func Messages(body []byte) ([]*Message, error) {
	var out []*Message
	for len(body) > 0 {
		if len(body) < 91 {
			return nil, fmt.Errorf("%d bytes left after %d messages", len(body), len(out))
		}
		size := int(binary.BigEndian.Uint32(body))
		if size < 91 || size > len(body) {
			return nil, fmt.Errorf("message %d has size %d, %d bytes are left", len(out), size, len(body))
		}
		m, err := message(body[:size])
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(out), err)
		}
		out, body = append(out, m), body[size:]
	}
	return out, nil
}

func message(b []byte) (*Message, error) {
	c := cursor{b: b}
	m := &Message{Size: int(c.uint32())}
	if magic := c.uint32(); magic != recordMagic {
		return nil, fmt.Errorf("magic %08x", magic)
	}
	m.BodyCRC = c.uint32()
	m.QueueId, m.Flag = int32(c.uint32()), int32(c.uint32())
	m.QueueOffset, m.PhyOffset = int64(c.uint64()), int64(c.uint64())
	m.SysFlag = int32(c.uint32())
	m.BornTimestamp = int64(c.uint64())
	m.BornHost = c.host(m.SysFlag&bornIPv6 != 0)
	m.StoreTimestamp = int64(c.uint64())
	m.StoreHost = c.host(m.SysFlag&storeIPv6 != 0)
	m.ReconsumeTimes = int32(c.uint32())
	m.PreparedTransactionOffset = int64(c.uint64())
	m.Body = c.take(int(int32(c.uint32())))
	m.Topic = string(c.take(int(c.byte())))
	m.PropertiesText = string(c.take(int(c.uint16())))
	m.Properties = ParseProperties(m.PropertiesText)
	if c.short || len(c.b) > 0 {
		return nil, fmt.Errorf("record of %d bytes is cut short or too long", len(b))
	}
	return m, nil
}

func (c *cursor) host(v6 bool) netip.AddrPort {
	n := 4
	if v6 {
		n = 16
	}
	addr, _ := netip.AddrFromSlice(c.take(n))
	return netip.AddrPortFrom(addr, uint16(c.uint32()))
}

// Properties writes a message's properties as clients send them. The pairs are names and values.
func Properties(pairs ...string) string {
	var items []string
	for i := 0; i+1 < len(pairs); i += 2 {
		items = append(items, pairs[i]+"\x01"+pairs[i+1])
	}
	return strings.Join(items, "\x02")
}

// ParseProperties reads what Properties writes.
func ParseProperties(text string) map[string]string {
	out := map[string]string{}
	for _, item := range strings.Split(text, "\x02") {
		if k, v, ok := strings.Cut(item, "\x01"); ok {
			out[k] = v
		}
	}
	return out
}

// Batch encodes the body of a batch send: for each body one element with the properties.
func Batch(properties string, bodies ...[]byte) []byte {
	var out []byte
	for _, body := range bodies {
		out = binary.BigEndian.AppendUint32(out, uint32(4*5+len(body)+2+len(properties)))
		out = append(out, make([]byte, 12)...) // magic, body CRC and flag: the broker ignores the first two
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(body))), body...)
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(properties))), properties...)
	}
	return out
}
