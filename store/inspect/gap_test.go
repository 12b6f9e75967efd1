package inspect

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// What the store makes of missing index files is as good as what was there.
func TestMissingIndexFilesVerify(t *testing.T) {
	for _, name := range []string{index0, index1} {
		mem := unpack(t, "clean")
		if err := mem.Remove(name); err != nil {
			t.Fatal(err)
		}
		if r := verifyStore(t, mem); r.Clean() {
			t.Errorf("nothing is found when %s is missing", name)
		}
		closeStore(t, openWith(t, mem))
		r := verifyStore(t, mem)
		wantClean(t, r)
		if kinds := slices.Sorted(maps.Keys(r.Counts)); len(kinds) > 0 {
			t.Errorf("%s: %s", name, strings.Join(kinds, " "))
		}
	}
}
