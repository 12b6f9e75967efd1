package broker

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// refusals is how often a limit was met.
func (p *pathBroker) refusals(key string) int64 {
	p.tb.Helper()
	for _, r := range p.Refusals() {
		if r.Key == key {
			return r.Count
		}
	}
	p.tb.Fatalf("no counter of %s", key)
	return 0
}

// flood is what one peer does again and again, until a limit is met, and beyond.
type flood struct {
	name, key string
	limit     func(*Config)
	ask       func(p *pathBroker, i int) *protocol.Command
	bad       protocol.ResponseCode // the answer beyond the limit; within it, a success
	remark    string                // beyond; * at its end stands for the rest
	kept      func(p *pathBroker) int
	most      int // kept
}

// beatOf sends a heartbeat and returns its answer, whatever changes are told before it.
func beatOf(p *pathBroker, hb *body.HeartbeatData) *protocol.Command {
	p.tb.Helper()
	hb.ClientID = "c"
	data, err := compat.Marshal(hb)
	if err != nil {
		p.tb.Fatal(err)
	}
	req := p.request(protocol.HeartBeat, nil, data)
	p.peer.Send(req)
	for {
		if a := p.peer.Receive(); a.IsResponse() && a.Opaque == req.Opaque {
			return a
		}
	}
}

