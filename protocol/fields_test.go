package protocol

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

// sendHeader has the shape of the largest hot header, both spellings.
type sendHeader struct {
	ProducerGroup         string          `rmq:",a"`
	Topic                 string          `rmq:",b"`
	DefaultTopic          string          `rmq:",c"`
	DefaultTopicQueueNums int32           `rmq:",d"`
	QueueId               int32           `rmq:",e,required"`
	SysFlag               int32           `rmq:",f,required"`
	BornTimestamp         int64           `rmq:",g,required"`
	Flag                  int32           `rmq:",h,required"`
	Properties            string          `rmq:",i"`
	ReconsumeTimes        Optional[int32] `rmq:",j"`
	UnitMode              bool            `rmq:",k"`
	Batch                 bool            `rmq:",m"`
	MaxReconsumeTimes     Optional[int32] `rmq:",l"`
	BrokerName            string          `rmq:"bname,n"`
}

// jsonSend is the header of a SEND_MESSAGE_V2 as the Java client 4.9.8 sent it, with both optional fields.
const jsonSend = `{"code":310,"extFields":{"a":"G-J4-sync-p","b":"J4-sync","c":"TBW102","d":"4","e":"1","f":"0","g":"1795977989088","h":"0",` +
	`"i":"KEYS\u0001sync-key-0\u0002UNIQ_KEY\u0001FD00000000000000000000000000000229044E0E2F2A943963DF0000\u0002WAIT\u0001true\u0002TAGS\u0001TagA",` +
	`"j":"0","k":"false","l":"16","m":"false","n":"oracle-a"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":409}`

var boundSend = sendHeader{
	ProducerGroup: "G-J4-sync-p", Topic: "J4-sync", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueId: 1, BornTimestamp: 1795977989088,
	Properties:     "KEYS\x01sync-key-0\x02UNIQ_KEY\x01FD00000000000000000000000000000229044E0E2F2A943963DF0000\x02WAIT\x01true\x02TAGS\x01TagA",
	ReconsumeTimes: Some[int32](0), MaxReconsumeTimes: Some[int32](16), BrokerName: "oracle-a",
}

func TestBind(t *testing.T) {
	var c Command
	if err := DecodeHeader(JSON, jsonSend, &c); err != nil {
		t.Fatal(err)
	}
	var got sendHeader
	if err := PlanFor(&got).Bind(&c, &got); err != nil || got != boundSend {
		t.Errorf("short spelling: %+v, %v", got, err)
	}
	c = Command{Header: &boundSend, Serialize: Binary}
	back, err := DecodeFrame(AppendFrame(nil, &c))
	if err != nil {
		t.Fatal(err)
	}
	got = sendHeader{}
	if err := PlanFor(&got).Bind(back, &got); err != nil || got != boundSend {
		t.Errorf("long spelling, binary: %+v, %v", got, err)
	}
}

type numbersHeader struct {
	I int32
	L int64
	B bool
	O Optional[bool]
	N Optional[int32] `rmq:"num"`
	E int32           `rmq:"exact,strict"`
}

type requiredHeader struct {
	numbers
	Topic string `rmq:",required"`
	Id    int32  `rmq:"id,x,required"`
}
type numbers struct{ Max int64 }

