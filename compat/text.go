package compat

import "unicode/utf8"

const upperHex = "0123456789ABCDEF"

// plain tells which bytes fastjson writes as they are, in every one of its forms: printable ASCII but
// for the quote, the backslash and the slash (which only the browser form escapes).
var plain = func() (t [256]bool) {
	for b := 0x20; b < 0x7f; b++ {
		t[b] = b != '"' && b != '\\' && b != '/'
	}
	return t
}()

// AppendString appends s to dst as a JSON string as fastjson 1.2.69 writes it by default: quotes and
// backslashes escaped, control characters (C1 controls, U+2028 and U+2029 too) as \b \t \n \f \r or
// \uXXXX, everything else as raw UTF-8. A byte that is not UTF-8 becomes U+FFFD, as it does when Java
// decodes it.
func AppendString(dst []byte, s string) []byte { return appendString(dst, s, false) }

// appendString is AppendString; browser selects the form of SerializerFeature.BrowserCompatible, where
// the slash is escaped and all that is not ASCII is written as \uXXXX.
func appendString(dst []byte, s string, browser bool) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if plain[b] || b == '/' && !browser {
			i++
			continue
		}
		if b < utf8.RuneSelf {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, b)
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !browser && !(r == utf8.RuneError && n == 1) && r >= 0xa0 && r != 0x2028 && r != 0x2029 {
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch {
		case r >= 0x10000: // only in the browser form: a surrogate pair
			dst = appendUnit(dst, 0xd800+uint16((r-0x10000)>>10))
			dst = appendUnit(dst, 0xdc00+uint16((r-0x10000)&0x3ff))
		case r == utf8.RuneError && !browser:
			dst = utf8.AppendRune(dst, r)
		default:
			dst = appendUnit(dst, uint16(r))
		}
		i += n
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of one ASCII character.
func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\', '/':
		return append(dst, '\\', b)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return appendUnit(dst, uint16(b))
}

// appendUnit appends one UTF-16 unit as \uXXXX with fastjson's upper-case digits.
func appendUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', upperHex[u>>12], upperHex[u>>8&15], upperHex[u>>4&15], upperHex[u&15])
}

// hexUnit reads the four hexadecimal digits of a UTF-16 unit that s begins with.
func hexUnit(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var u rune
	for i := range 4 {
		switch b := s[i]; {
		case b >= '0' && b <= '9':
			u = u<<4 | rune(b-'0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			u = u<<4 | rune(b|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return u, true
}
