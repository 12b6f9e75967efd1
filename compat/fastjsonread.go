package compat

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of what is read; RocketMQ's deepest body has six levels, and its only objects as keys are flat
// (MessageQueue).
const (
	// maxDepth bounds how deep values may stand in one another.
	maxDepth = 64
	// maxKeyDepth bounds how deep objects and arrays may stand in one another as keys. Each becomes a string within
	// a string, whose quotes and backslashes double: forty of them, 200 bytes, would make a text of a terabyte.
	maxKeyDepth = 1
	// shownText is how much of a text an error shows.
	shownText = 40
)

// Standardize turns what fastjson 1.2.69 reads into standard JSON: bare numbers, words and whole objects as
// keys become strings (an object its JSON text), single quotes double ones, surplus commas and comments go,
// NaN and undefined become null, numbers lose the suffix of their Java type, and the escapes that only
// fastjson has become standard ones. Text that is standard already comes back as it is but for spaces.
// Deeper than 64 levels, and an object within a key of another, are errors: so the result is at most seven times as
// long as data (a control character in a key), and the time to make it grows with the length.
func Standardize(data []byte) ([]byte, error) {
	r := reader{in: data, out: make([]byte, 0, len(data)+len(data)/16+16)}
	if err := r.document(); err != nil {
		return nil, fmt.Errorf("JSON at byte %d of %d: %w", r.pos, len(data), err)
	}
	return r.out, nil
}

// reader goes through in once, and writes standard JSON to out.
type reader struct {
	in, out []byte
	pos     int
	keys    int // keys that are objects or arrays, and that we are in
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

const (
	errEnd    = syntaxError("text ends within a value")
	errDepth  = syntaxError("values stand in one another too deep")
	errKey    = syntaxError("an object as a key within a key that is an object")
	errRest   = syntaxError("text behind the value")
	errNumber = syntaxError("bad number")
	errEscape = syntaxError("bad escape")
)

func (r *reader) document() error {
	if err := r.value(0); err != nil {
		return err
	}
	if r.peek() != 0 || r.pos < len(r.in) {
		return errRest
	}
	return nil
}

// peek skips spaces and comments and returns the byte that follows; 0 at the end.
func (r *reader) peek() byte {
	for r.pos < len(r.in) {
		switch b := r.in[r.pos]; b {
		case ' ', '\t', '\r', '\n', '\f', '\b':
			r.pos++
		case '/':
			if !r.comment() {
				return b
			}
		default:
			return b
		}
	}
	return 0
}

// comment skips a comment of either kind; one without an end goes to the end of the text.
func (r *reader) comment() bool {
	if r.pos+1 >= len(r.in) || r.in[r.pos+1] != '/' && r.in[r.pos+1] != '*' {
		return false
	}
	line := r.in[r.pos+1] == '/'
	for r.pos += 2; r.pos < len(r.in); r.pos++ {
		if line && r.in[r.pos] == '\n' {
			r.pos++
			return true
		}
		if !line && r.in[r.pos] == '*' && r.pos+1 < len(r.in) && r.in[r.pos+1] == '/' {
			r.pos += 2
			return true
		}
	}
	return true
}

func (r *reader) value(depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch b := r.peek(); {
	case b == '{':
		return r.object(depth)
	case b == '[':
		return r.array(depth)
	case b == '"' || b == '\'':
		return r.text(b)
	case b == '-' || b == '+' || b >= '0' && b <= '9':
		return r.number()
	case b == 0 && r.pos >= len(r.in):
		return errEnd
	case isWord(b):
		return r.word()
	default:
		return syntaxError(fmt.Sprintf("unexpected %q", b))
	}
}

func (r *reader) array(depth int) error {
	r.pos++
	r.out = append(r.out, '[')
	for first := true; ; first = false {
		for r.peek() == ',' {
			r.pos++
		}
		if r.peek() == ']' {
			r.pos++
			r.out = append(r.out, ']')
			return nil
		}
		if !first {
			r.out = append(r.out, ',')
		}
		if err := r.value(depth + 1); err != nil {
			return err
		}
		if b := r.peek(); b != ',' && b != ']' {
			return r.unexpected()
		}
	}
}

func (r *reader) object(depth int) error {
	r.pos++
	r.out = append(r.out, '{')
	for first := true; ; first = false {
		for r.peek() == ',' {
			r.pos++
		}
		if r.peek() == '}' {
			r.pos++
			r.out = append(r.out, '}')
			return nil
		}
		if !first {
			r.out = append(r.out, ',')
		}
		if err := r.key(depth); err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.unexpected()
		}
		r.pos++
		r.out = append(r.out, ':')
		if err := r.value(depth + 1); err != nil {
			return err
		}
		if b := r.peek(); b != ',' && b != '}' {
			return r.unexpected()
		}
	}
}

func (r *reader) unexpected() error {
	if r.pos >= len(r.in) {
		return errEnd
	}
	return syntaxError(fmt.Sprintf("unexpected %q", r.in[r.pos]))
}

