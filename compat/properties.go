package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// KeyValue is one property.
type KeyValue struct{ Key, Value string }

// Properties is a java.util.Properties that keeps the order of its file. Of a key that is there twice the last
// value counts, at the place of the first. The zero value is empty and ready. Not for concurrent use.
type Properties struct {
	list  []KeyValue
	index map[string]int // key to place in list
	lines map[string]int // key to the line of the text that its value is from
	twice []string       // keys of the text with another value before the one that counts
}

// byteOrderMark is what some editors put before UTF-8 text. Java takes it for a part of the first key, which then
// has no effect; nobody means that.
const byteOrderMark = "\ufeff"

// ParseProperties reads the text of a properties file by the rules of java.util.Properties#load, but as UTF-8
// (Java takes Latin-1 there, and garbles what its own servers write). A malformed \uXXXX is an error, as it is
// an exception there. ${...} means nothing. (The properties package for Go that is common knows neither keys
// that go on in the next line, nor CR LF behind a backslash, nor a backslash at the end.)
func ParseProperties(b []byte) (*Properties, error) {
	p := new(Properties)
	lines := propertyLines{text: strings.TrimPrefix(string(b), byteOrderMark)}
	for {
		line, ok := lines.next()
		if !ok {
			return p, nil
		}
		key, value := cutProperty(line)
		k, err := unescapeProperty(key)
		if err != nil {
			return nil, fmt.Errorf("properties line %d: %w", lines.number, err)
		}
		v, err := unescapeProperty(value)
		if err != nil {
			return nil, fmt.Errorf("properties line %d, key %s: %w", lines.number, k, err)
		}
		if before, ok := p.Get(k); ok && before != v && !slices.Contains(p.twice, k) {
			p.twice = append(p.twice, k)
		}
		p.Set(k, v)
		if p.lines == nil {
			p.lines = make(map[string]int)
		}
		p.lines[k] = lines.begin
	}
}

// Line returns the number of the line that a key's value was read from, 0 when it was not read from a text.
func (p *Properties) Line(key string) int { return p.lines[key] }

// ForgetLines is for a text that its author has not seen as lines, as that of a request: errors do not name them then.
func (p *Properties) ForgetLines() { p.lines = nil }

// Twice returns the keys that a text had more than once with different values: the last counts.
func (p *Properties) Twice() []string { return slices.Clone(p.twice) }

// Get returns the value of a key and whether it is there.
func (p *Properties) Get(key string) (string, bool) {
	if i, ok := p.index[key]; ok {
		return p.list[i].Value, true
	}
	return "", false
}

// Set sets the value of a key; a new key goes to the end.
func (p *Properties) Set(key, value string) {
	if i, ok := p.index[key]; ok {
		p.list[i].Value = value
		return
	}
	if p.index == nil {
		p.index = make(map[string]int)
	}
	p.index[key] = len(p.list)
	p.list = append(p.list, KeyValue{key, value})
}

// Keys returns the keys in the order of the file.
func (p *Properties) Keys() []string {
	keys := make([]string, len(p.list))
	for i := range p.list {
		keys[i] = p.list[i].Key
	}
	return keys
}

// All returns the properties in the order of the file.
func (p *Properties) All() []KeyValue { return slices.Clone(p.list) }

// Bytes is the text of a properties file: one key=value a line, in order. Only what Java would read otherwise
// is escaped, so that common values look as the official servers write them (which escape nothing).
func (p *Properties) Bytes() []byte {
	var b []byte
	for i := range p.list {
		b = AppendProperty(b, p.list[i].Key, p.list[i].Value)
	}
	return b
}

const blanks = " \t\f"

// propertyLines cuts text into logical lines: without comments, blank lines and leading blanks, with lines
// joined that end in a backslash.
type propertyLines struct {
	text   string
	number int  // of the natural line that was read last
	begin  int  // number of the natural line with which the logical line begins
	open   bool // it had no end
}

func (l *propertyLines) next() (string, bool) {
	for l.text != "" {
		line := strings.TrimLeft(l.natural(), blanks)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		l.begin = l.number
		if continues(line) {
			var joined strings.Builder
			for continues(line) {
				joined.WriteString(line[:len(line)-1])
				line = ""
				if l.text == "" {
					break
				}
				line = strings.TrimLeft(l.natural(), blanks)
			}
			joined.WriteString(line)
			line = joined.String()
		}
		if line != "" || l.open { // Java takes a lone backslash at the end for an empty key
			return line, true
		}
	}
	return "", false
}

// natural cuts one line off the text; \n, \r and \r\n end it.
func (l *propertyLines) natural() string {
	l.number++
	i := strings.IndexAny(l.text, "\r\n")
	if i < 0 {
		line := l.text
		l.text, l.open = "", true
		return line
	}
	line, rest := l.text[:i], l.text[i+1:]
	if l.text[i] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	l.text = rest
	return line
}

// continues tells whether a line ends in a backslash that is not itself escaped.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, "\\"))
	return n%2 == 1
}

// cutProperty cuts a logical line at the first separator that is not escaped: blanks, or one = or : with blanks
// around it.
func cutProperty(line string) (key, value string) {
	i := 0
	for i < len(line) && line[i] != '=' && line[i] != ':' && strings.IndexByte(blanks, line[i]) < 0 {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	value = strings.TrimLeft(line[i:], blanks)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], blanks)
	}
	return line[:i], value
}

var errUnicode = errors.New(`malformed \uxxxx encoding`)

func unescapeProperty(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b = append(b, '\t')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 'f':
			b = append(b, '\f')
		case 'u':
			r, ok := hexUnit(s[i+1:])
			if !ok {
				return "", errUnicode
			}
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				if low, ok := hexUnit(s[i+3:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, s[i])
		}
	}
	return string(b), nil
}

// AppendProperty appends one line of a properties file.
func AppendProperty(dst []byte, key, value string) []byte {
	dst = appendProperty(dst, key, " =:#!")
	dst = append(dst, '=')
	lead := len(value) - len(strings.TrimLeft(value, " "))
	for range lead {
		dst = append(dst, '\\', ' ')
	}
	dst = appendProperty(dst, value[lead:], "")
	return append(dst, '\n')
}

func appendProperty(dst []byte, s, special string) []byte {
	for _, r := range s {
		switch {
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\f':
			dst = append(dst, '\\', 'f')
		case r == '\\' || r < utf8.RuneSelf && strings.IndexByte(special, byte(r)) >= 0:
			dst = append(dst, '\\', byte(r))
		case r >= 0x20 && r < 0x7f:
			dst = append(dst, byte(r))
		case r >= 0x10000:
			dst = appendUnit(dst, 0xd800+uint16((r-0x10000)>>10))
			dst = appendUnit(dst, 0xdc00+uint16((r-0x10000)&0x3ff))
		default:
			dst = appendUnit(dst, uint16(r))
		}
	}
	return dst
}
