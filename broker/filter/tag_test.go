package filter

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Hashes by hand: h = 31h + c. that of "TagA" is in consume queues of the official broker too; "a" is 97; "Aa" and "BB" are
// the well-known pair that collides.
const tagA, tagB, letterA, collide = 2598919, 2598920, 97, 2112

func TestParse(t *testing.T) {
	cases := []struct {
		expression string
		codes      []int32 // nil: takes everything
		err        error
	}{
		{"", nil, nil},
		{"*", nil, nil},
		{"TagA", []int32{tagA}, nil},
		{"TagA||TagB", []int32{tagA, tagB}, nil},
		{" TagA || TagB\t", []int32{tagA, tagB}, nil},
		{"||TagA||", []int32{tagA}, nil},
		{"a | b", []int32{hash("a | b")}, nil}, // one bar parts nothing
		{"* ", []int32{42}, nil},               // not "*": the tag named *
		{" ", []int32{}, nil},
		{" || ", []int32{}, nil},
		{"||", nil, ErrSplit},
		{"||||", nil, ErrSplit},
		{"|", []int32{124}, nil},
		{"|||", []int32{124}, nil}, // Java: "", "|"
	}
	for _, c := range cases {
		f, err := Parse(c.expression)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: error %v, want %v", c.expression, err, c.err)
			continue
		}
		if c.codes == nil {
			if f != nil {
				t.Errorf("%q: filters, want everything", c.expression)
			}
			continue
		}
		if f == nil || !slices.Equal(f.codes, c.codes) {
			t.Errorf("%q: %v, want codes %v", c.expression, f, c.codes)
		}
	}
}

// hash is String#hashCode of ASCII text, the definition.
func hash(s string) (h int32) {
	for _, c := range s {
		h = 31*h + c
	}
	return h
}

func TestMatch(t *testing.T) {
	cases := []struct {
		name     string
		f        *Tags
		tagsCode int64
		want     bool
	}{
		{"all", nil, 5, true},
		{"all, no tag", nil, 0, true},
		{"its tag", FromCodes("TagA", []int32{tagA}), tagA, true},
		{"another", FromCodes("TagA", []int32{tagA}), tagB, false},
		{"no tag", FromCodes("TagA", []int32{tagA}), 0, false},
		{"negative hash, sign-extended", FromCodes("x", []int32{-7}), -7, true},
		{"the low 32 bits count", FromCodes("x", []int32{letterA}), 1<<32 + letterA, true},
		{"a collision", FromCodes("Aa", []int32{collide}), int64(hash("BB")), true},
		{"the star of a heartbeat", FromCodes("*", nil), 3, true},
		{"no codes", FromCodes("TagA", nil), tagA, false},
	}
	for _, c := range cases {
		if got := c.f.MatchQueue(c.tagsCode); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !c.f.MatchRecord(nil) || !c.f.MatchProperties("") {
			t.Errorf("%s: the record is not looked at", c.name)
		}
	}
}

// TestManyTags: what many tags match is what looking at each says, and takes as long as with few: four hundred
// thousand tags on every entry of a pull, or under the lock of held pulls, would stop everybody's delivery.
func TestManyTags(t *testing.T) {
	for _, n := range []int{1, linear, linear + 1, 1000, 400_000} {
		var text strings.Builder
		codes := make(map[int32]bool)
		for i := range n {
			tag := strconv.FormatInt(int64(i*7), 16)
			text.WriteString("||" + tag + "||" + tag)
			codes[hash(tag)] = true
		}
		parsed, err := Parse(text.String())
		if err != nil {
			t.Fatal(err)
		}
		subscribed := FromCodes(text.String(), SortCodes(slices.Collect(maps.Keys(codes))))
		fastest := time.Hour
		for try := 0; fastest > 2*time.Second; try++ { // looking at each takes 5 s and more; a busy machine may be slow once
			if try == 5 {
				t.Fatalf("%d tags: %v", n, fastest)
			}
			start := time.Now()
			for i := range 20_000 {
				code := hash(strconv.Itoa(i))
				if p, s := parsed.MatchQueue(int64(code)), subscribed.MatchQueue(int64(code)); p != codes[code] || s != p {
					t.Fatalf("%d tags, code %d: %v from text and %v from codes, want %v", n, code, p, s, codes[code])
				}
			}
			fastest = min(fastest, time.Since(start))
		}
	}
}

func TestIsTag(t *testing.T) {
	for _, s := range []string{"", "TAG"} {
		if !IsTag(s) {
			t.Errorf("%q is the type of tags", s)
		}
	}
	for _, s := range []string{"SQL92", "tag", "class"} {
		if IsTag(s) {
			t.Errorf("%q is not the type of tags", s)
		}
	}
}

func BenchmarkMatchQueueManyTags(b *testing.B) {
	codes := make([]int32, 600_000)
	for i := range codes {
		codes[i] = int32(i) * 3
	}
	f := FromCodes("many", SortCodes(codes))
	for b.Loop() {
		f.MatchQueue(tagB)
	}
}

func BenchmarkMatchQueue(b *testing.B) {
	f, _ := Parse("TagA || TagB || TagC")
	b.ReportAllocs()
	for b.Loop() {
		f.MatchQueue(tagB)
	}
}
