package sql92

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rocketd/protocol/message"
)

func compile(t testing.TB, expression string) *Expression {
	t.Helper()
	e, err := Compile(expression)
	if err != nil {
		t.Fatalf("%.200q: %v", expression, err)
	}
	return e
}

// A fault says where it is.
func TestPositions(t *testing.T) {
	for _, c := range []struct {
		expression   string
		line, column int
	}{
		{"a/b > 1", 1, 2},
		{"a = 5 AND b > 'x'", 1, 15},
		{"a = 5\n  AND ;x", 2, 7},
		{"a >", 1, 4},
		{"price BETWEEN 10 AND 1", 1, 22},
	} {
		_, err := Compile(c.expression)
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column {
			t.Errorf("%q: %+v, want line %d, column %d", c.expression, e, c.line, c.column)
		}
	}
}

// What stands behind a complete expression means nothing (the official parser does not ask for the end), and can be told.
func TestRest(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1": "", " ( a = 1 )  ": "", "a IS NULL -- why\n": "", "a IS NULL /* why */": "",
		"a BETWEN 2 AND 7": "BETWEN 2 AND 7", "a = 1 AN b = 2": "AN b = 2", "(a = 1))": ")", "a = 0x10": "x10",
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if e.Rest() != want {
			t.Errorf("%q: the rest is %q, want %q", text, e.Rest(), want)
		}
	}
}

func TestBounds(t *testing.T) {
	compile(t, strings.Repeat("(", MaxDepth-2)+"a = 5"+strings.Repeat(")", MaxDepth-2))
	for name, expression := range map[string]string{
		"parentheses": strings.Repeat("(", MaxDepth+1) + "a = 5",
		"NOT":         strings.Repeat("NOT ", MaxDepth+1) + "a",
		"signs":       strings.Repeat("-", MaxDepth+1) + "5 = a",
		"plus signs":  strings.Repeat("+", MaxDepth+1) + "5 = a",
		"equalities":  "a" + strings.Repeat(" = b", MaxDepth+1),
		"IS NULL":     "a" + strings.Repeat(" IS NULL", MaxDepth+1),
		"length":      "a = '" + strings.Repeat("x", MaxLength) + "'",
	} {
		if _, err := Compile(expression); err == nil {
			t.Errorf("%s: no error", name)
		} else if len(err.Error()) > maxErrorText+100 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	// A chain of AND or OR is no deeper for being long.
	long := compile(t, strings.Repeat("a = 1 OR ", 20_000)+"a = 2")
	if !long.Match("a\x012") || long.Match("a\x013") {
		t.Error("a long chain is evaluated wrongly")
	}
	// Nor does a long expression cost more than its text and the message's.
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "p%d = 1 OR ", i)
	}
	wide := compile(t, many.String()+"last = 1")
	var p []byte
	for i := range 2000 {
		p = message.AppendProperty(p, fmt.Sprintf("q%d", i), "0123456789")
	}
	if !wide.Match(string(message.AppendProperty(p, "last", "1"))) {
		t.Error("the last of many properties is not seen")
	}
	if wide.Match(string(p)) {
		t.Error("the slot of an earlier message is seen")
	}
}

