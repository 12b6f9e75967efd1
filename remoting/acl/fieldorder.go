package acl

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"rocketd/protocol"
)

// keptFields is of how many fields at most an order is kept, keptKeys how many bytes their keys have at most.
const (
	keptFields = 64
	keptKeys   = 1 << 10
)

// fieldOrder is in which order the fields of a request with certain keys are signed: that of Java's TreeMap, of several
// with one key only the last, the signature not at all.
type fieldOrder struct {
	keys   []string // of the fields, as they come
	places []int32  // of the signed fields
	unique int32    // place of the field of a query by unique key, -1 when there is none
	kept   bool     // keys is what it was made for
}

// fits tells whether fields have the keys of the order: then there is nothing to sort. A client's next request of a kind
// nearly always has them.
func (o *fieldOrder) fits(fields []protocol.Field) bool {
	if !o.kept || len(fields) != len(o.keys) {
		return false
	}
	for i := range fields {
		a, b := fields[i].Key, o.keys[i]
		if len(a) == 1 && len(b) == 1 { // as nearly all of a send are
			if a[0] != b[0] {
				return false
			}
		} else if a != b {
			return false
		}
	}
	return true
}

// sort makes the order of fields. The keys that it keeps are its own copies, of very many none.
func (o *fieldOrder) sort(fields []protocol.Field) {
	if cap(o.places) > 2*keptFields {
		o.places = nil // the room of a request with very many
	}
	o.keys, o.places, o.unique = o.keys[:0], o.places[:0], -1
	plain, size := true, 0
	for i := range fields {
		key := fields[i].Key
		size += len(key)
		plain = plain && ascii(key)
		if key != fieldSignature {
			o.places = append(o.places, int32(i))
		}
	}
	compare := strings.Compare
	if !plain {
		compare = compareUTF16
	}
	slices.SortFunc(o.places, func(a, b int32) int { return cmp.Or(compare(fields[a].Key, fields[b].Key), cmp.Compare(a, b)) })
	n := 0
	for i, at := range o.places {
		key := fields[at].Key
		if i+1 < len(o.places) && fields[o.places[i+1]].Key == key {
			continue
		}
		if key == fieldUniqueKey {
			o.unique = at
		}
		o.places[n] = at
		n++
	}
	o.places = o.places[:n]
	if o.kept = len(fields) <= keptFields && size <= keptKeys; !o.kept {
		return
	}
	for i := range fields {
		o.keys = append(o.keys, strings.Clone(fields[i].Key))
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// compareUTF16 orders texts as Java's String#compareTo: by UTF-16 code units, in which characters beyond the first
// plane come before those from U+E000 on.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return cmp.Compare(unitOrder(x), unitOrder(y))
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

func unitOrder(r rune) rune {
	switch {
	case r >= 0x10000:
		return r - 0x10000 + 0xd800
	case r >= 0xe000:
		return r + 0x200000
	}
	return r
}
