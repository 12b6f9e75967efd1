package message

// MagicCode begins a message record, BlankMagicCode the blank record at a file's end.
const (
	MagicCode      uint32 = 0xDAA320A7
	BlankMagicCode uint32 = 0xCBD43194
)

// RecordSize is the number of bytes that m takes in the commit log.
func RecordSize(m *Message) int { panic("skeleton") }

// AppendRecord appends the record of m: all of it, with the CRC of the body, m's QueueOffset, PhyOffset
// and StoreTimestamp as they are now. SysFlag's IPv6 bits are set from the hosts.
func AppendRecord(dst []byte, m *Message) []byte { panic("skeleton") }

// Record is the bytes of one record; its methods read fields in place. Only a record that Check or
// Parse has accepted may be read.
type Record []byte

// Stamp writes what the store decides under the append lock into an encoded record.
func (r Record) Stamp(queueOffset, phyOffset, storeTimestamp int64) { panic("skeleton") }

// Size, QueueId, QueueOffset, PhyOffset, SysFlag, StoreTimestamp, Topic, Properties, Body, BodyCRC … :
// one accessor per field, strings and slices pointing into the record.

// Check tells whether b begins with a whole valid record: magic, sizes that add up, and the body's CRC
// when crc is set. It returns the record's size. Blank records are reported with ErrBlank and their size.
func Check(b []byte, crc bool) (size int, err error) { panic("skeleton") }

// Parse reads the record at the start of b; Topic, Body and Properties are copies.
func Parse(b []byte) (m Message, size int, err error) { panic("skeleton") }
