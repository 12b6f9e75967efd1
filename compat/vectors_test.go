package compat

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// vectors returns the lines of a file in testdata, without comments.
func vectors(tb testing.TB, file string) []string {
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line[0] != '#' {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func TestHashCode(t *testing.T) {
	for _, line := range vectors(t, "hash.txt") {
		i := strings.LastIndexByte(line, ' ')
		var text string
		if err := json.Unmarshal([]byte(line[:i]), &text); err != nil {
			t.Fatal(err)
		}
		if got, want := strconv.Itoa(int(HashCode(text))), line[i+1:]; got != want {
			t.Errorf("HashCode(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestAppendDouble(t *testing.T) {
	for _, line := range vectors(t, "doubles.txt") {
		hex, want, _ := strings.Cut(line, " ")
		bits, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendDouble(nil, math.Float64frombits(bits))); got != want {
			t.Errorf("%s: %s, want %s", hex, got, want)
		}
	}
}

// TestProperties compares with what java.util.Properties makes of the same text.
func TestProperties(t *testing.T) {
	lines := vectors(t, "properties.txt")
	for _, line := range lines {
		var v []any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		text := v[0].(string)
		got, err := ParseProperties([]byte(text))
		if v[1] == nil {
			if err == nil {
				t.Errorf("%q: accepted as %v, Java throws", text, got.All())
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want := v[1].([]any)
		if len(want) > 0 { // a byte order mark is no part of the first key here
			want[0] = strings.TrimPrefix(want[0].(string), byteOrderMark)
		}
		if len(got.Keys())*2 != len(want) {
			t.Errorf("%q: %q, want %q", text, got.All(), want)
			continue
		}
		for i := 0; i < len(want); i += 2 {
			if value, ok := got.Get(want[i].(string)); !ok || value != want[i+1] {
				t.Errorf("%q: %q, want %q", text, got.All(), want)
			}
		}
		if again, err := ParseProperties(got.Bytes()); err != nil || !reflect.DeepEqual(again.All(), got.All()) {
			t.Errorf("%q: written as %q, read again as %q, %v", text, got.Bytes(), again.All(), err)
		}
	}
	if len(lines) < 300 {
		t.Errorf("only %d texts", len(lines))
	}
}

// TestStandardize compares with what fastjson makes of the same text.
func TestStandardize(t *testing.T) {
	lenient := map[string]bool{`{_a$b9:1}`: true}                 // we take it, fastjson does not
	strict := map[string]bool{`[1 2]`: true, ``: true, ` `: true} // the other way round; the last two mean null to Unmarshal
	for _, line := range vectors(t, "reader.txt") {
		var v []any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		text := v[0].(string)
		out, err := Standardize([]byte(text))
		switch {
		case strict[text]:
			continue
		case err != nil:
			if len(v) == 2 {
				t.Errorf("%s: %v", text, err)
			}
		case len(v) == 1:
			if !lenient[text] {
				t.Errorf("%s: accepted as %s, fastjson throws", text, out)
			}
		default:
			var got any
			if err := json.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(got, v[1]) {
				t.Errorf("%s: %s (%v), want %v", text, out, err, v[1])
			}
		}
	}
}

// FuzzStandardize: it never panics, what it returns is standard JSON of a bounded length, and standard JSON keeps its meaning.
func FuzzStandardize(f *testing.F) {
	for _, line := range vectors(f, "reader.txt") {
		var v []any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(v[0].(string)))
	}
	f.Add([]byte(`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:6}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := Standardize(text)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Fatalf("%q: an error of %d bytes", text, len(err.Error()))
			}
			return
		}
		if len(out) > maxGrowth*len(text) {
			t.Fatalf("%q became %d bytes", text, len(out))
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q", text, out)
		}
		var before, after any
		if json.Unmarshal(text, &before) == nil {
			if err := json.Unmarshal(out, &after); err != nil || !reflect.DeepEqual(before, after) {
				t.Fatalf("%q became %q", text, out)
			}
		}
		again, err := Standardize(out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q became %q, then %q, %v", text, out, again, err)
		}
		var table struct {
			OffsetTable map[queue]int64
			Names       map[int32]string
			Any         []float64
			Flag        bool
		}
		_ = Unmarshal(text, &table)
	})
}

// FuzzProperties: it never panics, and what it reads is read again from its own text.
func FuzzProperties(f *testing.F) {
	for _, line := range vectors(f, "properties.txt") {
		var v []any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(v[0].(string)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = []byte(strings.ToValidUTF8(string(text), "?"))
		p, err := ParseProperties(text)
		if err != nil {
			return
		}
		again, err := ParseProperties(p.Bytes())
		if err != nil || len(p.All()) != len(again.All()) || len(p.All()) > 0 && !reflect.DeepEqual(p.All(), again.All()) {
			t.Fatalf("%q: read %q, again %q, %v", text, p.All(), again.All(), err)
		}
	})
}
