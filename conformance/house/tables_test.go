package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/broker"
	"rocketd/compat"
	"rocketd/namesrv"
	"rocketd/protocol"
)

// generated compares the table between two marks of COMPATIBILITY.md with what it should be, and writes it with -update.
func generated(t *testing.T, what, table string) {
	t.Helper()
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(r, "COMPATIBILITY.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- " + what + ": begin (written by `go test ./conformance/house -update`) -->"
	end := "<!-- " + what + ": end -->"
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, okToo := strings.Cut(rest, end)
	if !ok || !okToo {
		t.Fatalf("COMPATIBILITY.md lacks the marks %q and %q", begin, end)
	}
	want := head + begin + "\n" + table + end + tail
	switch {
	case want == string(b):
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s in COMPATIBILITY.md is not true: run go test ./conformance/house -update", what)
	}
}

// command is a subcommand of mqadmin with the codes that it sends.
type command struct {
	name            string
	namesrv, broker []protocol.RequestCode
}

// commands reads testdata/mqadmin.tsv.
func commands(t *testing.T) (all []command) {
	t.Helper()
	data, err := os.ReadFile("testdata/mqadmin.tsv")
	if err != nil {
		t.Fatal(err)
	}
	codes := func(list string) (all []protocol.RequestCode) {
		for text := range strings.SplitSeq(list, ",") {
			if text == "" {
				continue
			}
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, protocol.RequestCode(n))
		}
		return all
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			t.Fatalf("line %q", line)
		}
		all = append(all, command{f[0], codes(f[1]), codes(f[2])})
	}
	return all
}

// TestTableOfCommandsIsTrue: a subcommand of mqadmin is served when every code that it sends is.
func TestTableOfCommandsIsTrue(t *testing.T) {
	routed, named := set(broker.Routed()), set(namesrv.Routed())
	for _, c := range []protocol.RequestCode{protocol.HeartBeat, protocol.UnregisterClient} { // what every command sends
		if !routed[c] {
			t.Errorf("%d is not served", c)
		}
	}
	all := commands(t)
	if len(all) != 56 {
		t.Errorf("%d commands, want 56", len(all))
	}
	var s strings.Builder
	s.WriteString("| command | codes to name servers | codes to brokers | state |\n|---|---|---|---|\n")
	list := func(codes []protocol.RequestCode, served map[protocol.RequestCode]bool, missing *[]string) string {
		var text []string
		for _, c := range codes {
			text = append(text, strconv.Itoa(int(c)))
			if !served[c] {
				*missing = append(*missing, strconv.Itoa(int(c)))
			}
		}
		return strings.Join(text, " ")
	}
	for _, c := range all {
		var missing []string
		ns, br := list(c.namesrv, named, &missing), list(c.broker, routed, &missing)
		state := "served"
		if len(missing) > 0 {
			state = "no: " + strings.Join(missing, ", ")
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s |\n", c.name, ns, br, state)
	}
	generated(t, "mqadmin", s.String())
}

// TestTableOfKeysIsTrue: every configuration key of the official broker is applied, that is, something reads its
// field, or is said to be without effect, with the reason.
func TestTableOfKeysIsTrue(t *testing.T) {
	without := broker.WithoutEffect()
	byReason := map[string][]string{}
	for key, reason := range without {
		if reason == "" {
			t.Errorf("%s is without effect and broker/keyreasons.go does not say why", key)
		}
		byReason[reason] = append(byReason[reason], key)
	}
	data, err := os.ReadFile("testdata/broker-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	cfg := broker.DefaultConfig("store")
	for _, kv := range compat.PropertiesOf(&cfg) {
		known[kv.Key] = true
	}
	read := fieldsRead(t)
	keys := strings.Fields(string(data))
	for _, key := range keys {
		switch _, none := without[key]; {
		case !known[key]:
			t.Errorf("the official key %s is not known", key)
		case none:
		case !read[strings.ToUpper(key[:1])+key[1:]]:
			t.Errorf("%s has neither an effect nor a reason why not: nothing reads its field", key)
		}
	}
	var s strings.Builder
	s.WriteString("| keys | why they change nothing |\n|---|---|\n")
	var rows []string
	for reason, keys := range byReason {
		slices.Sort(keys)
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", strings.Join(keys, "` `"), reason))
	}
	slices.Sort(rows)
	s.WriteString(strings.Join(rows, ""))
	generated(t, "keys without effect", s.String())
}

// fieldsRead are the names that code outside of tests selects from something; the files that only list the fields are
// left out.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	selected := regexp.MustCompile(`\.([A-Z]\w+)`)
	names := map[string]bool{}
	for _, dir := range []string{"broker", "store", "remoting", "cmd"} {
		err := filepath.WalkDir(filepath.Join(r, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(b)) {
				if i := strings.Index(line, "//"); i >= 0 {
					line = line[:i]
				}
				for _, m := range selected.FindAllStringSubmatch(line, -1) {
					names[m[1]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
