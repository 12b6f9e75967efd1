package compat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// maxGrowth is by how much Standardize may lengthen a text: \u0001 in a key that is an object has seven characters
// for one byte.
const maxGrowth = 7

// nestedKeys is n objects, each the key of the next.
func nestedKeys(n int) string {
	return strings.Repeat("{", n) + `"a":1` + strings.Repeat("}:1", n-1) + "}"
}

// TestNestedKeysAreRefused: objects as keys are escaped once for each level that they stand in, so that levels
// would double the text.
func TestNestedKeysAreRefused(t *testing.T) {
	for _, text := range []string{
		nestedKeys(3), nestedKeys(40), nestedKeys(60), `{[{[1]:2}]:3}`, `{[{"a":{{}:1}}]:3}`, `[{"x":` + nestedKeys(20) + `}]`, `{{[]:1}:1}`,
		strings.Repeat("{[", 30) + "1" + strings.Repeat("]:1}", 30),
	} {
		if out, err := Standardize([]byte(text)); err == nil {
			t.Errorf("%.60s became %d bytes", text, len(out))
		}
		var v map[string]any
		if err := Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%.60s was read", text)
		}
	}
	for text, want := range map[string]string{
		nestedKeys(2):                         `{"{\"a\":1}":1}`,
		`{{1:2}:3,{"a":{b:[1]}}:{{"c":1}:4}}`: `{"{\"1\":2}":3,"{\"a\":{\"b\":[1]}}":{"{\"c\":1}":4}}`,
		`{[1,'x']:1}`:                         `{"[1,\"x\"]":1}`,
	} {
		if out, err := Standardize([]byte(text)); err != nil || string(out) != want {
			t.Errorf("%s became %s, %v, want %s", text, out, err, want)
		}
	}
}

// TestGrowth: the worst text of each kind, of one size, stays within the bound, and what is refused is refused
// with a short error.
func TestGrowth(t *testing.T) {
	const size = 1 << 20
	fill := func(before, unit, after string) string { return before + strings.Repeat(unit, size/len(unit)) + after }
	for name, text := range map[string]string{
		"control characters":        fill(`"`, "\x01", `"`),
		"control characters in key": fill(`{{"`, "\x01", `":1}:1}`),
		"quotes in key":             fill(`{{'`, `"`, `':1}:1}`),
		"escapes in key":            fill(`{{"`, `\\`, `":1}:1}`),
		"octal in key":              fill(`{{"`, `\0`, `":1}:1}`),
		"bad UTF-8 in key":          fill(`{{"`, "\xff", `":1}:1}`),
		"C1 in key":                 fill(`{{"`, "\u0085", `":1}:1}`),
		"line separators in key":    fill(`{{"`, "\u2028", `":1}:1}`),
		"empty strings in key":      fill(`{[`, `'',`, `]:1}`),
		"bare keys in key":          fill(`{{`, `a:1,`, `}:1}`),
		"keys":                      fill(`{`, `{}:1,`, `}`),
		"undefined":                 fill(`[`, `NaN,`, `]`),
		"zeros":                     fill(``, `0`, ``),
		"commas":                    fill(`[`, `,`, `]`),
		"comments":                  fill(``, `/**/`, `1`),
		"open comments":             fill(`{`, `/*`, ``),
		"word":                      fill(``, "\xfe", ``),
		"open":                      fill(``, `{[`, ``),
	} {
		out, err := Standardize([]byte(text))
		switch {
		case err != nil && len(err.Error()) > 400:
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		case len(out) > maxGrowth*len(text):
			t.Errorf("%s: %d bytes became %d", name, len(text), len(out))
		case err == nil && !json.Valid(bytes.ToValidUTF8(out, []byte("?"))):
			t.Errorf("%s: became %.80q", name, out)
		}
	}
}
