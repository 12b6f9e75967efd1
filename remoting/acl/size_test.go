package acl

import (
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// nodes counts the nodes of a document, what is behind an alias once.
func nodes(n *yaml.Node) int {
	sum := 1
	for _, c := range n.Content {
		sum += nodes(c)
	}
	return sum
}

const oneAccount = "accounts:\n- accessKey: someUser\n  secretKey: topSecret1\n  topicPerms:\n"

// TestSigns: no text has more nodes than signs, and an ordinary one hardly fewer.
func TestSigns(t *testing.T) {
	for text, most := range map[string]int{
		"":                      2,
		"a":                     2,
		sample:                  nodesOf(t, sample) * 5 / 4,
		"- - - a\n":             5,
		"? a\n? b\n? - c\n":     9,
		"a:\nb:\n":              6,
		"{a,b,c,d}":             10,
		"{a: b,c: d}":           14,
		"[a: b, ? c, \"d\":e]":  18,
		"[[], {}, [[a]]]":       18,
		"{\"a\":b,'c':d}":       14,
		"a: []\nb: {}\nc: [ ]":  8, // nothing is in them
		"a: 10.1.1.{1,2}\n":     4, // no mapping
		"a: &x {b,c}\nd: *x":    10,
		"- a\n# b\n- c # d\n":   8,
		"a: 1,2,3,4,5,6,7,8,9":  4,
		"a: fe80::1,fe80::2":    4,
		"-\n-\n-\n-":            6,
		"- a\u0085- b\u2028- c": 5,
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if n, got := nodes(&document), signs([]byte(text)); got < n || got > most {
			t.Errorf("%q: %d signs, %d nodes; want at most %d", text, got, n, most)
		}
	}
	utf16 := []byte{0xff, 0xfe}
	for _, c := range []byte("{a,b,c}") {
		utf16 = append(utf16, c, 0)
	}
	if n := signs(utf16); n < 8 {
		t.Errorf("%d signs in UTF-16", n)
	}
}

func nodesOf(t *testing.T, text string) int {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return nodes(&document)
}

// allocated is how many bytes a function allocates.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestReadingIsBounded: whatever a text is, reading it costs so many bytes for a sign and for a byte, garbage included; so the largest
// file that is taken costs maxValues and maxBytes times as much, of which a fraction is in use at once. Changing one reads it twice and writes it.
func TestReadingIsBounded(t *testing.T) {
	const perSign, perByte = 520, 20
	if maxValues*perSign > 200<<20 {
		t.Errorf("%d values may cost %d bytes", maxValues, maxValues*perSign)
	}
	if raceOn {
		t.Skip("the race detector allocates too")
	}
	const n = 10_000
	for name, text := range map[string]string{
		"permissions":       oneAccount + strings.Repeat("  - t=PUB\n", n),
		"long ones":         oneAccount + strings.Repeat("  - "+strings.Repeat("t", 100)+"=PUB|SUB\n", n/10),
		"with comments":     oneAccount + strings.Repeat("  - t=PUB # c\n", n),
		"comments between":  oneAccount + strings.Repeat("  # c\n  - t=PUB\n", n),
		"comments alone":    strings.Repeat("# a comment\n", n),
		"mapping on a line": "x: {" + strings.Repeat("a,", n) + "}\n",
		"list on a line":    "x: [" + strings.Repeat("a,", n) + "]\n",
		"pairs on a line":   "x: [" + strings.Repeat("a: b,", n) + "]\n",
		"nothing in lists":  "x: [" + strings.Repeat("[],", n) + "]\n",
		"keys":              strings.Repeat("a:\n", n),
		"complex keys":      strings.Repeat("? a\n", n),
		"tags":              "x:\n" + strings.Repeat("- !t a\n", n),
		"anchors":           "x:\n" + strings.Repeat("- &a a\n", n),
		"aliases":           "y: &a b\nx:\n" + strings.Repeat("- *a\n", n),
		"accounts":          "accounts:\n" + strings.Repeat("- accessKey: someUser\n  secretKey: topSecret1\n", n/10),
		"one long text":     "x: " + strings.Repeat("a", 20*n) + "\n",
		"a folded text":     "x:\n" + strings.Repeat("  a\n\n", 4*n),
		"a quoted text":     "x: \"" + strings.Repeat("\\u00e4\\\n", 2*n) + "\"\n",
	} {
		data := []byte(text)
		most := signs(data)*perSign + len(text)*perByte
		if got := allocated(func() { _, _ = parse("f", data) }); got > most {
			t.Errorf("%s: %d bytes allocated to read %d bytes with %d signs, want at most %d", name, got, len(text), signs(data), most)
		}
		change := Change{AccessKey: "someUser", SecretKey: "topSecret2"}
		if got := allocated(func() { _, _ = edited("f", data, 1, change.update) }); got > 4*most {
			t.Errorf("%s: %d bytes allocated to change %d bytes with %d signs, want at most %d", name, got, len(text), signs(data), 4*most)
		}
	}
}

// TestTooLargeIsRefused: a text beyond the bounds is refused before anything is made of it, one within them is read.
func TestTooLargeIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"characters":      {strings.Repeat("ä", maxFile+1), "the file has 3145729 characters, more than 3145728"},
		"items":           {oneAccount + strings.Repeat("  - t\n", maxValues), "the file has signs of 393227 keys, items and comments, more than 393216"},
		"items on a line": {"x: {" + strings.Repeat("a,", maxValues/2) + "}", "the file has signs of 393222 keys, items and comments, more than 393216"},
		"comments":        {strings.Repeat("#\n", maxValues/2), "the file has signs of 393218 keys, items and comments, more than 393216"},
	} {
		var err error
		data := []byte(c.text)
		cost := allocated(func() { _, err = parse("f", data) })
		if err == nil || err.Error() != "f: "+c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if cost > len(c.text)+1<<20 { // utf8.RuneCount may copy it
			t.Errorf("%s: %d bytes allocated to refuse %d", name, cost, len(c.text))
		}
	}
	text := oneAccount + "  - " + strings.Repeat("ä", maxFile-len(oneAccount)-9) + "=PUB\n"
	if f, err := parse("f", []byte(text)); err != nil || len(f.accounts) != 1 {
		t.Errorf("a file of the largest size: %v", err)
	}
}
