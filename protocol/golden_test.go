package protocol

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"testing"
)

// goldenHeader is a line of testdata/headers.jsonl.
type goldenHeader struct {
	From, Type                  string
	Code, Flag, Opaque, Version int32
	Language, Remark            string
	ExtFields                   map[string]string
	Header, HeaderBase64        string
}

func goldenHeaders(tb testing.TB) []goldenHeader {
	f, err := os.Open("testdata/headers.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var all []goldenHeader
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g goldenHeader
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			tb.Fatal(err)
		}
		if g.HeaderBase64 != "" {
			b, err := base64.StdEncoding.DecodeString(g.HeaderBase64)
			if err != nil {
				tb.Fatal(err)
			}
			g.Header = string(b)
		}
		all = append(all, g)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestGoldenHeaders decodes every recorded header, compares it with what an independent decoder found, and
// encodes it again: what Java sent comes out byte by byte.
func TestGoldenHeaders(t *testing.T) {
	all := goldenHeaders(t)
	if len(all) < 100 {
		t.Fatalf("only %d recorded headers", len(all))
	}
	var c Command
	for _, g := range all {
		form := JSON
		if g.Type == "ROCKETMQ" {
			form = Binary
		}
		if err := DecodeHeader(form, g.Header, &c); err != nil {
			t.Errorf("%s: %v: %s", g.From, err, g.Header)
			continue
		}
		if c.Code != g.Code || c.Flag != g.Flag || c.Opaque != g.Opaque || c.Version != g.Version ||
			c.Language.String() != g.Language || c.Remark != g.Remark || c.Serialize != form {
			t.Errorf("%s: decoded %+v of %s", g.From, c, g.Header)
		}
		fields := make(map[string]string)
		for _, f := range c.Fields {
			fields[f.Key] = f.Value
		}
		for k, v := range g.ExtFields {
			if v == "" && form == Binary {
				delete(g.ExtFields, k) // a zero length is Java's null
			}
		}
		if !maps.Equal(fields, g.ExtFields) {
			t.Errorf("%s: fields %v, recorded %v", g.From, fields, g.ExtFields)
		}
		if form == JSON && !scanJSON(g.Header, new(Command)) {
			t.Errorf("%s: the quick scanner gave up on %s", g.From, g.Header)
		}
		if g.Language != "JAVA" {
			continue // members in another order
		}
		if c.HasFields && len(c.Fields) == 0 && form == JSON {
			c.Header = &struct{}{}
		}
		if got := string(AppendHead(nil, &c)[8:]); got != g.Header {
			t.Errorf("%s: encoded\n%q, recorded\n%q", g.From, got, g.Header)
		}
	}
}
