package sql92

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// kinds is a set of token kinds.
type kinds uint64

func set(all ...kind) (s kinds) {
	for _, k := range all {
		s |= 1 << k
	}
	return s
}

func (s kinds) has(k kind) bool { return s>>k&1 != 0 }
func (s kinds) count() int      { return bits.OnesCount64(uint64(s)) }

// The tokens between which the grammar chooses; what was looked for is part of the official messages.
var (
	equalities  = set(is, equal, differ)
	orderings   = set(more, moreEq, less, lessEq, between)
	comparisons = orderings | set(not, in)
	literals    = set(yes, no, null, decimal, float, text)
	primaries   = literals | set(name, open)
	unaries     = primaries | set(not, minus)
)

// parser builds the tree of an expression by recursive descent:
//
//	or         = and { OR and }
//	and        = equality { AND equality }
//	equality   = comparison { ( "=" | "<>" ) comparison | IS [NOT] NULL }
//	comparison = unary { ( ">" | ">=" | "<" | "<=" ) unary | [NOT] BETWEEN unary AND unary | [NOT] IN ( texts ) }
//	unary      = ( "+" | "-" | NOT ) unary | primary
//	primary    = literal | name | "(" or ")"
//
// As the official grammar it ends where the expression ends: what follows is looked at no more than to see
// that it does not go on. So NOT binds more closely than "=", and `a = 0x10` is `a = 0`.
type parser struct {
	lexer
	ahead    token // the next token, when looked
	looked   bool
	expected kinds // what has been looked for since the last token was taken
	depth    int
	names    []string
	slots    map[string]int
}

// peek returns the next token without taking it.
func (p *parser) peek() (kind, error) {
	if !p.looked {
		t, err := p.next()
		if err != nil {
			return 0, err
		}
		p.ahead, p.looked = t, true
	}
	return p.ahead.kind, nil
}

// choose looks whether the next token is among those of a choice.
func (p *parser) choose(among kinds) (kind, bool, error) {
	k, err := p.peek()
	if err != nil {
		return 0, false, err
	}
	if among.has(k) {
		return k, true, nil
	}
	p.expected |= among
	return k, false, nil
}

// take takes the next token, which is one that was looked at.
func (p *parser) take() token {
	p.looked, p.expected = false, 0
	return p.ahead
}

// want takes the next token, which must be of a kind.
func (p *parser) want(k kind) (token, error) {
	found, err := p.peek()
	if err != nil {
		return token{}, err
	}
	if found != k {
		return token{}, p.syntax(p.ahead, p.expected|set(k))
	}
	return p.take(), nil
}

// fail refuses what the tree would be, at the token where the fault was seen.
func (p *parser) fail(class, format string, args ...any) error {
	return p.refuse(p.ahead.start, class, fmt.Sprintf(format, args...))
}

// deeper counts a level of the tree.
func (p *parser) deeper() error {
	if p.depth++; p.depth > MaxDepth {
		line, column := position(p.text, p.ahead.start)
		return &Error{fmt.Sprintf("the expression is more than %d levels deep at line %d, column %d", MaxDepth, line, column), line, column}
	}
	return nil
}

func (p *parser) or() (*node, error) {
	left, err := p.and()
	for err == nil {
		var more bool
		if _, more, err = p.choose(set(or)); err != nil || !more {
			break
		}
		p.take()
		left, err = p.logic(opOr, left, p.and)
	}
	return left, err
}

func (p *parser) and() (*node, error) {
	left, err := p.equality()
	for err == nil {
		var more bool
		if _, more, err = p.choose(set(and)); err != nil || !more {
			break
		}
		p.take()
		left, err = p.logic(opAnd, left, p.equality)
	}
	return left, err
}

// logic reads the right side of AND or OR.
func (p *parser) logic(o op, left *node, side func() (*node, error)) (*node, error) {
	right, err := side()
	if err != nil {
		return nil, err
	}
	if left, err = p.boolean(left); err != nil {
		return nil, err
	}
	if right, err = p.boolean(right); err != nil {
		return nil, err
	}
	return join(o, left, right), nil
}

func (p *parser) equality() (*node, error) {
	entry := p.depth
	defer func() { p.depth = entry }()
	left, err := p.comparison()
	for err == nil {
		k, more, failed := p.choose(equalities)
		if failed != nil {
			return nil, failed
		}
		if !more {
			break
		}
		if err = p.deeper(); err != nil { // each makes what was read so far its left side
			return nil, err
		}
		p.take()
		if k == is {
			left, err = p.isNull(left)
			continue
		}
		var right *node
		if right, err = p.comparison(); err != nil {
			return nil, err
		}
		if left, err = p.equal(left, right); err == nil && k == differ {
			left = &node{op: opNot, left: left}
		}
	}
	return left, err
}

// isNull reads what follows IS.
func (p *parser) isNull(left *node) (*node, error) {
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	negated := k != null
	if negated {
		if _, err := p.want(not); err != nil {
			return nil, err
		}
	}
	if _, err := p.want(null); err != nil {
		return nil, err
	}
	n := &node{op: opEqual, left: left, right: constant(value{})}
	if negated {
		n = &node{op: opNot, left: n}
	}
	return n, nil
}

