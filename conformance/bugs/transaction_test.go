//go:build conformance

package bugs

import (
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// checking starts a broker that checks half messages every second, three times at most, and joins the producer group.
func checking(t *testing.T, group string) *server {
	t.Helper()
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{
		"transactionCheckInterval": "1000", "transactionTimeOut": "500", "transactionCheckMax": "3"}}}})
	s := dial(t, c.Brokers[0].Addr)
	s.Done(wire.ProducerHeartbeat("bugs-1", group))
	return s
}

// checks are the checks so far of half messages whose body begins with prefix.
func (s *server) checks(prefix string) ([]*wire.Frame, []*wire.Message) {
	s.t.Helper()
	frames, ms, err := s.Conn.Checks(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	return frames, ms
}

// H23 (#500, #633): a half message that nobody ends is checked just transactionCheckMax times, each time by a copy that
// says how often, then it is in TRANS_CHECK_MAX_TIME_TOPIC and never visible to consumers; RESUME_CHECK_HALF_MESSAGE has it
// checked as often again, and it can still be committed. The official server does the same, but that the copies lose the flag.
func TestTransactionCheckTimes(t *testing.T) {
	t.Parallel()
	const group = "H23-group"
	s := checking(t, group)
	topic := s.topic("H23", 1)
	s.Done(wire.Half(topic, 0, group, "open", "KEYS", "k"))
	given := s.stored(wire.GivenUpTopic, 0, 0, 1)[0]
	checks, ms := s.checks("open")
	if len(checks) != 3 {
		t.Errorf("%d checks", len(checks))
	}
	for i, m := range ms {
		if m.Topic != topic || m.QueueId != 0 || m.Properties["TRANSACTION_CHECK_TIMES"] != strconv.Itoa(i+1) || m.Properties["KEYS"] != "k" ||
			m.QueueOffset != int64(i)+1 || checks[i].Ext["tranStateTableOffset"] != text(m.QueueOffset) || checks[i].Ext["commitLogOffset"] != text(m.PhyOffset) ||
			checks[i].Ext["offsetMsgId"] != m.MsgId() || checks[i].Ext["msgId"] != m.Properties["UNIQ_KEY"] || checks[i].Ext["transactionId"] != m.Properties["UNIQ_KEY"] {
			t.Errorf("check %d: %v %+v", i, checks[i].Ext, m)
		}
	}
	if string(given.Body) != "open" || given.Properties["TRANSACTION_CHECK_TIMES"] != "3" || given.Properties["REAL_TOPIC"] != topic || given.Flag != 5 && !official() {
		t.Errorf("given up: %+v", given)
	}
	if end := s.max(topic, 0); end != 0 {
		t.Errorf("%d messages are visible", end)
	}
	s.Done(wire.Request(323, "msgId", given.MsgId()))
	until(t, "three more checks", func() bool { checks, _ = s.checks("open"); return len(checks) >= 6 })
	s.Done(wire.EndChecked(group, checks[5], wire.Commit))
	if m := s.stored(topic, 0, 0, 1)[0]; string(m.Body) != "open" || m.SysFlag&0xC != 8 || m.Properties["TRAN_MSG"] != "true" {
		t.Errorf("committed: %+v", m)
	}
	answer := s.Ask(wire.Request(323, "msgId", "nonsense"))
	if answer.Code != systemError || answer.Remark != "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC." {
		t.Errorf("resume of nonsense: %d %s", answer.Code, answer.Remark)
	}
}

// H22 (#615, #8311): a half message that is not to be checked before CHECK_IMMUNITY_TIME_IN_SECONDS is not, and its rounds
// until then are no checks; after that it has all of them. The official server counts the rounds and gives the message up
// without a check.
func TestTransactionImmunity(t *testing.T) {
	t.Parallel()
	const group, immunity = "H22-group", 6 * time.Second
	s := checking(t, group)
	topic := s.topic("H22", 1)
	born := time.Now()
	s.Done(wire.Half(topic, 0, group, "immune", "CHECK_IMMUNITY_TIME_IN_SECONDS", "6"))
	ended := s.Done(wire.Half(topic, 0, group, "ended", "CHECK_IMMUNITY_TIME_IN_SECONDS", "6"))
	until(t, "it has been moved", func() bool { return s.max(wire.HalfTopic, 0) > 2 })
	s.Done(wire.EndSent(group, ended, wire.Commit)) // by the offsets from before
	given := s.stored(wire.GivenUpTopic, 0, 0, 1)[0]
	checks, ms := s.checks("immune")
	if official() {
		if len(checks) != 0 {
			t.Errorf("the official server has checked it %d times", len(checks))
		}
		return
	}
	if len(checks) != 3 || string(given.Body) != "immune" {
		t.Errorf("%d checks, given up: %s", len(checks), given.Body)
	}
	for _, m := range ms {
		if m.Properties["TRAN_PREPARED_QUEUE_OFFSET"] != "0" {
			t.Errorf("checked: %+v", m)
		}
	}
	if given.StoreTimestamp < born.Add(immunity).UnixMilli() {
		t.Error("given up while it was immune")
	}
	if checks, _ := s.checks("ended"); len(checks) != 0 || s.max(topic, 0) != 1 {
		t.Errorf("the one that has ended: %d checks, %d messages", len(checks), s.max(topic, 0))
	}
}

// A producer ends its transaction while it is asked about it, and answers for the copy too. The official server stores the message for
// each; here the first end counts, whichever it is.
func TestTransactionEndedTwice(t *testing.T) {
	t.Parallel()
	const group = "ended-twice"
	s := checking(t, group)
	topic := s.topic("EndedTwice", 2)
	for queue := range 2 {
		body := "racing " + text(int64(queue))
		half := s.Done(wire.Half(topic, queue, group, body))
		until(t, "it is asked about", func() bool { checks, _ := s.checks(body); return len(checks) > 0 })
		checks, _ := s.checks(body)
		ends := []*wire.Frame{wire.EndSent(group, half, wire.Commit), wire.EndChecked(group, checks[0], wire.Commit)}
		s.Done(ends[1-queue])
		s.Done(ends[queue])
	}
	s.Done(wire.Request(310, "a", "P-bugs", "b", topic, "c", "TBW102", "d", "4", "e", "1", "f", "0", "g", text(time.Now().UnixMilli()), "h", "0",
		"i", "", "j", "0", "k", "false", "m", "false").WithBody([]byte("last")))
	want := int64(1)
	if official() {
		want = 2
	}
	s.stored(topic, 1, 0, want+1) // dispatched in the order in which they were stored
	for queue, most := range []int64{want, want + 1} {
		if n := s.max(topic, queue); n != most {
			t.Errorf("queue %d has %d messages, want %d", queue, n, most)
		}
	}
}

// The remarks of END_TRANSACTION, and what it does not answer. The official server does the same, but that what is no half
// message is told by an exception.
func TestEndTransactionRemarks(t *testing.T) {
	const group = "EndGroup"
	s := dialShared(t)
	topic := s.topic("EndTransaction", 1)
	half := s.Done(wire.Half(topic, 0, group, "half"))
	if half.Ext["queueId"] != "0" || half.Ext["MSG_REGION"] != "DefaultRegion" || half.Ext["TRACE_ON"] != "true" || half.Ext["transactionId"] != "" {
		t.Errorf("answered %v", half.Ext)
	}
	commit := wire.EndSent(group, half, wire.Commit)
	at := commit.Ext["commitLogOffset"]
	for _, c := range []struct {
		f      *wire.Frame
		remark string
	}{
		{wire.End("Other", half.Ext["queueOffset"], at, wire.Commit, false), "The producer group wrong"},
		{wire.End(group, "12345", at, wire.Rollback, true), "The transaction state table offset wrong"},
		{wire.End(group, half.Ext["queueOffset"], "123456789012", wire.Commit, false), "Find prepared transaction message failed"},
		{wire.End(group, half.Ext["queueOffset"], "123456789012", wire.Rollback, true), "Find prepared transaction message failed"},
	} {
		if a := s.Ask(c.f); a.Code != systemError || a.Remark != c.remark {
			t.Errorf("%v: %d %s", c.f.Ext, a.Code, a.Remark)
		}
	}
	unknown, err := s.Conn.Send(wire.EndSent(group, half, wire.Unknown))
	if err != nil {
		t.Fatal(err)
	}
	other := s.Done(wire.Half(topic, 0, group, "other"))
	if a := s.Done(wire.EndSent(group, other, wire.Rollback)); a.Remark != "not set any response code" || len(a.Ext) != 0 {
		t.Errorf("rollback: %q %v", a.Remark, a.Ext)
	}
	a := s.Done(commit)
	if a.Remark != "" || len(a.Ext) != 0 {
		t.Errorf("commit: %q %v", a.Remark, a.Ext)
	}
	m := s.stored(topic, 0, 0, 1)[0]
	if string(m.Body) != "half" || m.SysFlag != 8 || text(m.PreparedTransactionOffset) != at || m.Flag != 5 || m.Properties["REAL_TOPIC"] != topic {
		t.Errorf("committed: %+v", m)
	}
	if got, err := unknown.Wait(time.Millisecond); err == nil {
		t.Errorf("unknown is answered %d %s", got.Code, got.Remark)
	}
}

// END_TRANSACTION needs what the broker looks at, and no more: msgId, transactionId and fromTransactionCheck may be missing.
func TestTransactionEndFields(t *testing.T) {
	t.Parallel()
	const group = "End-group"
	s := checking(t, group)
	topic := s.topic("EndFields", 1)
	end := func(body, missing string) *wire.Frame {
		return s.Ask(wire.EndSent(group, s.Done(wire.Half(topic, 0, group, body)), wire.Commit).Without(missing))
	}
	for i, name := range []string{"msgId", "transactionId", "fromTransactionCheck"} {
		if a := end("without "+name, name); a.Code != 0 {
			t.Errorf("without %s: %d %s", name, a.Code, a.Remark)
		}
		if m := s.stored(topic, 0, int64(i), int64(i)+1)[0]; string(m.Body) != "without "+name {
			t.Errorf("committed without %s: %s", name, m.Body)
		}
	}
	if a := end("without a group", "producerGroup"); a.Code != systemError || a.Remark != "The producer group wrong" {
		t.Errorf("without a group: %d %s", a.Code, a.Remark)
	}
	for _, name := range []string{"tranStateTableOffset", "commitLogOffset", "commitOrRollback"} {
		if a := end("without "+name, name); a.Code != systemError {
			t.Errorf("without %s: %d %s", name, a.Code, a.Remark)
		}
	}
}