var floods = []flood{
	{
		name: "topics by sends", key: "maxTopics", limit: func(c *Config) { c.MaxTopics = 20 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.SendMessage, sendHeader(fmt.Sprintf("flood%d", i), 0, ""), []byte("x"))
		},
		bad: protocol.TopicNotExist, remark: "topic[flood*",
		kept: func(p *pathBroker) int { all, _ := p.topics.All(); return len(all) }, most: 20,
	},
	{
		name: "topics by an administrator", key: "maxTopics", limit: func(c *Config) { c.MaxTopics = 20 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.UpdateAndCreateTopic, &header.CreateTopicRequest{Topic: fmt.Sprintf("flood%d", i), DefaultTopic: "TBW102",
				ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: topics.SingleTag}, nil)
		},
		bad: protocol.SystemError, remark: "there are as many topics as maxTopics allows",
		kept: func(p *pathBroker) int { all, _ := p.topics.All(); return len(all) }, most: 20,
	},
	{
		name: "groups by heartbeats", key: "maxSubscriptionGroups", limit: func(c *Config) { c.MaxSubscriptionGroups = 20 },
		ask: func(p *pathBroker, i int) *protocol.Command { // a success as officially where groups are not created: pulls are refused
			return beatOf(p, &body.HeartbeatData{ConsumerDataSet: []body.ConsumerData{{GroupName: fmt.Sprintf("flood%d", i)}}})
		},
		kept: func(p *pathBroker) int { return len(p.groups.Wrapper().SubscriptionGroupTable) }, most: 20,
	},
	{
		name: "groups by pulls", key: "maxSubscriptionGroups", limit: func(c *Config) { c.MaxSubscriptionGroups = 20 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			h := pullHeader("BenchmarkTest", 0, 0)
			h.ConsumerGroup = fmt.Sprintf("flood%d", i)
			return p.ask(protocol.PullMessage, h, nil)
		},
		bad: protocol.SubscriptionGroupNotExist, remark: "subscription group [flood*",
		kept: func(p *pathBroker) int { return len(p.groups.Wrapper().SubscriptionGroupTable) }, most: 20,
	},
	{
		name: "groups by an administrator", key: "maxSubscriptionGroups", limit: func(c *Config) { c.MaxSubscriptionGroups = 20 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, fmt.Appendf(nil, `{"groupName":"flood%d"}`, i))
		},
		bad: protocol.SystemError, remark: "there are as many subscription groups as maxSubscriptionGroups allows",
		kept: func(p *pathBroker) int { return len(p.groups.Wrapper().SubscriptionGroupTable) }, most: 20,
	},
	{
		name: "producer groups of one client", key: "maxClientGroups", limit: func(c *Config) { c.MaxClientGroups = 10 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return beatOf(p, &body.HeartbeatData{ProducerDataSet: []body.ProducerData{{GroupName: fmt.Sprintf("flood%d", i)}}})
		},
		bad: protocol.SystemError, remark: "the client has more groups than maxClientGroups allows",
		kept: func(p *pathBroker) int { return len(p.producers.All()) - 1 }, most: 10, // but for the other's
	},
	{
		name: "subscriptions", key: "maxClientBytes", limit: func(c *Config) { c.MaxClientBytes = 100_000 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			d := body.ConsumerData{GroupName: "g"}
			for j := range i * 10 {
				d.SubscriptionDataSet = append(d.SubscriptionDataSet, body.SubscriptionData{Topic: fmt.Sprintf("T%d", j), SubString: strings.Repeat("x", 300), SubVersion: 1})
			}
			return beatOf(p, &body.HeartbeatData{ConsumerDataSet: []body.ConsumerData{d}})
		},
		bad: protocol.SystemError, remark: "the groups and subscriptions of all clients take more than maxClientBytes allows",
		kept: func(p *pathBroker) int { return int(p.memory.Used()) }, most: 100_000,
	},
	{
		name: "offsets of queues", key: "maxConsumerOffsets", limit: func(c *Config) { c.MaxConsumerOffsets = 10 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueId: int32(i), CommitOffset: 1}, nil)
		},
		bad: protocol.SystemError, remark: "the offset is not kept: maxConsumerOffsets allows no more, or a name is too long",
		kept: func(p *pathBroker) int { return len(p.offsets.Offsets("g", "T")) }, most: 10,
	},
	{
		name: "offsets of groups", key: "maxConsumerOffsets", limit: func(c *Config) { c.MaxConsumerOffsets = 10 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: fmt.Sprintf("flood%d", i), Topic: "T", CommitOffset: 1}, nil)
		},
		bad: protocol.SystemError, remark: "the offset is not kept: maxConsumerOffsets allows no more, or a name is too long",
		kept: func(p *pathBroker) int { return len(p.offsets.Groups("T")) }, most: 10,
	},
	{
		name: "offsets with long names", key: "maxConsumerOffsets",
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: strings.Repeat("g", 1000+i), Topic: "T", CommitOffset: 1}, nil)
		},
		bad: protocol.SystemError, remark: "the offset is not kept: maxConsumerOffsets allows no more, or a name is too long",
		kept: func(p *pathBroker) int { return len(p.offsets.Groups("T")) }, most: 25,
	},
	{
		name: "queue locks", key: "maxQueueLocks", limit: func(c *Config) { c.MaxQueueLocks = 10 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.LockBatchMQ, nil, fmt.Appendf(nil, `{"clientId":"c","consumerGroup":"g%d","mqSet":[{"topic":"T","brokerName":"b","queueId":%d}]}`, i%3, i))
		},
		kept: func(p *pathBroker) (n int) {
			for i := range 40 {
				if p.locks.Locked(fmt.Sprintf("g%d", i%3), "c", body.MessageQueue{Topic: "T", BrokerName: "b", QueueId: int32(i)}) {
					n++
				}
			}
			return n
		}, most: 10,
	},
	{
		name: "expressions", key: "maxExpressionBytes", limit: func(c *Config) { c.MaxExpressionBytes, c.EnablePropertyFilter = 1000, true },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return beatOf(p, &body.HeartbeatData{ConsumerDataSet: []body.ConsumerData{{GroupName: "g", SubscriptionDataSet: []body.SubscriptionData{
				{Topic: fmt.Sprintf("T%02d", i), SubString: "a = " + strings.Repeat("1", 12) + strings.Repeat(" ", 80), ExpressionType: "SQL92", SubVersion: 1}}}}})
		},
		kept: func(p *pathBroker) (n int) { // each has 100 bytes with its names
			for i := range 40 {
				if p.filters.Find(fmt.Sprintf("T%02d", i), "g") != nil {
					n++
				}
			}
			return n
		}, most: 10,
	},
	{
		name: "request modes", key: "maxRequestModes", limit: func(c *Config) { c.MaxRequestModes = 10 },
		ask: func(p *pathBroker, i int) *protocol.Command {
			return p.ask(protocol.SetMessageRequestMode, nil, fmt.Appendf(nil, `{"topic":"BenchmarkTest","consumerGroup":"flood%d","mode":"POP","popShareQueueNum":0}`, i))
		},
		bad: protocol.SystemError, remark: "there are as many request modes as maxRequestModes allows",
		kept: func(p *pathBroker) int { return len(p.path.pop.modes.All().MessageRequestModeMap["BenchmarkTest"]) }, most: 10,
	},
}

