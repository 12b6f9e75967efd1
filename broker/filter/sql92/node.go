package sql92

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"rocketd/compat"
)

// op is what a node of the tree does.
type op uint8

const (
	opConst op = iota
	opProperty
	opNegate
	opNot
	opCast // a property where a condition is asked for
	opAnd
	opOr
	opEqual
	opMore
	opMoreEq
	opLess
	opLessEq
	opIn
)

// node is one node of an expression's tree; it never changes once the expression is compiled.
type node struct {
	op          op
	negated     bool   // of opIn: NOT IN
	chain       bool   // of opAnd and opOr: made by join, not a BETWEEN
	slot        int    // of opProperty: its place among the expression's names
	name        string // of opProperty
	key         string // of opProperty: the name and the separator behind it
	left, right *node
	list        []*node // of opAnd and opOr: all that are joined, from the left
	value       value   // of opConst
	texts       []string
	found       map[string]struct{} // the texts, when there are many
}

// manyTexts is how many texts of an IN are looked through one by one.
const manyTexts = 8

func (n *node) index() {
	if len(n.texts) <= manyTexts {
		return
	}
	n.found = make(map[string]struct{}, len(n.texts))
	for _, t := range n.texts {
		n.found[t] = struct{}{}
	}
}

func constant(v value) *node { return &node{op: opConst, value: v} }

// property is the node of a name; one name has one slot.
func (p *parser) property(s string) *node {
	slot, ok := p.slots[s]
	if !ok {
		slot = len(p.names)
		s = strings.Clone(s)
		p.names = append(p.names, s)
		p.slots[s] = slot
	}
	return &node{op: opProperty, slot: slot, name: p.names[slot], key: p.names[slot] + "\x01"}
}

// condition tells whether a node gives true, false or unknown: BooleanExpression of 4.9.8.
func (n *node) condition() bool {
	switch n.op {
	case opProperty, opNegate:
		return false
	case opConst:
		return n.value.kind == isBool || n.value.kind == isNull
	}
	return true
}

// boolean makes a node a condition, or refuses it.
func (p *parser) boolean(n *node) (*node, error) {
	if n.condition() {
		return n, nil
	}
	if n.op == opProperty {
		return &node{op: opCast, left: n}, nil
	}
	return nil, p.fail(parseError, "Expression will not result in a boolean value: %v", n)
}

// join puts two conditions together; of a chain it makes one node, so that it is no deeper for being long.
func join(o op, left, right *node) *node {
	if left.op == o && left.chain {
		left.list = append(left.list, right)
		return left
	}
	return &node{op: o, chain: true, list: []*node{left, right}}
}

// equal makes left = right. Both may not be NULL, and a constant truth value is compared with no other constant.
func (p *parser) equal(left, right *node) (*node, error) {
	for _, n := range []*node{left, right} {
		if n.op == opConst && n.value.kind == isNull {
			return nil, p.fail(runtimeError, "'%v' cannot be compared.", n)
		}
	}
	if left.op == opConst && right.op == opConst && left.value.kind == isBool && right.value.kind != isBool {
		return nil, p.fail(runtimeError, "'%v' cannot be compared with '%v'", left, right)
	}
	return &node{op: opEqual, left: left, right: right}, nil
}

// order makes a comparison by size: only of properties and numbers.
func (p *parser) order(o op, left, right *node) (*node, error) {
	for _, n := range []*node{left, right} {
		if n.op == opConst && !n.value.number() || n.op != opConst && n.condition() {
			return nil, p.fail(runtimeError, "Value '%v' cannot be compared.", n)
		}
	}
	return &node{op: o, left: left, right: right}, nil
}

// bounds refuses constants of a BETWEEN that stand in the wrong order.
func (p *parser) bounds(low, high *node) error {
	if low.op != opConst || high.op != opConst {
		return nil
	}
	l, h := low.value, high.value
	if l.kind == isNull || h.kind == isNull {
		return p.fail(runtimeError, "Illegal values of between, values can not be null!")
	}
	c, ok := compareConstants(h, l)
	if !ok {
		return p.fail(runtimeError, "%s: For input string: \"%s\"", formatError, l.text+h.text)
	}
	if c < 0 {
		return p.fail(runtimeError, "Illegal values of between, left value(%s) must less than or equal to right value(%s)", l.plain(), h.plain())
	}
	return nil
}

// compareConstants is compare, for texts too.
func compareConstants(a, b value) (int, bool) {
	if a.kind == isText && b.kind == isText {
		return slices.Compare(utf16.Encode([]rune(a.text)), utf16.Encode([]rune(b.text))), true
	}
	return compare(a, b)
}

// plain is the value as Java prints it.
func (v value) plain() string {
	switch v.kind {
	case isText:
		return v.text
	case isDouble:
		return string(compat.AppendDouble(nil, v.float))
	case isBool:
		return strconv.FormatBool(v.int != 0)
	case isNull:
		return "null"
	}
	return strconv.FormatInt(v.int, 10)
}

var symbols = map[op]string{opAnd: "&&", opOr: "||", opEqual: "==", opMore: ">", opMoreEq: ">=", opLess: "<", opLessEq: "<="}

// String is the tree as the official messages show it, or the beginning of it that has room in a remark: a tree may be so large
// that its text would cost more than all else.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

// write appends the text of the tree, and ends some time after as much as a remark has room for.
func (n *node) write(b *strings.Builder) {
	if b.Len() > maxErrorText {
		return
	}
	switch n.op {
	case opConst:
		b.WriteString(n.constantText())
	case opProperty:
		b.WriteString(n.name)
	case opNegate:
		n.left.wrapped(b, "(- ")
	case opNot:
		n.left.wrapped(b, "(NOT ")
	case opCast:
		n.left.write(b)
	case opIn:
		n.left.write(b)
		if n.negated {
			b.WriteString(" NOT")
		}
		b.WriteString(" IN ( ")
		for i, text := range n.texts {
			if b.Len() > maxErrorText {
				return
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(text)
		}
		b.WriteString(" )")
	case opAnd, opOr:
		b.WriteString(strings.Repeat("(", min(len(n.list)-1, maxErrorText+1)))
		n.list[0].write(b)
		for _, right := range n.list[1:] {
			if b.Len() > maxErrorText {
				return
			}
			b.WriteString(" " + symbols[n.op] + " ")
			right.wrapped(b, "")
		}
	default:
		b.WriteByte('(')
		n.left.write(b)
		b.WriteString(" " + symbols[n.op] + " ")
		n.right.wrapped(b, "")
	}
}

// wrapped appends what stands before the tree, the tree, and the parenthesis that ends both.
func (n *node) wrapped(b *strings.Builder, before string) {
	b.WriteString(before)
	n.write(b)
	b.WriteByte(')')
}

// constantText is a constant as the official messages show it.
func (n *node) constantText() string {
	switch n.value.kind {
	case isNull:
		return "NULL"
	case isBool:
		return strings.ToUpper(n.value.plain())
	case isText:
		return "'" + strings.ReplaceAll(n.value.text, "'", "''") + "'"
	}
	return n.value.plain()
}
