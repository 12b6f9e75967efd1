//go:build conformance

package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
)

// attempts is how often a recording is replayed before its differences count. Some answers of a session depend on what
// overtakes what: a pull sent right behind a heartbeat, a route asked for a moment earlier, messages dispatched between two
// pulls. A difference is real when it is there every time.
const attempts = 3

// Stock clients' sessions with the official servers are replayed; each answer must be the recorded one.
func TestRecordings(t *testing.T) {
	t.Parallel()
	names, err := recordingNames()
	if err != nil || len(names) < 40 {
		t.Fatalf("%d recordings, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addrs := map[string]string{"namesrv": namesrv(), "broker": broker(), "broker-vip": fastPort()}
			if name == "broker-namesrv" {
				// Here brokers register that do not exist: not beside the real ones.
				other := target.Start(t, target.Options{})
				addrs = map[string]string{"namesrv": other.Namesrv}
			}
			replayRecording(t, name, addrs)
		})
	}
}

func replayRecording(t *testing.T, name string, addrs map[string]string) {
	entries, err := loadRecording(name)
	if err != nil {
		t.Fatal(err)
	}
	var real []difference
	for attempt := 1; attempt <= attempts; attempt++ {
		r := newReplay(addrs, attempt)
		if addrs["broker"] == "" {
			r.pause = 100 * time.Millisecond // a broker's heartbeats need no patience
		}
		if err := r.run(entries); err != nil {
			t.Fatal(err)
		}
		if r.compared == 0 {
			t.Fatal("nothing was compared")
		}
		if attempt == 1 {
			real = r.diffs
		} else {
			var stay []difference
			for _, d := range r.diffs {
				if slices.ContainsFunc(real, func(o difference) bool { return o.key() == d.key() }) {
					stay = append(stay, d)
				}
			}
			real = stay
		}
		if len(real) == 0 {
			if attempt > 1 {
				t.Logf("%d answers are the recorded ones at attempt %d", r.compared, attempt)
			}
			return
		}
		var b strings.Builder
		for _, d := range r.diffs {
			fmt.Fprintf(&b, "\n  line %d: %s: %.400s", d.line, d.what, d.how)
		}
		t.Logf("attempt %d: %d of %d answers differ:%s", attempt, len(r.diffs), r.compared, b.String())
	}
	for _, d := range real {
		t.Errorf("line %d: %s: %s", d.line, d.what, d.how)
	}
}
