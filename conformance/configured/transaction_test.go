//go:build conformance

package configured

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// No half message is checked before it is transactionTimeOut old.
func TestTransactionTimeOut(t *testing.T) {
	t.Parallel()
	const group = "TimeOutGroup"
	s := connect(t)
	topic := s.topic("TimeOut")
	s.Done(wire.ProducerHeartbeat("time-out", group))
	s.Done(wire.Half(topic, 0, group, "patient"))
	checks, ms := s.checked("patient")
	if age := time.Now().UnixMilli() - ms[0].BornTimestamp; age < checkAfter {
		t.Errorf("checked when it was %d ms old", age)
	}
	s.Done(wire.EndChecked(group, checks[0], wire.Rollback))
}

// An end must name one half message by both of its places, and the producer group that sent it; nothing happens to either of two
// when they are mixed. Whose connection it comes by, or which client's, does not count.
func TestEndOfAnother(t *testing.T) {
	t.Parallel()
	const mine, other = "MineGroup", "OtherGroup"
	s, stranger := connect(t), connect(t)
	topic := s.topic("EndOfAnother")
	s.Done(wire.ProducerHeartbeat("mine", mine))
	stranger.Done(wire.ProducerHeartbeat("other", other))
	first := wire.EndSent(mine, s.Done(wire.Half(topic, 0, mine, "first")), wire.Commit)
	second := wire.EndSent(mine, s.Done(wire.Half(topic, 0, mine, "second")), wire.Commit)
	third := wire.EndSent(other, stranger.Done(wire.Half(topic, 0, other, "third")), wire.Commit)
	place := func(f *wire.Frame) string { return f.Ext["commitLogOffset"] }
	offset := func(f *wire.Frame) string { return f.Ext["tranStateTableOffset"] }
	for _, state := range []int{wire.Commit, wire.Rollback} {
		for _, c := range []struct {
			what   string
			f      *wire.Frame
			remark string
		}{
			{"the other group's half message", wire.End(mine, offset(third), place(third), state, false), "The producer group wrong"},
			{"by the other group", wire.End(other, offset(first), place(first), state, true), "The producer group wrong"},
			{"with the place of another", wire.End(mine, offset(first), place(second), state, false), "The transaction state table offset wrong"},
			{"with the offset of another", wire.End(mine, offset(second), place(first), state, true), "The transaction state table offset wrong"},
			{"with the other group's place", wire.End(mine, offset(first), place(third), state, false), "The producer group wrong"},
		} {
			if a := s.Ask(c.f); a.Code != 1 || a.Remark != c.remark {
				t.Errorf("%s: %d %q, want %q", c.what, a.Code, a.Remark, c.remark)
			}
		}
	}
	if n := s.max(topic, 0); n != 0 {
		t.Fatalf("%d messages are visible", n)
	}
	s.Done(second)
	stranger.Done(first)
	connect(t).Done(third)
	for i, m := range s.stored(topic, 3) {
		if want := []string{"second", "first", "third"}[i]; string(m.Body) != want {
			t.Errorf("message %d is %s, want %s", i, m.Body, want)
		}
	}
}

// The three records of a transaction: the half message, what the commit makes of it, and the op that says that the half message has
// ended. Each server could go on with the other's.
func TestTransactionRecords(t *testing.T) {
	t.Parallel()
	const group = "RecordsGroup"
	s := connect(t)
	topic := s.topic("Records")
	sent := map[string]string{"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": "0123456789ABCDEF0123456789ABCDEF", "WAIT": "true", "KEYS": "k", "TAGS": "TagA", "own": "一"}
	var pairs []string
	for name, value := range sent {
		pairs = append(pairs, name, value)
	}
	half := wire.Half(topic, 0, group, "three records").Set("i", wire.Properties(pairs...)).Set("f", "5") // compressed, the bit says
	a := s.Done(half)
	end := wire.EndSent(group, a, wire.Commit)
	s.Done(end)
	final := s.stored(topic, 1)[0]
	stands, err := wire.Messages(s.Done(wire.Request(33, "offset", end.Ext["commitLogOffset"])).Body)
	if err != nil {
		t.Fatal(err)
	}
	op := s.opBehind(final, end.Ext["tranStateTableOffset"])
	sent["REAL_TOPIC"], sent["REAL_QID"], sent["CLUSTER"] = topic, "0", "DefaultCluster"
	for _, c := range []struct {
		what       string
		m          *wire.Message
		body       string
		sysFlag    int
		flag       int
		prepared   int64
		properties map[string]string
	}{
		{"half message", stands[0], "three records", 1, 5, 0, sent},
		{"message", final, "three records", 1 | 8, 5, stands[0].PhyOffset, sent},
		{"op", op, end.Ext["tranStateTableOffset"], 0, 0, 0, map[string]string{"TAGS": "d", "WAIT": "true"}},
	} {
		m := c.m
		if string(m.Body) != c.body || int(m.SysFlag) != c.sysFlag || int(m.Flag) != c.flag || m.PreparedTransactionOffset != c.prepared ||
			m.QueueId != 0 || m.ReconsumeTimes != 0 || !maps.Equal(m.Properties, c.properties) {
			t.Errorf("%s: %+v, want %+v", c.what, m, c)
		}
	}
	if stands[0].Topic != wire.HalfTopic || stands[0].BornTimestamp != final.BornTimestamp {
		t.Errorf("half message %+v, message %+v", stands[0], final)
	}
}