func TestBindValues(t *testing.T) {
	for name, tt := range map[string]struct {
		fields []Field
		want   numbersHeader
		err    string
	}{
		"none":            {nil, numbersHeader{}, ""},
		"signs":           {[]Field{{"i", "+5"}, {"l", "-6"}}, numbersHeader{I: 5, L: -6}, ""},
		"extremes":        {[]Field{{"i", "-2147483648"}, {"l", "9223372036854775807"}}, numbersHeader{I: math.MinInt32, L: math.MaxInt64}, ""},
		"least long":      {[]Field{{"l", "-9223372036854775808"}}, numbersHeader{L: math.MinInt64}, ""},
		"leading zeros":   {[]Field{{"i", "00012"}}, numbersHeader{I: 12}, ""},
		"true":            {[]Field{{"b", "TrUe"}, {"o", "true"}}, numbersHeader{B: true, O: Some(true)}, ""},
		"all else false":  {[]Field{{"b", "1"}, {"o", "yes"}}, numbersHeader{O: Some(false)}, ""},
		"optional zero":   {[]Field{{"num", "0"}}, numbersHeader{N: Some[int32](0)}, ""},
		"empty is absent": {[]Field{{"num", ""}, {"b", ""}}, numbersHeader{}, ""},
		"empty letter":    {[]Field{{"i", ""}}, numbersHeader{}, "header field i:  is not an int"},
		"empty strict":    {[]Field{{"exact", ""}}, numbersHeader{}, "header field exact:  is not an int"},
		"last counts":     {[]Field{{"i", "1"}, {"i", "2"}}, numbersHeader{I: 2}, ""},
		"too large":       {[]Field{{"i", "2147483648"}}, numbersHeader{}, "header field i: 2147483648 is not an int"},
		"too small":       {[]Field{{"l", "-9223372036854775809"}}, numbersHeader{}, "header field l: -9223372036854775809 is not a long"},
		"huge":            {[]Field{{"l", "99999999999999999999999999"}}, numbersHeader{}, "header field l: 99999999999999999999999999 is not a long"},
		"space":           {[]Field{{"i", " 1"}}, numbersHeader{}, "header field i:  1 is not an int"},
		"sign alone":      {[]Field{{"i", "-"}}, numbersHeader{}, "header field i: - is not an int"},
		"long key":        {[]Field{{"num", "x!"}, {"l", "4"}}, numbersHeader{L: 4}, ""},
		"strict":          {[]Field{{"exact", "x!"}}, numbersHeader{}, "header field exact: x! is not an int"},
		"hex":             {[]Field{{"i", "0x1"}}, numbersHeader{}, "header field i: 0x1 is not an int"},
		"decimal":         {[]Field{{"i", "1.0"}}, numbersHeader{}, "header field i: 1.0 is not an int"},
	} {
		var got numbersHeader
		err := PlanFor(&got).Bind(&Command{Fields: tt.fields}, &got)
		if tt.err == "" && (err != nil || got != tt.want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tt.want)
		}
		var fe *FieldError
		if tt.err != "" && (!errors.As(err, &fe) || err.Error() != tt.err) {
			t.Errorf("%s: error %v, want %s", name, err, tt.err)
		}
	}
}

func TestBindRequired(t *testing.T) {
	for name, tt := range map[string]struct {
		fields []Field
		err    string
	}{
		"all":          {[]Field{{"topic", "T"}, {"id", "1"}, {"max", "3"}}, ""},
		"short":        {[]Field{{"topic", ""}, {"x", "1"}}, ""},
		"no topic":     {[]Field{{"id", "1"}}, "header field topic is missing"},
		"empty number": {[]Field{{"topic", "T"}, {"id", ""}}, "header field id is missing"},
	} {
		var got requiredHeader
		err := PlanFor(&got).Bind(&Command{Fields: tt.fields}, &got)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
	}
}