// TestFloods: whatever a peer does again and again, a table stays within its limit, the peer is told by the code that
// the limit has, it is counted, and others are served as before.
func TestFloods(t *testing.T) {
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			p := startPathBroker(t, f.limit)
			other := p.dial()
			p.beat(other, "other", "OtherGroup", "BenchmarkTest")
			p.send("BenchmarkTest", 0, "", "first")
			p.stored("BenchmarkTest", 0, 0, 1)
			const n = 40
			refused := 0
			for i := range n {
				met := p.refusals(f.key)
				a := f.ask(p, i)
				switch beyond := p.refusals(f.key) > met; {
				case !beyond && a.Code != 0:
					t.Fatalf("request %d: code %d, %q", i, a.Code, a.Remark)
				case beyond:
					refused++
					start, open := strings.CutSuffix(f.remark, "*")
					if a.Code != int32(f.bad) || f.remark != "" && a.Remark != start && !(open && strings.HasPrefix(a.Remark, start)) {
						t.Fatalf("request %d, beyond the limit: code %d, %q", i, a.Code, a.Remark)
					}
				}
			}
			if kept := f.kept(p); refused == 0 || kept == 0 || kept > f.most {
				t.Errorf("%d requests refused, %d kept, may be %d", refused, kept, f.most)
			}
			if n := p.beat(other, "other", "OtherGroup", "BenchmarkTest"); len(n) != 0 {
				t.Errorf("the other client is told %v", n)
			}
			other.Ask(p.request(protocol.SendMessage, sendHeader("BenchmarkTest", 0, ""), []byte("second")))
			h := pullHeader("BenchmarkTest", 0, 0)
			h.ConsumerGroup = "OtherGroup"
			remotingtest.Eventually(t, "both messages can be pulled", func() bool { return p.store.MaxOffset("BenchmarkTest", 0) == 2 })
			if a := other.Ask(p.request(protocol.PullMessage, h, nil)); len(p.messages(a)) != 2 {
				t.Errorf("the other client gets code %d, %q", a.Code, a.Remark)
			}
		})
	}
}

// TestClientBytesAreGivenBack: what clients that are gone have taken is free again, to the byte.
func TestClientBytesAreGivenBack(t *testing.T) {
	p := startPathBroker(t, nil)
	for i := range 10 {
		peer := p.dial()
		p.beat(peer, fmt.Sprintf("c%d", i), fmt.Sprintf("G%d", i%4), "TopicA", "TopicB")
		p.beat(peer, fmt.Sprintf("d%d", i), fmt.Sprintf("G%d", i%4), "TopicC") // another name, other topics
		p.beat(peer, fmt.Sprintf("d%d", i), fmt.Sprintf("H%d", i), "TopicA")
		if p.memory.Used() == 0 {
			t.Fatal("nothing is counted")
		}
		if i%2 == 0 {
			peer.Ask(p.request(protocol.UnregisterClient, &header.UnregisterClientRequest{ClientID: "d", ProducerGroup: fmt.Sprintf("P-H%d", i), ConsumerGroup: fmt.Sprintf("H%d", i)}, nil))
		}
		defer peer.Close()
		if i%3 == 0 {
			peer.Close()
		}
	}
	for _, members := range p.producers.All() {
		for _, m := range members {
			m.Conn.Close()
		}
	}
	remotingtest.Eventually(t, "all of it is given back", func() bool { return p.memory.Used() == 0 })
}

