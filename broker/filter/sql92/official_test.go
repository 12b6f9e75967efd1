package sql92

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rocketd/protocol/message"
)

// verdict is what the official broker said to an expression: to CHECK_CLIENT_CONFIG, and by the numbers of the
// messages that it gave. conformance/sql92 records it.
type verdict struct {
	Expression string
	Code       int
	Remark     string
	Taken      []int
}

func lines[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, v)
	}
	return all
}

// properties are the properties texts of messages.txt, as the broker stores them.
func properties(t testing.TB) (all []string) {
	for _, m := range lines[map[string]string](t, "messages.txt") {
		var text []byte
		for name, value := range m {
			text = message.AppendProperty(text, name, value)
		}
		all = append(all, string(message.AppendProperty(text, "CLUSTER", "DefaultCluster")))
	}
	return all
}

// zeros are the expressions whose zero the official parser refuses (COMPATIBILITY.md), each with one that means the same
// and has the official answer: by Double#compareTo of Java, -0.0 is the largest of the negative numbers.
var zeros = map[string]string{
	"a > 0.0":   "a >= 4.9e-324",
	"a = 0.0":   "a > -4.9e-324 AND a < 4.9e-324 AND a <> '-0.0'",
	"a = .0":    "a > -4.9e-324 AND a < 4.9e-324 AND a <> '-0.0'",
	"a = 0.":    "a > -4.9e-324 AND a < 4.9e-324 AND a <> '-0.0'",
	"a = 0e5":   "a > -4.9e-324 AND a < 4.9e-324 AND a <> '-0.0'",
	"a = -0.0":  "a > -4.9e-324 AND a < 4.9e-324 AND a = '-0.0'",
	"a >= -0.0": "a > -4.9e-324",
	"a < -0.0":  "a <= -4.9e-324",
	"a <> -0.0": "NOT (a > -4.9e-324 AND a < 4.9e-324 AND a = '-0.0')",
	"a > -0.0":  "a > -4.9e-324 AND NOT (a > -4.9e-324 AND a < 4.9e-324 AND a = '-0.0')",
	"a <= -0.0": "a <= -4.9e-324 OR a > -4.9e-324 AND a < 4.9e-324 AND a = '-0.0'",
}

func TestOfficialAnswers(t *testing.T) {
	messages := properties(t)
	official := map[string]verdict{}
	for _, v := range lines[verdict](t, "official.txt") {
		official[v.Expression] = v
	}
	if len(official) < 300 {
		t.Errorf("only %d expressions", len(official))
	}
	for _, want := range official {
		e, err := Compile(want.Expression)
		if other, ok := zeros[want.Expression]; ok {
			same, ok := official[other]
			if !ok {
				t.Fatalf("no answer for %q", other)
			}
			want.Code, want.Taken = same.Code, same.Taken
		}
		if err != nil {
			if want.Code != 23 || err.Error() != want.Remark {
				t.Errorf("%q:\n got  %q\n want %q %d", want.Expression, err, want.Remark, want.Code)
			}
			continue
		}
		var taken []int
		for i, p := range messages {
			if e.Match(p) {
				taken = append(taken, i)
			}
		}
		if want.Code != 0 || !slices.Equal(taken, want.Taken) {
			t.Errorf("%q: takes %v, want %v %d %q", want.Expression, taken, want.Taken, want.Code, want.Remark)
		}
	}
}
