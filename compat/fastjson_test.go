package compat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type queue struct {
	BrokerName string
	QueueId    int32
	Topic      string
}

type everything struct {
	Zeta   string
	Alpha  *int64
	None   string `json:",omitempty"`
	Other  string `json:"renamed"`
	Hidden string `json:"-"`
	Empty  []string
	Nil    []string `json:",omitempty"`
	Table  map[string]int32
	Lost   map[string]int32 `json:",omitempty"`
	Ids    map[int64]string
	Queues map[queue]int64
	Inner  queue
	Any    any
	Flag   bool
	Rate   float64
	embedded
}

type embedded struct{ Deep []queue }

func TestMarshal(t *testing.T) {
	n := int64(5)
	full := everything{
		Zeta: "<é/\u0001\">", Alpha: &n, Other: "o", Hidden: "h", Table: map[string]int32{"b": 2, "a": 1}, Ids: map[int64]string{10: "x", 9: "y", -1: "z"},
		Queues: map[queue]int64{{"b", 1, "T"}: 6}, Inner: queue{"b", 0, "T"}, Any: []any{1, "x", nil}, Flag: true, Rate: 1.5, embedded: embedded{Deep: []queue{{"c", 2, "U"}}},
	}
	for name, tt := range map[string]struct {
		marshal func(any) ([]byte, error)
		v       any
		want    string
	}{
		"compact": {Marshal, full, `{"alpha":5,"any":[1,"x",null],"deep":[{"brokerName":"c","queueId":2,"topic":"U"}],"empty":[],"flag":true,"ids":{-1:"z",9:"y",10:"x"},` +
			`"inner":{"brokerName":"b","queueId":0,"topic":"T"},"queues":{{"brokerName":"b","queueId":1,"topic":"T"}:6},"rate":1.5,"renamed":"o","table":{"a":1,"b":2},"zeta":"<é/\u0001\">"}`},
		"standard": {MarshalStandard, full, `{"alpha":5,"any":[1,"x",null],"deep":[{"brokerName":"c","queueId":2,"topic":"U"}],"empty":[],"flag":true,"ids":{"-1":"z","9":"y","10":"x"},` +
			`"inner":{"brokerName":"b","queueId":0,"topic":"T"},"queues":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":6},"rate":1.5,"renamed":"o","table":{"a":1,"b":2},"zeta":"<\u00E9\/\u0001\">"}`},
		"zero":    {Marshal, &everything{}, `{"deep":[],"empty":[],"flag":false,"ids":{},"inner":{"brokerName":"","queueId":0,"topic":""},"queues":{},"rate":0.0,"renamed":"","table":{},"zeta":""}`},
		"nil":     {Marshal, (*everything)(nil), `null`},
		"nothing": {MarshalPretty, struct{}{}, `{}`},
		"pretty": {MarshalPretty, struct {
			L []any
			M map[int32]int64
			Q map[queue]int32
		}{[]any{[]int{1, 2}, map[string]int32{"k": 1}, map[string]int32{}, []int{}}, map[int32]int64{0: 10, 1: 20}, map[queue]int32{{"b", 0, "T"}: 5}},
			"{\n\t\"l\":[\n\t\t[\n\t\t\t1,\n\t\t\t2\n\t\t],\n\t\t{\n\t\t\t\"k\":1\n\t\t},\n\t\t{},\n\t\t[]\n\t],\n\t\"m\":{0:10,1:20\n\t},\n\t\"q\":{{\n\t\t\t\"brokerName\":\"b\",\n\t\t\t\"queueId\":0,\n\t\t\t\"topic\":\"T\"\n\t\t}:5\n\t}\n}"},
	} {
		got, err := tt.marshal(tt.v)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, got, tt.want)
		}
	}
	for _, v := range []any{make(chan int), map[bool]int{true: 1}, struct{ F func() }{func() {}}} {
		if got, err := Marshal(v); err == nil {
			t.Errorf("%T: wrote %s", v, got)
		}
	}
}

