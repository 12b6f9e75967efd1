package message

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// officialHead is the start of a record written by a live 4.9.8 broker; its
// 113 bytes of properties are not in the spec, so officialRecord puts a text of that length there.
const officialHead = "000000d7daa320a73610a68600000001000000000000000000000000000000000000000000000000" +
	"000001a22888c3337f0000010000be12000001a22888c35a7f00000100009a57000000000000000000000000" +
	"0000000568656c6c6f06546f7069634100" + "71"

func officialRecord(t testing.TB) []byte {
	b, err := hex.DecodeString(officialHead)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, strings.Repeat("x", 111)+"\x01y"...)
}

func TestOfficialRecord(t *testing.T) {
	b := officialRecord(t)
	size, err := Check(b, true)
	if err != nil || size != 0xd7 {
		t.Fatalf("Check = %d, %v", size, err)
	}
	m, size, err := Parse(b)
	if err != nil || size != 0xd7 {
		t.Fatalf("Parse = %d, %v", size, err)
	}
	want := Message{
		Topic: "TopicA", QueueId: 1, BornTimestamp: 0x1a22888c333, BornHost: netip.MustParseAddrPort("127.0.0.1:48658"),
		StoreTimestamp: 0x1a22888c35a, StoreHost: netip.MustParseAddrPort("127.0.0.1:39511"), Body: []byte("hello"),
		Properties: strings.Repeat("x", 111) + "\x01y",
	}
	equalMessages(t, m, want)
	if got := Record(b).BodyCRC(); got != 0x3610a686 {
		t.Errorf("BodyCRC = %#x", got)
	}
	if got := AppendRecord(nil, &want); !bytes.Equal(got, b) {
		t.Errorf("AppendRecord = %x\nwant %x", got, b)
	}
	if got := m.OffsetMsgId(); got != "7F00000100009A570000000000000000" {
		t.Errorf("OffsetMsgId = %s", got)
	}
}

