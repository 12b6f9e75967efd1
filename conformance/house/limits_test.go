package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rocketd/broker"
	"rocketd/compat"
	"rocketd/namesrv"
	"rocketd/remoting"
)

// TestTableOfLimitsIsTrue: what SECURITY.md says of limits is there: each key is one of a configuration, each counter one of
// remoting.Stats, each test a test; and no key of a limit of ours is missing.
func TestTableOfLimitsIsTrue(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Limits\n")
	if !ok {
		t.Fatal("SECURITY.md has no section Limits")
	}
	section, _, _ = strings.Cut(section, "\n## ")

	known := map[string]bool{}
	for _, kv := range append(compat.PropertiesOf(broker.DefaultConfig("")), compat.PropertiesOf(namesrv.DefaultConfig(""))...) {
		known[kv.Key] = true
	}
	all, err := sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, s := range all {
		if strings.HasSuffix(s.Path, "_test.go") {
			tests.WriteString(s.Text)
		}
	}
	stats := compat.PropertiesOf(remoting.Stats{})
	isCounter := func(name string) bool {
		for _, kv := range stats {
			if strings.EqualFold(kv.Key, name) {
				return true
			}
		}
		return false
	}
	word := regexp.MustCompile("`([A-Za-z]+)`")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 7 || strings.Contains(cells[1], "---") || strings.TrimSpace(cells[1]) == "input" {
			continue
		}
		rows++
		for _, m := range word.FindAllStringSubmatch(cells[2], -1) {
			if !known[m[1]] {
				t.Errorf("no configuration has the key %s: %s", m[1], line)
			}
		}
		last := len(cells) - 2
		for _, m := range word.FindAllStringSubmatch(cells[last], -1) {
			if strings.HasPrefix(m[1], "Test") || strings.HasPrefix(m[1], "Fuzz") {
				if !strings.Contains(tests.String(), "func "+m[1]+"(") {
					t.Errorf("there is no test %s: %s", m[1], line)
				}
			}
		}
		if last == 6 {
			for _, m := range word.FindAllStringSubmatch(cells[5], -1) {
				if !isCounter(m[1]) {
					t.Errorf("remoting.Stats has no %s: %s", m[1], line)
				}
			}
		}
		if !strings.Contains(cells[last], "`") {
			t.Errorf("no test is named: %s", line)
		}
	}
	if rows < 25 {
		t.Errorf("only %d limits are told of", rows)
	}
	for _, kv := range compat.PropertiesOf(broker.Config{}.LimitConfig) {
		if !strings.Contains(section, "`"+kv.Key+"`") {
			t.Errorf("SECURITY.md does not tell of %s", kv.Key)
		}
	}
}
