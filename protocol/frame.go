package protocol

// MaxFrame is the largest frame, its length field included, that the official server takes by
// default (spec/wire.md section 1). Larger: the connection is closed.
const MaxFrame = 16777216

// DecodeHeader reads a header of the given form into c, whose Fields are reused. header is kept:
// c's strings point into it. A header that does not parse is an error; the connection is then closed.
func DecodeHeader(t SerializeType, header string, c *Command) error { panic("skeleton") }

// AppendHead appends a frame without its body (length fields and header, counting len(c.Body)) to dst.
func AppendHead(dst []byte, c *Command) []byte { panic("skeleton") }

// AppendFrame appends the whole frame of c, body included, to dst.
func AppendFrame(dst []byte, c *Command) []byte { return append(AppendHead(dst, c), c.Body...) }

// DecodeFrame reads one whole frame (with its length field); for tests and tools. The connection
// reads frames from its own buffers by the same rules.
func DecodeFrame(b []byte) (*Command, error) { panic("skeleton") }
