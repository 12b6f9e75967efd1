package message

import "testing"

func TestProperty(t *testing.T) {
	for _, c := range []struct {
		text, name, want string
		ok               bool
	}{
		{"", "a", "", false},
		{"a\x01b", "a", "b", true},
		{"a\x01b", "", "", false},
		{"a\x01b", "b", "", false},
		{"KEYS\x01k1 k2\x02UNIQ_KEY\x01X\x02TAGS\x01TagA", "TAGS", "TagA", true},
		{"KEYS\x01k1 k2\x02TAGS\x01TagA\x02", "TAGS", "TagA", true}, // the Go client's form
		{"KEYS\x01k1 k2\x02TAGS\x01TagA\x02", "KEYS", "k1 k2", true},
		{"XKEYS\x01a\x02KEYS\x01b", "KEYS", "b", true},
		{"KEYSX\x01a\x02KEYS\x01b", "KEYS", "b", true},
		{"a\x01KEYS\x02KEYS\x01b", "KEYS", "b", true},
		{"a\x01KEYS\x01x", "KEYS", "", false},         // a value may hold the separator
		{"a\x01b\x01c", "a", "b\x01c", true},          // the first one parts
		{"a\x01b\x02a\x01c", "a", "c", true},          // the last entry counts, as in a map
		{"WAIT\x01true\x02a\x01\x02", "a", "", false}, // empty value: dropped
		{"a\x01\x02a\x01b", "a", "b", true},
		{"a\x01b\x02a\x01", "a", "b", true},
		{"\x01b", "", "", false},
		{"a\x02b\x01c", "a\x02b", "", false},
		{"a\x01b\x01c", "a\x01b", "", false},
		{"a", "a", "", false},
		{"aaa\x01b", "aa", "", false},
		{"aa\x02aaa\x01b", "aaa", "b", true},
	} {
		if got, ok := Property(c.text, c.name); got != c.want || ok != c.ok {
			t.Errorf("Property(%q, %q) = %q, %v, want %q, %v", c.text, c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestEachPropertyDropsWhatJavaDrops(t *testing.T) {
	got := ""
	EachProperty("a\x011\x02\x02b\x01\x02\x01c\x02d\x02e\x012\x01\x02f\x013\x02", func(n, v string) bool {
		got += n + "=" + v + ";"
		return n != "e"
	})
	if got != "a=1;e=2\x01;" {
		t.Errorf("got %q", got)
	}
}

func TestWriteProperties(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"append to nothing", string(AppendProperty(nil, "a", "b")), "a\x01b"},
		{"append", string(AppendProperty([]byte("a\x01b"), "c", "d")), "a\x01b\x02c\x01d"},
		{"append after a separator", string(AppendProperty([]byte("a\x01b\x02"), "c", "d")), "a\x01b\x02c\x01d"},
		{"set new", SetProperty("a\x01b\x02", "c", "d"), "a\x01b\x02c\x01d"},
		{"set old", SetProperty("a\x01b\x02c\x01d", "a", "x"), "a\x01x\x02c\x01d"},
		{"set doubled", SetProperty("W\x011\x02c\x01d\x02W\x012", "W", "x"), "W\x01x\x02c\x01d"},
		{"set in nothing", SetProperty("", "c", "d"), "c\x01d"},
		{"remove", RemoveProperty("a\x01b\x02c\x01d\x02a\x01e\x02", "a"), "c\x01d"},
		{"remove all", RemoveProperty("a\x01b\x02", "a"), ""},
		{"clean", string(AppendProperties(nil, "a\x01b\x02c\x01\x02\x02d\x01e\x02f", "x")), "a\x01b\x02d\x01e"},
		{"as stored", string(AppendProperty(AppendProperties(nil, "WAIT\x01true\x02TAGS\x01T\x02", "WAIT", "CLUSTER"), "CLUSTER", "C")), "TAGS\x01T\x02CLUSTER\x01C"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestTagsCode(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{
		{"KEYS\x01k\x02TAGS\x01TagA", 2598919},
		{"KEYS\x01k", 0},
		{"TAGS\x01", 0},
		{"TAGS\x01polygenelubricants", -2147483648}, // the known Java string whose hash is the smallest int
	} {
		if got := TagsCode(c.text); got != c.want {
			t.Errorf("TagsCode(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}
