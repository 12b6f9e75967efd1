package protocol

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	jsoniter "github.com/json-iterator/go"

	"rocketd/compat"
)

// The JSON header:
//
//	{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":7,
//	 "serializeTypeCurrentRPC":"JSON","version":409}
//
// Members are written in this (alphabetical) order, remark and extFields only when there are any. Read is
// any order, any spacing, unknown members, and what else fastjson takes.

var errHeader = errors.New("header is not a JSON object")

// decodeJSON reads a JSON header into c.
func decodeJSON(header string, c *Command) error {
	c.resetHeader(JSON)
	if scanJSON(header, c) {
		return nil
	}
	c.resetHeader(JSON)
	return decodeAnyJSON(header, c)
}

// scanJSON reads the headers that clients really send: compact, flat, in the common escapes. It knows
// just the eight command keys. False: something else is there, and the general reader has to look; c is
// then half filled.
func scanJSON(h string, c *Command) bool {
	if len(h) < 2 || h[0] != '{' {
		return false
	}
	for i := 1; ; i++ {
		key, next, ok := scanString(h, i)
		if !ok || next >= len(h) || h[next] != ':' {
			return false
		}
		if i, ok = scanMember(h, next+1, key, c); !ok || i >= len(h) {
			return false
		}
		if h[i] == ',' {
			continue
		}
		return h[i] == '}' && strings.TrimRight(h[i+1:], " \t\r\n") == ""
	}
}

// scanMember reads the value of one command key at h[i:] and returns where it ends.
func scanMember(h string, i int, key string, c *Command) (next int, ok bool) {
	var text string
	switch key {
	case "code":
		return scanInt(h, i, &c.Code)
	case "flag":
		return scanInt(h, i, &c.Flag)
	case "opaque":
		return scanInt(h, i, &c.Opaque)
	case "version":
		return scanInt(h, i, &c.Version)
	case "remark":
		c.Remark, next, ok = scanString(h, i)
		return next, ok
	case "language":
		text, next, ok = scanString(h, i)
		c.Language = ParseLanguage(text)
		return next, ok
	case "serializeTypeCurrentRPC": // the frame has said it
		_, next, ok = scanString(h, i)
		return next, ok
	case "extFields":
		return scanFields(h, i, c)
	}
	return 0, false
}

// scanFields reads the object extFields.
func scanFields(h string, i int, c *Command) (next int, ok bool) {
	if i+1 >= len(h) || h[i] != '{' {
		return 0, false
	}
	c.HasFields = true
	if h[i+1] == '}' {
		return i + 2, true
	}
	if cap(c.Fields) == 0 {
		c.Fields = make([]Field, 0, 16)
	}
	for {
		var f Field
		if f.Key, i, ok = scanString(h, i+1); !ok || i+1 >= len(h) || h[i] != ':' {
			return 0, false
		}
		if f.Value, i, ok = scanString(h, i+1); !ok || i >= len(h) {
			return 0, false
		}
		c.Fields = append(c.Fields, f)
		switch h[i] {
		case ',':
		case '}':
			return i + 1, true
		default:
			return 0, false
		}
	}
}

// scanInt reads an int32 at h[i:], in its shortest form.
func scanInt(h string, i int, to *int32) (next int, ok bool) {
	start, n := i, int64(0)
	if i < len(h) && h[i] == '-' {
		i++
	}
	digits := i
	for ; i < len(h) && h[i]-'0' <= 9 && i-digits < 11; i++ {
		n = n*10 + int64(h[i]-'0')
	}
	if i == digits || i >= len(h) || h[i] != ',' && h[i] != '}' || h[digits] == '0' && i-start > 1 {
		return 0, false
	}
	if digits > start {
		n = -n
	}
	*to = int32(n)
	return i, int64(*to) == n
}

// scanString reads a string at h[i:] and returns what follows its closing quote.
func scanString(h string, i int) (s string, next int, ok bool) {
	if i >= len(h) || h[i] != '"' {
		return "", 0, false
	}
	i++
	for j := i; j < len(h); j++ {
		switch h[j] {
		case '"':
			return h[i:j], j + 1, true
		case '\\':
			return unescape(h, i, j)
		}
	}
	return "", 0, false
}

