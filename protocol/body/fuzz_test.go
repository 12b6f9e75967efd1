package body

import (
	"bytes"
	"compress/zlib"
	"maps"
	"slices"
	"testing"

	"rocketd/compat"
)

// later are the bodies of what 4.9.8 does not know, and of files.
var later = []func() any{
	func() any { return new(BatchAckMessageRequestBody) },
	func() any { return new(LmqConsumerOffsetSerializeWrapper) },
	func() any { return new(MessageRequestModes) },
	func() any { return new(QueryAssignmentRequestBody) },
	func() any { return new(QueryAssignmentResponseBody) },
	func() any { return new(SetMessageRequestModeRequestBody) },
}

// FuzzBodies reads whatever text as every body: it ends in a struct or in an error, and what was read and written is read
// and written the same again.
func FuzzBodies(f *testing.F) {
	for _, file := range []string{"testdata/examples.txt", "testdata/recorded.txt"} {
		for _, s := range samples(f, file) {
			f.Add([]byte(s.text))
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", `{"a":NaN,'b':1L}`, `{"offsetTable":{{"topic":"T","brokerName":"b","queueId":1}:{"brokerOffset":1}}}`,
		`{"acks":[{"c":"G","rq":1,"b":"AQ=="}]}`} {
		f.Add([]byte(text))
	}
	makers := slices.Collect(maps.Values(types))
	makers = append(makers, later...)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		for _, make := range makers {
			first := make()
			if compat.Unmarshal(text, first) != nil {
				continue
			}
			if _, ok := first.(*BatchAckMessageRequestBody); ok || len(bytes.TrimSpace(text)) == 0 {
				continue // only read; nothing, which leaves a body without its defaults
			}
			once, err := compat.Marshal(first)
			if err != nil {
				t.Fatalf("%T of %q can't be written: %v", first, text, err)
			}
			second := make()
			if err := compat.Unmarshal(once, second); err != nil {
				t.Fatalf("%T of %q was written as %q, and can't be read again: %v", first, text, once, err)
			}
			if twice, err := compat.Marshal(second); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%T of %q: first %q, then %q, %v", first, text, once, twice, err)
			}
		}
	})
}

// FuzzRegister reads whatever a registration brings, as JSON, as the compressed form, and as what the compressed form
// inflates to: it ends in a body or in an error, and takes no more memory than it may.
func FuzzRegister(f *testing.F) {
	for _, s := range samples(f, "testdata/recorded.txt") {
		if s.name == "RegisterBrokerBody" {
			f.Add([]byte(s.text), byte(0))
		}
	}
	f.Add([]byte("\x00\x00\x00\x02{}\x00\x00\x00\x01\x00\x00\x00\x12T 8 8 6 SINGLE_TAG\x00\x00\x00\x02[]"), byte(2))
	f.Add([]byte("\x00\x00\x00\x02{}\x7f\xff\xff\xff"), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		if kind%3 == 2 {
			var b bytes.Buffer
			z := zlib.NewWriter(&b)
			if _, err := z.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		b, err := DecodeRegister(data, kind%3 > 0)
		if err != nil {
			return
		}
		if len(b.TopicConfigSerializeWrapper.TopicConfigTable) > len(data)*1100 {
			t.Fatalf("%d topics of %d bytes", len(b.TopicConfigSerializeWrapper.TopicConfigTable), len(data))
		}
	})
}
