package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"
)

// The bytes are those that the official 4.9.8 classes wrote (the protocol's description has them as examples).
func TestFramesOfTheOfficialClient(t *testing.T) {
	for _, c := range []struct{ name, hex, topic string }{
		{"JSON", "00000084" + "00000080" + hex.EncodeToString([]byte(`{"code":105,"extFields":{"topic":"TopicA"},"flag":0,`+
			`"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":409}`)), "TopicA"},
		{"binary", "0000002a010000260069000199000000010000000000000000000000110005746f70696300000006546f70696341", "TopicA"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if f.Code != 105 || f.Opaque != 1 || f.Language != "JAVA" || f.Version != 409 || f.Ext["topic"] != c.topic || len(f.Ext) != 1 {
			t.Errorf("%s: %+v", c.name, f)
		}
		if again, err := Read(bytes.NewReader(f.Encode())); err != nil || !reflect.DeepEqual(again.Ext, f.Ext) || again.Code != f.Code {
			t.Errorf("%s, encoded again: %+v, %v", c.name, again, err)
		}
		if c.name == "binary" && !bytes.Equal(f.Encode(), b) {
			t.Errorf("binary encoded as %x", f.Encode())
		}
	}
}

func TestParseJSONTakesFastjsonKeys(t *testing.T) {
	got, err := ParseJSON([]byte(`{"a":{0:"x",{"q":1}:[1, true,null]},"b":"\u0041"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"0": "x", `{"q":1}`: []any{1.0, true, nil}}, "b": "A"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	for _, bad := range []string{"", "{", `{"a"}`, `{"a":}`, `{0:1}x`, `["a`, `{0:nonsense}`} {
		if v, err := ParseJSON([]byte(bad)); err == nil {
			t.Errorf("%q gave %#v", bad, v)
		}
	}
}

// A record written by a live 4.9.8 broker (the protocol's description has its bytes, without the properties).
func TestMessagesOfTheOfficialBroker(t *testing.T) {
	b, err := hex.DecodeString("00000066daa320a73610a686000000010000000000000000000000000000000000000000" +
		"00000000000001a22888c3337f0000010000be12000001a22888c35a7f00000100009a57000000000000000000000000" +
		"0000000568656c6c6f06546f706963410000")
	if err != nil {
		t.Fatal(err)
	}
	ms, err := Messages(append(b, b...))
	if err != nil || len(ms) != 2 {
		t.Fatalf("%d messages, %v", len(ms), err)
	}
	m := ms[1]
	if string(m.Body) != "hello" || m.Topic != "TopicA" || m.QueueId != 1 || m.StoreTimestamp != 0x1a22888c35a {
		t.Errorf("%+v", m)
	}
	if m.MsgId() != "7F00000100009A570000000000000000" {
		t.Errorf("id %s", m.MsgId())
	}
	if _, err := Messages(b[:100]); err == nil {
		t.Error("a short record was taken")
	}
}
