package transaction

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
	"rocketd/store/doubletest"
)

// bubble runs a test with a clock of its own; the checks are closed at its end.
func bubble(t *testing.T, f func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t)
		f(t, x)
		if x.checks != nil {
			x.checks.Close()
		}
	})
}

func (f *fixture) want(what, got, want string) {
	f.tb.Helper()
	if got != want {
		f.tb.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestCheckTimes: the first check of an open half message comes with the first round in which it is as old as the
// time-out; after the last it is given up (H23).
func TestCheckTimes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.s.CheckMax = 3
		f.run()
		f.pass(10 * time.Second)
		f.half("early")
		f.pass(45 * time.Second)
		f.half("late") // 5 s old at the first round
		f.pass(10 * time.Minute)
		f.want("early", f.times("early"), "60:1 120:2 180:3")
		f.want("late", f.times("late"), "120:1 180:2 240:3")
		given := f.store.All(message.TopicTransCheckMaxTime)
		if len(given) != 2 || string(given[0].Body) != "early" || string(given[1].Body) != "late" || given[0].Flag != 5 || !f.topics[message.TopicTransCheckMaxTime] {
			t.Errorf("given up: %+v", given)
		}
		if n, _ := given[0].Property("TRANSACTION_CHECK_TIMES"); n != "3" {
			t.Errorf("after %s checks", n)
		}
		f.want("place", f.place(), "8 0")
		a := f.asked[0]
		if a.group != "G" || a.h.TranStateTableOffset != 2 || a.h.MsgId != "early" || a.h.TransactionId != "early" ||
			a.h.CommitLogOffset != a.m.PhyOffset || a.h.OffsetMsgId != message.OffsetMsgId(host, a.m.PhyOffset) ||
			a.m.Topic != "T" || a.m.QueueId != 3 || a.m.QueueOffset != 2 || a.m.Flag != 5 {
			t.Errorf("asked %+v", a)
		}
		if f.topics[message.TopicTransHalf] != true {
			t.Error("the half topic is not registered")
		}
	})
}

// TestOpsResolve: half messages with an op are passed, in whatever order they ended, and their ops behind them.
func TestOpsResolve(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		for i := range 200 {
			f.half(fmt.Sprint(i))
		}
		for i := range 200 {
			if at := int64(199 - i); at != 7 && at != 150 {
				f.op(at)
			}
		}
		f.pass(time.Minute)
		f.want("open", f.times("7")+" "+f.times("150"), "60:1 60:1")
		if len(f.asked) != 2 {
			t.Errorf("%d checks", len(f.asked))
		}
		f.want("place", f.place(), "200 198")
		f.op(200) // the answer to the check of 7
		f.pass(time.Minute)
		f.want("second check", f.times("7")+" "+f.times("150"), "60:1 60:1 120:2")
		f.want("place after the second round", f.place(), "202 199")
		f.want("read", fmt.Sprint(f.read), "map[RMQ_SYS_TRANS_HALF_TOPIC:3 RMQ_SYS_TRANS_OP_HALF_TOPIC:199]")
	})
}

// TestDamagedQueues: as long as an entry of the ops, or at a start of the half messages, is not there, nobody is asked: what it is of may
// have ended, and whoever were asked about that would commit it again.
func TestDamagedQueues(t *testing.T) {
	for _, topic := range topics {
		t.Run(topic, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture) {
				for i := range 20 {
					f.half(fmt.Sprint(i))
				}
				for i := range int64(19) {
					f.op(i)
				}
				f.store.Damaged = map[doubletest.Queue]int64{{Topic: topic}: 3}
				f.run()
				f.pass(3 * time.Minute)
				if len(f.asked) != 0 {
					t.Errorf("%d are asked about, the first %+v", len(f.asked), f.asked[0])
				}
				f.store.Lock()
				f.store.Damaged = nil
				f.store.Unlock()
				f.pass(time.Minute)
				f.want("the open one", f.times("19"), "240:1")
				if len(f.asked) != 1 {
					t.Errorf("%d are asked about", len(f.asked))
				}
				f.want("place", f.place(), "20 19")
			})
		})
	}
}

// TestLateEnd: an op for the half message as it was before a check counts: its producer is not asked again.
func TestLateEnd(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		at := f.half("slow")
		f.pass(3 * time.Minute)
		f.op(at) // its copies are 1, 2 and 3
		f.pass(5 * time.Minute)
		f.want("slow", f.times("slow"), "60:1 120:2 180:3")
		f.want("place", f.place(), "4 1")
		if len(f.checks.moved) != 0 {
			t.Errorf("still known: %v", f.checks.moved)
		}
	})
}

