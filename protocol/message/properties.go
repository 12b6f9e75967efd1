package message

import (
	"strings"

	"rocketd/compat"
)

// A properties text is name U+0001 value, entries parted by U+0002.
// Java writes no separator at the end, the Go client does; both are read. As the official reader
// (MessageDecoder#string2messageProperties of 4.9.8) drops entries without a name or with an empty value,
// they are not seen here; of entries with one name the last counts, as in its map.
const (
	nameValueSeparator = '\x01'
	propertySeparator  = '\x02'
)

// MaxPropertiesLength is the longest properties text of a record, in bytes.
const MaxPropertiesLength = 1<<15 - 1

// Property returns the value of a name in a properties text and whether it is there. It allocates nothing:
// the value is a part of the text.
func Property(text, name string) (value string, ok bool) {
	if name == "" {
		return "", false
	}
	for pos := 0; ; {
		i := strings.Index(text[pos:], name)
		if i < 0 {
			return value, ok
		}
		i += pos
		pos = i + len(name)
		if pos >= len(text)-1 {
			return value, ok // no room for a separator and a value
		}
		if text[pos] != nameValueSeparator || i > 0 && text[i-1] != propertySeparator {
			pos = i + 1
			continue
		}
		v := text[pos+1:]
		if end := strings.IndexByte(v, propertySeparator); end >= 0 {
			v = v[:end]
		}
		if v != "" && strings.IndexByte(name, nameValueSeparator) < 0 && strings.IndexByte(name, propertySeparator) < 0 {
			value, ok = v, true
		}
		pos += 1 + len(v)
	}
}

// EachProperty calls f for each entry, in order, until f returns false.
func EachProperty(text string, f func(name, value string) bool) {
	for text != "" {
		entry := text
		if i := strings.IndexByte(text, propertySeparator); i >= 0 {
			entry, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		i := strings.IndexByte(entry, nameValueSeparator)
		if i > 0 && i < len(entry)-1 && !f(entry[:i], entry[i+1:]) {
			return
		}
	}
}

// AppendProperty appends one entry to a properties text, with the separator before it where needed.
func AppendProperty(dst []byte, name, value string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != propertySeparator {
		dst = append(dst, propertySeparator)
	}
	dst = append(dst, name...)
	dst = append(dst, nameValueSeparator)
	return append(dst, value...)
}

// AppendProperties appends to dst the readable entries of a properties text, but not those of the names in
// except; without a separator at the end. A text to be stored is made with it: the official broker too
// parses what a client sent and writes it anew.
func AppendProperties(dst []byte, text string, except ...string) []byte {
	for text != "" {
		entry := text
		if i := strings.IndexByte(text, propertySeparator); i >= 0 {
			entry, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		i := strings.IndexByte(entry, nameValueSeparator)
		if i <= 0 || i == len(entry)-1 || among(except, entry[:i]) {
			continue
		}
		if n := len(dst); n > 0 && dst[n-1] != propertySeparator {
			dst = append(dst, propertySeparator)
		}
		dst = append(dst, entry...)
	}
	return dst
}

func among(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// SetProperty returns the readable entries of text with name set to value: the first entry of that name is
// replaced in place and later ones go.
func SetProperty(text, name, value string) string {
	dst := make([]byte, 0, len(text)+len(name)+len(value)+2)
	set := false
	EachProperty(text, func(n, v string) bool {
		if n == name {
			if set {
				return true
			}
			v, set = value, true
		}
		dst = AppendProperty(dst, n, v)
		return true
	})
	if !set {
		dst = AppendProperty(dst, name, value)
	}
	return string(dst)
}

// RemoveProperty returns the readable entries of text without those of name.
func RemoveProperty(text, name string) string {
	return string(AppendProperties(make([]byte, 0, len(text)), text, name))
}

// TagsCode is the tagsCode of a properties text: the Java hash of TAGS, sign-extended, and 0 without a tag.
func TagsCode(properties string) int64 {
	tags, ok := Property(properties, PropertyTags)
	if !ok {
		return 0
	}
	return int64(compat.HashCode(tags))
}
