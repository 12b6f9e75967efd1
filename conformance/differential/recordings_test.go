//go:build conformance

package differential

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/conformance/target"
)

// attempts is how often a recording is replayed before its differences count. Some answers of a session depend on what
// overtakes what: a pull sent right behind a heartbeat, a route asked for a moment earlier, messages dispatched between two
// pulls. A difference is real when it is there every time.
const attempts = 3

// recordedConf is what the recorded broker was configured with.
func recordedConf() map[string]string {
	return map[string]string{
		"autoCreateTopicEnable": "true", "traceTopicEnable": "true", "enablePropertyFilter": "true",
		"transactionTimeOut": "3000", "transactionCheckInterval": "5000",
	}
}

func recordedCluster(t *testing.T) map[string]string {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Name: "oracle-a", Cluster: "OracleCluster", Conf: recordedConf()}}})
	b := c.Brokers[0]
	return map[string]string{"namesrv": c.Namesrv, "broker": b.Addr, "broker-vip": fmt.Sprintf("127.0.0.1:%d", b.Port()-2)}
}

// Stock clients' sessions with the official servers are replayed; each answer must be the recorded one.
func TestRecordings(t *testing.T) {
	t.Parallel()
	names, err := recordingNames()
	if err != nil || len(names) < 80 {
		t.Fatalf("%d recordings, %v", len(names), err)
	}
	shared := recordedCluster(t)
	var running *target.Target
	checked := sync.OnceValues(func() (_ *target.Target, err error) {
		running, err = checkedCluster()
		return running, err
	})
	t.Cleanup(func() {
		if running != nil {
			if err := running.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := func() map[string]string { return shared }
			switch {
			case strings.HasSuffix(name, "-acl"):
				c, err := checked()
				if err != nil {
					t.Fatal(err)
				}
				cluster = func() map[string]string {
					return map[string]string{"acl-namesrv": c.Namesrv, "acl-broker": c.Brokers[0].Addr}
				}
			case name == "broker-namesrv":
				// Here brokers register that do not exist: not beside the real ones.
				cluster = func() map[string]string {
					return map[string]string{"namesrv": target.Start(t, target.Options{}).Namesrv}
				}
			case name == "mqadmin":
				// It changes brokers and name servers, and lists all that they hold.
				cluster = func() map[string]string { return recordedCluster(t) }
			}
			replayRecording(t, name, cluster)
		})
	}
}

func replayRecording(t *testing.T, name string, cluster func() map[string]string) {
	entries, err := loadRecording(name)
	if err != nil {
		t.Fatal(err)
	}
	var real []difference
	for attempt := 1; attempt <= attempts; attempt++ {
		r := newReplay(cluster(), attempt)
		switch name {
		case "broker-namesrv":
			r.pause = 100 * time.Millisecond // a broker's heartbeats need no patience
		case "mqadmin":
			r.pause = time.Millisecond // 150 JVMs were started one after the other
			r.suffix, r.hurried = "", true
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