// A producer dies with a transaction that has not ended. The rounds that find nobody count as checks; when it is back, with the same
// client id or another, it is asked, and ends it.
func TestProducerReturns(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"returning", "successor"} {
		t.Run(again, func(t *testing.T) {
			t.Parallel()
			group := "Returns-" + again
			s := connect(t)
			topic := s.topic("Returns-" + again)
			first := connect(t)
			first.Done(wire.ProducerHeartbeat("returning", group))
			first.Done(wire.Half(topic, 0, group, "left "+again))
			first.Conn.Close()
			// Each round stores a copy of what is open: so it has been looked at.
			until(t, "some rounds have passed", func() bool { return copies(s, "left "+again) > 2 })
			if n := s.max(topic, 0); n != 0 {
				t.Errorf("%d messages are visible", n)
			}
			back := connect(t)
			back.Done(wire.ProducerHeartbeat(again, group))
			checks, ms := back.checked("left " + again)
			if times, _ := strconv.Atoi(ms[0].Properties["TRANSACTION_CHECK_TIMES"]); times < 2 { // the rounds that found nobody
				t.Errorf("it is told that this is check %d", times)
			}
			back.Done(wire.EndChecked(group, checks[0], wire.Commit))
			if m := s.stored(topic, 1)[0]; string(m.Body) != "left "+again || m.SysFlag&0xC != 8 {
				t.Errorf("committed %+v", m)
			}
		})
	}
}

// checked waits for a check of a half message and returns all that have come.
func (s *session) checked(body string) (checks []*wire.Frame, ms []*wire.Message) {
	s.t.Helper()
	until(s.t, "a check", func() bool {
		var err error
		if checks, ms, err = s.Conn.Checks(body); err != nil {
			s.t.Fatal(err)
		}
		return len(checks) > 0
	})
	return checks, ms
}

// copies counts the half messages with a body, as the rounds have stored it again and again.
func copies(s *session, body string) (n int) {
	s.t.Helper()
	s.each(wire.HalfTopic, func(m *wire.Message) {
		if string(m.Body) == body {
			n++
		}
	})
	return n
}

// opBehind goes through the log from a message on to the op of a half message: its topic is for nobody to pull.
func (s *session) opBehind(m *wire.Message, body string) *wire.Message {
	s.t.Helper()
	until(s.t, "the op behind the message", func() bool {
		a := s.Ask(wire.Request(33, "offset", strconv.FormatInt(m.PhyOffset+int64(m.Size), 10)))
		if a.Code != 0 { // not yet
			return false
		}
		ms, err := wire.Messages(a.Body)
		if err != nil || len(ms) != 1 {
			s.t.Fatalf("behind %+v: %d records, %v", m, len(ms), err)
		}
		m = ms[0]
		return m.Topic == "RMQ_SYS_TRANS_OP_HALF_TOPIC" && string(m.Body) == body
	})
	return m
}

// each shows what queue 0 of a topic has now.
func (s *session) each(topic string, see func(*wire.Message)) {
	s.t.Helper()
	for offset, end := int64(0), s.max(topic, 0); offset < end; {
		a := s.Ask(pull("ConfiguredReader", topic, offset))
		if a.Code != 0 {
			return
		}
		ms, err := wire.Messages(a.Body)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range ms {
			see(m)
		}
		offset += int64(len(ms))
	}
}