func (p *parser) comparison() (*node, error) {
	entry := p.depth
	defer func() { p.depth = entry }()
	left, err := p.unary()
	for err == nil {
		k, more, failed := p.choose(comparisons)
		if failed != nil {
			return nil, failed
		}
		if !more {
			break
		}
		if err = p.deeper(); err != nil {
			return nil, err
		}
		left, err = p.compared(left, k)
	}
	return left, err
}

// compared reads one comparison of which left is the left side.
func (p *parser) compared(left *node, k kind) (*node, error) {
	negated := k == not
	if negated {
		before, at := p.lexer, p.ahead
		t, err := p.next()
		if err != nil {
			return nil, err
		}
		if t.kind != between && t.kind != in {
			p.lexer = before
			return nil, p.syntax(at, p.expected|orderings|set(in))
		}
		p.ahead, k = t, t.kind
	}
	p.take()
	switch k {
	case between:
		return p.between(left, negated)
	case in:
		return p.in(left, negated)
	}
	right, err := p.unary()
	if err != nil {
		return nil, err
	}
	return p.order(ordering[k], left, right)
}

var ordering = map[kind]op{more: opMore, moreEq: opMoreEq, less: opLess, lessEq: opLessEq}

// between reads the bounds of BETWEEN.
func (p *parser) between(value *node, negated bool) (*node, error) {
	low, err := p.unary()
	if err != nil {
		return nil, err
	}
	if _, err = p.want(and); err != nil {
		return nil, err
	}
	high, err := p.unary()
	if err != nil {
		return nil, err
	}
	lower, upper, o := opMoreEq, opLessEq, opAnd
	if negated {
		lower, upper, o = opLess, opMore, opOr
	} else if err := p.bounds(low, high); err != nil {
		return nil, err
	}
	left, err := p.order(lower, value, low)
	if err != nil {
		return nil, err
	}
	right, err := p.order(upper, value, high)
	if err != nil {
		return nil, err
	}
	return &node{op: o, list: []*node{left, right}}, nil
}

// in reads the texts of IN.
func (p *parser) in(left *node, negated bool) (*node, error) {
	if _, err := p.want(open); err != nil {
		return nil, err
	}
	n := &node{op: opIn, left: left, negated: negated}
	for {
		t, err := p.want(text)
		if err != nil {
			return nil, err
		}
		n.texts = append(n.texts, unquote(p.text[t.start:t.end]))
		_, more, err := p.choose(set(comma))
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		p.take()
	}
	if _, err := p.want(shut); err != nil {
		return nil, err
	}
	if left.op != opProperty {
		return nil, p.fail(runtimeError, "Expected a property for In expression, got: %v", left)
	}
	n.index()
	return n, nil
}

func (p *parser) unary() (*node, error) {
	entry := p.depth
	defer func() { p.depth = entry }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch k {
	case plus:
		sign, before := p.ahead, p.expected
		p.take()
		n, err := p.unary()
		if e, ok := err.(*Error); ok && strings.HasPrefix(e.Text, parseError+": Encountered") {
			// The official parser looks whether all that follows the sign is right before it takes the sign.
			return nil, p.syntax(sign, before|unaries)
		}
		return n, err
	case minus:
		p.take()
		n, err := p.unary()
		if err != nil {
			return nil, err
		}
		return &node{op: opNegate, left: n}, nil
	case not:
		p.take()
		n, err := p.unary()
		if err != nil {
			return nil, err
		}
		if n, err = p.boolean(n); err != nil {
			return nil, err
		}
		return &node{op: opNot, left: n}, nil
	}
	if !primaries.has(k) {
		return nil, p.syntax(p.ahead, p.expected|unaries)
	}
	return p.primary(p.take())
}

// primary makes a literal, a name, or what stands in parentheses.
func (p *parser) primary(t token) (*node, error) {
	image := p.text[t.start:t.end]
	switch t.kind {
	case open:
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		_, err = p.want(shut)
		return n, err
	case name:
		return p.property(image), nil
	case yes, no:
		return constant(boolean(t.kind == yes)), nil
	case text:
		return constant(value{kind: isText, text: unquote(image)}), nil
	case decimal:
		digits := strings.TrimRight(image, "lL")
		n, ok := parseInt(digits, 64)
		if !ok {
			return nil, p.fail(formatError, `For input string: "%s"`, digits)
		}
		if n <= math.MaxInt32 {
			return constant(value{kind: isInt, int: n}), nil
		}
		return constant(value{kind: isLong, int: n}), nil
	case float:
		f, _ := parseFloat(image)
		if math.IsInf(f, 0) {
			return nil, p.fail(runtimeError, "%s is greater than 1.7976931348623157E308", image)
		}
		// 4.9.8 refuses every zero, for it takes the smallest positive number for the least of all. A number that
		// is too small to be told from zero is still refused: it would match what it does not say.
		mantissa, _, _ := strings.Cut(strings.ToLower(image), "e")
		if f == 0 && strings.Trim(mantissa, "0.") != "" {
			return nil, p.fail(runtimeError, "%s is less than 4.9E-324", image)
		}
		return constant(value{kind: isDouble, float: f}), nil
	}
	return constant(value{}), nil
}
