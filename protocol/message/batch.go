package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The body of SEND_BATCH_MESSAGE (320) is elements back to back:
//
//	+--------+-----------+-----------+-------+-------------+------+-------------------+------------+
//	| size   | magic     | body CRC  | flag  | body length | body | properties length | properties |
//	| int32  | unused, 0 | unused, 0 | int32 | int32       |      | int16             | text       |
//	+--------+-----------+-----------+-------+-------------+------+-------------------+------------+
//
// As in CommitLog's encoder of 4.9.8, size, magic and CRC are not looked at.
const elementFixed = 4 + 4 + 4 + 4 + 4

// ErrBatch: the body of a batch ends in the middle of an element, or has a negative length.
var ErrBatch = errors.New("message: malformed batch")

// Element is one message of a batch as the client sent it. Body and Properties are parts of the batch.
type Element struct {
	Flag       int32
	Body       []byte
	Properties []byte
}

// EachElement calls f for each element of a batch, in order, until f returns an error, which it returns.
// An element that does not end within the batch is ErrBatch; f has then seen those before it.
func EachElement(batch []byte, f func(Element) error) error {
	for at := 0; at < len(batch); {
		start := at
		b := batch[at:]
		if len(b) < elementFixed {
			return fmt.Errorf("%w: %d bytes at %d", ErrBatch, len(b), start)
		}
		flag := int32(binary.BigEndian.Uint32(b[12:]))
		body := int(int32(binary.BigEndian.Uint32(b[16:])))
		b = b[elementFixed:]
		if body < 0 || body > len(b)-2 {
			return fmt.Errorf("%w: body of %d at %d", ErrBatch, body, start)
		}
		properties := int(int16(binary.BigEndian.Uint16(b[body:])))
		if properties < 0 || properties > len(b)-body-2 {
			return fmt.Errorf("%w: properties of %d at %d", ErrBatch, properties, start)
		}
		at += elementFixed + body + 2 + properties
		e := Element{Flag: flag, Body: b[:body:body], Properties: b[body+2 : body+2+properties]}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// StoredProperties is the properties text of a batch element as it is stored: its own, then those of the
// batch, with a separator between where neither is empty and the first has none at its end.
func StoredProperties(element []byte, batch string) string {
	n := len(element)
	if n == 0 {
		return batch
	}
	if batch == "" {
		return string(element)
	}
	dst := make([]byte, 0, n+1+len(batch))
	dst = append(dst, element...)
	if element[n-1] != propertySeparator {
		dst = append(dst, propertySeparator)
	}
	return string(append(dst, batch...))
}

// AppendElement appends one element as a client encodes it.
func AppendElement(dst []byte, e Element) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(elementFixed+len(e.Body)+2+len(e.Properties)))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = be.AppendUint32(dst, uint32(e.Flag))
	dst = be.AppendUint32(dst, uint32(len(e.Body)))
	dst = append(dst, e.Body...)
	dst = be.AppendUint16(dst, uint16(len(e.Properties)))
	return append(dst, e.Properties...)
}
