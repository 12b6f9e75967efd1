package broker

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/broker/stats"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// minute asks for a statistic's last minute; nil when there is none.
func (p *pathBroker) minute(name, key string) *body.BrokerStatsItem {
	p.tb.Helper()
	a := p.ask(protocol.ViewBrokerStatsData, &header.ViewBrokerStatsDataRequest{StatsName: name, StatsKey: key}, nil)
	if a.Code != 0 {
		check(p.tb, name, a, protocol.SystemError, "The stats <"+name+"> <"+key+"> not exist")
		return nil
	}
	d := new(body.BrokerStatsData)
	if err := compat.Unmarshal(a.Body, d); err != nil {
		p.tb.Fatal(err)
	}
	return &d.StatsMinute
}

// counter is what a statistic must show.
type counter struct {
	name, key string
	sum       int64
	calls     float64
}

// TestTraffic: each way of storing and getting messages counts under the official names, a batch by its messages.
func TestTraffic(t *testing.T) {
	t.Parallel()
	var clock ahead
	began := time.Now() // and no later, so that only the test says when a statistic is sampled
	now := func() time.Time { return began.Add(time.Duration(clock.by.Load())) }
	p := startPathBrokerAt(t, vfs.NewMem(time.Now), now, func(c *Config) { c.MessageDelayLevel = "1s 1h 1h 1h" })
	if a := p.ask(protocol.ViewBrokerStatsData, nil, nil); a.Code != int32(protocol.SystemError) {
		t.Errorf("without fields: code %d", a.Code)
	}
	if d := p.minute(stats.TopicPutNums, "TopicA"); d != nil {
		t.Errorf("before the first send: %+v", d)
	}
	p.send("TopicA", 0, "", "single")
	var data []byte
	for _, text := range []string{"one", "two", "three"} {
		data = message.AppendElement(data, message.Element{Body: []byte(text)})
	}
	h := sendHeader("TopicA", 0, "")
	h.Batch = true
	if a := p.ask(protocol.SendBatchMessage, h, data); a.Code != 0 {
		t.Fatalf("batch: code %d, %s", a.Code, a.Remark)
	}
	p.send("TopicB", 1, "DELAY=1", "delayed")
	clock.forward(2 * time.Second)
	p.stored("TopicB", 1, 0, 1)
	all := p.stored("TopicA", 0, 0, 4)
	check(t, "send back", p.ask(protocol.ConsumerSendMsgBack, sendBackHeader("CG", all[0].PhyOffset), nil), protocol.Success, "")
	waiting := p.stored(topics.Schedule, 2, 0, 1)

	clock.forward(time.Minute)
	var size, sentBack int64
	for _, m := range all {
		size += int64(message.RecordSize(&m))
	}
	sentBack = int64(message.RecordSize(&waiting[0]))
	counted := []counter{
		{"TOPIC_PUT_NUMS", "TopicA", 4, 2},
		{"TOPIC_PUT_SIZE", "TopicA", size, 2},
		{"TOPIC_PUT_NUMS", topics.Schedule, 2, 2}, // the delayed one and the one sent back
		{"QUEUE_PUT_NUMS", topics.Schedule + "@0", 1, 1},
		{"QUEUE_PUT_SIZE", topics.Schedule + "@2", sentBack, 1},
		{"TOPIC_PUT_NUMS", "TopicB", 1, 1},
		{"QUEUE_GET_NUMS", topics.Schedule + "@0@SCHEDULE_CONSUMER", 1, 1},
		{"GROUP_GET_NUMS", topics.Schedule + "@SCHEDULE_CONSUMER", 1, 1},
		{"SNDBCK_PUT_NUMS", "TopicA@CG", 1, 1},
		{"GROUP_GET_NUMS", "TopicA@CG", 4, 1},
		{"GROUP_GET_SIZE", "TopicA@CG", size, 1},
		{"BROKER_PUT_NUMS", "DefaultCluster", 6, 0}, // not the one sent back
		{"BROKER_GET_NUMS", "DefaultCluster", 6, 0}, // not what went from the delay queue
	}
	remotingtest.Eventually(t, "all are sampled", func() bool {
		return !slices.ContainsFunc(counted, func(c counter) bool {
			d := p.minute(c.name, c.key)
			return d == nil || d.Tps <= 0
		})
	})
	for _, c := range counted {
		d := p.minute(c.name, c.key)
		average := 0.0
		if c.calls > 0 {
			average = float64(c.sum) / c.calls
		}
		if d.Sum != c.sum || math.Abs(d.Avgpt-average) > 1e-9 {
			t.Errorf("%s %s: %+v, want %d in %v calls", c.name, c.key, *d, c.sum, c.calls)
		}
	}
	if d := p.minute("GROUP_GET_LATENCY", "0@TopicA@CG"); d == nil {
		t.Error("no latency")
	}
	for _, none := range [][2]string{{"QUEUE_PUT_NUMS", "TopicA@0"}, {"GROUP_GET_FALL_SIZE", "0@TopicA@CG"}, {"COMMERCIAL_SEND_TIMES", "x"}, {"SNDBCK_PUT_NUMS", "%RETRY%CG@CG"}} {
		if d := p.minute(none[0], none[1]); d != nil {
			t.Errorf("%s %s: %+v", none[0], none[1], *d)
		}
	}
	a := p.ask(protocol.GetConsumeStats, &header.GetConsumeStatsRequest{ConsumerGroup: "CG", Topic: "TopicA"}, nil)
	if got := p.traffic.GroupGetTps("CG", "TopicA"); a.Code != 0 || got <= 0 || !strings.Contains(string(a.Body), `"consumeTps":`+javaDouble(got)) {
		t.Errorf("consume stats with consumeTps %v: %s", got, a.Body)
	}

	check(t, "delete", p.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "TopicA"}, nil), protocol.Success, "")
	check(t, "delete", p.ask(protocol.DeleteSubscriptionGroup, &header.DeleteSubscriptionGroupRequest{GroupName: "CG"}, nil), protocol.Success, "")
	for _, gone := range [][2]string{{"TOPIC_PUT_NUMS", "TopicA"}, {"GROUP_GET_NUMS", "TopicA@CG"}, {"GROUP_GET_SIZE", "TopicB@CG"}, {"SNDBCK_PUT_NUMS", "TopicA@CG"}} {
		if d := p.minute(gone[0], gone[1]); d != nil {
			t.Errorf("%s %s after the deletion: %+v", gone[0], gone[1], *d)
		}
	}
}