// key reads a member's key and writes it as a string.
func (r *reader) key(depth int) error {
	b := r.peek()
	from := len(r.out)
	switch {
	case b == '"' || b == '\'':
		return r.text(b)
	case b == '{' || b == '[':
		if r.keys == maxKeyDepth {
			return errKey
		}
		r.keys++
		if err := r.value(depth + 1); err != nil {
			return err
		}
		r.keys--
	case b == '-' || b >= '0' && b <= '9':
		if err := r.number(); err != nil {
			return err
		}
	case isWord(b):
		start := r.pos
		for r.pos < len(r.in) && (isWord(r.in[r.pos]) || r.in[r.pos] >= '0' && r.in[r.pos] <= '9') {
			r.pos++
		}
		r.out = append(r.out, r.in[start:r.pos]...)
	default:
		return r.unexpected()
	}
	key := string(r.out[from:])
	r.out = AppendString(r.out[:from], key)
	return nil
}

func isWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$' || b >= utf8.RuneSelf
}

// word reads a bare word as a value.
func (r *reader) word() error {
	start := r.pos
	for r.pos < len(r.in) && isWord(r.in[r.pos]) {
		r.pos++
	}
	switch w := string(r.in[start:r.pos]); w {
	case "true", "false", "null":
		r.out = append(r.out, w...)
	case "NaN", "undefined":
		r.out = append(r.out, "null"...)
	default:
		r.pos = start
		return syntaxError(fmt.Sprintf("word %.*q is no value", shownText, w))
	}
	return nil
}

// number reads a number and writes it without needless zeros in front and without a type's suffix.
func (r *reader) number() error {
	if b := r.in[r.pos]; b == '-' || b == '+' {
		if b == '-' {
			r.out = append(r.out, b)
		}
		r.pos++
	}
	for r.pos+1 < len(r.in) && r.in[r.pos] == '0' && r.in[r.pos+1]-'0' <= 9 {
		r.pos++
	}
	start := r.pos
	for r.digit() {
	}
	if r.pos == start {
		return errNumber
	}
	r.out = append(r.out, r.in[start:r.pos]...)
	if r.pos < len(r.in) && r.in[r.pos] == '.' {
		dot := r.pos
		r.pos++
		for r.digit() {
		}
		if r.pos > dot+1 {
			r.out = append(r.out, r.in[dot:r.pos]...)
		}
	}
	if r.pos < len(r.in) && r.in[r.pos]|0x20 == 'e' {
		mark := r.pos
		r.pos++
		if r.pos < len(r.in) && (r.in[r.pos] == '+' || r.in[r.pos] == '-') {
			r.pos++
		}
		digits := r.pos
		for r.digit() {
		}
		if r.pos == digits {
			return errNumber
		}
		r.out = append(r.out, r.in[mark:r.pos]...)
	}
	if r.pos < len(r.in) {
		switch r.in[r.pos] {
		case 'L', 'S', 'B', 'F', 'D':
			r.pos++
		}
	}
	return nil
}

// digit steps over a digit.
func (r *reader) digit() bool {
	if r.pos < len(r.in) && r.in[r.pos]-'0' <= 9 {
		r.pos++
		return true
	}
	return false
}

// text reads a string in the given quotes and writes it in double ones.
func (r *reader) text(quote byte) error {
	r.pos++
	r.out = append(r.out, '"')
	start := r.pos
	for r.pos < len(r.in) {
		b := r.in[r.pos]
		if b >= 0x20 && b != '"' && b != '\\' && b != quote {
			r.pos++
			continue
		}
		r.out = append(r.out, r.in[start:r.pos]...)
		r.pos++
		switch {
		case b == quote:
			r.out = append(r.out, '"')
			return nil
		case b == '\\':
			if err := r.escape(); err != nil {
				return err
			}
		default: // a control character, or a double quote in single ones
			r.out = appendEscape(r.out, b)
		}
		start = r.pos
	}
	return errEnd
}

// escape reads what follows a backslash and writes a standard escape.
func (r *reader) escape() error {
	if r.pos >= len(r.in) {
		return errEnd
	}
	b := r.in[r.pos]
	r.pos++
	switch {
	case b == '"' || b == '\\' || b == '/' || b == 'b' || b == 'f' || b == 'n' || b == 'r' || b == 't':
		r.out = append(r.out, '\\', b)
	case b == 'F':
		r.out = append(r.out, '\\', 'f')
	case b == '\'':
		r.out = append(r.out, '\'')
	case b == 'v':
		r.out = appendUnit(r.out, '\v')
	case b >= '0' && b <= '7':
		r.out = appendUnit(r.out, uint16(b-'0'))
	case b == 'u':
		return r.unit(4)
	case b == 'x':
		return r.unit(2)
	default:
		return errEscape
	}
	return nil
}

// unit reads n hexadecimal digits and writes them as one UTF-16 unit.
func (r *reader) unit(n int) error {
	if r.pos+n > len(r.in) {
		return errEnd
	}
	u, ok := hexUnit("00"[:4-n] + string(r.in[r.pos:r.pos+n]))
	if !ok {
		return errEscape
	}
	r.pos += n
	r.out = appendUnit(r.out, uint16(u))
	return nil
}
