package pop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"rocketd/protocol/message"
)

// LogTopic holds the records, in its one queue.
const LogTopic = message.TopicPopLog

// ReviveGroup is the group whose offset in LogTopic says which records are still needed: the official name of who reads
// the checkpoints.
const ReviveGroup = "CID_RMQ_SYS_REVIVE_GROUP"

// maxBatch is the most messages that one pop takes of a queue.
const maxBatch = 32

// A record is the body of a message in LogTopic: a byte that says which, and then, big-endian and with lengths as
// uvarints,
//
//	checkpoint, 1: key | invisible time, ms, 8 | next, 8 | acknowledged, 4 | n | n times: distance to the offset before
//	acks, 2:       n | n times: key | bits of acknowledged messages, 4
//	offset, 3:     topic, group, queue id | next, 8
//
//	key:           topic, group, queue id | start offset, 8 | pop time, ms, 8
//	topic, group:  length | bytes
//
// next is the queue offset at which the group stands after the pop, 0 for none; in an offset record 0 means that what
// the records before it say does not count. Bit i means the i-th message.
const (
	kindCheckpoint = 1
	kindAcks       = 2
	kindOffset     = 3
)

// Key names one queue as one group pops it.
type Key struct {
	Topic   string
	Group   string
	QueueId int32
}

// id names one checkpoint.
type id struct {
	Key
	start, popTime int64
}

// ack is one checkpoint's part of an ack record.
type ack struct {
	id
	bits uint32
}

// image is a checkpoint as its record has it.
type image struct {
	id
	invisible, next int64
	acked           uint32
	offsets         []int64 // ascending queue offsets
}

var errRecord = errors.New("pop: broken record")

func appendKey(dst []byte, k Key) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(k.Topic))), k.Topic...)
	dst = append(binary.AppendUvarint(dst, uint64(len(k.Group))), k.Group...)
	return binary.AppendUvarint(dst, uint64(uint32(k.QueueId)))
}

func appendId(dst []byte, i id) []byte {
	dst = appendKey(dst, i.Key)
	dst = binary.BigEndian.AppendUint64(dst, uint64(i.start))
	return binary.BigEndian.AppendUint64(dst, uint64(i.popTime))
}

func appendCheckpoint(dst []byte, c *image) []byte {
	dst = appendId(append(dst, kindCheckpoint), c.id)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.invisible))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.next))
	dst = binary.BigEndian.AppendUint32(dst, c.acked)
	dst = binary.AppendUvarint(dst, uint64(len(c.offsets)))
	at := c.start
	for _, o := range c.offsets {
		dst = binary.AppendUvarint(dst, uint64(o-at))
		at = o
	}
	return dst
}

func appendAcks(dst []byte, acks []ack) []byte {
	dst = binary.AppendUvarint(append(dst, kindAcks), uint64(len(acks)))
	for i := range acks {
		dst = binary.BigEndian.AppendUint32(appendId(dst, acks[i].id), acks[i].bits)
	}
	return dst
}

func appendOffset(dst []byte, k Key, next int64) []byte {
	return binary.BigEndian.AppendUint64(appendKey(append(dst, kindOffset), k), uint64(next))
}

// decoder reads a record; after its end it gives zeros and has failed.
type decoder struct {
	in     []byte
	failed bool
}

func (d *decoder) take(n uint64) []byte {
	if d.failed || n > uint64(len(d.in)) {
		d.failed = true
		return nil
	}
	b := d.in[:n]
	d.in = d.in[n:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.in)
	if d.failed || n <= 0 {
		d.failed = true
		return 0
	}
	d.in = d.in[n:]
	return v
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) key() (k Key) {
	k.Topic = string(d.take(d.uvarint()))
	k.Group = string(d.take(d.uvarint()))
	k.QueueId = int32(uint32(d.uvarint()))
	return k
}

func (d *decoder) id() (i id) {
	i.Key = d.key()
	i.start, i.popTime = d.int64(), d.int64()
	return i
}

// readRecord reads one record and tells it to one of the three functions.
func readRecord(b []byte, checkpoint func(*image), acks func(*ack), offset func(k Key, next int64)) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: empty", errRecord)
	}
	d := decoder{in: b[1:]}
	switch b[0] {
	case kindCheckpoint:
		c := image{id: d.id()}
		c.invisible, c.next, c.acked = d.int64(), d.int64(), d.uint32()
		n := d.uvarint()
		if n == 0 || n > maxBatch {
			return fmt.Errorf("%w: a checkpoint of %d messages", errRecord, n)
		}
		at := c.start
		for range n {
			at += int64(d.uvarint() & (1<<62 - 1))
			c.offsets = append(c.offsets, at)
		}
		if !d.failed {
			checkpoint(&c)
		}
	case kindAcks:
		for n := d.uvarint(); n > 0 && !d.failed; n-- {
			if a := (ack{d.id(), d.uint32()}); !d.failed {
				acks(&a)
			}
		}
	case kindOffset:
		k := d.key()
		if next := d.int64(); !d.failed {
			offset(k, next)
		}
	default:
		return fmt.Errorf("%w: kind %d", errRecord, b[0])
	}
	if d.failed {
		return fmt.Errorf("%w: it ends too early", errRecord)
	}
	return nil
}

// all is the bits of n messages.
func all(n int) uint32 { return uint32(1<<uint(n) - 1) }

// count is how many bits are set.
func count(b uint32) int { return bits.OnesCount32(b) }
