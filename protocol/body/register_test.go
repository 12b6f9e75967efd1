package body

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// inflatedExample is what the official class deflates for one topic.
const inflatedExample = "000000277b22636f756e746572223a332c2274696d657374616d70223a313730303030303030303030307d" +
	"0000000100000017546f706963412038203820362053494e474c455f544147" + "000000025b5d"

var registration = RegisterBrokerBody{
	FilterServerList: []string{},
	TopicConfigSerializeWrapper: TopicConfigSerializeWrapper{
		DataVersion:      DataVersion{Counter: 3, Timestamp: 1700000000000},
		TopicConfigTable: map[string]*TopicConfig{"TopicA": {TopicName: "TopicA", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
	},
}

func deflate(t *testing.T, raw []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEncodeRegisterCompressed(t *testing.T) {
	got, err := EncodeRegister(&registration, true)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil || hex.EncodeToString(raw) != inflatedExample {
		t.Errorf("inflated %x, %v; want %s", raw, err, inflatedExample)
	}
	back, err := DecodeRegister(got, true)
	if err != nil || !reflect.DeepEqual(*back, registration) {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

func TestDecodeRegister(t *testing.T) {
	raw, _ := hex.DecodeString(inflatedExample)
	back, err := DecodeRegister(deflate(t, raw), true)
	if err != nil || !reflect.DeepEqual(*back, registration) {
		t.Errorf("decoded %+v, %v", back, err)
	}
	plain, err := EncodeRegister(&registration, false)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = DecodeRegister(plain, false); err != nil || !reflect.DeepEqual(*back, registration) {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

func TestDecodeRegisterRefuses(t *testing.T) {
	raw, _ := hex.DecodeString(inflatedExample)
	edit := func(from, to string) []byte {
		return deflate(t, bytes.Replace(raw, []byte(from), []byte(to), 1))
	}
	for name, data := range map[string][]byte{
		"nothing":         nil,
		"not zlib":        []byte("{}"),
		"cut":             deflate(t, raw[:len(raw)-3]),
		"half a stream":   deflate(t, raw)[:20],
		"four words":      edit("TopicA 8 8 6 SINGLE_TAG", "TopicA 8 8 6_SINGLE_TAG"),
		"no number":       edit("TopicA 8 8 6 SINGLE_TAG", "TopicA 8 x 6 SINGLE_TAG"),
		"text beyond":     edit("\x00\x00\x00\x17", "\x7f\xff\xff\xff"),
		"negative size":   edit("\x00\x00\x00\x17", "\xff\xff\xff\xff"),
		"too many topics": edit("\x00\x00\x00\x01", "\x7f\xff\xff\xff"),
		"bad version":     edit(`{"counter"`, `{"counter;`),
		"bomb":            deflate(t, []byte("\x7f\xff\xff\xff"+strings.Repeat(" ", maxInflated))),
	} {
		if b, err := DecodeRegister(data, true); err == nil {
			t.Errorf("%s: accepted as %+v", name, b)
		}
	}
	for _, text := range []string{`[]`, `{`, `{"topicConfigSerializeWrapper":{"topicConfigTable":[]}}`} {
		if b, err := DecodeRegister([]byte(text), false); err == nil {
			t.Errorf("%s: accepted as %+v", text, b)
		}
	}
}

// TestDecodeRegisterIsBounded: a small frame may inflate a thousandfold, but what is made of that may not grow again.
func TestDecodeRegisterIsBounded(t *testing.T) {
	version := appendSized(nil, []byte(`{"counter":1,"timestamp":1}`))
	with := func(topics uint32, rest ...[]byte) []byte {
		return deflate(t, append(binary.BigEndian.AppendUint32(bytes.Clone(version), topics), bytes.Join(rest, nil)...))
	}
	servers := appendSized(nil, []byte("[]"))
	topic := func(name string) []byte { return appendSized(nil, []byte(name+" 1 1 6 SINGLE_TAG")) }
	for name, data := range map[string][]byte{
		"blanks":            with(1, appendSized(nil, bytes.Repeat([]byte(" "), 32<<20)), servers),
		"blanks within 1 K": with(1, appendSized(nil, bytes.Repeat([]byte(" "), 1<<10)), servers),
		"long name":         with(1, topic(strings.Repeat("x", 1<<10)), servers),
		"long version":      deflate(t, appendSized(nil, bytes.Repeat([]byte(" "), 1<<20))),
		"long servers":      with(1, topic("T"), appendSized(nil, bytes.Repeat([]byte("["), 1<<20))),
		"many topics":       with(maxTopics+1, bytes.Repeat(topic("T"), maxTopics+1), servers),
		"topics not there":  with(maxTopics, topic("T")),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := DecodeRegister(data, true)
		runtime.ReadMemStats(&after)
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %d topics, an error of %d bytes", name, len(b.TopicConfigSerializeWrapper.TopicConfigTable), len(fmt.Sprint(err)))
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 2<<20 {
			t.Errorf("%s: took %d bytes", name, taken)
		}
	}
	good := with(2, topic(strings.Repeat("x", 127)), topic("T"), servers)
	if b, err := DecodeRegister(good, true); err != nil || len(b.TopicConfigSerializeWrapper.TopicConfigTable) != 2 {
		t.Errorf("two topics: %+v, %v", b, err)
	}
}
