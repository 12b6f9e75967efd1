//go:build conformance

package crash

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rocketd/conformance/target"
)

var (
	kills  = flag.Int("kills", 0, "SIGKILLs in all (default: 10; in the long form 208, of the official server 64)")
	report = flag.String("report", "", "write the result as Markdown to `FILE`")
	random = flag.Uint64("seed", 0, "seed of sizes and moments (default: by the clock)")
)

// killsInStore is how many kills one store has to bear.
const killsInStore = 26

// TestCrash kills the broker in each mode and with both kinds of files.
func TestCrash(t *testing.T) {
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	if *random == 0 {
		*random = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *random)
	long, total := os.Getenv("CONFORMANCE_LONG") != "", *kills
	switch {
	case total > 0:
	case !long:
		total = 10
	case kind == target.Official:
		total = 64
	default:
		total = 208
	}
	modes := modes(kind, long)
	var rows []*Row
	for i, s := range modes {
		row := &Row{Kind: kind, Name: s.Name()}
		rows = append(rows, row)
		for left := (total + len(modes) - 1 - i) / len(modes); left > 0; {
			s.Kills, s.Seed = min(left, killsInStore), *random
			left -= s.Kills
			*random++
			t.Run(fmt.Sprintf("%s %d", s.Name(), row.Stores), func(t *testing.T) { row.run(t, s) })
		}
	}
	text := Markdown(rows)
	t.Log("\n" + text)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// modes are the kinds of runs. A JVM needs seconds to start and then to become quick, so it lives longer.
func modes(kind target.Kind, long bool) []Settings {
	s := Settings{Life: [2]time.Duration{100 * time.Millisecond, 900 * time.Millisecond}, Start: 250 * time.Millisecond, Rate: 2000, LargestBody: 100_000}
	if long { // both servers save consumer and delay offsets 10 s after their start for the first time
		s.Outlast = 12 * time.Second
	}
	if kind == target.Official {
		s.Life[1], s.Start = 2*time.Second, 5*time.Second
	}
	var all []Settings
	for _, m := range []struct {
		flush string
		small bool
	}{{"ASYNC_FLUSH", true}, {"SYNC_FLUSH", true}, {"ASYNC_FLUSH", false}, {"SYNC_FLUSH", false}} {
		s.Flush, s.Small = m.flush, m.small
		all = append(all, s)
	}
	if !long { // the small files, where more happens, and the default files
		return []Settings{all[0], all[3]}
	}
	return all
}

// A broker whose log has lost its last records while it was dead is found out, whichever it is.
func TestLossIsNoticed(t *testing.T) {
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	s := modes(kind, false)[0]
	s.Kills, s.Seed, s.spoil = 1, 1, cutLog
	s.Life = [2]time.Duration{time.Second, 1100 * time.Millisecond}
	c := target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Conf: s.Conf()}}})
	h, err := Run(t.Context(), c.Brokers[0], s)
	if err != nil {
		t.Fatal(err)
	}
	v := Check(h)
	t.Logf("%v of %+v", v.Broken, v.Counts)
	if v.Broken[Lost] == 0 {
		t.Error("nobody noticed")
	}
}

// cutLog makes the last 200 kB of the commit log zeros, and what is behind them.
func cutLog(storeDir string) error {
	names, err := filepath.Glob(filepath.Join(storeDir, "commitlog", "*"))
	if err != nil {
		return err
	}
	left := 200_000
	for _, name := range slices.Backward(names) {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		used := len(bytes.TrimRight(b, "\x00"))
		cut := min(used, left)
		clear(b[used-cut:])
		if err := os.WriteFile(name, b, 0o644); err != nil {
			return err
		}
		if left -= cut; left == 0 {
			return nil
		}
	}
	return errors.New("the log is too short")
}

// known are the rules that the official server breaks now and then: it shows a record of which only a part was written when it
// was killed, since no checksum covers the properties. It is reported and does not make the cases wrong.
var known = map[Rule]bool{Wrong: true, Phantom: true}

// run is one run on a store of its own.
func (r *Row) run(t *testing.T, s Settings) {
	c := target.Start(t, target.Options{Kind: r.Kind, Brokers: []target.BrokerOptions{{Conf: s.Conf()}}})
	began := time.Now()
	h, err := Run(t.Context(), c.Brokers[0], s)
	if err != nil {
		t.Fatal(err)
	}
	v := Check(h)
	r.Add(v, time.Since(began))
	t.Logf("%+v", v.Counts)
	for _, f := range v.Cases {
		if r.Kind == target.Official && known[f.Rule] {
			t.Logf("the official server: %s: %s", f.Rule, f.Text)
			continue
		}
		t.Errorf("%s: %s", f.Rule, f.Text)
	}
	if v.Counts.Acknowledged == 0 || v.Counts.Delayed == 0 {
		t.Error("nothing was done")
	}
}
