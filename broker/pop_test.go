package broker

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/broker/pop"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store"
	"rocketd/store/vfs"
)

// popHeader is a pop of any queue that does not wait.
func popHeader(topic string, most int32, invisible time.Duration) *header.PopMessageRequest {
	return &header.PopMessageRequest{ConsumerGroup: "CG", Topic: topic, QueueId: -1, MaxMsgNums: most, InvisibleTime: invisible.Milliseconds()}
}

// got is a popped message and the request that acknowledges it.
type got struct {
	message.Message
	ack *header.AckMessageRequest
}

// pops makes a pop and returns what it got.
func (p *pathBroker) pops(h *header.PopMessageRequest) []got {
	p.tb.Helper()
	return p.popped(h, p.ask(protocol.PopMessage, h, nil))
}

func (p *pathBroker) popped(h *header.PopMessageRequest, a *protocol.Command) (list []got) {
	p.tb.Helper()
	if a.Code != int32(protocol.Success) {
		if a.Code != int32(protocol.PollingTimeout) {
			p.tb.Fatalf("pop: %d %q", a.Code, a.Remark)
		}
		return nil
	}
	for _, m := range p.messages(a) {
		topic := h.Topic
		handle, ok := m.Property(message.PropertyPopCk)
		if ok {
			topic = pop.RetryTopic(h.ConsumerGroup, h.Topic)
		} else {
			start := ""
			for e := range strings.SplitSeq(field(p.tb, a, "startOffsetInfo"), ";") {
				if f := strings.Fields(e); f[1] == strconv.Itoa(int(m.QueueId)) && f[0] == "0" {
					start = f[2]
				}
			}
			handle = strings.Join([]string{start, field(p.tb, a, "popTime"), field(p.tb, a, "invisibleTime"), field(p.tb, a, "reviveQid"), "0", "b", "0", "0"}, " ")
		}
		list = append(list, got{m, &header.AckMessageRequest{ConsumerGroup: h.ConsumerGroup, Topic: topic, QueueId: m.QueueId, ExtraInfo: handle, Offset: m.QueueOffset}})
	}
	return list
}

func (p *pathBroker) acknowledge(list ...got) {
	p.tb.Helper()
	for _, g := range list {
		if a := p.ask(protocol.AckMessage, g.ack, nil); a.Code != 0 {
			p.tb.Fatalf("ack: %d %q", a.Code, a.Remark)
		}
	}
}

func texts(list []got) (all []string) {
	for _, g := range list {
		all = append(all, string(g.Body))
	}
	slices.Sort(all)
	return all
}

// A message that is never acknowledged ends as a dead letter, with what pull consumers' dead letters have: retryMaxTimes + 1
// deliveries, but one less where a stock 5.x client would acknowledge it unconsumed.
func TestPopDeadLetter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, deliveries int32 }{{0, 1}, {2, 3}, {16, 16}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			b := startPathBroker(t, nil)
			b.send("T", 0, "TAGS=x", "dead")
			group := `{"groupName":"CG","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":` + fmt.Sprint(c.limit) + `}`
			if a := b.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(group)); a.Code != 0 {
				t.Fatal(a.Remark)
			}
			times := int32(0)
			remotingtest.Eventually(t, "the dead letter is there", func() bool {
				for _, g := range b.pops(popHeader("T", 32, 5*time.Millisecond)) {
					if g.ReconsumeTimes != times || g.Topic != "T" {
						t.Fatalf("delivery %d: reconsumeTimes %d of %s", times, g.ReconsumeTimes, g.Topic)
					}
					times++
				}
				return b.store.MaxOffset("%DLQ%CG", 0) == 1
			})
			dead := b.stored("%DLQ%CG", 0, 0, 1)
			if times != c.deliveries || len(dead) != 1 || string(dead[0].Body) != "dead" {
				t.Errorf("%d deliveries, want %d; %+v", times, c.deliveries, dead)
			}
			if from, _ := dead[0].Property(message.PropertyRetryTopic); from != "T" {
				t.Errorf("from %q", from)
			}
		})
	}
}