func equalMessages(t testing.TB, got, want Message) {
	t.Helper()
	if !bytes.Equal(got.Body, want.Body) {
		t.Errorf("Body = %q, want %q", got.Body, want.Body)
	}
	got.Body, want.Body = nil, nil
	if a, b := asText(got), asText(want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func asText(m Message) string {
	return strings.Join([]string{m.Topic, strconv.Itoa(int(m.QueueId)), strconv.Itoa(int(m.Flag)), strconv.Itoa(int(m.SysFlag)),
		strconv.FormatInt(m.BornTimestamp, 10), m.BornHost.String(), strconv.FormatInt(m.StoreTimestamp, 10), m.StoreHost.String(),
		strconv.Itoa(int(m.ReconsumeTimes)), strconv.FormatInt(m.PreparedTransactionOffset, 10), strconv.Quote(m.Properties),
		strconv.FormatInt(m.QueueOffset, 10), strconv.FormatInt(m.PhyOffset, 10)}, " ")
}

// goldenLog is a commit log of the official broker and what an independent reader found in it.
func goldenLog(t testing.TB) (log []byte, rows [][]string) {
	f, err := os.Open("testdata/clean-commitlog.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if log, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/clean-commitlog.tsv")
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(text))
	for s.Scan() {
		if line := s.Text(); !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	return log, rows
}

func TestGoldenLog(t *testing.T) {
	log, rows := goldenLog(t)
	at := 0
	for _, row := range rows {
		if row[0] != strconv.Itoa(at) {
			t.Fatalf("reached %d, the next record is at %s", at, row[0])
		}
		size, err := Check(log[at:], true)
		if row[2] == "blank" {
			if !errors.Is(err, ErrBlank) || strconv.Itoa(size) != row[1] {
				t.Fatalf("blank record at %d: %d, %v", at, size, err)
			}
			if got := AppendBlank(nil, size); !bytes.Equal(got, log[at:at+8]) {
				t.Fatalf("AppendBlank = %x, want %x", got, log[at:at+8])
			}
			at += size
			continue
		}
		if err != nil {
			t.Fatalf("record at %d: %v", at, err)
		}
		r := Record(log[at : at+size])
		tags, _ := r.Property(PropertyTags)
		keys, _ := r.Property(PropertyKeys)
		uniq, _ := r.Property(PropertyUniqKey)
		got := []string{strconv.FormatInt(r.PhyOffset(), 10), strconv.Itoa(r.Size()), r.Topic(), strconv.Itoa(int(r.QueueId())),
			strconv.FormatInt(r.QueueOffset(), 10), strconv.Itoa(int(r.SysFlag())), strconv.Itoa(int(r.ReconsumeTimes())),
			strconv.FormatInt(r.PreparedTransactionOffset(), 10), strconv.Itoa(len(r.Body())), tags, keys, uniq}
		if a, b := strings.Join(got, "\t"), strings.Join(row, "\t"); a != b {
			t.Fatalf("got  %q\nwant %q", a, b)
		}
		m, _, err := Parse(log[at:])
		if err != nil {
			t.Fatal(err)
		}
		if again := AppendRecord(nil, &m); !bytes.Equal(again, r) {
			t.Fatalf("record at %d encodes to %x\nwant %x", at, again, []byte(r))
		}
		unstamped := m
		unstamped.QueueOffset, unstamped.PhyOffset, unstamped.StoreTimestamp = 0, 0, 0
		stamped := Record(AppendRecord(nil, &unstamped))
		stamped.Stamp(m.QueueOffset, m.PhyOffset, m.StoreTimestamp)
		if !bytes.Equal(stamped, r) {
			t.Fatalf("record at %d is %x after Stamp\nwant %x", at, []byte(stamped), []byte(r))
		}
		at += size
	}
	if at != len(log) {
		t.Errorf("records end at %d of %d", at, len(log))
	}
}

func TestIPv6Hosts(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("10.1.2.3:10911"), netip.MustParseAddrPort("[fd00::26c]:65535")
	mapped := netip.MustParseAddrPort("[::ffff:10.1.2.3]:10911")
	for _, c := range []struct {
		born, store netip.AddrPort
		size        int
		flag        int32
	}{
		{v4, v4, 91, 0}, {v6, v4, 103, BornHostV6}, {v4, v6, 103, StoreHostV6}, {v6, v6, 115, BornHostV6 | StoreHostV6},
		{mapped, mapped, 91, 0}, {netip.AddrPort{}, netip.AddrPort{}, 91, 0},
	} {
		// Flags that contradict the hosts are put right.
		m := Message{BornHost: c.born, StoreHost: c.store, SysFlag: Compressed | BornHostV6 ^ c.flag, StoreTimestamp: 5, ReconsumeTimes: 6, PreparedTransactionOffset: 7}
		b := AppendRecord(nil, &m)
		if len(b) != c.size || RecordSize(&m) != c.size || Record(b).SysFlag() != Compressed|c.flag {
			t.Errorf("%v %v: %d bytes (RecordSize %d), flag %#x", c.born, c.store, len(b), RecordSize(&m), Record(b).SysFlag())
		}
		got, _, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if want := unmapped(c.born); got.BornHost != want {
			t.Errorf("BornHost = %v, want %v", got.BornHost, want)
		}
		if want := unmapped(c.store); got.StoreHost != want {
			t.Errorf("StoreHost = %v, want %v", got.StoreHost, want)
		}
		if got.StoreTimestamp != 5 || got.ReconsumeTimes != 6 || got.PreparedTransactionOffset != 7 {
			t.Errorf("fields behind the hosts: %+v", got)
		}
	}
}

// unmapped is how a host is read back: mapped addresses as IPv4, no address as 0.0.0.0.
func unmapped(h netip.AddrPort) netip.AddrPort {
	if !h.IsValid() {
		return netip.MustParseAddrPort("0.0.0.0:0")
	}
	return netip.AddrPortFrom(h.Addr().Unmap(), h.Port())
}

func TestCheckRefuses(t *testing.T) {
	good := officialRecord(t)
	for _, c := range []struct {
		name    string
		corrupt func(b []byte) []byte
		want    error
	}{
		{"nothing", func(b []byte) []byte { return nil }, ErrShort},
		{"no magic yet", func(b []byte) []byte { return b[:7] }, ErrShort},
		{"one byte short", func(b []byte) []byte { return b[:len(b)-1] }, ErrShort},
		{"zeros", func(b []byte) []byte { clear(b); return b }, ErrMagic},
		{"magic", func(b []byte) []byte { b[7]++; return b }, ErrMagic},
		{"blank", func(b []byte) []byte { return AppendBlank(nil, 100) }, ErrBlank},
		{"total size too small", func(b []byte) []byte { b[3] = 90; return b }, ErrSize},
		{"total size negative", func(b []byte) []byte { b[0] = 0x80; return b }, ErrSize},
		{"total size one less", func(b []byte) []byte { b[3]--; return b }, ErrSize},
		{"total size beyond the bytes", func(b []byte) []byte { b[2]++; return b }, ErrShort},
		{"body negative", func(b []byte) []byte { b[84] = 0xff; return b }, ErrSize},
		{"body longer than all", func(b []byte) []byte { b[86] = 1; return b }, ErrSize},
		{"body one longer", func(b []byte) []byte { b[87]++; return b }, ErrSize},
		{"body byte", func(b []byte) []byte { b[88]++; return b }, ErrCRC},
		{"stored CRC", func(b []byte) []byte { b[8]++; return b }, ErrCRC},
		{"topic of 128", func(b []byte) []byte { b[93] = 128; return b }, ErrSize},
		{"topic longer", func(b []byte) []byte { b[93]++; return b }, ErrSize},
		{"properties negative", func(b []byte) []byte { b[100] = 0x80; return b }, ErrSize},
		{"properties shorter", func(b []byte) []byte { b[101]--; return b }, ErrSize},
		{"IPv6 flag", func(b []byte) []byte { b[39] |= byte(BornHostV6); return b }, ErrSize},
	} {
		b := c.corrupt(bytes.Clone(good))
		if _, err := Check(b, true); !errors.Is(err, c.want) {
			t.Errorf("%s: Check = %v, want %v", c.name, err, c.want)
		}
		if _, _, err := Parse(b); c.want != ErrCRC && !errors.Is(err, c.want) {
			t.Errorf("%s: Parse = %v, want %v", c.name, err, c.want)
		}
	}
	if size, err := Check(good[:50], true); size != 0xd7 || err != ErrShort {
		t.Errorf("Check of a part = %d, %v: the size needed must be told", size, err)
	}
	if size, err := Check(AppendBlank(nil, 1034), true); size != 1034 || err != ErrBlank {
		t.Errorf("Check of a blank = %d, %v", size, err)
	}
}

func TestCheckSizes(t *testing.T) {
	for _, c := range []struct {
		topic, properties int
		want              error
	}{{127, 32767, nil}, {128, 0, ErrTopicSize}, {1, 32768, ErrPropertiesSize}} {
		m := Message{Topic: strings.Repeat("t", c.topic), Properties: strings.Repeat("p", c.properties)}
		if err := CheckSizes(&m); err != c.want {
			t.Errorf("%d, %d: %v, want %v", c.topic, c.properties, err, c.want)
			continue
		}
		if c.want == nil {
			if _, err := Check(AppendRecord(nil, &m), true); err != nil {
				t.Errorf("largest record: %v", err)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	host := rapid.Custom(func(t *rapid.T) netip.AddrPort {
		n := rapid.SampledFrom([]int{4, 16}).Draw(t, "bytes")
		a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "addr"))
		return netip.AddrPortFrom(a.Unmap(), rapid.Uint16().Draw(t, "port"))
	})
	rapid.Check(t, func(t *rapid.T) {
		m := Message{
			Topic: string(rapid.SliceOfN(rapid.Byte(), 0, 127).Draw(t, "topic")), QueueId: rapid.Int32().Draw(t, "queue"),
			Flag: rapid.Int32().Draw(t, "flag"), SysFlag: rapid.Int32().Draw(t, "sysFlag"), BornTimestamp: rapid.Int64().Draw(t, "born"),
			BornHost: host.Draw(t, "bornHost"), StoreTimestamp: rapid.Int64().Draw(t, "store"), StoreHost: host.Draw(t, "storeHost"),
			ReconsumeTimes: rapid.Int32().Draw(t, "times"), PreparedTransactionOffset: rapid.Int64().Draw(t, "prepared"),
			Body: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body"), Properties: string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "properties")),
			QueueOffset: rapid.Int64().Draw(t, "queueOffset"), PhyOffset: rapid.Int64().Draw(t, "phyOffset"),
		}
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "before")
		b := AppendRecord(bytes.Clone(prefix), &m)
		if !bytes.HasPrefix(b, prefix) {
			t.Fatal("bytes before the record have changed")
		}
		b = append(b[len(prefix):], "behind"...)
		if size, err := Check(b, true); err != nil || size != RecordSize(&m) {
			t.Fatalf("Check = %d, %v, RecordSize %d", size, err, RecordSize(&m))
		}
		got, _, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := AppendRecord(nil, &got); !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("%x\nparsed and encoded again is\n%x", b, again)
		}
	})
}
