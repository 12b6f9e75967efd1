package header

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rocketd/protocol"
)

// later are the structs for what 4.9.8 does not know.
var later = []any{&AckMessageRequest{}, &ChangeInvisibleTimeRequest{}, &ChangeInvisibleTimeResponse{}, &GetTopicConfigRequest{}, &NotificationRequest{},
	&NotificationResponse{}, &PeekMessageRequest{}, &PollingInfoRequest{}, &PollingInfoResponse{}, &PopMessageRequest{}, &PopMessageResponse{},
	&RecallMessageRequest{}, &RecallMessageResponse{}}

// all are the types of all headers, each once.
func all() []reflect.Type {
	seen := map[reflect.Type]bool{}
	for _, h := range slices.Concat(slices.Collect(maps.Values(headers)), later) {
		seen[reflect.TypeOf(h).Elem()] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
}

// TestAllHeadersAreFuzzed: no header of this package is missing among those that FuzzHeaders binds.
func TestAllHeadersAreFuzzed(t *testing.T) {
	known := map[string]bool{}
	for _, h := range all() {
		known[h.Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					if _, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
						if n++; !known[s.Name.Name] {
							t.Errorf("%s is not fuzzed", s.Name.Name)
						}
					}
				}
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d headers found", n)
	}
}

// FuzzHeaders binds every header of the package to whatever fields a request of either form brings: it ends in a struct or in
// an error that names a field, and what was bound, written in either form and bound again, is the same.
func FuzzHeaders(f *testing.F) {
	file, err := os.Open("../testdata/headers.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g struct{ Header, HeaderBase64 string }
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			f.Fatal(err)
		}
		if g.HeaderBase64 == "" {
			f.Add(byte(protocol.JSON), []byte(g.Header))
			continue
		}
		b, err := base64.StdEncoding.DecodeString(g.HeaderBase64)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(protocol.Binary), b)
	}
	types := all()
	f.Fuzz(func(t *testing.T, form byte, text []byte) {
		var c protocol.Command
		if protocol.DecodeHeader(protocol.SerializeType(form&1), string(text), &c) != nil {
			return
		}
		for _, h := range types {
			first := reflect.New(h).Interface()
			if err := protocol.PlanFor(first).Bind(&c, first); err != nil {
				if err.Error() == "" {
					t.Errorf("%s: an error without a text", h.Name())
				}
				continue
			}
			for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
				out := protocol.NewRequest(protocol.SendMessage, first, nil)
				out.Serialize = form
				frame := protocol.AppendFrame(nil, out)
				again, err := protocol.DecodeFrame(frame)
				if err != nil {
					if form == protocol.Binary && len(text) > 1<<15 {
						continue // a field's length has 15 bits there
					}
					t.Fatalf("%s: own encoding of %+v: %v", h.Name(), first, err)
				}
				second := reflect.New(h).Interface()
				if err := protocol.PlanFor(second).Bind(again, second); err != nil {
					t.Fatalf("%s: %+v, written and read again: %v", h.Name(), first, err)
				}
				for _, v := range []any{first, second} { // which field was missing is no part of what is written
					if missing := reflect.ValueOf(v).Elem().FieldByName("Missing"); missing.IsValid() {
						missing.SetZero()
					}
				}
				if utf8.Valid(text) && !reflect.DeepEqual(first, second) {
					t.Fatalf("%s: %+v, written and read again %+v", h.Name(), first, second)
				}
			}
		}
	})
}
