package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"slices"
	"strings"
	"unsafe"
)

// MagicCode begins a message record, BlankMagicCode the blank record at a file's end.
const (
	MagicCode      uint32 = 0xDAA320A7
	BlankMagicCode uint32 = 0xCBD43194
)

// A record, big-endian. B is 8 bytes (IPv4) or 20 (IPv6, system flag bit 0x10), S likewise (bit 0x20).
//
//	 0        4        8        12       16      20           28         36       40
//	+--------+--------+--------+--------+-------+------------+----------+--------+---------------+
//	| size   | magic  | crc    | queue  | flag  | queue      | phy      | sys    | born          |
//	| int32  |        | body   | id     |       | offset     | offset   | flag   | timestamp     |
//	+--------+--------+--------+--------+-------+------------+----------+--------+---------------+
//	 48          48+B             56+B         56+B+S      60+B+S
//	+-----------+----------------+------------+-----------+----------------------+
//	| born host | store timestamp| store host | reconsume | prepared transaction |
//	| B bytes   | int64          | S bytes    | times     | offset, int64        |
//	+-----------+----------------+------------+-----------+----------------------+
//	 68+B+S
//	+----------------+--------+---------------+--------+------------------+------------+
//	| body length    | body   | topic length  | topic  | properties length| properties |
//	| int32          |        | 1 byte, <=127 |        | int16            | text       |
//	+----------------+--------+---------------+--------+------------------+------------+
//
// The CRC is that of IEEE 802.3 over the (perhaps compressed) body, without its highest bit.
//
// A blank record has only size, the bytes left in its file, and BlankMagicCode; what follows is not looked at.
const (
	sizeAt           = 0
	magicAt          = 4
	crcAt            = 8
	queueIdAt        = 12
	flagAt           = 16
	queueOffsetAt    = 20
	phyOffsetAt      = 28
	sysFlagAt        = 36
	bornTimestampAt  = 40
	bornHostAt       = 48
	storeTimestampAt = 48 // + B
	storeHostAt      = 56 // + B
	reconsumeAt      = 56 // + B + S
	preparedAt       = 60 // + B + S
	bodyLengthAt     = 68 // + B + S
)

// MinRecordSize is the size of a record with two IPv4 hosts and nothing variable. BlankRecordSize is what is
// written of a blank record, and what a record must leave free behind it in its file.
const (
	MinRecordSize   = bodyLengthAt + 2*hostSize + 4 + 1 + 2
	BlankRecordSize = 8
)

// Errors of Check and Parse.
var (
	// ErrBlank: a blank record; the next record begins in the next file.
	ErrBlank = errors.New("message: blank record")
	// ErrShort: the bytes end before the record does; the size returned is what is needed (8 when even the
	// size could not be read).
	ErrShort = errors.New("message: record goes beyond the bytes given")
	// ErrMagic: no record begins here.
	ErrMagic = errors.New("message: wrong magic code")
	// ErrSize: the sizes within the record contradict each other.
	ErrSize = errors.New("message: sizes of a record do not add up")
	// ErrCRC: the body is not what was written.
	ErrCRC = errors.New("message: body CRC does not match")
)

// Errors of CheckSizes.
var (
	ErrTopicSize      = errors.New("message: topic longer than 127 bytes")
	ErrPropertiesSize = errors.New("message: properties longer than 32767 bytes")
)

// CheckSizes tells whether topic and properties of m fit their length fields; AppendRecord needs that.
func CheckSizes(m *Message) error {
	if len(m.Topic) > MaxTopicLength {
		return ErrTopicSize
	}
	if len(m.Properties) > MaxPropertiesLength {
		return ErrPropertiesSize
	}
	return nil
}

// RecordSize is the number of bytes that m takes in the commit log.
func RecordSize(m *Message) int {
	return bodyLengthAt + sizeOf(m.BornHost) + sizeOf(m.StoreHost) + 4 + len(m.Body) + 1 + len(m.Topic) + 2 + len(m.Properties)
}

// BodyCRC is the CRC that a record has of its body.
func BodyCRC(body []byte) uint32 { return crc32.ChecksumIEEE(body) & 0x7FFFFFFF }

