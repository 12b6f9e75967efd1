package crash

import (
	"maps"
	"slices"
	"testing"
)

// tally is the rules that some history has broken.
type tally map[Rule]bool

// check holds what a verdict says is broken, each as often as it is, against what should be.
func (y tally) check(t *testing.T, name string, v *Verdict, want []Rule) {
	t.Helper()
	var got []Rule
	for _, rule := range slices.Sorted(maps.Keys(v.Broken)) {
		y[rule] = true
		for range v.Broken[rule] {
			got = append(got, rule)
		}
	}
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q: %v", name, got, want, v.Cases)
	}
}

// whole wants every rule to have been broken.
func (y tally) whole(t *testing.T, rules []Rule) {
	t.Helper()
	for _, rule := range rules {
		if !y[rule] {
			t.Errorf("no history breaks the rule %q", rule)
		}
	}
}
