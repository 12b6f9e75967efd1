//go:build conformance

package configured

import (
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
			if times, _ := strconv.Atoi(ms[0].Properties["TRANSACTION_CHECK_TIMES"]); times < 3 {
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
	for offset, end := int64(0), s.max(wire.HalfTopic, 0); offset < end; {
		a := s.Ask(pull("ConfiguredReader", wire.HalfTopic, offset))
		if a.Code != 0 {
			return n
		}
		ms, err := wire.Messages(a.Body)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range ms {
			if string(m.Body) == body {
				n++
			}
		}
		offset += int64(len(ms))
	}
	return n
}