// TestTotals: rates over the official periods, and what midnight does, by hand.
func TestTotals(t *testing.T) {
	var s totals
	s.latency.Store(newPutLatency())
	now := time.Date(2026, 3, 1, 23, 50, 0, 0, time.Local)
	tick := func(seconds int, work func()) {
		for range seconds {
			work()
			now = now.Add(time.Second)
			s.tick(now, 0, 0)
		}
	}
	s.tick(now, 0, 0)
	put := func(x sample) int64 { return x.put }
	if got := s.tps(put); got != "  " {
		t.Errorf("at the start %q", got)
	}
	tick(10, func() { s.put(1, 3, 300, 2*time.Millisecond) })
	if got := s.tps(put); got != "3.0  " {
		t.Errorf("after 10 s %q", got)
	}
	if got := s.totalTps(); got != "0.0 0.0 0.0" {
		t.Errorf("gets %q", got)
	}
	if got := s.lastLatency().distribution(); got != "null" {
		t.Errorf("in the first minute %q", got)
	}
	tick(50, func() { s.get(4, 7*time.Millisecond) })
	if got := s.tps(put); got != "0.0 0.5 " {
		t.Errorf("after a minute %q", got)
	}
	if got := s.totalTps(); got != "1.0 0.8333333333333334 0.0" {
		t.Errorf("gets after a minute %q", got)
	}
	if got := s.lastLatency().distribution(); !strings.HasPrefix(got, "[<=0ms]:0 [0~10ms]:10 [10~50ms]:0 ") {
		t.Errorf("after a minute %q", got)
	}
	tick(10*60, func() { s.put(1, 1, 100, 0) }) // midnight falls in here, after 9 minutes
	yesterday, today, gotYesterday, gotToday := s.mornings()
	if want := int64(30 + 9*60); yesterday != 0 || today < want || today > want+1 || gotYesterday != 0 || gotToday != 200 {
		t.Errorf("mornings %d %d %d %d, want 0 %d 0 200", yesterday, today, gotYesterday, gotToday, want)
	}
	now = now.Add(24 * time.Hour)
	s.tick(now, 0, 0)
	if y, n, _, _ := s.mornings(); y != today || n != 630 {
		t.Errorf("a day later %d %d, want %d 630", y, n, today)
	}
	if s.getTimeMax.Load() != 7 || s.putTimeMax.Load() != 2 {
		t.Errorf("longest %d, %d", s.getTimeMax.Load(), s.putTimeMax.Load())
	}
}

