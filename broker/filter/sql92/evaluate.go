package sql92

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"rocketd/protocol/message"
)

// valueKind is the type of a value.
type valueKind uint8

const (
	isNull valueKind = iota
	isText
	isInt    // 32 bits
	isLong   // 64 bits
	isDouble // 64 bits
	isBool   // int is 0 or 1
	isFault  // what Java throws
)

// value is what a side of a comparison gives.
type value struct {
	kind  valueKind
	int   int64
	float float64
	text  string
}

func (v *value) number() bool { return v.kind == isInt || v.kind == isLong || v.kind == isDouble }

func boolean(b bool) value {
	if b {
		return value{kind: isBool, int: 1}
	}
	return value{kind: isBool}
}

// truth is what a condition gives.
type truth uint8

const (
	unknown truth = iota
	isTrue
	isFalse
	fault // ends the evaluation
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// fewNames is up to how many names each is looked for by itself in the properties text. With more the text
// is read once, so an evaluation never costs more than the text and the tree.
const fewNames = 8

// slot is a property that has been looked for.
type slot struct {
	text  string
	there bool
	known bool // it has been looked for by itself
}

// view is one evaluation: the properties of one message as an expression sees them.
type view struct {
	properties string
	few        [fewNames]slot
	many       []slot // in place of few
}

// fill finds all names at once.
func (v *view) fill(slots map[string]int, properties string) {
	message.EachProperty(properties, func(name, text string) bool {
		if i, ok := slots[name]; ok {
			v.many[i] = slot{text: text, there: true} // of several the last counts
		}
		return true
	})
}

func (v *view) property(n *node) *slot {
	if v.many != nil {
		return &v.many[n.slot]
	}
	s := &v.few[n.slot]
	if !s.known {
		s.text, s.there = lookUp(v.properties, n.key)
		s.known = true
	}
	return s
}

// lookUp is message.Property for a name with the separator behind it. It takes eight bytes at a time: most messages have more
// properties than a filter names, and most of its cost is passing over them. It stops at a separator only when the name's first
// letter follows.
func lookUp(properties, key string) (text string, there bool) {
	from, pos := -1, 0 // from: where the value begins
	if begins(properties, 0, key) {
		from = len(key)
	}
	letter := ones * uint64(key[0])
	for ; len(properties)-pos > 8; pos += 8 {
		m := zeroBytes(firstEight(properties[pos:])^ones*entrySeparator) & zeroBytes(firstEight(properties[pos+1:])^letter)
		for ; m != 0; m &= m - 1 {
			at := pos + bits.TrailingZeros64(m)/8
			if properties[at] == entrySeparator && begins(properties, at+1, key) {
				from = at + 1 + len(key) // of several the last counts
			}
		}
	}
	for ; pos < len(properties); pos++ {
		if properties[pos] == entrySeparator && begins(properties, pos+1, key) {
			from = pos + 1 + len(key)
		}
	}
	if from < 0 {
		return "", false
	}
	text = properties[from:]
	if end := strings.IndexByte(text, entrySeparator); end >= 0 {
		text = text[:end]
	}
	return text, true
}

// ones has a 1 in each byte.
const ones = 0x0101010101010101

// zeroBytes has the highest bit of each byte of w that is 0, and of some bytes above such a one.
func zeroBytes(w uint64) uint64 { return (w - ones) &^ w & (ones << 7) }

// entrySeparator is between the entries of a properties text.
const entrySeparator = '\x02'

// begins tells whether an entry with a key and a value begins at a place.
func begins(properties string, at int, key string) bool {
	end := at + len(key)
	return end < len(properties) && properties[at] == key[0] && properties[at:end] == key && properties[end] != entrySeparator
}

// firstEight are the first eight bytes of a text, the first of them the lowest.
func firstEight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// load is the value of a node.
func (v *view) load(n *node) value {
	switch n.op {
	case opConst:
		return n.value
	case opProperty:
		if s := v.property(n); s.there {
			return value{kind: isText, text: s.text}
		}
		return value{}
	case opNegate:
		x := v.load(n.left)
		switch x.kind {
		case isInt:
			x.int = int64(-int32(x.int))
		case isLong:
			x.int = -x.int
		case isDouble:
			x.float = -x.float
		case isFault:
		default: // no number has no negative
			return value{}
		}
		return x
	}
	switch v.test(n) {
	case isTrue:
		return value{kind: isBool, int: 1}
	case isFalse:
		return value{kind: isBool}
	case fault:
		return value{kind: isFault}
	}
	return value{}
}

// test is the truth of a condition.
func (v *view) test(n *node) truth {
	switch n.op {
	case opConst:
		if n.value.kind == isNull {
			return unknown
		}
		return truthOf(n.value.int != 0)
	case opCast: // a property is a text, and no text is true
		if v.property(n.left).there {
			return isFalse
		}
		return unknown
	case opNot:
		switch t := v.test(n.left); t {
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		default:
			return t
		}
	case opAnd:
		return v.all(n.list, isFalse, isTrue)
	case opOr:
		return v.all(n.list, isTrue, isFalse)
	case opIn:
		s := v.property(n.left)
		if !s.there {
			return unknown
		}
		found := false
		if n.found != nil {
			_, found = n.found[s.text]
		} else {
			found = slices.Contains(n.texts, s.text)
		}
		return truthOf(found != n.negated)
	case opEqual:
		return v.equal(n)
	}
	return v.order(n)
}

// all is AND and OR: decided by the first that decides, unknown when one is, otherwise the rest.
func (v *view) all(list []*node, decides, rest truth) truth {
	for _, n := range list {
		switch t := v.test(n); t {
		case decides, fault:
			return t
		case unknown:
			rest = unknown
		}
	}
	return rest
}

// equal is left = right: true when both are null, false when only the right one is, unknown when only the left is.
func (v *view) equal(n *node) truth {
	if n.left.op == opProperty && n.right.op == opConst && (n.right.value.kind == isText || n.right.value.number()) {
		s := v.property(n.left)
		if !s.there {
			return unknown
		}
		if n.right.value.kind == isText {
			return truthOf(s.text == n.right.value.text)
		}
		c, ok := compareText(s.text, &n.right.value)
		if !ok {
			return fault
		}
		return truthOf(c == 0)
	}
	l := v.load(n.left)
	if l.kind == isFault {
		return fault
	}
	r := v.load(n.right)
	switch {
	case r.kind == isFault:
		return fault
	case l.kind == isNull && r.kind == isNull:
		return isTrue
	case l.kind == isNull:
		return unknown
	case r.kind == isNull:
		return isFalse
	case l.kind == isText && r.kind == isText:
		return truthOf(l.text == r.text)
	}
	c, ok := compare(l, r)
	if !ok {
		return fault
	}
	return truthOf(c == 0)
}

// order is a comparison by size.
func (v *view) order(n *node) truth {
	if n.left.op == opProperty && n.right.op == opConst { // most are so, and need no detour by values
		s := v.property(n.left)
		if !s.there {
			return unknown
		}
		c, ok := compareText(s.text, &n.right.value)
		if !ok {
			return fault
		}
		return n.ordered(c)
	}
	l := v.load(n.left)
	switch l.kind {
	case isFault: // of a condition behind a minus
		return fault
	case isNull:
		return unknown // whatever the right side is
	}
	r := v.load(n.right)
	switch r.kind {
	case isFault:
		return fault
	case isNull:
		return unknown
	}
	if l.kind == isText && r.kind == isText {
		a, ok := parseFloat(l.text)
		b, ok2 := parseFloat(r.text)
		if !ok || !ok2 {
			return fault
		}
		l, r = value{kind: isDouble, float: a}, value{kind: isDouble, float: b}
	}
	c, ok := compare(l, r)
	if !ok {
		return fault
	}
	return n.ordered(c)
}

// ordered is the truth of a comparison by size of which the sides compare as c says.
func (n *node) ordered(c int) truth {
	switch n.op {
	case opMore:
		return truthOf(c > 0)
	case opMoreEq:
		return truthOf(c >= 0)
	case opLess:
		return truthOf(c < 0)
	}
	return truthOf(c <= 0)
}

// compareText is compare of a text and a number.
func compareText(text string, number *value) (int, bool) {
	switch number.kind {
	case isDouble:
		f, ok := parseFloat(text)
		return compareFloats(f, number.float), ok
	case isInt:
		i, ok := parseInt(text, 32)
		return cmp.Compare(i, number.int), ok
	}
	i, ok := parseInt(text, 64)
	return cmp.Compare(i, number.int), ok
}

// compare orders two values that are not null and not both texts, after making them one type; false when a text
// is no number of the other's type. What has no order counts as smaller. As ComparisonExpression#__compare of 4.9.8.
func compare(l, r value) (int, bool) {
	ok := true
	switch {
	case l.kind == isBool && r.kind == isText:
		return 0, false // 4.9.8 takes the wrong one for a text
	case l.kind == isText:
		l, ok = convert(l.text, r.kind)
	case r.kind == isText:
		r, ok = convert(r.text, l.kind)
	case l.kind == isBool != (r.kind == isBool):
		return -1, true
	}
	if !ok {
		return 0, false
	}
	if l.kind == isDouble || r.kind == isDouble {
		return compareFloats(l.asFloat(), r.asFloat()), true
	}
	return cmp.Compare(l.int, r.int), true
}

func (v *value) asFloat() float64 {
	if v.kind == isDouble {
		return v.float
	}
	return float64(v.int)
}

// convert reads a text as a value of a kind.
func convert(text string, k valueKind) (v value, ok bool) {
	v.kind = k
	switch k {
	case isInt:
		v.int, ok = parseInt(text, 32)
	case isLong:
		v.int, ok = parseInt(text, 64)
	case isDouble:
		v.float, ok = parseFloat(text)
	case isBool:
		return boolean(strings.EqualFold(text, "true")), true
	}
	return v, ok
}
