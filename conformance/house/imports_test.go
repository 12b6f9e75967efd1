package house

import (
	"strings"
	"testing"
)

// floors lists, for each top-level room, what of this module it may import. Imports run downward only.
var floors = map[string][]string{
	"compat":   {},
	"protocol": {"compat", "protocol"},
	"remoting": {"compat", "protocol", "remoting"},
	"store":    {"compat", "protocol", "store"},
	"namesrv":  {"compat", "protocol", "remoting", "namesrv"},
	"broker":   {"compat", "protocol", "remoting", "store", "broker"},
	"cmd":      {"compat", "protocol", "remoting", "store", "broker", "namesrv", "cmd"},
}

// only lists third-party modules that a single room may know, and why.
var only = map[string]struct{ room, why string }{
	"github.com/urfave/cli/v2":     {"cmd", "flags are a matter of the command line; the rooms below take structs"},
	"github.com/cloudwego/netpoll": {"remoting", "connections are one room's business; others see Conn and Call"},
}

func TestImportsRunDownward(t *testing.T) {
	for _, s := range mustSources(t) {
		room, _, _ := strings.Cut(s.Dir, "/")
		if room == "conformance" {
			continue
		}
		allowed, known := floors[room]
		if !known {
			t.Errorf("%s: the top level has no room %q", s.Path, room)
			continue
		}
		for _, i := range s.Imports {
			for mod, rule := range only {
				if (i == mod || strings.HasPrefix(i, mod+"/")) && room != rule.room {
					t.Errorf("%s imports %s: only %s may (%s)", s.Path, i, rule.room, rule.why)
				}
			}
			rest, ours := strings.CutPrefix(i, "rocketd/")
			if !ours {
				continue
			}
			to, _, _ := strings.Cut(rest, "/")
			if !contains(allowed, to) && !(strings.HasSuffix(s.Path, "_test.go") && to == "conformance") {
				t.Errorf("%s imports %s: %s may import only %v", s.Path, i, room, allowed)
			}
			if room == "broker" && s.Dir != "broker" && to == "broker" && rest != s.Dir && !strings.HasPrefix(rest, s.Dir+"/") {
				t.Errorf("%s imports %s: a sub-package of broker imports neither broker nor a sibling; broker.go hands it a func", s.Path, i)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func mustSources(t *testing.T) []source {
	t.Helper()
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := sources(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files found below %s", len(all), r)
	}
	return all
}
