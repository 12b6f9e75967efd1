// Package protocol is what is on the wire: request and response codes, the command with its two
// header forms, the frame around it, and the plans that bind typed headers to ext fields.
//
// A frame (all integers big-endian):
//
//	+--------+----------------------+---------------+-------------+
//	| L (4)  | type (1) | H (3)     | header (H)    | body (L-4-H)|
//	+--------+----------------------+---------------+-------------+
//
// L counts the bytes after itself. The type says how the header is written: 0 = JSON, 1 = ROCKETMQ.
package protocol

// ServerVersion is the version number that the server puts into what it sends: V4_9_8.
// Clients decide by it whether the server knows SQL92.
const ServerVersion int32 = 409

// SerializeType is the form of a header.
type SerializeType byte

// The two header forms.
const (
	JSON   SerializeType = 0
	Binary SerializeType = 1 // Java: ROCKETMQ
)

// Flag bits of a command.
const (
	FlagResponse int32 = 1
	FlagOneway   int32 = 2
)

// Field is one ext field of a header: its wire name and its text.
type Field struct{ Key, Value string }

// Command is one request or response, decoded or to be sent.
//
// A decoded command's strings point into one copy of its header, never into a network buffer, so
// they may be kept. Header is only for commands to be sent: a pointer to a typed header struct (or
// nil for none), written with its Plan; Fields are written after it. A command with a non-nil
// Header and no values still carries `"extFields":{}` in JSON, as the official server does.
type Command struct {
	Code      int32 // a RequestCode or a ResponseCode
	Flag      int32
	Opaque    int32
	Version   int32
	Language  Language
	Serialize SerializeType
	Remark    string // "" = none
	Fields    []Field
	HasFields bool // decoded: the header had extFields (perhaps empty)
	Header    any
	Body      []byte
	// Recycle, of an answer that is given to one call only, takes Body back when its bytes are in the connection's
	// write queue. nil: Body is left to the collector.
	Recycle func(body []byte)
}

// IsResponse tells whether c answers a request.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway tells whether c is a request that must get no answer of any kind.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// Field returns the value of an ext field and whether it is there. Of a key that is there twice the last
// counts, as in Java's map.
func (c *Command) Field(key string) (string, bool) {
	for i := len(c.Fields) - 1; i >= 0; i-- {
		if c.Fields[i].Key == key {
			return c.Fields[i].Value, true
		}
	}
	return "", false
}

// SetField adds an ext field to a command to be sent. It does not look for an older one.
func (c *Command) SetField(key, value string) {
	c.Fields = append(c.Fields, Field{key, value})
}

// resetHeader makes c ready for another header, keeping the capacity of Fields. Java's default language
// stays when a header does not name one.
func (c *Command) resetHeader(t SerializeType) {
	*c = Command{Serialize: t, Language: Java, Fields: c.Fields[:0], Body: c.Body}
}

// NewRequest makes a request to be sent with a typed header (nil for none) and a body (nil for none).
// The sender gives it its opaque.
func NewRequest(code RequestCode, header any, body []byte) *Command {
	return &Command{Code: int32(code), Version: ServerVersion, Header: header, Body: body}
}

// NewResponse makes a response to be sent; the connection sets opaque and serialize type from the request.
func NewResponse(code ResponseCode, remark string, header any) *Command {
	return &Command{Code: int32(code), Flag: FlagResponse, Version: ServerVersion, Remark: remark, Header: header}
}
