// Package wire is the conformance tests' own codec of the RocketMQ remoting protocol: frames in both header forms, a
// plain connection, stored message records and fastjson's dialect of JSON.
//
// It shares nothing with the product's packages, so that a mistake made there cannot hide itself by being made on both
// sides of a test. It is written for clarity and for sending wrong things on purpose, not for speed.
//
//	frame:  int32 L | int32 (top byte: form of the header, low 24 bits: H) | header, H bytes | body, L-4-H bytes
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The forms a header can have: the top byte of a frame's second word.
const (
	JSON   byte = 0 // the header is a JSON object
	Binary byte = 1 // the header is the compact binary form, ROCKETMQ
)

// Bits of a frame's flag.
const (
	FlagResponse = 1 // the frame answers a request
	FlagOneway   = 2 // the request wants no answer
)

// maxFrame bounds what Read believes: the official default limit of a frame.
const maxFrame = 16 << 20

// Languages are the names behind the binary header's language byte, in order.
var Languages = []string{"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST"}

// Frame is one request or answer.
type Frame struct {
	Form      byte // JSON or Binary
	Code      int
	Flag      int
	Opaque    int32
	Language  string
	Version   int
	Remark    string
	HasRemark bool
	Ext       map[string]string // nil when the header has none
	Body      []byte
	Header    []byte // as received
}

// Request returns a request as a 4.9.8 Java client would send it, in the JSON form. The pairs are the ext fields.
func Request(code int, pairs ...string) *Frame {
	f := &Frame{Code: code, Language: "JAVA", Version: 409}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Set sets an ext field and returns the frame.
func (f *Frame) Set(name, value string) *Frame {
	if f.Ext == nil {
		f.Ext = map[string]string{}
	}
	f.Ext[name] = value
	return f
}

// Without removes ext fields and returns the frame.
func (f *Frame) Without(names ...string) *Frame {
	for _, n := range names {
		delete(f.Ext, n)
	}
	return f
}

// WithBody sets the body and returns the frame.
func (f *Frame) WithBody(b []byte) *Frame {
	f.Body = b
	return f
}

// IsResponse tells whether the frame answers a request.
func (f *Frame) IsResponse() bool { return f.Flag&FlagResponse != 0 }

// IsOneway tells whether the request wants no answer.
func (f *Frame) IsOneway() bool { return f.Flag&FlagOneway != 0 }

// ExtNames returns the names of the ext fields, sorted.
func (f *Frame) ExtNames() []string {
	names := make([]string, 0, len(f.Ext))
	for k := range f.Ext {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// Encode returns the frame as it goes over the wire, its length word included.
func (f *Frame) Encode() []byte {
	if f.Form == Binary {
		return Assemble(Binary, f.binaryHeader(), f.Body)
	}
	h := map[string]any{"code": f.Code, "flag": f.Flag, "language": f.Language, "opaque": f.Opaque, "version": f.Version,
		"serializeTypeCurrentRPC": "JSON"}
	if f.Ext != nil {
		h["extFields"] = f.Ext
	}
	if f.HasRemark || f.Remark != "" {
		h["remark"] = f.Remark
	}
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // only strings and integers are in it
	}
	return Assemble(JSON, text, f.Body)
}

// Assemble puts a frame together from header bytes, which need not be a header at all, and a body.
func Assemble(form byte, header, body []byte) []byte {
	b := make([]byte, 0, 8+len(header)+len(body))
	b = binary.BigEndian.AppendUint32(b, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(form)<<24|uint32(len(header)))
	return append(append(b, header...), body...)
}

func (f *Frame) binaryHeader() []byte {
	language := max(0, slices.Index(Languages, f.Language))
	var ext []byte
	for _, k := range f.ExtNames() {
		ext = append(binary.BigEndian.AppendUint16(ext, uint16(len(k))), k...)
		ext = append(binary.BigEndian.AppendUint32(ext, uint32(len(f.Ext[k]))), f.Ext[k]...)
	}
	h := binary.BigEndian.AppendUint16(nil, uint16(f.Code))
	h = append(h, byte(language))
	h = binary.BigEndian.AppendUint16(h, uint16(f.Version))
	h = binary.BigEndian.AppendUint32(h, uint32(f.Opaque))
	h = binary.BigEndian.AppendUint32(h, uint32(f.Flag))
	h = append(binary.BigEndian.AppendUint32(h, uint32(len(f.Remark))), f.Remark...)
	return append(binary.BigEndian.AppendUint32(h, uint32(len(ext))), ext...)
}

// Read reads one frame. It returns io.EOF only when the stream ends between two frames.
func Read(r io.Reader) (*Frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 4 || length > maxFrame {
		return nil, fmt.Errorf("frame length %d", length)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("half a frame: %w", err)
	}
	return Decode(payload)
}

// Decode decodes what follows a frame's length word.
func Decode(payload []byte) (*Frame, error) {
	if len(payload) < 4 {
		return nil, errors.New("frame of less than 4 bytes")
	}
	word := binary.BigEndian.Uint32(payload)
	form, size := byte(word>>24), int(word&0xFFFFFF)
	if size > len(payload)-4 {
		return nil, fmt.Errorf("header of %d bytes in a frame of %d", size, len(payload))
	}
	f := &Frame{Form: form, Header: payload[4 : 4+size], Body: payload[4+size:]}
	switch form {
	case JSON:
		return f, f.decodeJSON()
	case Binary:
		return f, f.decodeBinary()
	}
	return nil, fmt.Errorf("header form %d", form)
}

func (f *Frame) decodeJSON() error {
	var h struct {
		Code      int
		Flag      int
		Opaque    int32
		Language  string
		Version   int
		Remark    *string
		ExtFields map[string]*string
	}
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return fmt.Errorf("header %.100q: %w", f.Header, err)
	}
	f.Code, f.Flag, f.Opaque, f.Language, f.Version = h.Code, h.Flag, h.Opaque, h.Language, h.Version
	if h.Remark != nil {
		f.Remark, f.HasRemark = *h.Remark, true
	}
	if h.ExtFields != nil {
		f.Ext = map[string]string{}
		for k, v := range h.ExtFields {
			if v != nil {
				f.Ext[k] = *v
			}
		}
	}
	return nil
}

func (f *Frame) decodeBinary() error {
	c := cursor{b: f.Header}
	f.Code = int(int16(c.uint16()))
	language := int(c.byte())
	f.Version = int(int16(c.uint16()))
	f.Opaque = int32(c.uint32())
	f.Flag = int(int32(c.uint32()))
	f.Remark = string(c.take(int(c.uint32())))
	f.HasRemark = f.Remark != ""
	ext := cursor{b: c.take(int(c.uint32()))}
	for len(ext.b) > 0 && !ext.short {
		k := string(ext.take(int(ext.uint16())))
		f.Set(k, string(ext.take(int(ext.uint32()))))
	}
	if c.short || ext.short || len(c.b) > 0 {
		return fmt.Errorf("binary header %x is cut short or too long", f.Header)
	}
	if language < len(Languages) {
		f.Language = Languages[language]
	}
	return nil
}

// cursor takes big-endian values off the front of a buffer; past the end it yields zeros and remembers that.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if v := c.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if v := c.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if v := c.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
