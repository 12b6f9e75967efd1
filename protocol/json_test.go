package protocol

import (
	"reflect"
	"strings"
	"testing"
)

// TestDecodeJSON: what fastjson accepts for a command.
func TestDecodeJSON(t *testing.T) {
	for name, tt := range map[string]struct {
		header string
		want   Command
	}{
		"nothing":          {`{}`, Command{}},
		"spaces, order":    {" { \"version\" : 409 ,\n\t\"code\":11, \"flag\":1 } \n", Command{Code: 11, Flag: 1, Version: 409}},
		"new line behind":  {`{"code":34}` + "\n", Command{Code: 34}},
		"unknown members":  {`{"code":34,"x":{"y":[1,{}]},"suspended":false}`, Command{Code: 34}},
		"language":         {`{"language":"GO","remark":"r"}`, Command{Language: Go, Remark: "r"}},
		"language ordinal": {`{"language":9}`, Command{Language: Go}},
		"language unknown": {`{"language":"COBOL"}`, Command{Language: Other}},
		"language missing": {`{"language":null,"remark":null,"opaque":null,"extFields":null}`, Command{}},
		"numbers as text":  {`{"code":"105","opaque":"-7"}`, Command{Code: 105, Opaque: -7}},
		"fractions":        {`{"code":10.0,"opaque":-10.7,"flag":1e1,"version":"409.0"}`, Command{Code: 10, Opaque: -10, Flag: 10, Version: 409}},
		"odd numbers":      {`{"code":"","opaque":"null","flag":true,"version":false}`, Command{Flag: 1}},
		"lower case type":  {`{"serializeTypeCurrentRPC":"json","code":1}`, Command{Code: 1}},
		"extremes":         {`{"opaque":-2147483648,"flag":2147483647}`, Command{Opaque: -2147483648, Flag: 2147483647}},
		"bare keys":        {`{code:1,'flag':2}`, Command{Code: 1, Flag: 2}},
		"typed values": {`{"code":1,"extFields":{"n":12,"m":-1.5,"t":true,"f":false,"z":null,"s":"x","o":{"a": 1}}}`,
			Command{Code: 1, HasFields: true, Fields: []Field{{"n", "12"}, {"m", "-1.5"}, {"t", "true"}, {"f", "false"}, {"s", "x"}, {"o", `{"a":1}`}}}},
		"no fields": {`{"code":1,"extFields":{}}`, Command{Code: 1, HasFields: true}},
		"escapes": {`{"extFields":{"i":"K\u0001v\u0002\"\\\/\b\f\n\r\t","\u0061":"\u00e9\u4E2D"},"remark":"\ud83d\ude00"}`,
			Command{HasFields: true, Remark: "😀", Fields: []Field{{"i", "K\x01v\x02\"\\/\b\f\n\r\t"}, {"a", "é中"}}}},
		"raw controls": {"{\"remark\":\"a\x01\tb\"}", Command{Remark: "a\x01\tb"}},
		"odd escapes":  {`{"remark":"\x41\v\0\'"}`, Command{Remark: "A\v\x00'"}},
	} {
		c := Command{Fields: []Field{{"old", "old"}}, Remark: "old", Code: 99, HasFields: true}
		if err := DecodeHeader(JSON, tt.header, &c); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.Fields) == 0 {
			c.Fields = nil
		}
		if !reflect.DeepEqual(c, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, c, tt.want)
		}
	}
}

func TestDecodeJSONRefuses(t *testing.T) {
	for _, header := range []string{
		``, ` `, `null`, `[]`, `"x"`, `1`, `{`, `{"code"}`, `{"code":}`, `{"code":1`, `{"code":1}}`, `{"code":1} x`, `{"code":2147483648}`,
		`{"code":-2147483649}`, `{"code":"x"}`, `{"code":"10.7"}`, `{"code":"1e1"}`, `{"code":" 7"}`, `{"code":"10."}`, `{"code":[5]}`, `{"code":{}}`, `{"code":3e9}`, `{"code":"` + strings.Repeat("x", 10000) + `"}`, `{"code":` + strings.Repeat("x", 10000) + `}`, `{"code":1e}`, `{"extFields":[]}`, `{"extFields":"x"}`, `{"extFields":1}`, `{"extFields":{"a":"b"`,
		`{"extFields":{"a"}}`, `{"remark":"`, `{"remark":"\`, `{"remark":"\u12"}`, `{"remark":"\uZZZZ"}`, `{"remark":"\q"}`,
		`{"code":1,"x":` + strings.Repeat("{", 40) + `"a":1` + strings.Repeat("}:1", 39) + `}}`,
		strings.Repeat(`{"x":`, 100000), `{"x":` + strings.Repeat("[", 100000),
	} {
		var c Command
		if err := DecodeHeader(JSON, header, &c); err == nil {
			t.Errorf("%.40q: accepted as %+v", header, c)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%.40q: an error of %d bytes", header, len(err.Error()))
		}
	}
}

// FuzzScanJSON: what the quick scanner takes, the general reader takes with the same result.
func FuzzScanJSON(f *testing.F) {
	for _, g := range goldenHeaders(f) {
		if g.Type == "JSON" {
			f.Add(g.Header)
		}
	}
	f.Add(`{"code":-1,"extFields":{"a":"\u0001\/\b","a":"2"},"flag":0}`)
	f.Add(`{"opaque":2147483648}`)
	f.Fuzz(func(t *testing.T, header string) {
		quick, general := Command{}, Command{}
		if !scanJSON(header, &quick) {
			return
		}
		if err := decodeAnyJSON(header, &general); err != nil {
			t.Fatalf("only the quick scanner takes %q: %v", header, err)
		}
		if len(quick.Fields) == 0 {
			quick.Fields = nil
		}
		if !reflect.DeepEqual(quick, general) {
			t.Fatalf("%q: quick %+v, general %+v", header, quick, general)
		}
	})
}
