package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// The ROCKETMQ header (all integers big-endian, texts UTF-8):
//
//	+----------+--------------+-------------+------------+----------+
//	| code (2) | language (1) | version (2) | opaque (4) | flag (4) |
//	+----------+--------------+-------------+------------+----------+
//	| n (4)    | remark (n; 0 = none)                               |
//	+----------+----------------------------------------------------+
//	| m (4)    | m bytes of entries (0 = none):                     |
//	|          |   k (2) | key (k) | v (4) | value (v; 0 = null)    |
//	+----------+----------------------------------------------------+
//
// Java casts code and version to 16 bits and so do we: a code of 5.x like 200050 does not fit.
const binaryFixed = 2 + 1 + 2 + 4 + 4 + 4 + 4

var errShort = errors.New("ROCKETMQ header is cut short")

// decodeBinary reads a ROCKETMQ header into c. Bytes behind the entries are ignored, as in Java.
func decodeBinary(header string, c *Command) error {
	c.resetHeader(Binary)
	if len(header) < binaryFixed {
		return errShort
	}
	c.Code = int32(int16(beUint16(header)))
	c.Language = languageOf(int32(header[2]))
	c.Version = int32(int16(beUint16(header[3:])))
	c.Opaque = int32(beUint32(header[5:]))
	c.Flag = int32(beUint32(header[9:]))
	var err error
	rest := header[13:]
	if c.Remark, rest, err = cutText(rest, 4); err != nil {
		return fmt.Errorf("remark: %w", err)
	}
	if len(rest) < 4 {
		return errShort
	}
	m := int32(beUint32(rest))
	rest = rest[4:]
	if m <= 0 {
		return nil
	}
	if int(m) > len(rest) {
		return fmt.Errorf("extFields: %w", errShort)
	}
	c.HasFields = true
	if cap(c.Fields) == 0 {
		c.Fields = make([]Field, 0, 16)
	}
	for rest = rest[:m]; rest != ""; {
		var f Field
		if f.Key, rest, err = cutText(rest, 2); err != nil {
			return fmt.Errorf("extFields key: %w", err)
		}
		if f.Value, rest, err = cutText(rest, 4); err != nil {
			return fmt.Errorf("extFields value of %q: %w", f.Key, err)
		}
		if f.Key != "" && f.Value != "" { // Java has null for both, which no header can tell from absent
			c.Fields = append(c.Fields, f)
		}
	}
	return nil
}

// cutText cuts a text with a length of width bytes off s.
func cutText(s string, width int) (text, rest string, err error) {
	if len(s) < width {
		return "", "", errShort
	}
	n := int64(int32(beUint32Or16(s, width)))
	s = s[width:]
	if n < 0 || n > int64(len(s)) {
		return "", "", errShort
	}
	return s[:n], s[n:], nil
}

func beUint32Or16(s string, width int) uint32 {
	if width == 2 {
		return uint32(int32(int16(beUint16(s))))
	}
	return beUint32(s)
}

func beUint16(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

func beUint32(s string) uint32 {
	return uint32(s[0])<<24 | uint32(s[1])<<16 | uint32(s[2])<<8 | uint32(s[3])
}

// appendBinary appends the header of c in its ROCKETMQ form.
func appendBinary(dst []byte, c *Command) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	remark := cutRemark(c.Remark)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(remark)))
	dst = append(dst, remark...)
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if c.Header != nil {
		p, v := PlanFor(c.Header), reflect.ValueOf(c.Header).Elem()
		for i := range p.fields {
			f := &p.fields[i]
			mark, value := len(dst), f.value(v)
			if f.kind == kindString {
				if s := value.String(); s != "" {
					dst = appendEntry(dst, f.key, s)
				}
				continue
			}
			var ok bool
			dst = appendEntry(dst, f.key, "")
			body := len(dst)
			if dst, ok = f.appendValue(dst, value); !ok {
				dst = dst[:mark]
				continue
			}
			binary.BigEndian.PutUint32(dst[body-4:], uint32(len(dst)-body))
		}
	}
	for i := range c.Fields {
		dst = appendEntry(dst, c.Fields[i].Key, c.Fields[i].Value)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

func appendEntry(dst []byte, key, value string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}
