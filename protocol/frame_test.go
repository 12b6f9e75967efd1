package protocol

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Frames as the official classes encode them.
const (
	frame105JSON   = "0000008400000080" // then the header
	header105JSON  = `{"code":105,"extFields":{"topic":"TopicA"},"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":409}`
	frame40JSON    = "0000006400000060"
	header40JSON   = `{"code":40,"flag":2,"language":"JAVA","opaque":3,"serializeTypeCurrentRPC":"JSON","version":409}`
	frame105Binary = "0000002a01000026006900019900000001000000000000000000000011" + "0005746f70696300000006546f70696341"
)

type routeHeader struct{ Topic string }

func unhex(tb testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestAppendFrame(t *testing.T) {
	route := func(s SerializeType) *Command {
		c := NewRequest(GetRouteInfoByTopic, &routeHeader{"TopicA"}, nil)
		c.Opaque, c.Serialize = 1, s
		return c
	}
	notify := NewRequest(NotifyConsumerIdsChanged, nil, nil)
	notify.Flag, notify.Opaque = FlagOneway, 3
	for name, tt := range map[string]struct {
		c    *Command
		want []byte
	}{
		"105 JSON":   {route(JSON), append(unhex(t, frame105JSON), header105JSON...)},
		"40 JSON":    {notify, append(unhex(t, frame40JSON), header40JSON...)},
		"105 binary": {route(Binary), unhex(t, frame105Binary)},
	} {
		if got := AppendFrame(nil, tt.c); string(got) != string(tt.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, tt.want)
		}
	}
}

func TestAppendFrameBodyAndEmptyHeader(t *testing.T) {
	c := NewResponse(Success, "", &struct{}{})
	c.Opaque, c.Body = 35, []byte("body")
	want := `{"code":0,"extFields":{},"flag":1,"language":"JAVA","opaque":35,"serializeTypeCurrentRPC":"JSON","version":409}`
	got := AppendFrame([]byte("before"), c)
	if string(got[6+8:]) != want+"body" || got[6+3] != byte(4+len(want)+4) || got[6+7] != byte(len(want)) {
		t.Errorf("got %q", got)
	}
}

func TestAppendHeaderValues(t *testing.T) {
	type response struct {
		MsgId         string
		QueueId       int32
		QueueOffset   int64
		Changed       bool
		Times         Optional[int32]
		Max           Optional[int64]
		Unit          Optional[bool]
		TransactionId string
	}
	c := NewResponse(SystemError, "no \"quotes\"\n", &response{MsgId: "a\u0001b", QueueId: -1, QueueOffset: 1 << 40, Max: Some[int64](0), Unit: Some(true)})
	c.SetField("MSG_REGION", "DefaultRegion")
	want := `{"code":1,"extFields":{"msgId":"a\u0001b","queueId":"-1","queueOffset":"1099511627776","changed":"false","max":"0","unit":"true","MSG_REGION":"DefaultRegion"},` +
		`"flag":1,"language":"JAVA","opaque":0,"remark":"no \"quotes\"\n","serializeTypeCurrentRPC":"JSON","version":409}`
	if got := string(AppendHead(nil, c)[8:]); got != want {
		t.Errorf("JSON\n%s, want\n%s", got, want)
	}
	c.Serialize = Binary
	var back Command
	if err := DecodeHeader(Binary, string(AppendHead(nil, c)[8:]), &back); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"msgId": "a\u0001b", "queueId": "-1", "queueOffset": "1099511627776", "changed": "false", "max": "0", "unit": "true", "MSG_REGION": "DefaultRegion"} {
		if got, _ := back.Field(key); got != want {
			t.Errorf("binary %s = %q, want %q", key, got, want)
		}
	}
	if len(back.Fields) != 7 || back.Remark != c.Remark {
		t.Errorf("binary decoded %+v", back)
	}
}

