package compat

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEditProperties(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"the form stays", "# c\n\n  a = 1\nb:2\r\nc\t3\n! d=4\n", "# c\n\n  a = X\nb:2\r\nc\t3\n! d=4\nnew=a\\\\b\n"},
		{"no separator", "a\nb=1", "a=X\nb=1\nnew=a\\\\b\n"},
		{"no value", "a=\n", "a=X\nnew=a\\\\b\n"},
		{"separated by blanks", "a 1\n", "a=X\nnew=a\\\\b\n"},
		{"several lines", "a=1,\\\n   2,\\\n   a=3\nb=1\n", "a=X\nb=1\nnew=a\\\\b\n"},
		{"a comment with a backslash", "# a \\\na=1\n", "# a \\\na=X\nnew=a\\\\b\n"},
		{"twice", "a=1\nb=2\na=3\n", "a=X\nb=2\nnew=a\\\\b\n"},
		{"another spelling", "\\u0061=1\r\n", "\\u0061=X\r\nnew=a\\\\b\n"},
		{"not its end", "aa=1\nb=a=1\n", "aa=1\nb=a=1\na=X\nnew=a\\\\b\n"},
		{"empty", "", "a=X\nnew=a\\\\b\n"},
		{"byte order mark", "\ufeffa=1\n", "\ufeffa=X\nnew=a\\\\b\n"},
		{"no end", "a=1", "a=X\nnew=a\\\\b\n"},
		{"a backslash at the end", "b=1\\", "b=1\\\n\na=X\nnew=a\\\\b\n"},
	} {
		if got := string(EditProperties([]byte(c.text), []KeyValue{{"a", "X"}, {"new", `a\b`}})); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.what, c.text, got, c.want)
		}
	}
}

// TestEditPropertiesMeans: whatever the text, what it says afterwards is what it said, with the new values.
func TestEditPropertiesMeans(t *testing.T) {
	line := rapid.SampledFrom([]string{"a=1", " a : 2", "a 3", "a", "b=x", "b=x\\", "  y", "# a=1", "c\\ d=1", "", "!", "a=\\\\", "a=\\", "z=é", "=v"})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, l := range rapid.SliceOfN(line, 0, 8).Draw(t, "lines") {
			text += l + rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		}
		if rapid.Bool().Draw(t, "open") && text != "" {
			text = text[:len(text)-1]
		}
		value := rapid.SampledFrom([]string{"", "v", " v ", `\`, "a=b", "é", "two\nlines"}).Draw(t, "value")
		before, err := ParseProperties([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		after, err := ParseProperties(EditProperties([]byte(text), []KeyValue{{"a", value}}))
		if err != nil {
			t.Fatal(err)
		}
		before.Set("a", value)
		for _, kv := range before.All() {
			if got, ok := after.Get(kv.Key); !ok || got != kv.Value {
				t.Fatalf("%q: key %q is %q (%t), want %q", text, kv.Key, got, ok, kv.Value)
			}
		}
		if len(after.All()) != len(before.All()) {
			t.Fatalf("%q: %v, want %v", text, after.All(), before.All())
		}
	})
}
