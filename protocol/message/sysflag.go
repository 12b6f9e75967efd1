package message

// Bits of a message's system flag (MessageSysFlag of 4.9.8).
const (
	Compressed      int32 = 0x1
	MultiTags       int32 = 0x2
	TransactionBits int32 = 0xC // mask of the four transaction values
	BornHostV6      int32 = 0x10
	StoreHostV6     int32 = 0x20
	NeedUnwrap      int32 = 0x40 // 5.x only
	InnerBatch      int32 = 0x80 // 5.x only
	CompressionBits int32 = 0x700
)

// Transaction values of a system flag.
const (
	TransactionNot      int32 = 0x0
	TransactionPrepared int32 = 0x4
	TransactionCommit   int32 = 0x8
	TransactionRollback int32 = 0xC
)

// Compression types of a system flag. Old clients compress without a type, which means ZLIB.
const (
	CompressionLZ4  int32 = 0x100
	CompressionZSTD int32 = 0x200
	CompressionZLIB int32 = 0x300
)

// TransactionValue returns the transaction bits of a system flag.
func TransactionValue(sysFlag int32) int32 { return sysFlag & TransactionBits }

// ResetTransactionValue returns the system flag with its transaction bits replaced.
func ResetTransactionValue(sysFlag, value int32) int32 {
	return sysFlag&^TransactionBits | value&TransactionBits
}

// CompressionType returns the compression of a system flag whose Compressed bit is set: no type is ZLIB.
func CompressionType(sysFlag int32) int32 {
	if t := sysFlag & CompressionBits; t != 0 {
		return t
	}
	return CompressionZLIB
}

// Queued tells whether a record with this system flag enters its consume queue: prepared and rolled-back
// ones do not, and their queue offset is 0.
func Queued(sysFlag int32) bool {
	t := sysFlag & TransactionBits
	return t == TransactionNot || t == TransactionCommit
}