// Several consumers share one queue: each message goes to one of them.
func TestPopSharesAQueue(t *testing.T) {
	b := startPathBroker(t, nil)
	const n = 500
	for i := range n {
		b.send("T", 0, "", fmt.Sprintf("%03d", i))
	}
	b.stored("T", 0, 0, n)
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for range 8 {
		peer := &pathBroker{Broker: b.Broker, tb: t, peer: b.dial()}
		wg.Go(func() {
			for {
				list := peer.pops(popHeader("T", 7, time.Minute))
				if len(list) == 0 {
					return
				}
				peer.acknowledge(list...)
				mu.Lock()
				all = append(all, texts(list)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n {
		t.Errorf("%d messages were popped", len(all))
	}
	if open := b.path.pop.checkpoints.Open(); open != 0 {
		t.Errorf("%d checkpoints are left", open)
	}
	if offset, _ := b.offsets.Query("CG", "T", 0); offset != n {
		t.Errorf("the group stands at %d", offset)
	}
}

// After kill -9 what was not acknowledged comes again, and what was does not; the group stands where it stood.
func TestPopKill(t *testing.T) {
	t.Parallel()
	var clock ahead
	b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, nil)
	for i := range 6 {
		b.send("T", 0, "", fmt.Sprint(i))
	}
	b.stored("T", 0, 0, 6)
	list := b.pops(popHeader("T", 4, time.Minute))
	b.acknowledge(list[1], list[2])
	fs := b.fs.Kill()
	b.close()
	clock.forward(time.Hour)
	b = startPathBrokerAt(t, fs, clock.now, nil)
	var again []string
	remotingtest.Eventually(t, "all is there", func() bool {
		list := b.pops(popHeader("T", 32, time.Minute))
		b.acknowledge(list...)
		again = append(again, texts(list)...)
		return len(again) >= 4
	})
	if slices.Sort(again); !slices.Equal(again, []string{"0", "3", "4", "5"}) {
		t.Errorf("got %v", again)
	}
}

// A power failure at any place loses no message that was flushed before: whatever was not acknowledged comes again.
func TestPopPowerFailure(t *testing.T) {
	t.Parallel()
	for seed := range int64(6) {
		rng := rand.New(rand.NewSource(seed))
		var clock ahead
		b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, func(c *Config) { c.FlushDiskType = store.SyncFlush; c.FlushConsumerOffsetInterval = 100 })
		for i := range 6 {
			b.send("T", 0, "", fmt.Sprint(i))
		}
		b.stored("T", 0, 0, 6)
		list := b.pops(popHeader("T", 3, time.Minute))
		b.acknowledge(list[0])
		if seed%2 == 0 { // the offsets are in their file
			remotingtest.Eventually(t, "saved", func() bool {
				text, err := vfs.Files{FS: b.fs}.ReadFile(b.config().configDir() + "/consumerOffset.json")
				return err == nil && strings.Contains(string(text), "T@CG")
			})
		}
		fs := b.fs.Crash(int(seed)*20, rng)
		b.close()
		clock.forward(time.Hour)
		b = startPathBrokerAt(t, fs, clock.now, nil)
		seen := map[string]bool{}
		remotingtest.Eventually(t, fmt.Sprintf("seed %d: all is there", seed), func() bool {
			for _, g := range b.pops(popHeader("T", 32, time.Minute)) {
				seen[string(g.Body)] = true
			}
			return seen["1"] && seen["2"] && seen["3"] && seen["4"] && seen["5"]
		})
		b.close()
	}
}

// A held pop goes on when a message comes again, and the broker's stop answers it.
func TestHeldPop(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "a")
	b.stored("T", 0, 0, 1)
	if list := b.pops(popHeader("T", 1, 200*time.Millisecond)); len(list) != 1 {
		t.Fatalf("%d messages", len(list))
	}
	h := popHeader("T", 1, time.Minute)
	h.PollTime = 2 * remotingtest.Patience.Milliseconds()
	if list := b.pops(h); len(list) != 1 || list[0].ReconsumeTimes != 1 {
		t.Errorf("got %v", texts(list))
	}
	h.MaxMsgNums = 0
	check(t, "no message wanted", b.ask(protocol.PopMessage, h, nil), protocol.PollingTimeout, "NO_MESSAGE_IN_QUEUE",
		"popTime", "invisibleTime", "reviveQid", "restNum", "startOffsetInfo", "msgOffsetInfo")
	h.MaxMsgNums = 1
	done := make(chan *protocol.Command, 1)
	other := b.dial()
	request := b.request(protocol.PopMessage, h, nil)
	go func() { done <- other.Ask(request) }()
	remotingtest.Eventually(t, "held", func() bool { return b.path.pop.held.Len() == 1 })
	b.answerHeld()
	if a := <-done; a.Code != int32(protocol.PollingTimeout) {
		t.Errorf("answered %d %q", a.Code, a.Remark)
	}
	check(t, "while it stops", b.ask(protocol.PopMessage, h, nil), protocol.ServiceNotAvailable, "the broker is stopping",
		"popTime", "invisibleTime", "reviveQid", "restNum")
}

// With a threshold a group gets no more of a queue than that before it acknowledges.
func TestPopThreshold(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.EnablePopMessageThreshold, c.PopInflightMessageThreshold = true, 2 })
	for i := range 6 {
		b.send("T", 0, "", fmt.Sprint(i))
	}
	b.stored("T", 0, 0, 6)
	list := b.pops(popHeader("T", 3, time.Minute))
	h := popHeader("T", 3, time.Minute)
	a := b.ask(protocol.PopMessage, h, nil)
	if a.Code != int32(protocol.PollingTimeout) || field(t, a, "restNum") != "3" {
		t.Errorf("answered %d, %v", a.Code, a.Fields)
	}
	b.acknowledge(list...)
	if list = b.pops(h); len(list) != 3 {
		t.Errorf("got %v", texts(list))
	}
}

// A topic that is deleted takes with it what is under way.
func TestPopOfDeletedTopic(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "a")
	b.stored("T", 0, 0, 1)
	b.pops(popHeader("T", 1, time.Minute))
	if a := b.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "T"}, nil); a.Code != 0 {
		t.Fatal(a.Remark)
	}
	if n := b.path.pop.checkpoints.Open(); n != 0 {
		t.Errorf("%d checkpoints are left", n)
	}
}

// Nobody may write into the broker's records.
func TestPopLogIsClosed(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "a")
	b.stored("T", 0, 0, 1)
	b.pops(popHeader("T", 1, time.Minute))
	check(t, "send", b.ask(protocol.SendMessage, sendHeader(pop.LogTopic, 0, ""), []byte("x")), protocol.NoPermission, "*", "MSG_REGION", "TRACE_ON")
	check(t, "pull", b.ask(protocol.PullMessage, pullHeader(pop.LogTopic, 0, 0), nil), protocol.NoPermission, "*", "{}")
	check(t, "pop", b.ask(protocol.PopMessage, popHeader(pop.LogTopic, 1, time.Minute), nil), protocol.NoPermission, "*",
		"popTime", "invisibleTime", "reviveQid", "restNum")
}
