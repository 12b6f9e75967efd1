package message

import (
	"net/netip"
	"strings"
	"testing"
)

// typical is a message of 128 bytes as the Java client sends it.
var typical = Message{
	Topic: "TopicA", QueueId: 1, BornTimestamp: 1795978468295, BornHost: netip.MustParseAddrPort("127.0.0.1:48658"),
	StoreTimestamp: 1795978468297, StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Body: make([]byte, 128),
	Properties: "KEYS\x01k1 k2\x02UNIQ_KEY\x01FD0000000000000000000000000000026C654E0E2F2A9440B3D800FF\x02CLUSTER\x01DefaultCluster\x02TAGS\x01TagA",
}

func BenchmarkAppendRecord(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRecord(buf[:0], &typical)
	}
}

func BenchmarkCheck(b *testing.B) {
	record := AppendRecord(nil, &typical)
	for b.Loop() {
		if _, err := Check(record, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProperty(b *testing.B) {
	for b.Loop() {
		if _, ok := Property(typical.Properties, PropertyTags); !ok {
			b.Fatal("no tag")
		}
	}
}

func BenchmarkTagsCode(b *testing.B) {
	for b.Loop() {
		TagsCode(typical.Properties)
	}
}

func BenchmarkAppendProperties(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendProperties(buf[:0], typical.Properties, PropertyWaitStoreMsgOK, PropertyCluster)
		buf = AppendProperty(buf, PropertyCluster, "DefaultCluster")
	}
}

// The hot functions make no garbage.
func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 1024)
	record := Record(AppendRecord(nil, &typical))
	batch := AppendElement(nil, Element{Body: typical.Body, Properties: []byte(strings.Repeat("p", 90))})
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"AppendRecord", func() { buf = AppendRecord(buf[:0], &typical) }},
		{"Stamp", func() { record.Stamp(1, 2, 3) }},
		{"Check", func() { _, _ = Check(record, true) }},
		{"Check at the end", func() { _, _ = Check(record[:50], true) }},
		{"Property", func() { _, _ = Property(typical.Properties, PropertyTags) }},
		{"Record", func() {
			_, _ = record.Property(PropertyKeys)
			_, _, _, _ = record.Topic(), record.Body(), record.BornHost(), record.StoreHost()
		}},
		{"TagsCode", func() { TagsCode(typical.Properties) }},
		{"AppendProperties", func() {
			buf = AppendProperties(buf[:0], typical.Properties, PropertyWaitStoreMsgOK, PropertyCluster)
		}},
		{"AppendOffsetMsgId", func() { buf = AppendOffsetMsgId(buf[:0], typical.StoreHost, 1) }},
		{"EachElement", func() { _ = EachElement(batch, func(Element) error { return nil }) }},
	} {
		if n := testing.AllocsPerRun(100, c.f); n != 0 {
			t.Errorf("%s allocates %v times", c.name, n)
		}
	}
}
