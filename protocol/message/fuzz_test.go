package message

import (
	"bytes"
	"testing"
)

// FuzzCheck demands: no panic whatever the bytes; what Check accepts can be read by every accessor and encodes
// back to the same bytes unless its hosts have ports or addresses that no encoder writes.
func FuzzCheck(f *testing.F) {
	log, _ := goldenLog(f)
	f.Add(log[:235])
	f.Add(log[60782 : 60782+2000])
	f.Add(officialRecord(f))
	f.Add(AppendBlank(nil, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		size, err := Check(b, true)
		m, parsed, perr := Parse(b)
		if err != nil {
			return
		}
		if perr != nil || parsed != size {
			t.Fatalf("Check = %d, Parse = %d, %v", size, parsed, perr)
		}
		r := Record(b[:size])
		EachProperty(r.Properties(), func(name, value string) bool {
			if last, ok := r.Property(name); !ok || last == "" || value == "" {
				t.Fatalf("property %q = %q, found %q", name, value, last)
			}
			return true
		})
		again := AppendRecord(nil, &m)
		if n := len(again); n == size && !bytes.Equal(again[n-len(r.Properties()):], b[size-len(r.Properties()):size]) {
			t.Fatalf("%x encodes to %x", b[:size], again)
		}
	})
}

// FuzzProperties demands that Property, EachProperty and the writers agree on any text, and that what is
// written reads back the same.
func FuzzProperties(f *testing.F) {
	f.Add("KEYS\x01k1 k2\x02TAGS\x01TagA", "TAGS")
	f.Add("TAGS\x01TagA\x02TAGS\x01TagB\x02", "TAGS")
	f.Add("a\x01\x02\x02b\x01c\x01d\x02\x01x", "b")
	f.Fuzz(func(t *testing.T, text, name string) {
		var want string
		found := false
		EachProperty(text, func(n, v string) bool {
			if n == name {
				want, found = v, true
			}
			return true
		})
		if got, ok := Property(text, name); got != want || ok != found {
			t.Fatalf("Property = %q, %v, want %q, %v", got, ok, want, found)
		}
		clean := string(AppendProperties(nil, text))
		if again := string(AppendProperties(nil, clean)); again != clean {
			t.Fatalf("clean text %q changes to %q", clean, again)
		}
		if _, ok := Property(RemoveProperty(text, name), name); ok {
			t.Fatalf("%q is still there", name)
		}
		if !plainName(name) {
			return
		}
		if got, ok := Property(SetProperty(text, name, "v"), name); !ok || got != "v" {
			t.Fatalf("after SetProperty: %q, %v", got, ok)
		}
	})
}

func plainName(name string) bool {
	return name != "" && !bytes.ContainsAny([]byte(name), "\x01\x02")
}

// FuzzBatch demands: no panic, and elements that together take all the bytes of an accepted batch.
func FuzzBatch(f *testing.F) {
	f.Add(AppendElement(AppendElement(nil, Element{7, []byte("hi"), []byte("KEYS\x01b")}), Element{}))
	f.Fuzz(func(t *testing.T, batch []byte) {
		total := 0
		err := EachElement(batch, func(e Element) error {
			total += elementFixed + len(e.Body) + 2 + len(e.Properties)
			return nil
		})
		if err == nil && total != len(batch) {
			t.Fatalf("elements of %d bytes in a batch of %d", total, len(batch))
		}
	})
}
