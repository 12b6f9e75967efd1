package protocol

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// MaxFrame is the largest frame, its length field included, that the official server takes by
// default. Larger: the connection is closed.
const MaxFrame = 16777216

// headerMask cuts the serialize type off a header length.
const headerMask = 0xffffff

// MaxHeader is the longest header that its length field can tell.
const MaxHeader = headerMask

// MaxRemark is how many bytes of a remark are sent: many remarks repeat a name of the request, and one of some
// megabytes may pass the bound of a frame once it is escaped.
const MaxRemark = 8 << 10

// cutRemark bounds a remark, between two characters.
func cutRemark(s string) string {
	if len(s) <= MaxRemark {
		return s
	}
	n := MaxRemark
	for n > MaxRemark-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// DecodeHeader reads a header of the given form into c, whose Fields are reused; c.Body is left alone.
// header is kept: c's strings point into it. A header that does not parse is an error; the connection
// is then closed.
func DecodeHeader(t SerializeType, header string, c *Command) error {
	switch t {
	case JSON:
		return decodeJSON(header, c)
	case Binary:
		return decodeBinary(header, c)
	}
	return fmt.Errorf("serialize type %d is unknown", t)
}

// AppendHead appends a frame without its body (length fields and header, counting len(c.Body)) to dst. The remark is
// cut to MaxRemark. A header longer than MaxHeader makes no frame that can be read; the caller looks.
func AppendHead(dst []byte, c *Command) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	if c.Serialize == Binary {
		dst = appendBinary(dst, c)
	} else {
		dst = appendJSON(dst, c)
	}
	header := len(dst) - start - 8
	binary.BigEndian.PutUint32(dst[start:], uint32(4+header+len(c.Body)))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(c.Serialize)<<24|uint32(header)&headerMask)
	return dst
}

// AppendFrame appends the whole frame of c, body included, to dst.
func AppendFrame(dst []byte, c *Command) []byte { return append(AppendHead(dst, c), c.Body...) }

// DecodeFrame reads one whole frame (with its length field); for tests and tools. The connection
// reads frames from its own buffers by the same rules. The command's body points into b.
func DecodeFrame(b []byte) (*Command, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("frame has %d bytes, the least is 8", len(b))
	}
	length, header := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if uint64(length)+4 != uint64(len(b)) {
		return nil, fmt.Errorf("frame says %d bytes, has %d", uint64(length)+4, len(b))
	}
	h := header & headerMask
	if h > length-4 {
		return nil, fmt.Errorf("header has %d bytes, frame only %d", h, length-4)
	}
	c := new(Command)
	if err := DecodeHeader(SerializeType(header>>24), string(b[8:8+h]), c); err != nil {
		return nil, err
	}
	if body := b[8+h:]; len(body) > 0 {
		c.Body = body
	}
	return c, nil
}