// TestBinaryTruncates shows what Java's cast to 16 bits makes of the codes of 5.x: 200050 = 3*65536 + 3442.
func TestBinaryTruncates(t *testing.T) {
	c := &Command{Code: 200050, Version: 479, Serialize: Binary}
	got, err := DecodeFrame(AppendFrame(nil, c))
	if err != nil || got.Code != 3442 || got.Version != 479 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestLongRemark: a remark is cut between two characters, in both forms.
func TestLongRemark(t *testing.T) {
	for _, tt := range []struct{ remark, want string }{
		{strings.Repeat("x", MaxRemark), strings.Repeat("x", MaxRemark)},
		{strings.Repeat("x", MaxRemark+1), strings.Repeat("x", MaxRemark)},
		{strings.Repeat("\x01", 4<<20), strings.Repeat("\x01", MaxRemark)},
		{"x" + strings.Repeat("中", MaxRemark), "x" + strings.Repeat("中", (MaxRemark-1)/3)},
		{strings.Repeat("x", MaxRemark-1) + "😀", strings.Repeat("x", MaxRemark-1)},
	} {
		for _, form := range []SerializeType{JSON, Binary} {
			c := NewResponse(SystemError, tt.remark, nil)
			c.Serialize = form
			got, err := DecodeFrame(AppendFrame(nil, c))
			if err != nil || got.Remark != tt.want {
				t.Errorf("form %d, %d bytes: %d bytes, %v", form, len(tt.remark), len(got.Remark), err)
			}
			if c.Remark != tt.remark {
				t.Error("the command itself was changed")
			}
		}
	}
}

func TestDecodeFrameRefuses(t *testing.T) {
	header := []byte(header40JSON)
	for name, b := range map[string][]byte{
		"empty":              {},
		"L = 0":              unhex(t, "0000000000000000"),
		"shorter than L":     append(unhex(t, "0000006500000060"), header...),
		"longer than L":      append(append(unhex(t, frame40JSON), header...), 0),
		"H > L-4":            append(unhex(t, "0000006400000061"), header...),
		"type 2":             append(unhex(t, "0000006402000060"), header...),
		"no header":          unhex(t, "0000000400000000"),
		"no JSON":            append(unhex(t, "0000000800000004"), "{\"a}"...),
		"JSON list":          append(unhex(t, "0000000600000002"), "[]"...),
		"JSON null":          append(unhex(t, "0000000800000004"), "null"...),
		"binary, too short":  unhex(t, "0000001801000014"+"0069000199000000010000000000000000000000"),
		"remark beyond":      unhex(t, "0000001901000015"+"006900019900000001000000000000000100000000"),
		"remark < 0":         unhex(t, "0000001901000015"+"0069000199000000010000000000ffffff00000000"),
		"extFields beyond":   unhex(t, "0000001901000015"+"006900019900000001000000000000000000000001"),
		"key beyond":         unhex(t, "0000001d01000019"+"006900019900000001000000000000000000000004"+"00030000"),
		"value length < 0":   unhex(t, "0000002001000024"[:8]+"0100001c"+"006900019900000001000000000000000000000007"+"000161ffffffff"),
		"value length short": unhex(t, "0000001e0100001a"+"006900019900000001000000000000000000000005"+"0001610000"),
	} {
		if c, err := DecodeFrame(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, c)
		}
	}
}

func TestDecodeFrameBody(t *testing.T) {
	c, err := DecodeFrame(append(unhex(t, "0000006600000060"), header40JSON+"xy"...))
	if err != nil || string(c.Body) != "xy" || !c.IsOneway() || c.IsResponse() {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = DecodeFrame(append(unhex(t, frame40JSON), header40JSON...))
	if err != nil || c.Body != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

// FuzzDecodeHeader: whatever comes, both forms end in a command or an error, and a command that was
// decoded is decoded to the same again from its own encoding.
func FuzzDecodeHeader(f *testing.F) {
	f.Add(byte(0), []byte(header105JSON))
	f.Add(byte(0), []byte(`{"code":1,"extFields":{"a":1,"b":true,"c":null,"d":"\u0001\ud83d\ude00"}}`))
	f.Add(byte(1), unhex(f, frame105Binary)[8:])
	for _, g := range goldenHeaders(f) {
		form := JSON
		if g.Type != "JSON" {
			form = Binary
		}
		f.Add(byte(form), []byte(g.Header))
	}
	f.Fuzz(func(t *testing.T, form byte, header []byte) {
		var c Command
		if DecodeHeader(SerializeType(form&1), string(header), &c) != nil {
			return
		}
		for _, f := range c.Fields {
			if len(f.Key) > 1<<15-1 || f.Key == "" || f.Value == "" {
				return // has no binary form
			}
		}
		again, err := DecodeFrame(AppendFrame(nil, &c))
		if err != nil {
			t.Fatalf("own encoding of %+v: %v", c, err)
		}
		valid := strings.ToValidUTF8(string(header), "") == string(header)
		if again.Code != c.Code || again.Flag != c.Flag || again.Opaque != c.Opaque || len(again.Fields) != len(c.Fields) || valid && again.Remark != c.Remark {
			t.Fatalf("decoded %+v, again %+v", c, again)
		}
	})
}