// TestImmune: no check, and no count of one, before CHECK_IMMUNITY_TIME_IN_SECONDS is over (H22); and those behind it do
// not wait.
func TestImmune(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.s.CheckMax, f.s.Reserved = 2, 2*time.Hour
		f.run()
		f.half("immune", "CHECK_IMMUNITY_TIME_IN_SECONDS=600")
		ended := f.half("ended", "CHECK_IMMUNITY_TIME_IN_SECONDS=600")
		f.half("short", "CHECK_IMMUNITY_TIME_IN_SECONDS=1")
		f.half("minus", "CHECK_IMMUNITY_TIME_IN_SECONDS=-1")
		f.half("strange", "CHECK_IMMUNITY_TIME_IN_SECONDS=x")
		f.half("huge", "CHECK_IMMUNITY_TIME_IN_SECONDS=9223372036854775807")
		f.half("usual")
		f.pass(150 * time.Second)
		f.op(ended) // by the offset that its producer knows
		copies := f.store.All(message.TopicTransHalf)
		if p, _ := copies[7].Property("TRAN_PREPARED_QUEUE_OFFSET"); p != "0" || string(copies[7].Body) != "immune" {
			t.Errorf("immune: %+v", copies[7])
		}
		f.checks.Close()
		f.run() // it knows nothing but the store
		f.pass(15 * time.Minute)
		// The second run's rounds are at 210 s, 270 s, …; those of "immune" from 600 s on: 630 s, 690 s, and given up at 750 s.
		f.want("immune", f.times("immune"), "630:1 690:2")
		f.want("ended", f.times("ended"), "")
		for _, body := range []string{"short", "minus", "strange", "usual"} {
			f.want(body, f.times(body), "60:1 120:2")
		}
		f.want("huge", f.times("huge"), "")
		if given := f.store.All(message.TopicTransCheckMaxTime); len(given) != 5 {
			t.Errorf("given up: %d", len(given))
		}
		f.pass(3 * time.Hour) // nothing is kept open for ever
		if given := f.store.All(message.TopicTransCheckMaxTime); len(given) != 6 || string(given[5].Body) != "huge" {
			t.Errorf("given up at last: %d", len(given))
		}
	})
}

// TestRestart: what a round has passed stays passed for the next broker; what it has not, is checked.
func TestRestart(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		for i := range 10 {
			f.half(fmt.Sprint(i))
			if i != 3 {
				f.op(int64(i))
			}
		}
		f.pass(time.Minute)
		f.want("before", f.times("3"), "60:1")
		f.want("place", f.place(), "10 9")
		f.checks.Close()
		f.run()
		f.pass(time.Minute)
		f.want("after", f.times("3"), "60:1 120:2")
		f.want("place", f.place(), "11 9")
		// As after a kill, when the places were not saved: all is read again, and just the newest copy is open.
		f.checks.Close()
		clear(f.places)
		f.run()
		f.pass(time.Minute)
		f.want("from the start", f.times("3"), "60:1 120:2 180:3")
		if len(f.asked) != 3 {
			t.Errorf("%d checks", len(f.asked))
		}
		// Somebody sets the place back.
		f.places[message.TopicTransHalf] = 11
		f.pass(time.Minute)
		f.want("set back", f.times("3"), "60:1 120:2 180:3 240:4")
		// And beyond the queue, as after a power failure.
		f.places[message.TopicTransHalf], f.places[message.TopicTransOpHalf] = 1000, 1000
		f.half("new")
		f.pass(2 * time.Minute)
		f.half("newer")
		f.pass(2 * time.Minute)
		f.want("newer", f.times("newer"), "420:1 480:2")
	})
}

// TestImmuneAfterKill: a kill has lost the places, so that a half message and its copies are all read again; an op for the
// first resolves each of them.
func TestImmuneAfterKill(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		f.half("x", "CHECK_IMMUNITY_TIME_IN_SECONDS=300")
		f.pass(130 * time.Second) // its copies are 1 and 2
		f.checks.Close()
		clear(f.places)
		f.op(0)
		f.run()
		f.pass(10 * time.Minute)
		f.want("x", f.times("x"), "")
		f.want("place", f.place(), "3 1")
	})
}

// TestSameKeyAfterKill: a client that sends a half message again, because no answer came, gives both the same unique key. A kill that
// loses the places makes neither a copy of the other.
func TestSameKeyAfterKill(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		f.half("x")
		f.half("x")
		f.pass(time.Minute)
		f.want("before", f.times("x"), "60:1 60:1")
		f.checks.Close()
		clear(f.places)
		f.run()
		f.pass(time.Minute)
		f.want("after", f.times("x"), "60:1 60:1 120:2 120:2")
	})
}

// TestSlave: only a master checks, and one that becomes it takes the places as they are then.
func TestSlave(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.half("x")
		f.half("y")
		f.master = false
		f.run()
		f.pass(5 * time.Minute)
		f.places[message.TopicTransHalf] = 1
		f.master = true
		f.pass(time.Minute)
		f.want("x", f.times("x"), "")
		f.want("y", f.times("y"), "360:1")
	})
}

