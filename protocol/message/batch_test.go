package message

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestBatch(t *testing.T) {
	for _, c := range []struct{ name, batch, want string }{
		{"flag", "00000032000000000000000000000007000000026869001a4b455953016b0257414954017472756502544147530154616741",
			`7 "hi" "KEYS\x01k\x02WAIT\x01true\x02TAGS\x01TagA"`},
		// Two elements sent by the Go client: a separator at the end.
		{"go", "000000390000000000000000000000000000000c626174636820626f647920300017544147530154616742024b4559530162617463682d3002" +
			"000000390000000000000000000000000000000c626174636820626f647920310017544147530154616742024b4559530162617463682d3102",
			`0 "batch body 0" "TAGS\x01TagB\x02KEYS\x01batch-0\x02"|0 "batch body 1" "TAGS\x01TagB\x02KEYS\x01batch-1\x02"`},
		// One sent by the Java client 4.9.8.
		{"java", "0000008c0000000000000000000000000000000c626174636820626f64792030006a4b4559530162617463682d6b65792d3002554e49515f4b4559014644303030303030" +
			"3030303030303030303030303030303030303030303030323241323734453045324632413934333939393930303030300257414954017472756502544147530154616742" +
			"026e0130",
			`0 "batch body 0" "KEYS\x01batch-key-0\x02UNIQ_KEY\x01FD0000000000000000000000000000022A274E0E2F2A943999900000\x02WAIT\x01true\x02TAGS\x01TagB\x02n\x010"`},
		{"empty", "", ""},
		{"empty element", "00000016" + "0000000000000000" + "00000000" + "00000000" + "0000", `0 "" ""`},
		{"size not looked at", "7fffffff" + "0000000000000000" + "00000001" + "00000000" + "0000", `1 "" ""`},
	} {
		raw, err := hex.DecodeString(c.batch)
		if err != nil {
			t.Fatal(c.name, err)
		}
		var got []string
		var again []byte
		if err := EachElement(raw, func(e Element) error {
			got = append(got, fmt.Sprintf("%d %q %q", e.Flag, e.Body, e.Properties))
			again = AppendElement(again, e)
			return nil
		}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, strings.Join(got, "|"), c.want)
		}
		if c.name != "size not looked at" && string(again) != string(raw) {
			t.Errorf("%s: encodes to %x", c.name, again)
		}
	}
}

func TestBatchRefused(t *testing.T) {
	good := AppendElement(nil, Element{1, []byte("body"), []byte("a\x01b")})
	for n := 1; n < len(good); n++ {
		if err := EachElement(good[:n], func(Element) error { return nil }); !errors.Is(err, ErrBatch) {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
	for _, at := range []int{16, 24} { // sign bits of both lengths
		b := append([]byte(nil), good...)
		b[at] |= 0x80
		if err := EachElement(b, func(Element) error { return nil }); !errors.Is(err, ErrBatch) {
			t.Errorf("negative length at %d: %v", at, err)
		}
	}
	stop := errors.New("stop")
	if err := EachElement(append(good, good...), func(Element) error { return stop }); err != stop {
		t.Errorf("error of f: %v", err)
	}
}

func TestStoredProperties(t *testing.T) {
	// As in a store of the official broker: WAIT twice.
	for _, c := range []struct{ element, batch, want string }{
		{"KEYS\x01b0\x02TAGS\x01T", "CLUSTER\x01C\x02WAIT\x01true", "KEYS\x01b0\x02TAGS\x01T\x02CLUSTER\x01C\x02WAIT\x01true"},
		{"KEYS\x01b0\x02", "WAIT\x01true", "KEYS\x01b0\x02WAIT\x01true"},
		{"", "WAIT\x01true", "WAIT\x01true"},
		{"KEYS\x01b0\x02", "", "KEYS\x01b0\x02"},
	} {
		if got := StoredProperties([]byte(c.element), c.batch); got != c.want {
			t.Errorf("StoredProperties(%q, %q) = %q, want %q", c.element, c.batch, got, c.want)
		}
	}
}