// unescape reads a string whose text begins at start and whose first backslash is at j.
func unescape(h string, start, j int) (s string, next int, ok bool) {
	end := j
	for end < len(h) && h[end] != '"' {
		if h[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(h) {
		return "", 0, false
	}
	var b strings.Builder
	b.Grow(end - start)
	for {
		b.WriteString(h[start:j])
		if j == end {
			return b.String(), end + 1, true
		}
		switch e := h[j+1]; e {
		case '"', '\\', '/':
			b.WriteByte(e)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			if j+6 > end {
				return "", 0, false
			}
			u, err := strconv.ParseUint(h[j+2:j+6], 16, 16)
			if err != nil || u >= 0xd800 && u < 0xe000 { // surrogates are rare
				return "", 0, false
			}
			b.WriteRune(rune(u))
			j += 4
		default:
			return "", 0, false
		}
		start = j + 2
		if j = strings.IndexByte(h[start:end], '\\') + start; j < start {
			j = end
		}
	}
}

// decodeAnyJSON is the general reader: what fastjson takes for a command.
func decodeAnyJSON(header string, c *Command) error {
	standard, err := compat.Standardize([]byte(header))
	if err != nil {
		return err
	}
	it := jsoniter.ConfigDefault.BorrowIterator(standard)
	defer jsoniter.ConfigDefault.ReturnIterator(it)
	if it.WhatIsNext() != jsoniter.ObjectValue {
		return errHeader
	}
	it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		switch key {
		case "code":
			c.Code = readInt(it)
		case "flag":
			c.Flag = readInt(it)
		case "opaque":
			c.Opaque = readInt(it)
		case "version":
			c.Version = readInt(it)
		case "remark":
			c.Remark, _ = compat.ReadText(it)
		case "language":
			if it.WhatIsNext() == jsoniter.NumberValue {
				c.Language = languageOf(readInt(it))
			} else if name, ok := compat.ReadText(it); ok {
				c.Language = ParseLanguage(name)
			}
		case "extFields":
			readFields(it, c)
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	return it.Error
}

// readFields reads extFields, whatever the types of the values: all become text, nulls are as if absent.
func readFields(it *jsoniter.Iterator, c *Command) {
	switch it.WhatIsNext() {
	case jsoniter.NilValue:
		it.Skip()
		return
	case jsoniter.ObjectValue:
	default:
		it.ReportError("extFields", "not an object")
		return
	}
	c.HasFields = true
	it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		if value, ok := compat.ReadText(it); ok {
			c.Fields = append(c.Fields, Field{key, value})
		}
		return it.Error == nil
	})
}

// readInt reads an int32 as fastjson does: a number, whose fraction is dropped, a number as a string, true and false
// for 1 and 0, and 0 for null and the empty string.
func readInt(it *jsoniter.Iterator) int32 {
	kind := it.WhatIsNext()
	text, ok := compat.ReadText(it)
	if !ok {
		return 0
	}
	if n, ok := parseInt(text, 32); ok {
		return int32(n)
	}
	switch kind {
	case jsoniter.NumberValue:
		if f, err := strconv.ParseFloat(text, 64); err == nil && f > math.MinInt32-1 && f < math.MaxInt32+1 {
			return int32(f)
		}
	case jsoniter.StringValue:
		if text == "" || text == "null" {
			return 0
		}
		whole, fraction, _ := strings.Cut(text, ".")
		if n, ok := parseInt(whole, 32); ok && fraction != "" && strings.Trim(fraction, "0") == "" {
			return int32(n)
		}
	case jsoniter.BoolValue:
		if text == "true" {
			return 1
		}
		return 0
	}
	it.ReportError("command", fmt.Sprintf("%.40q is not an int", text))
	return 0
}

// appendJSON appends the header of c in its JSON form.
func appendJSON(dst []byte, c *Command) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	if c.Header != nil || len(c.Fields) > 0 {
		dst = append(dst, `,"extFields":`...)
		dst = appendJSONFields(dst, c)
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	dst = append(dst, `,"language":"`...)
	dst = append(dst, c.Language.String()...)
	dst = append(dst, `","opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != "" {
		dst = append(dst, `,"remark":`...)
		dst = compat.AppendString(dst, cutRemark(c.Remark))
	}
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	dst = strconv.AppendInt(dst, int64(c.Version), 10)
	return append(dst, '}')
}

// appendJSONFields appends the object extFields: the typed header, then the loose fields.
func appendJSONFields(dst []byte, c *Command) []byte {
	start := len(dst)
	dst = append(dst, ',') // becomes the opening brace
	if c.Header != nil {
		p, v := PlanFor(c.Header), reflect.ValueOf(c.Header).Elem()
		for i := range p.fields {
			f := &p.fields[i]
			mark, value := len(dst), f.value(v)
			if f.kind == kindString {
				if s := value.String(); s != "" {
					dst = append(dst, f.quote[:len(f.quote)-1]...)
					dst = append(compat.AppendString(dst, s), ',')
				}
				continue
			}
			var ok bool
			dst = append(dst, f.quote...)
			if dst, ok = f.appendValue(dst, value); !ok {
				dst = dst[:mark]
				continue
			}
			dst = append(dst, '"', ',')
		}
	}
	for i := range c.Fields {
		dst = compat.AppendString(dst, c.Fields[i].Key)
		dst = append(dst, ':')
		dst = append(compat.AppendString(dst, c.Fields[i].Value), ',')
	}
	dst[start] = '{'
	if last := len(dst) - 1; last > start {
		dst[last] = '}'
		return dst
	}
	return append(dst, '}')
}

// languageOf is the language with an ordinal; others are Other.
func languageOf(n int32) Language {
	if n < 0 || n > math.MaxUint8 || int(n) >= len(languageNames) {
		return Other
	}
	return Language(n)
}
