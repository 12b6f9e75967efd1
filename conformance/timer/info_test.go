//go:build conformance

package timer

import (
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// info waits until the runtime information tells of n messages that wait, by the keys of 5.x.
func info(s *session, n int) {
	s.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); ; <-every.C {
		a := s.ask(wire.Request(28))
		if a.Code != 0 && !official() { // whose first seconds end in an exception
			s.Fatalf("code 28: %d %s", a.Code, a.Remark)
		}
		var v any = map[string]any{}
		if a.Code == 0 {
			var err error
			if v, err = wire.ParseJSON(a.Body); err != nil {
				s.Fatal(err)
			}
		}
		table, _ := v.(map[string]any)["table"].(map[string]any)
		if table["timerCongestNum"] == strconv.Itoa(n) && table["timerOffsetBehind"] == "0" {
			for _, key := range []string{"timerEnqueueTps", "timerDequeueTps", "timerReadBehind"} {
				text, _ := table[key].(string)
				if number, err := strconv.ParseFloat(text, 64); err != nil || number < 0 {
					s.Errorf("%s is %q", key, text)
				}
			}
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%d messages wait; told is %v", n, table)
		}
	}
}

// TestTimerInfo: all that wait are counted, after kill -9 too.
func TestTimerInfo(t *testing.T) {
	b := start(t).Brokers[0]
	s := connect(t, b)
	topic := s.topic("TimerInfo")
	for i := range 5 {
		s.want(message(topic, strconv.Itoa(i), "TIMER_DELAY_SEC", "3600"), 0)
	}
	info(s, 5)
	if official() { // which saves its counts now and then: after a kill they are others
		return
	}
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s = connect(t, b)
	s.want(message(topic, "one more", "TIMER_DELAY_SEC", "3600"), 0)
	info(s, 6)
}