// AppendRecord appends the record of m: all of it, with the CRC of the body, m's QueueOffset, PhyOffset
// and StoreTimestamp as they are now. SysFlag's IPv6 bits are set, or cleared, by the hosts. Topic and
// properties must pass CheckSizes. It allocates only to enlarge dst.
func AppendRecord(dst []byte, m *Message) []byte {
	size := RecordSize(m)
	start := len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	b := dst[start:]
	sysFlag := m.SysFlag &^ (BornHostV6 | StoreHostV6)
	if isV6(m.BornHost) {
		sysFlag |= BornHostV6
	}
	if isV6(m.StoreHost) {
		sysFlag |= StoreHostV6
	}
	be := binary.BigEndian
	be.PutUint32(b[sizeAt:], uint32(size))
	be.PutUint32(b[magicAt:], MagicCode)
	be.PutUint32(b[crcAt:], BodyCRC(m.Body))
	be.PutUint32(b[queueIdAt:], uint32(m.QueueId))
	be.PutUint32(b[flagAt:], uint32(m.Flag))
	be.PutUint64(b[queueOffsetAt:], uint64(m.QueueOffset))
	be.PutUint64(b[phyOffsetAt:], uint64(m.PhyOffset))
	be.PutUint32(b[sysFlagAt:], uint32(sysFlag))
	be.PutUint64(b[bornTimestampAt:], uint64(m.BornTimestamp))
	b = b[bornHostAt+putHost(b[bornHostAt:], m.BornHost):]
	be.PutUint64(b, uint64(m.StoreTimestamp))
	b = b[8+putHost(b[8:], m.StoreHost):]
	be.PutUint32(b, uint32(m.ReconsumeTimes))
	be.PutUint64(b[4:], uint64(m.PreparedTransactionOffset))
	be.PutUint32(b[12:], uint32(len(m.Body)))
	b = b[16+copy(b[16:], m.Body):]
	b[0] = byte(len(m.Topic))
	b = b[1+copy(b[1:], m.Topic):]
	be.PutUint16(b, uint16(len(m.Properties)))
	copy(b[2:], m.Properties)
	return dst
}

// AppendBlank appends the written part of a blank record for a file in which size bytes are left.
func AppendBlank(dst []byte, size int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	return binary.BigEndian.AppendUint32(dst, BlankMagicCode)
}

// Record is the bytes of one record; its methods read fields in place. Only a record that Check or
// Parse has accepted may be read; its length may exceed its size.
type Record []byte

// Stamp writes what the store decides under the append lock into an encoded record.
func (r Record) Stamp(queueOffset, phyOffset, storeTimestamp int64) {
	binary.BigEndian.PutUint64(r[queueOffsetAt:], uint64(queueOffset))
	binary.BigEndian.PutUint64(r[phyOffsetAt:], uint64(phyOffset))
	binary.BigEndian.PutUint64(r[storeTimestampAt+r.bornHostSize():], uint64(storeTimestamp))
}

func (r Record) int32(at int) int32 { return int32(binary.BigEndian.Uint32(r[at:])) }
func (r Record) int64(at int) int64 { return int64(binary.BigEndian.Uint64(r[at:])) }

func (r Record) bornHostSize() int {
	if r.SysFlag()&BornHostV6 != 0 {
		return hostSizeV6
	}
	return hostSize
}

// hostSizes is B + S of the picture.
func (r Record) hostSizes() int {
	if r.SysFlag()&StoreHostV6 != 0 {
		return r.bornHostSize() + hostSizeV6
	}
	return r.bornHostSize() + hostSize
}

// Size is the number of bytes of the record.
func (r Record) Size() int { return int(r.int32(sizeAt)) }

// BodyCRC is the stored CRC of the body.
func (r Record) BodyCRC() uint32 { return binary.BigEndian.Uint32(r[crcAt:]) }

// QueueId is the queue within the topic.
func (r Record) QueueId() int32 { return r.int32(queueIdAt) }

// Flag is the application's flag.
func (r Record) Flag() int32 { return r.int32(flagAt) }

// QueueOffset is the place in the consume queue; 0 for records that do not enter one.
func (r Record) QueueOffset() int64 { return r.int64(queueOffsetAt) }

// PhyOffset is the commit-log offset of the record.
func (r Record) PhyOffset() int64 { return r.int64(phyOffsetAt) }

// SysFlag is the system flag.
func (r Record) SysFlag() int32 { return r.int32(sysFlagAt) }

// BornTimestamp is when the client made the message (ms).
func (r Record) BornTimestamp() int64 { return r.int64(bornTimestampAt) }

// BornHost is the client's address.
func (r Record) BornHost() netip.AddrPort {
	return readHost(r[bornHostAt : bornHostAt+r.bornHostSize()])
}

// StoreTimestamp is when the broker stored the record (ms).
func (r Record) StoreTimestamp() int64 { return r.int64(storeTimestampAt + r.bornHostSize()) }

// StoreHost is the address of the broker that stored the record.
func (r Record) StoreHost() netip.AddrPort {
	return readHost(r[storeHostAt+r.bornHostSize() : storeHostAt+r.hostSizes()])
}

// ReconsumeTimes is how often the message was sent back.
func (r Record) ReconsumeTimes() int32 { return r.int32(reconsumeAt + r.hostSizes()) }

