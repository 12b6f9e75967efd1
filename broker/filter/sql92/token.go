package sql92

import (
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token. The order is that of the official grammar: its messages list what was expected
// in this order.
type kind uint8

const (
	eof     kind = 0
	not     kind = 8
	and     kind = 9
	or      kind = 10
	between kind = 11
	in      kind = 12
	yes     kind = 13
	no      kind = 14
	null    kind = 15
	is      kind = 16
	decimal kind = 17
	float   kind = 18
	text    kind = 20
	name    kind = 21
	equal   kind = 22
	differ  kind = 23
	more    kind = 24
	moreEq  kind = 25
	less    kind = 26
	lessEq  kind = 27
	open    kind = 28
	comma   kind = 29
	shut    kind = 30
	plus    kind = 31
	minus   kind = 32
)

// images are how the official messages show the kinds.
var images = [...]string{
	eof: "<EOF>", not: `"NOT"`, and: `"AND"`, or: `"OR"`, between: `"BETWEEN"`, in: `"IN"`, yes: `"TRUE"`,
	no: `"FALSE"`, null: `"NULL"`, is: `"IS"`, decimal: "<DECIMAL_LITERAL>", float: "<FLOATING_POINT_LITERAL>",
	text: "<STRING_LITERAL>", name: "<ID>", equal: `"="`, differ: `"<>"`, more: `">"`, moreEq: `">="`, less: `"<"`,
	lessEq: `"<="`, open: `"("`, comma: `","`, shut: `")"`, plus: `"+"`, minus: `"-"`,
}

// keywords are the reserved words, in either case.
var keywords = []struct {
	word string
	kind kind
}{
	{"NOT", not}, {"AND", and}, {"OR", or}, {"BETWEEN", between}, {"IN", in},
	{"TRUE", yes}, {"FALSE", no}, {"NULL", null}, {"IS", is},
}

// token is a piece of the expression: text[start:end].
type token struct {
	kind       kind
	start, end int
}

// lexer cuts an expression into tokens, each when it is asked for: like the official one it never looks at what
// lies behind the end of the expression proper.
type lexer struct {
	text     string
	at       int  // where the next token is looked for
	lastLine bool // no line ends behind at
}

// next returns the next token: the longest that fits. Blanks and comments are passed over.
func (l *lexer) next() (token, error) {
	s := l.text
	for l.at < len(s) {
		start := l.at
		c := s[start]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			l.at++
			continue
		case c == '-':
			if n := l.lineComment(); n > 0 {
				l.at += n
				continue
			}
			return l.take(minus, 1), nil
		case c == '/':
			n := blockComment(s[start:])
			if n == 0 {
				if strings.HasPrefix(s[start:], "/*") {
					return token{}, l.lexical(start, len(s))
				}
				return token{}, l.lexical(start, start+1)
			}
			l.at += n
			continue
		case c == '\'':
			n := quoted(s[start:])
			if n == 0 {
				return token{}, l.lexical(start, len(s))
			}
			return l.take(text, n), nil
		case isLetter(c):
			n := 1
			for start+n < len(s) && (isLetter(s[start+n]) || isDigit(s[start+n])) {
				n++
			}
			return l.take(word(s[start:start+n]), n), nil
		case isDigit(c) || c == '.':
			k, n := number(s[start:])
			if n == 0 {
				return token{}, l.lexical(start, start+1)
			}
			return l.take(k, n), nil
		}
		k, n := operator(s[start:])
		if n == 0 {
			return token{}, l.lexical(start, start)
		}
		return l.take(k, n), nil
	}
	return token{eof, len(s), len(s)}, nil
}

func (l *lexer) take(k kind, n int) token {
	t := token{k, l.at, l.at + n}
	l.at += n
	return t
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// word tells a reserved word from a name.
func word(s string) kind {
	for _, k := range keywords {
		if len(s) == len(k.word) && strings.EqualFold(s, k.word) {
			return k.kind
		}
	}
	return name
}

// lineComment is the length of a comment from -- to the end of its line. At the end of the expression there
// is none: the two signs are two tokens.
func (l *lexer) lineComment() int {
	s := l.text[l.at:]
	if l.lastLine || !strings.HasPrefix(s, "--") {
		return 0
	}
	i := strings.IndexAny(s, "\n\r")
	if i < 0 {
		l.lastLine = true // so that `a=--1 OR a=--1 OR …` is not looked through from each of its signs on
		return 0
	}
	if strings.HasPrefix(s[i:], "\r\n") {
		i++
	}
	return i + 1
}

// blockComment is the length of a comment in /* and */.
func blockComment(s string) int {
	if !strings.HasPrefix(s, "/*") {
		return 0
	}
	end := strings.Index(s[2:], "*/")
	if end < 0 {
		return 0
	}
	return end + 4
}

// quoted is the length of a text in quotes, in which two quotes stand for one; 0 when it does not end.
func quoted(s string) int {
	end := 0
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		end = i + 1
		if i+1 == len(s) || s[i+1] != '\'' {
			break
		}
		i++ // a doubled quote; when no quote follows, the text ends with its first
	}
	return end
}

// number is the kind and the length of the number that s begins with; 0 for a point alone.
func number(s string) (kind, int) {
	whole := digits(s)
	if whole < len(s) && s[whole] == '.' {
		n := whole + 1 + digits(s[whole+1:])
		if whole > 0 || n > 1 {
			return float, n + exponent(s[n:])
		}
		return eof, 0
	}
	if e := exponent(s[whole:]); e > 0 {
		return float, whole + e
	}
	if s[0] == '0' {
		return decimal, 1 // a number with more digits does not begin with 0
	}
	if whole < len(s) && (s[whole] == 'l' || s[whole] == 'L') {
		whole++
	}
	return decimal, whole
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func exponent(s string) int {
	if s == "" || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	d := digits(s[n:])
	if d == 0 {
		return 0
	}
	return n + d
}

// operator is the kind and length of the operator that s begins with; 0 when there is none.
func operator(s string) (kind, int) {
	switch s[0] {
	case '=':
		return equal, 1
	case '<':
		if strings.HasPrefix(s, "<>") {
			return differ, 2
		}
		if strings.HasPrefix(s, "<=") {
			return lessEq, 2
		}
		return less, 1
	case '>':
		if strings.HasPrefix(s, ">=") {
			return moreEq, 2
		}
		return more, 1
	case '(':
		return open, 1
	case ',':
		return comma, 1
	case ')':
		return shut, 1
	case '+':
		return plus, 1
	}
	return eof, 0
}

// unquote is the text in a token's quotes.
func unquote(image string) string {
	return strings.ReplaceAll(image[1:len(image)-1], "''", "'")
}

// position is the line and column of a byte of the expression, both from 1. Columns count what Java counts
// (UTF-16 units), and a tabulator goes to the next multiple of 8.
func position(s string, at int) (line, column int) {
	line = 1
	var last rune
	for i, r := range s[:min(at+1, len(s))] {
		if last == '\n' || last == '\r' && r != '\n' {
			line, column = line+1, 0
		}
		column++
		if r == '\t' {
			column--
			column += 8 - column%8
		}
		if r > 0xffff && i < at {
			column++
		}
		last = r
	}
	if at >= len(s) {
		if last == '\n' || last == '\r' {
			return line + 1, 0
		}
		column++
	}
	return line, column
}

// firstRune is the first character of s as Java counts them.
func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	if r > 0xffff {
		return 0xd800 + (r-0x10000)>>10
	}
	return r
}