// TestPutLatency: percentiles by the rule of StoreStatsService#findPutMessageEntireTimePX.
func TestPutLatency(t *testing.T) {
	var none *putLatency
	if none.percentile(0.99) != 0 {
		t.Error("a percentile of nothing")
	}
	l := newPutLatency()
	if len(fineBounds) != 75 || fineBounds[74] != 10_000 {
		t.Fatalf("bounds %v", fineBounds)
	}
	l.add(0, 8)
	l.add(2, 2)
	// As in the recorded brokerStatus (1.75 of ten puts): 9 of 10 is 1 of the 2 in the interval from 1 to 2.
	if got := l.percentile(0.99); got != 1.5 {
		t.Errorf("p99 %v, want 1.5", got)
	}
	if got := l.percentile(0.5); got != 5.0/8 {
		t.Errorf("p50 %v, want %v", got, 5.0/8)
	}
	l.add(20_000, 990)
	if got := l.percentile(0.99); got != 10_000 {
		t.Errorf("p99 %v, want the last bound", got)
	}
	if got := l.distribution(); !strings.HasPrefix(got, "[<=0ms]:8 [0~10ms]:2 ") || !strings.HasSuffix(got, "[10s~]:990 ") {
		t.Errorf("%q", got)
	}
}

// TestProtect: a group that is too far behind may consume no more, when that is asked for, until it is allowed again.
func TestProtect(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.ConsumerFallbehindThreshold = 1000 })
	for range 3 {
		p.send("TopicA", 0, "", strings.Repeat("x", 800))
	}
	h := pullHeader("TopicA", 0, 0)
	h.MaxMsgNums = 1
	p.stored("TopicA", 0, 0, 3)
	check(t, "a pull of the first", p.ask(protocol.PullMessage, h, nil), protocol.Success, "FOUND",
		"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
	p.protect()
	if g, _ := p.groups.Lookup("CG"); g == nil || !g.ConsumeEnable {
		t.Fatalf("disabled though nobody asked for it: %+v", g)
	}
	check(t, "update", p.ask(protocol.UpdateBrokerConfig, nil, []byte("disableConsumeIfConsumerReadSlowly=true\n")), protocol.Success, "")
	p.protect()
	check(t, "a pull of a disabled group", p.ask(protocol.PullMessage, h, nil), protocol.NoPermission, "subscription group no permission, CG", "{}")
	g := *p.groups.Find("CG")
	g.ConsumeEnable = true
	p.groups.Put(&g)
	p.stored("TopicA", 0, 2, 3) // the last: nothing is behind it
	p.protect()
	if g, _ := p.groups.Lookup("CG"); !g.ConsumeEnable {
		t.Error("disabled though it has caught up")
	}
}
