package sql92

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parseInt reads a whole number as Integer#valueOf (32 bits) and Long#valueOf (64) of Java do: a sign, then
// decimal digits of any script, and nothing else.
func parseInt(s string, bits uint) (int64, bool) {
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	if s == "" {
		return 0, false
	}
	limit := uint64(1)<<(bits-1) - 1
	if negative {
		limit++
	}
	var n uint64
	for i := 0; i < len(s); {
		d := uint64(s[i] - '0')
		if s[i] < utf8.RuneSelf {
			i++
		} else {
			r, size := utf8.DecodeRuneInString(s[i:])
			d, i = digit(r), i+size
		}
		if d > 9 || n > (limit-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// digit is the value of a decimal digit of any script, more than 9 for anything else.
func digit(r rune) uint64 {
	if r <= 0xffff { // Java looks at UTF-16 units
		for _, block := range unicode.Nd.R16 {
			if rune(block.Lo) <= r && r <= rune(block.Hi) {
				return uint64(r-rune(block.Lo)) % 10
			}
		}
	}
	return 10
}

// parseFloat reads a number as Double#valueOf of Java does: with blanks around it, NaN, Infinity, the suffixes
// d and f, and hexadecimal digits with a binary exponent; too large is infinite and too small is zero.
func parseFloat(s string) (float64, bool) {
	for s != "" && s[0] <= ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	unsigned := s
	if unsigned != "" && (unsigned[0] == '-' || unsigned[0] == '+') {
		unsigned = unsigned[1:]
	}
	switch unsigned {
	case "":
		return 0, false
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	}
	if !isDigit(unsigned[0]) && unsigned[0] != '.' { // ParseFloat knows more words
		return 0, false
	}
	if strings.HasPrefix(unsigned, "0x") || strings.HasPrefix(unsigned, "0X") {
		if p := strings.IndexAny(unsigned, "pP"); p > 0 && !isDigit(s[len(s)-1]) {
			s = trimSuffix(s)
		}
	} else {
		s = trimSuffix(s)
	}
	if strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// trimSuffix takes the suffix of a Java double or float off.
func trimSuffix(s string) string {
	switch s[len(s)-1] {
	case 'd', 'D', 'f', 'F':
		return s[:len(s)-1]
	}
	return s
}

// compareFloats is Double#compare of Java: -0.0 comes before 0.0, and NaN last.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	x, y := floatOrder(a), floatOrder(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// floatOrder parts what neither < nor > does: -0.0, then 0.0 and all numbers, then NaN.
func floatOrder(f float64) int {
	if f != f {
		return 2
	}
	if f == 0 && math.Signbit(f) {
		return 0
	}
	return 1
}
