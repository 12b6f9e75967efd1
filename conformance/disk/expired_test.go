//go:build conformance

package disk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// When the oldest files of the log have gone, both servers must say the same of what is left: where queues begin and
// end, what a pull before, at and behind that is answered, and that what is gone is not found.
func TestExpiredLog(t *testing.T) {
	other := selected(t)
	r := newTurns(t, []*era{{kind: target.Official}}, small, 20)
	e := &era{kind: target.Official}
	s := r.begin(e)
	r.topic(s, "Old", 2) // only at the beginning
	w := &sender{server: s, l: r.l}
	for i := range 120 { // three files of a queue
		w.message(place{"Old", int32(i % 2)}, fmt.Sprintf("old %d", i), "KEYS", fmt.Sprintf("old-%d", i))
	}
	w.send()
	r.topic(s, "Disk", 4)
	w.delayed(place{"Disk", 0}, "18")
	for range 4 {
		w.everyKind("Disk", 4, r.scale/4)
	}
	w.delayed(place{"Disk", 0}, "18")
	w.send()
	r.l.settle(s)
	r.end(s, e, nil)
	all := slices.Concat(slices.Collect(maps.Values(r.l.queues))...)

	logs, err := filepath.Glob(filepath.Join(r.broker.StoreDir, "commitlog", "*"))
	if err != nil || len(logs) < 6 {
		t.Fatalf("%d files of the log, %v", len(logs), err)
	}
	for _, name := range logs[:4] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	minimum := 4 * r.sz.log
	// Of a queue that has nothing left the official broker says the minimum that it had, or 0 after a start; rocketd says
	// that it begins where it ends.
	gone := map[place]bool{}
	for p, q := range r.l.queues {
		gone[p] = q[len(q)-1].read.PhyOffset < minimum
	}

	var want map[string]string
	kinds := []target.Kind{target.Official, other}
	if long() {
		kinds = append(kinds, target.Official, other)
	}
	for n, kind := range kinds {
		r.broker.RunAs(kind)
		if err := r.broker.Start(); err != nil {
			t.Fatal(err)
		}
		s := connect(t, r.broker)
		facts := map[string]string{}
		for p := range r.l.queues {
			if !gone[p] || kind == target.Official {
				s.boundsOf(p, facts)
			} else if first, end := s.minOffset(p), s.maxOffset(p); first != end || end != int64(len(r.l.queues[p])) {
				t.Errorf("turn %d, %s: %s: %d to %d", n, kind, p, first, end)
			}
		}
		for _, m := range all {
			s.findsOf(m, m.read.PhyOffset >= minimum, facts)
		}
		s.hangUp()
		if err := r.broker.Stop(); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			want = facts
			continue
		}
		for k, v := range want {
			if facts[k] != v && facts[k] != "" {
				t.Errorf("turn %d, %s: %s: %s, the official broker's: %s", n, kind, k, facts[k], v)
			}
		}
	}
	t.Logf("%d facts", len(want))
}

// boundsOf notes the bounds of a queue, and what pulls around them are answered.
func (s *server) boundsOf(p place, facts map[string]string) {
	s.t.Helper()
	first, end := s.minOffset(p), s.maxOffset(p)
	facts[p.String()] = fmt.Sprintf("%d to %d", first, end)
	for name, offset := range map[string]int64{"0": 0, "before min": first - 1, "min": first, "before max": end - 1, "max": end, "behind max": end + 1} {
		if offset < 0 {
			continue
		}
		a := s.Ask(pull(p, offset).Set("maxMsgNums", "1"))
		count := 0
		if a.Code == 0 {
			ms, err := wire.Messages(a.Body)
			if err != nil {
				// The official broker takes the entry of the very first record, at 0, for one at the start of the first file
				// that is left.
				s.t.Logf("%s offset %d (%s): no message but %d bytes", p, offset, name, len(a.Body))
				continue
			}
			count = len(ms)
		}
		facts[p.String()+", pull at "+name] = fmt.Sprintf("code %d, next %s, min %s, max %s, %d messages", a.Code, a.Ext["nextBeginOffset"], a.Ext["minOffset"], a.Ext["maxOffset"], count)
	}
	a := s.Ask(p.request(32))
	facts[p.String()+", earliest time"] = fmt.Sprintf("%d %s", a.Code, a.Ext["timestamp"])
	a = s.Ask(p.request(29).Set("timestamp", "1"))
	facts[p.String()+", offset at the beginning of time"] = fmt.Sprintf("%d %s", a.Code, a.Ext["offset"])
}

// findsOf notes how a message is found by its places in the log and the index.
func (s *server) findsOf(m *message, there bool, facts map[string]string) {
	s.t.Helper()
	view := s.Ask(wire.Request(33, "offset", strconv.FormatInt(m.read.PhyOffset, 10)))
	found := s.Ask(query(m.topic, key(m.properties, m.body), true))
	if m.read.PhyOffset == 0 {
		return // see boundsOf
	}
	if (view.Code == 0) != there || m.properties["UNIQ_KEY"] != "" && (found.Code == 0) != there {
		s.t.Errorf("%s at %d: view %d %s, query %d %s", m.id(), m.read.PhyOffset, view.Code, view.Remark, found.Code, found.Remark)
	}
	facts["view of "+m.id()] = fmt.Sprint(view.Code)
	facts["query of "+m.id()] = fmt.Sprintf("%d %d", found.Code, len(found.Body))
}