// TestFailures: what can't be read or stored is tried again, what is gone is passed, and neither takes the rest along.
func TestFailures(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		var log bytes.Buffer
		f.log = &log
		f.half("a")
		f.half("b")
		f.half("gone")
		f.half("nowhere", "REAL_QID=x", "PGROUP=")
		delete(f.store.Messages, f.store.Queues[halves][2].PhyOffset)
		full := false
		f.store.Fail = func(m *message.Message) error { // b, and then what comes behind it
			if full = full || string(m.Body) == "b"; full {
				return errors.New("disk")
			}
			return nil
		}
		f.run()
		f.pass(time.Minute)
		f.want("place", f.place(), "1 0")
		f.want("a", f.times("a"), "60:1")
		f.store.Fail = nil
		f.store.Flushed = func(done func(error)) { done(errors.New("not durable")) }
		f.pass(time.Minute)
		f.want("place while nothing is durable", f.place(), "1 0")
		f.want("b", f.times("b"), "120:1")
		f.store.Flushed = nil
		f.pass(time.Minute)
		f.want("place", f.place()[:1], "8") // behind four, and the copies of three of them

		f.op(0)
		f.store.ReadErr = func(phy int64) error {
			if phy == f.store.Queues[opsOf][0].PhyOffset {
				return errors.New("disk")
			}
			return nil
		}
		before := len(f.asked)
		f.pass(time.Minute)
		if len(f.asked) != before {
			t.Error("checked although ops can't be read")
		}
		f.store.ReadErr = nil
		f.store.Fail = func(m *message.Message) error { return fmt.Errorf("%w: x", commitlog.ErrTooLarge) }
		f.pass(time.Minute)
		if f.checks.half != f.store.MaxOffset(message.TopicTransHalf, 0) {
			t.Error("what can never be stored holds up the others")
		}
		for _, want := range []string{"half message is damaged", "can't be stored again", "places not saved", "op can't be read", "put aside"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log says nothing of %q", want)
			}
		}
	})
}

// TestStrangeOps: ops that are none are passed and resolve nothing.
func TestStrangeOps(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.half("x")
		for _, m := range []message.Message{
			{Properties: opText, Body: []byte("y")}, {Properties: opText, Body: []byte("-1")}, {Properties: opText, Body: []byte("99")},
			{Properties: opText, Body: []byte("1")}, // where the copy will be
			{Properties: opText, Body: []byte("99999999999999999999")}, {Properties: "TAGS\x01e", Body: []byte("0")}, {Body: []byte("0")},
		} {
			m.Topic, m.BornHost, m.StoreHost = message.TopicTransOpHalf, host, host
			f.store.Put([]*store.Put{{Message: &m}})
		}
		f.run()
		f.pass(time.Minute)
		f.want("x", f.times("x"), "60:1")
		f.want("place", f.place(), "1 7")
		f.pass(time.Minute)
		f.want("x's copy", f.times("x"), "60:1 120:2")
	})
}

// TestDeletedFiles: half messages and ops whose log files are gone.
func TestDeletedFiles(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.run()
		for i := range 20 {
			f.half(fmt.Sprint(i))
			f.op(int64(i / 2))
		}
		f.store.First[halves], f.store.First[opsOf] = 12, 15
		f.pass(time.Minute)
		if len(f.asked) != 8 || string(f.asked[0].m.Body) != "12" {
			t.Errorf("%d checks", len(f.asked))
		}
		f.want("place", f.place(), "20 20")
	})
}

// TestBusyProducer: a producer that does not read is waited for, but not for ever.
func TestBusyProducer(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		f.half("x")
		f.half("y")
		f.busy = 3
		f.run()
		f.pass(time.Minute + time.Second)
		f.want("x", f.times("x"), "60:1")
		f.busy = 1 << 30
		f.pass(time.Minute + time.Second)
		if len(f.asked) != 2 {
			t.Errorf("%d checks", len(f.asked))
		}
		f.want("place", f.place()[:1], "4")
	})
}

// TestPropertiesFull: a half message without room for a count of its checks is given up as it is.
func TestPropertiesFull(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture) {
		at := f.half("x", "fill=")
		text := f.store.All(message.TopicTransHalf)[at].Properties
		f.half("full", "fill="+strings.Repeat("y", message.MaxPropertiesLength-len(text)-3))
		f.run()
		f.pass(time.Minute)
		f.want("x", f.times("x"), "60:1")
		if given := f.store.All(message.TopicTransCheckMaxTime); len(given) != 1 || string(given[0].Body) != "full" {
			t.Errorf("given up: %d", len(given))
		}
	})
}