// PreparedTransactionOffset is the commit-log offset of the half message of a committed one, else 0.
func (r Record) PreparedTransactionOffset() int64 { return r.int64(preparedAt + r.hostSizes()) }

// Body is the stored body: a part of the record.
func (r Record) Body() []byte {
	at := bodyLengthAt + r.hostSizes()
	n := int(r.int32(at))
	return r[at+4 : at+4+n : at+4+n]
}

// topicAt is where the topic's length byte stands.
func (r Record) topicAt() int {
	at := bodyLengthAt + r.hostSizes()
	return at + 4 + int(r.int32(at))
}

// Topic is the topic. The string is a part of the record: clone it (strings.Clone) to keep it longer.
func (r Record) Topic() string {
	at := r.topicAt()
	return stringOf(r[at+1 : at+1+int(r[at])])
}

// Properties is the properties text. The string is a part of the record: clone it, or a value taken from
// it, to keep it longer.
func (r Record) Properties() string {
	at := r.topicAt()
	at += 1 + int(r[at])
	n := int(binary.BigEndian.Uint16(r[at:]))
	return stringOf(r[at+2 : at+2+n])
}

// Property returns the value of a property; it too is a part of the record.
func (r Record) Property(name string) (string, bool) { return Property(r.Properties(), name) }

// OffsetMsgId is the id that names the record's place.
func (r Record) OffsetMsgId() string { return OffsetMsgId(r.StoreHost(), r.PhyOffset()) }

// stringOf lets a string share the bytes of a record, so that dispatching and filtering millions of
// records a second make no garbage. It is the one place here that is not memory-safe by itself: the record's
// bytes must not change while the string lives.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Check tells whether b begins with a whole valid record: magic, sizes that add up, and the body's CRC
// when crc is set. It returns the record's size. A blank record is reported with ErrBlank and the size that
// it states; a record that goes on beyond b with ErrShort and the size needed.
func Check(b []byte, crc bool) (size int, err error) {
	if len(b) < BlankRecordSize {
		return BlankRecordSize, ErrShort
	}
	r := Record(b)
	size = r.Size()
	switch magic := binary.BigEndian.Uint32(b[magicAt:]); magic {
	case MagicCode:
	case BlankMagicCode:
		return size, ErrBlank
	default:
		return 0, fmt.Errorf("%w %#x", ErrMagic, magic)
	}
	if size < MinRecordSize {
		return 0, fmt.Errorf("%w: total of %d", ErrSize, size)
	}
	if len(b) < size {
		return size, ErrShort
	}
	r = r[:size]
	at := bodyLengthAt + r.hostSizes()
	if at+4+1+2 > size {
		return 0, fmt.Errorf("%w: total of %d", ErrSize, size)
	}
	body := int(r.int32(at))
	at += 4
	if body < 0 || body > size-at-1-2 {
		return 0, fmt.Errorf("%w: body of %d in a record of %d", ErrSize, body, size)
	}
	stored := r[at : at+body]
	at += body
	topic := int(r[at])
	at += 1 + topic
	if topic > MaxTopicLength || at+2 > size {
		return 0, fmt.Errorf("%w: topic of %d in a record of %d", ErrSize, topic, size)
	}
	if properties := int(int16(binary.BigEndian.Uint16(r[at:]))); properties < 0 || at+2+properties != size {
		return 0, fmt.Errorf("%w: properties of %d in a record of %d", ErrSize, properties, size)
	}
	if crc && body > 0 && BodyCRC(stored) != r.BodyCRC() {
		return 0, fmt.Errorf("%w: computed %#x, stored %#x", ErrCRC, BodyCRC(stored), r.BodyCRC())
	}
	return size, nil
}

// Parse reads the record at the start of b, its CRC unchecked; Topic, Body and Properties are copies.
// Errors are those of Check.
func Parse(b []byte) (m Message, size int, err error) {
	if size, err = Check(b, false); err != nil {
		return m, size, err
	}
	r := Record(b[:size])
	return r.Message(), size, nil
}

// Message is the whole record; Topic, Body and Properties are copies.
func (r Record) Message() Message {
	return Message{
		Topic:                     strings.Clone(r.Topic()),
		QueueId:                   r.QueueId(),
		Flag:                      r.Flag(),
		SysFlag:                   r.SysFlag(),
		BornTimestamp:             r.BornTimestamp(),
		BornHost:                  r.BornHost(),
		StoreTimestamp:            r.StoreTimestamp(),
		StoreHost:                 r.StoreHost(),
		ReconsumeTimes:            r.ReconsumeTimes(),
		PreparedTransactionOffset: r.PreparedTransactionOffset(),
		Body:                      bytes.Clone(r.Body()),
		Properties:                strings.Clone(r.Properties()),
		QueueOffset:               r.QueueOffset(),
		PhyOffset:                 r.PhyOffset(),
	}
}