// What a refusal costs is bounded by the expression's length: its text shows a tree of ten thousands of nodes, and no more of it than
// a remark has room for.
func TestCostOfRefusal(t *testing.T) {
	for name, expression := range map[string]string{
		"chain": "-(" + strings.Repeat("a=1 OR ", 35_000) + "a=1)",
		"texts": "-(a IN ('x'" + strings.Repeat(",'x'", 60_000) + "))",
		"deep":  strings.Repeat("-(", 100) + strings.Repeat("a=1 OR ", 30_000) + "a=1" + strings.Repeat(")", 100),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile(expression)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		if !strings.HasPrefix(err.Error(), runtimeError) && !strings.HasPrefix(err.Error(), parseError) || len(err.Error()) != maxErrorText+len("...") {
			t.Errorf("%s: %.100s, %d bytes", name, err, len(err.Error()))
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 400*uint64(len(expression)) {
			t.Errorf("%s: %d bytes for an expression of %d", name, got, len(expression))
		}
	}
}

// Two signs without the end of a line behind them are no comment, and that is looked for once.
func TestSignsOfLastLine(t *testing.T) {
	l := lexer{text: "--\n1--2--3"}
	for _, want := range []struct {
		kind kind
		last bool
	}{{decimal, false}, {minus, true}, {minus, true}, {decimal, true}, {minus, true}, {minus, true}, {decimal, true}, {eof, true}} {
		if got, err := l.next(); err != nil || got.kind != want.kind || l.lastLine != want.last {
			t.Fatalf("%v, %v, last line %v, want %v", got, err, l.lastLine, want)
		}
	}
}

// Of two properties with one name the last counts, with few names and with many.
func TestSameName(t *testing.T) {
	text := "a\x011\x02a\x012"
	for _, expression := range []string{"a = 2", "a = 2 OR b = 1 OR c = 1 OR d = 1 OR e = 1 OR f = 1 OR g = 1 OR h = 1 OR i = 1"} {
		if !compile(t, expression).Match(text) {
			t.Errorf("%s: the first counts", expression)
		}
	}
}

// Values by hand from the rules of Integer#valueOf, Long#valueOf and Double#valueOf of Java.
func TestJavaNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"5": 5, " 5\t": 5, "5.": 5, ".5": .5, "+5e1": 50, "0x10p0": 16, "0x1p3f": 8, "5d": 5, "5F": 5, "Infinity": math.Inf(1),
		"-Infinity": math.Inf(-1), "1e400": math.Inf(1), "1e-400": 0,
	} {
		if got, ok := parseFloat(text); !ok || got != want {
			t.Errorf("parseFloat(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	if got, ok := parseFloat("-NaN"); !ok || got == got {
		t.Errorf("-NaN: %v, %v", got, ok)
	}
	for _, text := range []string{"", " ", "+", "-", ".", "inf", "infinity", "nan", "0x10", "1_0", "0x1_0p0", "5dd", "1e", "--5", "5 5", "dd", "d", "\u00a05"} {
		if got, ok := parseFloat(text); ok {
			t.Errorf("parseFloat(%q) = %v", text, got)
		}
	}
	for text, want := range map[string]int64{"-2147483648": math.MinInt32, "2147483647": math.MaxInt32, "+0": 0, "-0": 0, "007": 7, "٣": 3, "１2": 12} {
		if got, ok := parseInt(text, 32); !ok || got != want {
			t.Errorf("parseInt(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "+", "-", "2147483648", "-2147483649", "5.0", " 5", "5 ", "0x5", "5L", "+-5", "𝟓", "\xff"} {
		if got, ok := parseInt(text, 32); ok {
			t.Errorf("parseInt(%q) = %v", text, got)
		}
	}
	for text, ok := range map[string]bool{"9223372036854775807": true, "9223372036854775808": false, "-9223372036854775808": true, "-9223372036854775809": false, "99999999999999999999999": false} {
		if _, got := parseInt(text, 64); got != ok {
			t.Errorf("parseInt(%q, 64): %v", text, got)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	for _, expression := range []string{
		"a = 5", "price BETWEEN 10 AND 20 AND region IN ('x', 'y')", "price > 1.5 OR region = 'z' OR TAGS IS NOT NULL", "price > count",
		"a = 1 OR b = 1 OR c = 1 OR d = 1 OR e = 1 OR f = 1 OR g = 1 OR h = 1 OR i = 1",
	} {
		e := compile(t, expression)
		if n := testing.AllocsPerRun(1000, func() { e.Match(sample) }); n >= 1 {
			t.Errorf("%s: %v allocations", expression, n)
		}
	}
}

// sample is a properties text as a Java producer makes it.
const sample = "KEYS\x01order-1234567\x02UNIQ_KEY\x017F0000010001A1B2C3D4E5F600010203\x02WAIT\x01true\x02region\x01hangzhou\x02price\x0112.5\x02" +
	"count\x017\x02CLUSTER\x01DefaultCluster\x02TAGS\x01TagA"

func BenchmarkMatch(b *testing.B) {
	for name, expression := range map[string]string{
		"one":  "count > 5",
		"few":  "price BETWEEN 10.5 AND 20.5 AND region IN ('hangzhou', 'beijing') AND count IS NOT NULL",
		"many": "a = 1 OR b = 1 OR c = 1 OR d = 1 OR e = 1 OR f = 1 OR g = 1 OR h = 1 OR region = 'hangzhou'",
	} {
		e := compile(b, expression)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !e.Match(sample) {
					b.Fatal("not taken")
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compile(b, "price BETWEEN 10.5 AND 20.5 AND region IN ('hangzhou', 'beijing') AND count IS NOT NULL")
	}
}

// Whatever the expression and the properties: no panic, and neither compiling nor evaluating takes long.
func FuzzExpression(f *testing.F) {
	texts := properties(f)
	for i, e := range lines[string](f, "expressions.txt") {
		f.Add(e, texts[i%len(texts)])
	}
	f.Fuzz(func(t *testing.T, expression, properties string) {
		began := time.Now()
		e, err := Compile(expression)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
		} else {
			first := e.Match(properties)
			if e.Match("") != e.Match("\x02") || e.Match(properties) != first {
				t.Error("an answer depends on the one before")
			}
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%v for %d bytes", took, len(expression))
		}
	})
}

// Conditions put together by chance have the value that three-valued logic gives them.
func TestLogic(t *testing.T) {
	leaves := map[string]truth{"x = 1": isTrue, "x = 2": isFalse, "y = 1": unknown, "TRUE": isTrue, "FALSE": isFalse, "NULL": unknown, "y IS NULL": isTrue}
	names := slices.Sorted(maps.Keys(leaves))
	var draw func(t *rapid.T, depth int) (string, truth)
	draw = func(t *rapid.T, depth int) (string, truth) {
		if depth == 0 {
			s := rapid.SampledFrom(names).Draw(t, "leaf")
			return "(" + s + ")", leaves[s]
		}
		l, a := draw(t, depth-1)
		switch rapid.IntRange(0, 2).Draw(t, "op") {
		case 0:
			if a != unknown {
				a = isTrue + isFalse - a
			}
			return "NOT " + l, a
		case 1:
			r, b := draw(t, depth-1)
			if a == isFalse || b == isFalse {
				return "(" + l + " AND " + r + ")", isFalse
			}
			return "(" + l + " AND " + r + ")", min(a, b)
		}
		r, b := draw(t, depth-1)
		if a == isTrue || b == isTrue {
			return "(" + l + " OR " + r + ")", isTrue
		}
		if a == unknown || b == unknown {
			return "(" + l + " OR " + r + ")", unknown
		}
		return "(" + l + " OR " + r + ")", isFalse
	}
	rapid.Check(t, func(r *rapid.T) {
		s, want := draw(r, rapid.IntRange(0, 4).Draw(r, "depth"))
		if got := compile(t, s).Match("x\x011"); got != (want == isTrue) {
			t.Errorf("%s: %v, want %d", s, got, want)
		}
	})
}

// A property is found where reading the text from entry to entry finds it, whatever lies around it.
func TestLookUp(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "ab", "b", "\x01", "\x02", "\x03", "a\x01", "\x02a\x01", "ab\x011\x02", "xxxxxxx", "\x00", "\x82"})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(r, "text"), "")
		for _, name := range []string{"a", "ab", "b"} {
			var want string
			var there bool
			message.EachProperty(text, func(n, v string) bool {
				if n == name {
					want, there = v, true
				}
				return true
			})
			if got, ok := lookUp(text, name+"\x01"); got != want || ok != there {
				r.Fatalf("%s in %q: %q %v, want %q %v", name, text, got, ok, want, there)
			}
		}
	})
}
