//go:build conformance

package configured

import (
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// The trace topic has the name that the configuration gives it, and one queue; of the usual name there is none.
func TestTraceTopicName(t *testing.T) {
	t.Parallel()
	c, err := wire.Dial(server.Namesrv, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Call(wire.Request(105, "topic", "OwnTraceTopic"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(a.Body); a.Code != 0 || !strings.Contains(text, `"perm":6`) || !strings.Contains(text, `"readQueueNums":1`) || !strings.Contains(text, `"writeQueueNums":1`) {
		t.Errorf("route %d %q: %s", a.Code, a.Remark, text)
	}
	if a, err = c.Call(wire.Request(105, "topic", "RMQ_SYS_TRACE_TOPIC"), patience); err != nil || a.Code != 17 {
		t.Errorf("route of the usual one: %+v, %v", a, err)
	}
	s := connect(t)
	if list := string(s.Done(wire.Request(305)).Body); !strings.Contains(list, `"OwnTraceTopic"`) || !strings.Contains(list, `"RMQ_SYS_TRACE_TOPIC"`) { // the name stays the system's
		t.Errorf("system topics: %s", list)
	}
	s.Done(message("OwnTraceTopic", "trace", "KEYS", "k"))
	if m := s.stored("OwnTraceTopic", 1)[0]; string(m.Body) != "trace" {
		t.Errorf("stored %s", m.Body)
	}
}
