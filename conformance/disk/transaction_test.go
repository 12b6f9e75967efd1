//go:build conformance

package disk

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

const producers = "DiskProducers"

// producer is a raw producer of transactions at one broker.
type producer struct {
	*server
	t *testing.T
}

// checked waits for a check of each of some half messages and returns the newest of each, by its body.
func (p *producer) checked(bodies ...string) map[string]*wire.Frame {
	p.t.Helper()
	newest := map[string]*wire.Frame{}
	until(p.t, fmt.Sprintf("checks of %v", bodies), func() bool {
		for _, body := range bodies {
			checks, ms, err := p.Conn.Checks(body)
			if err != nil {
				p.t.Fatal(err)
			}
			if len(checks) > 0 {
				newest[body] = checks[len(checks)-1]
				if m := ms[0]; m.Topic != "Open" || m.QueueId != 0 || m.Properties["PGROUP"] != producers {
					p.t.Fatalf("asked about %+v", m)
				}
			}
		}
		return len(newest) == len(bodies)
	})
	return newest
}

// half sends a half message.
func (p *producer) half(body string, properties ...string) *wire.Frame {
	p.t.Helper()
	return p.Done(wire.Half("Open", 0, producers, body, properties...))
}

// TestOpenTransactions: half messages go from one server to the other and back with what has been done about them: those
// that have ended are not asked about, checks go on being counted, those that are open are ended at last.
func TestOpenTransactions(t *testing.T) {
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: THE WAY FROM AND TO THE OFFICIAL BROKER IS NOT TESTED")
	}
	other := target.Rocketd
	if k := selected(t); k == target.Official {
		other = k
	}
	c := target.Start(t, target.Options{Kind: target.Rocketd, Brokers: []target.BrokerOptions{{Kind: target.Official, JVM: quickStart,
		Conf: map[string]string{"transactionCheckInterval": "1000", "transactionTimeOut": "500", "transactionCheckMax": "1000",
			"flushConsumerOffsetInterval": "500"}}}})
	b := c.Brokers[0]
	var committed []string
	turn := func(kind target.Kind, kill bool, do func(p *producer)) {
		t.Helper()
		if b.Pid() == 0 {
			b.RunAs(kind)
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
		}
		s := connect(t, b)
		defer s.hangUp()
		do(&producer{s, t})
		// What has become of the half messages is saved: their places are at the end but for what is stored in each round.
		if kill {
			if err := b.Kill(); err != nil {
				t.Fatal(err)
			}
		} else if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(p *producer, body string, f *wire.Frame) {
		t.Helper()
		p.Done(f)
		committed = append(committed, body)
	}

	turn(target.Official, false, func(p *producer) {
		p.Done(wire.Request(17, "topic", "Open", "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "6",
			"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
		commit(p, "at once", wire.EndSent(producers, p.half("at once"), wire.Commit))
		p.half("by rocketd")
		p.half("by the official one")
		p.half("immune", "CHECK_IMMUNITY_TIME_IN_SECONDS", "3600")
		p.Done(wire.EndSent(producers, p.half("rolled back"), wire.Rollback))
		p.Done(wire.ProducerHeartbeat("disk-1", producers))
		p.checked("by rocketd", "by the official one")
	})
	var late *wire.Frame
	turn(other, true, func(p *producer) {
		p.Done(wire.ProducerHeartbeat("disk-2", producers))
		checks := p.checked("by rocketd", "by the official one")
		commit(p, "by rocketd", wire.EndChecked(producers, checks["by rocketd"], wire.Commit))
		late = p.half("late")
		p.half("made by rocketd")
		p.half("to be rolled back")
		p.checked("made by rocketd", "to be rolled back")
	})
	turn(target.Official, false, func(p *producer) {
		p.Done(wire.ProducerHeartbeat("disk-3", producers))
		checks := p.checked("by the official one", "made by rocketd", "to be rolled back", "late")
		commit(p, "by the official one", wire.EndChecked(producers, checks["by the official one"], wire.Commit))
		commit(p, "made by rocketd", wire.EndChecked(producers, checks["made by rocketd"], wire.Commit))
		p.Done(wire.EndChecked(producers, checks["to be rolled back"], wire.Rollback))
	})
	turn(other, false, func(p *producer) {
		p.Done(wire.ProducerHeartbeat("disk-4", producers))
		p.checked("late")
		commit(p, "late", wire.EndSent(producers, late, wire.Commit)) // as its producer has known it from the first
		until(t, "all are in their queue", func() bool { return p.maxOffset(place{"Open", 0}) >= int64(len(committed)) })
		var got []string
		for _, m := range p.readAll("Open") {
			got = append(got, string(m.Body))
		}
		slices.Sort(got)
		slices.Sort(committed)
		if got = slices.Compact(got); !slices.Equal(got, committed) { // a kill may have one checked twice
			t.Errorf("committed %q, stored %q", committed, got)
		}
		ops := place{"RMQ_SYS_TRANS_OP_HALF_TOPIC", 0}
		until(t, "all ops are passed", func() bool {
			return p.Number("offset", wire.Request(14, "consumerGroup", "CID_RMQ_SYS_TRANS", "topic", ops.topic, "queueId", "0")) == p.maxOffset(ops)
		})
		for _, body := range []string{"immune", "at once", "rolled back"} {
			if checks, _, err := p.Conn.Checks(body); err != nil || len(checks) > 0 {
				t.Errorf("%d checks of the one %s, %v", len(checks), body, err)
			}
		}
	})
}

// readAll pulls a queue from its start to its end.
func (p *producer) readAll(topic string) (all []stored) {
	p.t.Helper()
	for end := p.maxOffset(place{topic, 0}); int64(len(all)) < end; {
		answer := p.Done(wire.Request(11, "consumerGroup", "DiskReader", "topic", topic, "queueId", "0", "queueOffset", fmt.Sprint(len(all)), "maxMsgNums", "32",
			"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG"))
		all = append(all, split(p.t, answer.Body)...)
	}
	return all
}
