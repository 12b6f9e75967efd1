package index

// What a reader of files needs who is not an Index: the inspection of a store that no broker has open.

// HeaderSize, SlotSize and EntrySize are the bytes of a file's parts.
const (
	HeaderSize = headerSize
	SlotSize   = slotSize
	EntrySize  = entrySize
)

// FileHeader is the header of a file: times in ms, offsets of the commit log.
type FileHeader struct {
	BeginTimestamp, EndTimestamp int64
	BeginPhyOffset, EndPhyOffset int64
	HashSlotCount                int32 // slots in use
	IndexCount                   int32 // number of the next entry; 1 in an empty file
}

// DecodeFileHeader reads the header at the start of b, which has HeaderSize bytes at least.
func DecodeFileHeader(b []byte) FileHeader {
	h := decodeHeader(b)
	return FileHeader{h.beginTimestamp, h.endTimestamp, h.beginPhyOffset, h.endPhyOffset, h.slots, h.count}
}

// FileEntry is one entry of a file.
type FileEntry struct {
	KeyHash   int32
	PhyOffset int64
	Seconds   int32 // since the header's BeginTimestamp
	Previous  int32 // number of the entry before it in its slot, 0 none
}

// DecodeFileEntry reads the entry at the start of b, which has EntrySize bytes at least.
func DecodeFileEntry(b []byte) FileEntry {
	e := decodeEntry(b)
	return FileEntry{e.hash, e.phyOffset, e.seconds, e.previous}
}

// KeyHash is the hash of a topic's key.
func KeyHash(topic, key string) int32 { return keyHash(topic, key) }

// SecondsSince is the Seconds of an entry in a file with that BeginTimestamp.
func SecondsSince(begin, timestamp int64) int32 { return secondsSince(begin, timestamp) }

// IsFileName tells whether a name is that of an index file: a time, yyyyMMddHHmmssSSS.
func IsFileName(name string) bool { return isFileName(name) }