// TestAppendString: the escapes of each form, one by one, are those of fastjson 1.2.69.
func TestAppendString(t *testing.T) {
	for r := rune(0); r < 0x3000; r++ {
		if r == 0xd800 {
			break
		}
		raw := "a" + string(r) + "b"
		compact, browser := raw, raw
		unit := fmt.Sprintf(`a\u%04Xb`, r)
		switch {
		case strings.ContainsRune("\b\t\n\f\r", r):
			compact = "a\\" + string("btn?fr"[strings.IndexRune("\b\t\n?\f\r", r)]) + "b"
			browser = compact
		case r == '"' || r == '\\':
			compact = `a\` + string(r) + "b"
			browser = compact
		case r == '/':
			browser = `a\/b`
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
			compact, browser = unit, unit
		case r >= 0x80:
			browser = unit
		}
		if got := string(AppendString(nil, raw)); got != `"`+compact+`"` {
			t.Errorf("compact %U: %s", r, got)
		}
		if got := string(appendString(nil, raw, true)); got != `"`+browser+`"` {
			t.Errorf("browser %U: %s", r, got)
		}
	}
	if got := string(AppendString(nil, "\xff😀\xe4\xb8")); got != "\"\ufffd😀\ufffd\ufffd\"" {
		t.Errorf("invalid UTF-8: %q", got)
	}
	if got := string(appendString(nil, "😀\xff", true)); got != `"\uD83D\uDE00\uFFFD"` {
		t.Errorf("browser, beyond the plane: %s", got)
	}
}

func TestUnmarshal(t *testing.T) {
	type target struct {
		N     int32
		L     int64
		B     bool
		F     float64
		S     string
		Ids   map[int64]string
		Q     map[queue]int64
		List  []int32
		Inner *queue
	}
	for name, tt := range map[string]struct {
		text string
		want target
	}{
		"numbers as text":   {`{"n":"12","l":"-9223372036854775808","f":"1.5"}`, target{N: 12, L: -9223372036854775808, F: 1.5}},
		"text as numbers":   {`{"s":12,"b":1}`, target{S: "12", B: true}},
		"boolean as text":   {`{"b":"TRUE","s":true,"n":true}`, target{B: true, S: "true", N: 1}},
		"nulls":             {`{"n":null,"l":null,"b":null,"f":null,"s":null,"ids":null,"list":null,"inner":null}`, target{}},
		"empty texts":       {`{"n":"","f":"","b":"","l":"null"}`, target{}},
		"decimals cut":      {`{"n":1.9,"l":-2.5e3}`, target{N: 1, L: -2500}},
		"integer as double": {`{"f":3}`, target{F: 3}},
		"NaN":               {`{"f":NaN}`, target{}},
		"other case":        {`{"N":1,"INNER":{"QUEUEID":2}}`, target{N: 1, Inner: &queue{QueueId: 2}}},
		"keys":              {`{"ids":{0:"a","1":"b"},"q":{{"queueId":1,"topic":"T"}:5,"{\"queueId\":2,'topic':\"T\"}":6}}`, target{Ids: map[int64]string{0: "a", 1: "b"}, Q: map[queue]int64{{"", 1, "T"}: 5, {"", 2, "T"}: 6}}},
		"unknown":           {`{"x":{"y":[{}]},"n":1,"topicQueueMappingByBroker":{}}`, target{N: 1}},
		"nothing":           {" \n", target{}},
		"null":              {`null`, target{}},
	} {
		var got target
		if err := Unmarshal([]byte(tt.text), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	for _, text := range []string{
		`{"n":2147483648}`, `{"n":"x"}`, `{"n":[]}`, `{"l":9223372036854775808}`, `{"l":1e30}`, `{"b":"maybe"}`, `{"f":"x"}`, `{"ids":[]}`, `{"ids":{"x":1}}`,
		`{"q":{"x":1}}`, `{"list":{}}`, `{"inner":[]}`, `[]`, `"x"`, `{`, `{"n":1}}`, strings.Repeat("[", 100), strings.Repeat(`{"a":`, 1000000), "{" + strings.Repeat("{", 1000),
	} {
		var got target
		if err := Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%.40s: accepted as %+v", text, got)
		}
	}
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	if _, err := Standardize([]byte(deep)); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
}

func TestReadEnum(t *testing.T) {
	for text, want := range map[string]string{`"B"`: "B", `0`: "A", `1`: "B", `"1"`: "B", `2`: "", `-1`: "", `"C"`: "", `null`: "", `{}`: ""} {
		if got := ReadEnum([]byte(text), "A", "B"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// bigTable has the shape of a registration of ten thousand topics.
func bigTable() map[string]queue {
	table := make(map[string]queue)
	for i := range 10000 {
		table[fmt.Sprintf("topic-%05d", i)] = queue{"broker-a", int32(i), "T"}
	}
	return table
}

func BenchmarkMarshal(b *testing.B) {
	table := bigTable()
	for b.Loop() {
		if _, err := Marshal(table); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	text, err := json.Marshal(bigTable())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var table map[string]queue
		if err := Unmarshal(text, &table); err != nil {
			b.Fatal(err)
		}
	}
}
