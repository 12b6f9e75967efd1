// Package sql92 compiles the SQL92 expressions by which consumers choose messages, and evaluates them on the
// properties of a message. The language, its types and its texts are those of the official filter module of 4.9.8:
//
//   - a property is a text, or null when the message has none; literals are texts, 32-bit, 64-bit and floating
//     numbers, TRUE, FALSE and NULL;
//   - beside a number a text is read as one of the number's type, so '5.5' is no partner for 5; a text that is no such
//     number is a fault, and a fault anywhere that evaluation reaches means that the message is not taken;
//   - by size only numbers are compared: two properties as floating numbers, a text literal not at all;
//   - null makes a comparison unknown, but `a = b` is true when both are missing, and false when only b is.
//
// An expression is compiled once into a tree (parser.go, node.go) and evaluated on the properties text itself, without
// allocation (evaluate.go).
package sql92

import "sync"

// The bounds of an expression. 4.9.8 has none: there it is a stack overflow that says so.
const (
	MaxLength = 256 << 10 // bytes
	MaxDepth  = 256       // levels of parentheses, signs, NOT, and comparisons of comparisons
)

// Expression is a compiled expression. It never changes, so it may be used by many at once.
type Expression struct {
	root  *node
	rest  string
	names []string
	slots map[string]int // by name, when there are many names
	pool  sync.Pool      // then: *view, with a slot for each name
}

// Compile makes the expression of a text; the error is an *Error.
func Compile(expression string) (*Expression, error) {
	if len(expression) > MaxLength {
		return nil, &Error{"the expression is longer than 262144 bytes", 1, 1}
	}
	p := &parser{lexer: lexer{text: expression}, slots: map[string]int{}}
	root, err := p.or()
	if err == nil {
		root, err = p.boolean(root)
	}
	if err != nil {
		return nil, err
	}
	e := &Expression{root: root, names: p.names}
	if p.looked && p.ahead.kind != eof {
		e.rest = expression[p.ahead.start:]
	}
	if len(p.names) > fewNames {
		e.slots = p.slots
	}
	e.pool.New = func() any { return &view{many: make([]slot, len(e.names))} }
	return e, nil
}

// Rest is what of the text stands behind the expression and means nothing, as officially: `BETWEN 2 AND 7` of `a BETWEN 2 AND 7`.
func (e *Expression) Rest() string { return e.rest }

// Match tells whether a message with these properties is taken: the expression is true, neither false nor unknown,
// and no fault was met. It allocates nothing.
func (e *Expression) Match(properties string) bool {
	if e.slots == nil {
		v := view{properties: properties}
		return v.test(e.root) == isTrue
	}
	v := e.pool.Get().(*view)
	v.fill(e.slots, properties)
	taken := v.test(e.root) == isTrue
	clear(v.many) // it lets go of the message
	e.pool.Put(v)
	return taken
}
