package broker

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestNoticesAreBounded: what peers do again is told once a minute, and neither many things nor long names of them are kept.
func TestNoticesAreBounded(t *testing.T) {
	var n notices
	now := time.UnixMilli(1_700_000_000_000)
	long := strings.Repeat("g", 4<<10)
	for i, tt := range []struct {
		thing string
		after time.Duration
		want  bool
	}{
		{"a", 0, true}, {"a", 59 * time.Second, false}, {"a", time.Minute, true}, {"b", 0, true}, {long, 0, true}, {long + "another", 0, false},
	} {
		if got := n.due(tt.thing, now.Add(tt.after)); got != tt.want {
			t.Errorf("%d: due %v", i, got)
		}
	}
	for i := range 5000 {
		n.due("group "+strconv.Itoa(i)+long, now)
	}
	size := 0
	for thing := range n.last {
		size += len(thing)
	}
	if len(n.last) > 1024 || size > 1024*256 {
		t.Errorf("%d things, %d bytes are kept", len(n.last), size)
	}
	if !n.due("later", now.Add(2*time.Minute)) || len(n.last) > 2 {
		t.Errorf("%d things are kept after their time", len(n.last))
	}
}
