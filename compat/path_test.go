package compat

import (
	"slices"
	"testing"
)

func TestLooksUnexpanded(t *testing.T) {
	for path, want := range map[string]bool{
		"~/store": true, "/data/~/store": true, "${user.home}/store": true, "$HOME/store": true, "/a/b-${x}": true,
		"/store": false, "": false, "/data/store~": false, "/data/a$b": false, "rel/store": false,
	} {
		if got := LooksUnexpanded(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestOddBooleans(t *testing.T) {
	p, err := ParseProperties([]byte("\ufeffa=yes\nb= TRUE \nc=false\nd=yes\ne=\n"))
	if err != nil {
		t.Fatal(err)
	}
	var dst struct {
		A, B, C, E bool
		D          string
	}
	got := OddBooleans(p, &dst)
	if want := []KeyValue{{"a", "yes"}, {"e", ""}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