// TestBindMissing: a struct that wants to know itself what is missing.
func TestBindMissing(t *testing.T) {
	type asking struct {
		Topic   string
		QueueId int32 `rmq:",e,required"`
		Flag    int32 `rmq:",required"`
		Missing Missing
	}
	plan := PlanFor(new(asking))
	for name, tt := range map[string]struct {
		fields []Field
		want   asking
	}{
		"all":     {[]Field{{"e", "3"}, {"flag", "1"}}, asking{QueueId: 3, Flag: 1}},
		"one":     {[]Field{{"topic", "T"}, {"e", "3"}}, asking{Topic: "T", QueueId: 3, Missing: "flag"}},
		"nothing": {nil, asking{Missing: "queueId"}},
	} {
		var got asking
		if err := plan.Bind(&Command{Fields: tt.fields}, &got); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if keys := plan.Keys(); len(keys) != 3 {
		t.Errorf("keys %v", keys)
	}
	var bad asking
	if err := plan.Bind(&Command{Fields: []Field{{"queueId", "x!"}}}, &bad); err == nil {
		t.Error("a required number that does not parse is no error")
	}
}

// TestBindDuplicates: of a key that is there more than once the last counts, whatever the others were.
func TestBindDuplicates(t *testing.T) {
	type asking struct {
		Topic   string
		QueueId int32 `rmq:",required"`
		Offset  int64
		Flag    Optional[int32] `rmq:",f"`
	}
	field := func(pairs ...string) (fields []Field) {
		for i := 0; i < len(pairs); i += 2 {
			fields = append(fields, Field{pairs[i], pairs[i+1]})
		}
		return fields
	}
	for name, tt := range map[string]struct {
		fields []Field
		want   asking
		err    string
	}{
		"good after bad":         {field("queueId", "x", "queueId", "1"), asking{QueueId: 1}, ""},
		"good after empty":       {field("queueId", "", "queueId", "1"), asking{QueueId: 1}, ""},
		"good after good":        {field("queueId", "2", "topic", "A", "queueId", "1", "topic", "B"), asking{QueueId: 1, Topic: "B"}, ""},
		"bad after good":         {field("queueId", "1", "queueId", "x"), asking{}, "header field queueId: x is not an int"},
		"empty after good":       {field("queueId", "1", "queueId", ""), asking{}, "header field queueId is missing"},
		"optional bad at last":   {field("queueId", "1", "offset", "5", "offset", "x"), asking{QueueId: 1}, ""},
		"short form bad at last": {field("queueId", "1", "f", "5", "f", "x"), asking{}, "header field f: x is not an int"},
		"short form good":        {field("queueId", "1", "f", "x", "f", "5"), asking{QueueId: 1, Flag: Some[int32](5)}, ""},
		"the first of two bad":   {field("queueId", "1", "f", "x", "queueId", "y", "f", "z"), asking{}, "header field queueId: y is not an int"},
	} {
		var got asking
		err := PlanFor(&got).Bind(&Command{Fields: tt.fields}, &got)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: error %v, want %s", name, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestPlanForPanics(t *testing.T) {
	for name, v := range map[string]any{
		"nil": nil, "no pointer": numbersHeader{}, "a type": &struct{ F float32 }{}, "hidden": &struct{ f string }{},
		"twice": &struct {
			A string `rmq:"k"`
			B string `rmq:",k"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			PlanFor(v)
		}()
	}
	first, second := PlanFor(&numbersHeader{}), PlanFor(new(numbersHeader))
	if first != second {
		t.Error("a plan was built twice")
	}
}

// TestAllocations holds the budget of the hot path (style guide, section 4).
func TestAllocations(t *testing.T) {
	var c Command
	var dst sendHeader
	raw := []byte(jsonSend)
	binary := AppendHead(nil, &Command{Header: &boundSend, Serialize: Binary})[8:]
	plan := PlanFor(&dst)
	fields := make([]Field, 0, 16)
	out := make([]byte, 0, 1024)
	answer := NewResponse(Success, "", &boundSend)
	answer.SetField("MSG_REGION", "DefaultRegion")
	if err := DecodeHeader(JSON, string(raw), &c); err != nil { // for "bind", which may be the first
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		most float64
		f    func()
	}{
		"decode JSON":        {4, func() { c = Command{}; DecodeHeader(JSON, string(raw), &c) }},
		"decode JSON, reuse": {2, func() { c.Fields = fields; DecodeHeader(JSON, string(raw), &c) }},
		"decode binary":      {2, func() { c = Command{}; DecodeHeader(Binary, string(binary), &c) }},
		"bind":               {0, func() { plan.Bind(&c, &dst) }},
		"append JSON":        {0, func() { answer.Serialize = JSON; out = AppendHead(out[:0], answer) }},
		"append binary":      {0, func() { answer.Serialize = Binary; out = AppendHead(out[:0], answer) }},
	} {
		if got := testing.AllocsPerRun(200, tt.f); got > tt.most {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.most)
		}
	}
	if !reflect.DeepEqual(dst, boundSend) {
		t.Errorf("bound %+v", dst)
	}
}

func BenchmarkDecodeBind(b *testing.B) {
	for form, head := range map[string][]byte{"JSON": []byte(jsonSend), "Binary": AppendHead(nil, &Command{Header: &boundSend, Serialize: Binary})[8:]} {
		b.Run(form, func(b *testing.B) {
			var c Command
			var dst sendHeader
			s, plan := JSON, PlanFor(&dst)
			if form == "Binary" {
				s = Binary
			}
			b.ReportAllocs()
			for b.Loop() {
				if DecodeHeader(s, string(head), &c) != nil || plan.Bind(&c, &dst) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkAppendHead(b *testing.B) {
	type response struct {
		MsgId       string
		QueueId     int32
		QueueOffset int64
	}
	for form, s := range map[string]SerializeType{"JSON": JSON, "Binary": Binary} {
		b.Run(form, func(b *testing.B) {
			c := NewResponse(Success, "", &response{"7F000002000079230000000000000000", 1, 1 << 33})
			c.SetField("MSG_REGION", "DefaultRegion")
			c.SetField("TRACE_ON", "true")
			c.Serialize = s
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out = AppendHead(out[:0], c)
			}
		})
	}
}
