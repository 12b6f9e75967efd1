//go:build conformance

package configured

import (
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// messageDelayLevel says how many levels there are and how long each is.
func TestDelayLevels(t *testing.T) {
	t.Parallel()
	s := connect(t)
	topic := s.topic("Levels")
	for _, c := range []struct {
		level   string
		queueId int // of those that wait
	}{{"99", 2}, {"2", 1}, {"1", 0}} { // beyond the last is the last
		before := s.max("SCHEDULE_TOPIC_XXXX", c.queueId)
		s.Done(message(topic, c.level, "DELAY", c.level))
		until(t, "it waits in its level's queue", func() bool { return s.max("SCHEDULE_TOPIC_XXXX", c.queueId) == before+1 })
	}
	for _, m := range s.stored(topic, 3) {
		level := map[string]string{"99": "3", "2": "2", "1": "1"}[string(m.Body)]
		if m.Properties["DELAY"] != level {
			t.Errorf("the one of level %s says %s", m.Body, m.Properties["DELAY"])
		}
		if after, least := m.StoreTimestamp-m.BornTimestamp, map[string]int64{"1": 1000, "2": 2000, "3": 3000}[level]; after < least {
			t.Errorf("level %s: delivered after %d ms", level, after)
		}
	}
	if n := s.max("SCHEDULE_TOPIC_XXXX", 17); n != 0 {
		t.Errorf("%d wait at a level that is not there", n)
	}
}

// With timerWheelEnable=false it is as with 4.9: the properties of timer messages mean nothing, and nothing can be recalled.
func TestTimerSwitchedOff(t *testing.T) {
	t.Parallel()
	s := connect(t)
	topic := s.topic("NoTimer")
	for _, p := range [][]string{
		{"TIMER_DELAY_SEC", "3600"}, {"TIMER_DELAY_MS", "3600000"}, {"TIMER_DELIVER_MS", "9000000000000"}, {"__STARTDELIVERTIME", "9000000000000"},
		{"TIMER_DELAY_SEC", "no number"}, {"TIMER_DELIVER_MS", "9223372036854775808"},
	} {
		a := s.Done(message(topic, p[0]+"="+p[1], append(p, "UNIQ_KEY", "0123456789ABCDEF0123456789ABCDEF")...))
		if names := strings.Join(a.ExtNames(), " "); names != "MSG_REGION TRACE_ON msgId queueId queueOffset" {
			t.Errorf("%v is answered with %s", p, names)
		}
	}
	for _, m := range s.stored(topic, 6) {
		name, value, _ := strings.Cut(string(m.Body), "=")
		if m.Properties[name] != value || m.Properties["TIMER_OUT_MS"] != "" || m.Properties["REAL_TOPIC"] != "" {
			t.Errorf("%s: stored with %v", m.Body, m.Properties)
		}
	}
	a := s.Ask(wire.Request(370, "producerGroup", "G", "topic", topic, "recallHandle", "x"))
	if a.Code != 3 || a.Remark != " request type 370 not supported" {
		t.Errorf("a recall: %d %q", a.Code, a.Remark)
	}
	if n := s.max("rmq_sys_wheel_timer", 0); n != 0 {
		t.Errorf("%d messages wait", n)
	}
}
