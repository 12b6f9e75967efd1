//go:build conformance

package admin

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
)

var (
	update = flag.Bool("update", false, "write what the official server prints into the transcripts (CONFORMANCE_TARGET=official)")
	newer  = flag.Bool("update5", false, "with -update: write what the official 5.3.3 prints at the steps that need request 351")
)

// What a step may take until it is as expected; a change of a topic reaches the name servers within moments, but a
// retry's message and a client's next heartbeat take seconds.
const settled = 20 * time.Second

// A recorded output has not changed for so long.
const still = 2 * time.Second

// run is a cluster with the tools beside it.
type run struct {
	*mqadmin
	target *target.Target
	values map[string]string // what a {name} stands for
	names  map[string]string // and back
}

// Two brokers of one cluster that register at two name servers.
func startRun(t *testing.T, client string) *run {
	conf := map[string]string{
		"autoCreateTopicEnable": "true",
		"traceTopicEnable":      "true",
		// A transaction's check comes within seconds and not a minute.
		"transactionTimeOut": "3000", "transactionCheckInterval": "5000",
	}
	var kind target.Kind
	if *newer {
		kind = target.Official5
	}
	c := target.Start(t, target.Options{Kind: kind, NameServers: 2, Brokers: []target.BrokerOptions{
		{Name: "broker-a", Cluster: "AdminCluster", Conf: conf},
		{Name: "broker-b", Cluster: "AdminCluster", Conf: conf},
	}})
	home := filepath.Join(c.Dir(), "mqadmin")
	r := &run{mqadmin: startMqadmin(t, c, client, home), target: c, values: map[string]string{}, names: map[string]string{}}
	r.name("ns", c.Namesrv)
	r.name("ns1", c.NameServers[0].Addr)
	r.name("ns2", c.NameServers[1].Addr)
	r.name("a", c.Brokers[0].Addr)
	r.name("b", c.Brokers[1].Addr)
	for i, b := range c.Brokers {
		_, port, _ := strings.Cut(b.Addr, ":")
		r.name("port-"+string(rune('a'+i)), port)
		r.name("none-"+string(rune('a'+i)), fmt.Sprintf("7F000001%08X0000010000000000", b.Port())) // far behind the log's end
	}
	r.name("home", home)
	r.name("dir", c.Dir())
	return r
}

func (r *run) name(name, value string) {
	if value != "" {
		r.values[name], r.names[value] = value, name
	}
}

// valuesByLength are the named values, the longest first: one may be a part of another.
func (r *run) valuesByLength() []string {
	return slices.SortedFunc(maps.Keys(r.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

var nameInText = regexp.MustCompile(`\{([\w.-]+)\}`)

// fill replaces {names} by values.
func (r *run) fill(s string) string {
	return nameInText.ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := r.values[m[1:len(m)-1]]; ok {
			return v
		}
		return m
	})
}

// take gives names to what a client said: NAME.id and NAME.place of a sent message, NAME of a client, NAME.ip of its address.
func (r *run) take(name, out string) error {
	f := strings.Fields(out)
	switch {
	case len(f) == 2 && f[0] == "online":
		ip, _, _ := strings.Cut(f[1], "@")
		r.name(name, f[1])
		r.name("ip", ip)
	case len(f) == 3:
		r.name(name+".id", f[0])
		r.name(name+".place", f[1])
	case len(f) == 1:
		r.name(name+".id", f[0])
	case strings.HasPrefix(out, "#Broker Name") && len(f) > 4: // sendMessage's table
		r.name(name+".id", f[len(f)-1])
	default:
		return fmt.Errorf("nothing to name in %q", out)
	}
	return nil
}

// do runs a step once.
func (r *run) do(t *testing.T, s *step) []string {
	t.Helper()
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = r.fill(a)
	}
	out := r.run(t, args...)
	for _, f := range s.filters {
		if f[0] == "take" && len(f) == 2 {
			if err := r.take(f[1], out); err != nil {
				t.Fatalf("%s: %v", s.line, err)
			}
		}
	}
	lines, err := r.normal(s, out)
	if err != nil {
		t.Fatalf("%s: %v", s.line, err)
	}
	return lines
}

// play runs the transcripts in turn and compares each step's output. differs names the steps, as "file: command", at
// which rocketd is not yet as the official server, with the reason.
func (r *run) play(t *testing.T, folder string, files []string, differs map[string]difference) {
	if *update && r.target.Kind == target.Rocketd {
		t.Fatal("-update records the official server: CONFORMANCE_TARGET=official")
	}
	unused := maps.Clone(differs)
	for _, file := range files {
		script, err := readTranscript(filepath.Join("testdata", folder, file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(file, func(t *testing.T) {
			for _, s := range script.steps {
				key := file + ": " + s.line
				delete(unused, key)
				t.Run(s.args[0], func(t *testing.T) { r.check(t, s, differs[key]) })
				if r.ended {
					t.FailNow()
				}
			}
		})
		if r.ended {
			return
		}
		if *update {
			if err := script.write(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for key := range unused {
		t.Errorf("no step %q, which is said to differ", key)
	}
}

func (r *run) check(t *testing.T, s *step, differs difference) {
	got := r.do(t, s)
	want := s.want
	if r.target.Kind == target.Rocketd && len(s.newer) > 0 {
		want = s.newer
	}
	same := func() bool { return slices.Equal(got, want) }
	known := differs.reason != "" && r.target.Kind == target.Rocketd
	if s.has("retry") && !known {
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		quiet, last := time.Now(), got
		for end := time.Now().Add(settled); !same() && time.Now().Before(end); <-every.C {
			if got = r.do(t, s); !slices.Equal(got, last) {
				quiet, last = time.Now(), got
			}
			if *update && time.Since(quiet) > still && s.awaited(got) {
				break
			}
		}
	}
	switch {
	case *newer && refused(s.want):
		s.newer = got
	case *newer:
	case *update && !s.awaited(got):
		t.Errorf("line %d: %s\nnever had what it was to be awaited for\n%s", s.number, s.line, strings.Join(got, "\n"))
	case *update:
		s.want = got
	case known && same():
		t.Errorf("line %d: %s\nis said to differ (%s), and does not any more", s.number, s.line, differs.reason)
	case known && differs.lines != nil && !slices.Equal(got, differs.lines):
		t.Errorf("line %d: %s\ndiffers otherwise than it may (%s)\n%s", s.number, s.line, differs.reason, strings.Join(got, "\n"))
	case known:
		t.Logf("line %d: %s\ndiffers: %s", s.number, s.line, differs.reason)
	case !same():
		t.Errorf("line %d: %s\n%s", s.number, s.line, changes(want, got))
	}
}

// changes shows the lines that only one of two outputs has, in their order.
func changes(want, got []string) string {
	var b strings.Builder
	rest := slices.Clone(got)
	for _, l := range want {
		if i := slices.Index(rest, l); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			b.WriteString("  official: " + l + "\n")
		}
	}
	for _, l := range rest {
		b.WriteString("  here:     " + l + "\n")
	}
	if b.Len() == 0 {
		return "  the same lines in another order:\n  " + strings.Join(got, "\n  ")
	}
	return b.String()
}
