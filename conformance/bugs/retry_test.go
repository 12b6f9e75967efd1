//go:build conformance

package bugs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// H03 (#1869, PR #3358): a saved place in a delay level's queue that lies behind its end is set to the end, and the next
// delayed message is delivered in time. The official server does the same.
func TestDelayOffsetTooLarge(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{})
	b := c.Brokers[0]
	s := dial(t, b.Addr)
	topic := s.topic("H03", 1)
	delayed := wire.Properties("DELAY", "1", "WAIT", "true") // 1 s
	s.Done(message(topic, 0, delayed, "before"))
	s.stored(topic, 0, 0, 1)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.StoreDir, "config", "delayOffset.json")
	for _, name := range []string{file, file + ".bak"} {
		if err := os.WriteFile(name, []byte("{\n\t\"offsetTable\":{1:99999999\n\t}\n}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s = dial(t, b.Addr)
	began := time.Now()
	s.Done(message(topic, 0, delayed, "after"))
	ms := s.stored(topic, 0, 0, 2)
	if len(ms) != 2 || string(ms[1].Body) != "after" {
		t.Fatalf("%d messages", len(ms))
	}
	t.Logf("delivered after %s", time.Since(began).Round(time.Millisecond))
}

// H04 (#2724): a message given back at its retry limit goes to the dead letters at once, not through another delay. The
// official server does the same.
func TestDeadLetterAtOnce(t *testing.T) {
	s := dialShared(t)
	topic, group := s.topic("H04", 1), "H04-group"
	s.Done(wire.Request(200).WithBody([]byte(`{"groupName":"` + group + `","consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,` +
		`"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1,"notifyConsumerIdsChangedEnable":true}`)))
	back := func(m *wire.Message, level string) {
		t.Helper()
		s.Done(wire.Request(36, "group", group, "offset", text(m.PhyOffset), "delayLevel", level, "originMsgId", m.MsgId(), "originTopic", topic,
			"unitMode", "false", "maxReconsumeTimes", "2"))
	}
	s.Done(message(topic, 0, wire.Properties("TAGS", "T"), "poison"))
	m := s.stored(topic, 0, 0, 1)[0]
	for i := range int64(2) {
		back(m, "1")
		ms := s.stored("%RETRY%"+group, 0, i, i+1)
		if m = ms[0]; m.ReconsumeTimes != int32(i)+1 {
			t.Fatalf("retry %d has reconsume times %d", i, m.ReconsumeTimes)
		}
	}
	delayedBefore := s.max("SCHEDULE_TOPIC_XXXX", 1) // level 2, 5 s
	back(m, "2")
	dead := s.stored("%DLQ%"+group, 0, 0, 1)[0]
	if dead.ReconsumeTimes != 3 || string(dead.Body) != "poison" || dead.Properties["TAGS"] != "T" {
		t.Errorf("dead letter %+v", dead)
	}
	if got := s.max("SCHEDULE_TOPIC_XXXX", 1); got != delayedBefore {
		t.Errorf("%d messages were delayed", got-delayedBefore)
	}
	if got := s.max("%RETRY%"+group, 0); got != 2 {
		t.Errorf("the retry queue ends at %d", got)
	}
}

// resend is what an orderly consumer sends that gives a message up for now: a send to the group's retry topic.
func resend(group string, reconsumeTimes, maxReconsumeTimes string) *wire.Frame {
	f := message("%RETRY%"+group, 0, wire.Properties("TAGS", "T", "RETRY_TOPIC", "H05"), "again")
	if reconsumeTimes != "" {
		f.Set("j", reconsumeTimes)
	} else {
		f.Without("j")
	}
	if maxReconsumeTimes != "" {
		f.Set("l", maxReconsumeTimes)
	}
	return f
}

// H05 (#6163): what an orderly consumer sends back at its own limit goes to the dead letters, once, and not round in the
// retry topic. The official server does the same.
func TestOrderlyRetryLimit(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	const group = "H05-group"
	s.Done(wire.Request(200).WithBody([]byte(`{"groupName":"` + group + `","retryMaxTimes":16,"retryQueueNums":1}`)))
	s.topic("%RETRY%"+group, 1)
	s.Done(resend(group, "0", "1"))
	if ms := s.stored("%RETRY%"+group, 0, 0, 1); len(ms) != 1 || ms[0].ReconsumeTimes != 0 {
		t.Errorf("the first is %v", ms)
	}
	s.Done(resend(group, "1", "1"))
	dead := s.stored("%DLQ%"+group, 0, 0, 1)
	if len(dead) != 1 || dead[0].ReconsumeTimes != 1 || string(dead[0].Body) != "again" || dead[0].Properties["RETRY_TOPIC"] != "H05" {
		t.Errorf("dead letters %v", dead)
	}
	s.Done(resend(group, "15", ""))
	if ms := s.stored("%RETRY%"+group, 0, 1, 2); len(ms) != 1 || ms[0].ReconsumeTimes != 15 {
		t.Errorf("below the group's limit: %v", ms)
	}
	s.Done(resend(group, "16", ""))
	if dead := s.stored("%DLQ%"+group, 0, 1, 2); len(dead) != 1 || dead[0].ReconsumeTimes != 16 {
		t.Errorf("at the group's limit: %v", dead)
	}
	if got := s.max("%RETRY%"+group, 0); got != 2 {
		t.Errorf("the retry queue ends at %d", got)
	}
}

// H06 (#1843, #2055): a producer's send straight to a retry topic is stored, without the fields that only consumers set
// too; the group of a retry topic that has none is made, as for a consumer. The official server does the same; without
// automatic groups both answer 26 (TestStrictBrokerAndItsEnd).
func TestSendToRetryTopic(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	for _, group := range []string{"H06-group", "H06-missing"} {
		if group == "H06-group" {
			s.Done(wire.Request(200).WithBody([]byte(`{"groupName":"` + group + `"}`)))
		}
		s.topic("%RETRY%"+group, 1)
		s.Done(resend(group, "", ""))
		s.Done(resend(group, "0", ""))
		s.Done(resend(group, "0", "3"))
		for _, m := range s.stored("%RETRY%"+group, 0, 0, 3) {
			if m.ReconsumeTimes != 0 || string(m.Body) != "again" {
				t.Errorf("%s: %+v", group, m)
			}
		}
	}
}