// TestHeldPullsAreBounded: beyond the limit a pull that finds nothing is answered at once.
func TestHeldPullsAreBounded(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.MaxHeldPulls, c.MaxPopPollingSize = 10, 10 })
	peer := p.dial()
	h := pullHeader("BenchmarkTest", 0, 0)
	h.SysFlag, h.SuspendTimeoutMillis = pullSuspend|pullSubscription, 60_000
	for range 30 {
		peer.Send(p.request(protocol.PullMessage, h, nil))
	}
	for range 20 {
		check(t, "beyond the limit", peer.Receive(), protocol.PullNotFound, "NO_MESSAGE_IN_QUEUE", "suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
	}
	born := p.clock().UnixMilli()
	for range 30 {
		peer.Send(p.request(protocol.Notification, &header.NotificationRequest{ConsumerGroup: "CG", Topic: "BenchmarkTest", QueueId: 0, PollTime: 60_000, BornTime: born}, nil))
	}
	for range 20 {
		if a := peer.Receive(); field(t, a, "pollingFull") != "true" {
			t.Errorf("notification beyond the limit: %+v", a)
		}
	}
	if held, pulls, pops := p.path.held.Held(), p.refusals("maxHeldPulls"), p.refusals("maxPopPollingSize"); held != 10 || pulls != 20 || pops != 20 {
		t.Errorf("%d held, %d and %d refused", held, pulls, pops)
	}
	p.send("BenchmarkTest", 1, "", "others go on")
	peer.Close()
	remotingtest.Eventually(t, "the held pulls go with their connection", func() bool { return p.path.held.Held() == 0 && p.path.pop.notices.Len() == 0 })
}

// TestLargeJSON: a body beyond the limit is refused before it is read, and a large one that is none lets the next be read.
func TestLargeJSON(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.MaxJsonBytes = 1 << 20 })
	bomb := func(n int) []byte {
		return []byte(`{"clientID":"c","consumerDataSet":[` + strings.Repeat("{},", n/3) + `]}`)
	}
	a := p.ask(protocol.HeartBeat, nil, bomb(1<<20))
	check(t, "beyond the limit", a, protocol.SystemError, "the request's body has 10*")
	for range 3 * max(2, runtime.GOMAXPROCS(0)) { // each gives its place back
		a := p.ask(protocol.HeartBeat, nil, bomb(900<<10))
		check(t, "within it, with too many groups", a, protocol.SystemError, "the client has more groups than maxClientGroups allows")
	}
	p.bodies.reading.Add(1000)
	a = p.ask(protocol.LockBatchMQ, nil, append(bomb(900<<10), ' '))
	check(t, "too many at once", a, protocol.SystemBusy, "too many requests with large bodies at once")
	p.send("BenchmarkTest", 0, "", "others go on")
	p.beat(p.dial(), "c", "SmallBody", "BenchmarkTest")
	p.bodies.reading.Add(-1000)
	check(t, "again", p.ask(protocol.LockBatchMQ, nil, append([]byte(`{"mqSet":[]`+strings.Repeat(" ", 900<<10)), '}')), protocol.Success, "")
	if n := p.refusals("maxJsonBytes"); n != 2 {
		t.Errorf("%d counted", n)
	}
}

// A message that has had its tries is refused when there can be no topic for the dead letters.
func TestDeadLetterWithoutTopic(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.MaxTopics = 20 })
	h := sendHeader("%RETRY%CG", 0, "")
	check(t, "retry", p.ask(protocol.SendMessage, h, []byte("x")), 0, "", "MSG_REGION", "TRACE_ON", "msgId", "queueId", "queueOffset")
	for i := range 20 {
		p.ask(protocol.SendMessage, sendHeader(fmt.Sprintf("flood%d", i), 0, ""), []byte("x"))
	}
	h.ReconsumeTimes = protocol.Some[int32](99)
	check(t, "dead letter", p.ask(protocol.SendMessage, h, []byte("x")), 1, "topic[%DLQ%CG] not exist", "MSG_REGION", "TRACE_ON")
}

// TestPortStats: both ports count what comes.
func TestPortStats(t *testing.T) {
	p := startPathBroker(t, nil)
	for _, s := range []*remoting.Server{p.server, p.fast} {
		bad := remotingtest.Dial(t, remotingtest.Addr(s))
		bad.SendBytes([]byte("\xff\xff\xff\xff"))
		bad.Closed()
	}
	remotingtest.Eventually(t, "both bad frames are counted", func() bool {
		main, fast := p.PortStats()
		return main.BadFrames == 1 && fast.BadFrames == 1 && main.Accepted == 2 && fast.Accepted == 1
	})
}
