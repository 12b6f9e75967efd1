//go:build conformance

package disk

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rocketd/conformance/target"
)

// A directory in use is refused, with the right words, by whoever comes second; and the one that runs goes on and loses
// no message. The official broker looks at the lock only after it has recovered, and has removed what it takes for unfinished: the
// log's file made in advance and the newest index files. rocketd bears the first, and makes the keys again at its next start.
// Another official broker does not bear it, and loses what it appends.
func TestDirectoryIsLocked(t *testing.T) {
	other := selected(t)
	for _, c := range []struct{ runs, second target.Kind }{{other, target.Official}, {target.Official, other}} {
		t.Run(fmt.Sprintf("%s while %s runs", c.second, c.runs), func(t *testing.T) {
			eras := []*era{{kind: c.runs, kill: true}, {kind: c.runs}}
			r := newTurns(t, eras, small, 5)
			s := r.begin(eras[0])
			last := r.traffic(s, 0)
			r.l.settle(s)
			refused(t, c.second, r)
			if c.second == target.Official && c.runs == target.Official {
				s.hangUp()
				return
			}
			// Enough for new files of every kind.
			w := &sender{server: s, l: r.l, era: 100}
			w.everyKind("Disk", 4, 20)
			w.send()
			r.l.settle(s)
			r.end(s, eras[0], last)
			r.end(r.begin(eras[1]), eras[1], nil)
		})
	}
}

// refused starts a broker on the directory of one that runs.
func refused(t *testing.T, kind target.Kind, r *turns) {
	t.Helper()
	conf := maps.Clone(small)
	_, err := target.StartMain(target.Options{Kind: target.Rocketd, Brokers: []target.BrokerOptions{{Kind: kind, Conf: conf, JVM: quickStart, StoreDir: r.broker.StoreDir}}})
	if err == nil {
		t.Fatalf("%s has started on the directory of a running broker", kind)
	}
	t.Logf("%s: %.600v", kind, err)
	for _, want := range map[target.Kind][]string{
		target.Rocketd:  {"exit status 1\n", r.broker.StoreDir, "lock"},
		target.Official: {"exit status 255\n", "Lock failed,MQ already started"},
	}[kind] {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s does not say %q:\n%v", kind, want, err)
		}
	}
}
