package house

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"rocketd/broker"
	"rocketd/namesrv"
	"rocketd/protocol"
)

var update = flag.Bool("update", false, "write the table of request codes into COMPATIBILITY.md")

func set(codes []protocol.RequestCode) map[protocol.RequestCode]bool {
	m := map[protocol.RequestCode]bool{}
	for _, c := range codes {
		m[c] = true
	}
	return m
}

func TestEveryCodeIsRoutedOrExcused(t *testing.T) {
	routed, named := set(broker.Routed()), set(namesrv.Routed())
	for _, c := range protocol.RequestCodes() {
		reason, excused := broker.Unsupported[c]
		switch {
		case routed[c] && excused:
			t.Errorf("%d %s has a route at the broker and an excuse (%s)", int(c), c, reason)
		case !routed[c] && !excused:
			t.Errorf("%d %s has neither a route at the broker nor a reason in broker/unsupported.go", int(c), c)
		case excused && strings.TrimSpace(reason) == "":
			t.Errorf("%d %s: the reason is empty", int(c), c)
		}
		if reason == "served by the name server" && !named[c] {
			t.Errorf("%d %s is left to the name server, which has no route for it", int(c), c)
		}
	}
}

// Marks around the generated table.
const (
	tableBegin = "<!-- request codes: begin (written by `go test ./conformance/house -update`) -->"
	tableEnd   = "<!-- request codes: end -->"
)

func TestTableOfCodesIsTrue(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(r, "COMPATIBILITY.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	head, rest, ok := strings.Cut(text, tableBegin)
	if !ok {
		t.Fatalf("COMPATIBILITY.md lacks the mark %q", tableBegin)
	}
	_, tail, ok := strings.Cut(rest, tableEnd)
	if !ok {
		t.Fatalf("COMPATIBILITY.md lacks the mark %q", tableEnd)
	}
	want := head + tableBegin + "\n" + codesTable() + tableEnd + tail
	if want == text {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("the table of request codes in COMPATIBILITY.md is not that of the routes: run go test ./conformance/house -update")
}

func codesTable() string {
	routed, named := set(broker.Routed()), set(namesrv.Routed())
	codes := protocol.RequestCodes()
	sort.Slice(codes, func(i, j int) bool { return codes[i] < codes[j] })
	var s strings.Builder
	s.WriteString("| code | name | state |\n|---|---|---|\n")
	for _, c := range codes {
		var state []string
		if routed[c] {
			state = append(state, "broker")
		}
		if named[c] {
			state = append(state, "name server")
		}
		if len(state) == 0 {
			state = append(state, "no: "+broker.Unsupported[c])
			if broker.Unsupported[c] == "sent by the broker to a client" {
				state[0] = "broker to client"
			}
		}
		fmt.Fprintf(&s, "| %d | %s | %s |\n", int(c), c, strings.Join(state, ", "))
	}
	return s.String()
}
