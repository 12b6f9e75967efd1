//go:build conformance

package sql92

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

var update = flag.Bool("update", false, "record the official answers")

// table is where the expressions, the messages and the recorded answers lie.
const table = "../../broker/filter/sql92/testdata"

// lines reads a file of JSON lines.
func lines[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	f, err := os.Open(filepath.Join(table, name))
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

// verdict is what a broker says to an expression: to the question whether it can be served, and by the numbers
// of the messages that it gives for it.
type verdict struct {
	Expression string `json:"expression"`
	Code       int    `json:"code"`
	Remark     string `json:"remark,omitempty"`
	Taken      []int  `json:"taken,omitempty"`
}

// better are the expressions where rocketd does what the official broker should (COMPATIBILITY.md): zero is a
// number (report H24), and a number is not refused for its place among the others.
var better = map[string]bool{
	"a = 0.0": true, "a > 0.0": true, "a = .0": true, "a = 0.": true, "a = 0e5": true,
	"a = -0.0": true, "a <> -0.0": true, "a > -0.0": true, "a >= -0.0": true, "a < -0.0": true, "a <= -0.0": true,
}

// The broker's answers to every expression are those that the official broker has given.
func TestTable(t *testing.T) {
	s := dial(t)
	topic := s.topic("SqlTable", 1)
	messages := lines[map[string]string](t, "messages.txt")
	for i, m := range messages {
		var pairs []string
		for name, value := range m {
			pairs = append(pairs, name, value)
		}
		s.send(topic, wire.Properties(pairs...), strconv.Itoa(i))
	}
	s.stored(topic, int64(len(messages)))
	var got []verdict
	for _, e := range lines[string](t, "expressions.txt") {
		v := verdict{Expression: e}
		v.Code, v.Remark = s.check(topic, e)
		if v.Code == 0 {
			for _, body := range s.pullAll(topic, e, len(messages)) {
				n, err := strconv.Atoi(body)
				if err != nil {
					t.Fatal(err)
				}
				v.Taken = append(v.Taken, n)
			}
		}
		got = append(got, v)
	}
	if *update {
		if server.Kind != target.Official {
			t.Fatal("the answers of the table are those of the official broker: CONFORMANCE_TARGET=official")
		}
		record(t, got)
	}
	want := lines[verdict](t, "official.txt")
	if len(want) != len(got) || len(want) < 300 {
		t.Fatalf("%d expressions, %d recorded", len(got), len(want))
	}
	for i := range want {
		if w, g := fmt.Sprintf("%+v", want[i]), fmt.Sprintf("%+v", got[i]); w != g && !(better[want[i].Expression] && server.Kind == target.Rocketd) {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	}
}

func record(t *testing.T, all []verdict) {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, v := range all {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(table, "official.txt"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
