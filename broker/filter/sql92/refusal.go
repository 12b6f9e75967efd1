package sql92

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says why an expression is refused. Its text is the remark of the official broker, which names the Java
// exception.
type Error struct {
	Text         string
	Line, Column int // where, from 1
}

// Error is the remark.
func (e *Error) Error() string { return e.Text }

// maxErrorText bounds a remark in bytes: the official text shows parts of the expression, and that may be long.
const maxErrorText = 4096

// Java classes that the official texts name.
const (
	lexicalError = "org.apache.rocketmq.filter.parser.TokenMgrError"
	parseError   = "org.apache.rocketmq.filter.parser.ParseException"
	runtimeError = "java.lang.RuntimeException"
	formatError  = "java.lang.NumberFormatException"
)

func (l *lexer) refuse(at int, class, text string) *Error {
	line, column := position(l.text, at)
	text = class + ": " + text
	if len(text) > maxErrorText {
		cut := maxErrorText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return &Error{text, line, column}
}

// lexical refuses a token that begins at start and cannot go on at the character at bad. As TokenMgrError of
// 4.9.8 says it: when the bad character is the last of all, it calls it the end.
func (l *lexer) lexical(start, bad int) *Error {
	s := l.text
	_, size := utf8.DecodeRuneInString(s[min(bad, len(s)):])
	if bad+size >= len(s) {
		line, column := position(s, len(s))
		after := s[start:]
		if utf8.RuneCountInString(after) <= 1 {
			after = ""
		}
		return l.refuse(start, lexicalError, fmt.Sprintf(`Lexical error at line %d, column %d.  Encountered: <EOF> after : "%s"`,
			line, column, escape(after, true)))
	}
	line, column := position(s, bad)
	r := firstRune(s[bad:])
	return l.refuse(start, lexicalError, fmt.Sprintf(`Lexical error at line %d, column %d.  Encountered: "%s" (%d), after : "%s"`,
		line, column, escape(string(r), true), r, escape(s[start:bad], true)))
}

// syntax refuses a token where others were expected; as ParseException of 4.9.8 says it.
func (l *lexer) syntax(t token, expected kinds) *Error {
	var b strings.Builder
	b.WriteString(`Encountered "`)
	if t.kind == eof {
		b.WriteString(images[eof])
	} else {
		b.WriteString(" " + images[t.kind] + ` "` + escape(l.text[t.start:t.end], true) + ` "`)
	}
	line, column := position(l.text, t.start)
	if t.kind == eof && len(l.text) > 0 {
		line, column = position(l.text, len(l.text)-1) // the official reader stands on the last character
	} else if t.kind == eof {
		line, column = 0, 0
	}
	fmt.Fprintf(&b, "\" at line %d, column %d.\nWas expecting", line, column)
	if expected.count() > 1 {
		b.WriteString(" one of")
	}
	b.WriteString(":\n    ")
	for k := range images {
		if expected.has(kind(k)) {
			b.WriteString(images[k] + " ...\n    ")
		}
	}
	return l.refuse(t.start, parseError, b.String())
}

// escape shows a text as the official messages do.
func escape(s string, quotes bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == 0:
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\f':
			b.WriteString(`\f`)
		case r == '\r':
			b.WriteString(`\r`)
		case quotes && (r == '"' || r == '\'' || r == '\\'):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20 && r <= 0x7e:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			b.WriteString(unicodeEscape(0xd800 + r>>10))
			b.WriteString(unicodeEscape(0xdc00 + r&0x3ff))
		default:
			b.WriteString(unicodeEscape(r))
		}
	}
	return b.String()
}

func unicodeEscape(r rune) string {
	h := "0000" + strconv.FormatInt(int64(r), 16)
	return `\u` + h[len(h)-4:]
}
