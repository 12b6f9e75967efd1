package namesrv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

// fakeLink is a broker's connection that can be closed.
type fakeLink struct{ closed atomic.Bool }

func (l *fakeLink) Close() { l.closed.Store(true) }

// fakeClock is a clock that stands.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time { return c.now }

func newTable() (*routeTable, *fakeClock) {
	clock := &fakeClock{time.UnixMilli(1700000000000)}
	return newRouteTable(noLog, clock.Now), clock
}

// registration of topics with 8 queues each.
func topics(counter int64, perm int32, names ...string) *body.RegisterBrokerBody {
	b := &body.RegisterBrokerBody{FilterServerList: []string{}}
	b.TopicConfigSerializeWrapper.DataVersion.Counter = counter
	b.TopicConfigSerializeWrapper.TopicConfigTable = make(map[string]*body.TopicConfig)
	for _, name := range names {
		b.TopicConfigSerializeWrapper.TopicConfigTable[name] = &body.TopicConfig{TopicName: name, ReadQueueNums: 8, WriteQueueNums: 8, Perm: perm}
	}
	return b
}

func broker(name, addr string, id int64) *header.RegisterBrokerRequest {
	return &header.RegisterBrokerRequest{BrokerName: name, BrokerAddr: addr, ClusterName: "C", HaServerAddr: addr + "1", BrokerId: id}
}

func (t *routeTable) has(topic, part string) bool {
	return bytes.Contains(t.route(topic, true, ""), []byte(part))
}

// TestLateGoodbye: an unregistration, or the end of the connection, of an address that another has replaced leaves
// that other alone (4.9.8 removes by broker id).
func TestLateGoodbye(t *testing.T) {
	r, _ := newTable()
	old, young := new(fakeLink), new(fakeLink)
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), old)
	r.register(broker("a", "B:1", 0), topics(1, 6, "T"), young)
	r.unregister("a", "A:1")
	if !r.has("T", `"0":"B:1"`) {
		t.Errorf("after the late unregistration: %s", r.route("T", true, ""))
	}
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), old)
	r.register(broker("a", "B:1", 0), topics(1, 6, "T"), young)
	r.linkClosed(old, "test")
	if !r.has("T", `"0":"B:1"`) || r.mu.live["A:1"] != nil {
		t.Errorf("after the late end of the connection: %s", r.route("T", true, ""))
	}
	again := new(fakeLink) // the same address by another connection
	r.register(broker("a", "B:1", 0), topics(1, 6, "T"), again)
	r.linkClosed(young, "test")
	if !r.has("T", `"0":"B:1"`) {
		t.Errorf("after the end of the older connection: %s", r.route("T", true, ""))
	}
	r.linkClosed(again, "test")
	if r.route("T", true, "") != nil || len(r.mu.topics)+len(r.mu.brokers)+len(r.mu.clusters)+len(r.mu.live) != 0 {
		t.Errorf("left over: %v, %v, %v, %v", r.mu.live, r.mu.brokers, r.mu.topics, r.mu.clusters)
	}
}

// TestDrainHolds: a wiped write permission outlives registrations that change topics, for new topics too, but not
// the broker.
func TestDrainHolds(t *testing.T) {
	r, _ := newTable()
	l := new(fakeLink)
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), l)
	if n := r.setWritePerm("a", false); n != 1 {
		t.Errorf("%d topics", n)
	}
	r.register(broker("a", "A:1", 0), topics(2, 6, "T", "U"), l)
	if !r.has("T", `"perm":4`) || !r.has("U", `"perm":4`) {
		t.Errorf("after a registration: %s, %s", r.route("T", true, ""), r.route("U", true, ""))
	}
	r.setWritePerm("a", true)
	r.register(broker("a", "A:1", 0), topics(3, 6, "T", "V"), l)
	if !r.has("U", `"perm":6`) || !r.has("V", `"perm":6`) {
		t.Errorf("after it was added again: %s", r.route("V", true, ""))
	}
	r.setWritePerm("a", false)
	r.unregister("a", "A:1")
	r.register(broker("a", "A:1", 0), topics(3, 6, "T"), l)
	if !r.has("T", `"perm":6`) {
		t.Errorf("after a restart of the broker: %s", r.route("T", true, ""))
	}
}

// TestExpire: a broker lives for 120 s after its last registration, or its last unchanged QUERY_DATA_VERSION.
func TestExpire(t *testing.T) {
	r, clock := newTable()
	a, b := new(fakeLink), new(fakeLink)
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), a)
	r.register(broker("b", "B:1", 0), topics(1, 6, "T"), b)
	clock.now = clock.now.Add(brokerExpiry)
	r.expire()
	if !r.has("T", "A:1") || !r.has("T", "B:1") {
		t.Error("expired too early")
	}
	if _, known := r.touch("B:1", body.DataVersion{Counter: 1}); !known {
		t.Error("b is unknown")
	}
	r.touch("A:1", body.DataVersion{Counter: 2}) // changed: no sign of life
	clock.now = clock.now.Add(time.Millisecond)
	r.expire()
	if r.has("T", "A:1") || !r.has("T", "B:1") || !a.closed.Load() || b.closed.Load() {
		t.Errorf("after 120 s: %s", r.route("T", true, ""))
	}
	clock.now = clock.now.Add(brokerExpiry)
	r.expire()
	if r.route("T", true, "") != nil || !b.closed.Load() {
		t.Error("b lives for ever")
	}
}

// TestEmptyAddress: a broker that registers without an address, as the official name server allows, goes like any
// other, and is nobody's master.
func TestEmptyAddress(t *testing.T) {
	for name, remove := range map[string]func(*routeTable, *fakeClock, link){
		"unregistered": func(r *routeTable, _ *fakeClock, _ link) { r.unregister("ghost", "") },
		"closed":       func(r *routeTable, _ *fakeClock, l link) { r.linkClosed(l, "test") },
		"expired": func(r *routeTable, c *fakeClock, _ link) {
			c.now = c.now.Add(brokerExpiry + time.Millisecond)
			r.expire()
		},
	} {
		r, clock := newTable()
		l := new(fakeLink)
		r.register(broker("ghost", "", 0), topics(1, 6, "T"), l)
		if !r.has("T", `"0":""`) {
			t.Errorf("%s: registered %s", name, r.route("T", true, ""))
		}
		remove(r, clock, l)
		if r.route("T", true, "") != nil || len(r.mu.topics)+len(r.mu.brokers)+len(r.mu.clusters)+len(r.mu.live) != 0 {
			t.Errorf("%s: left over: %v, %v, %v, %v", name, r.mu.live, r.mu.brokers, r.mu.topics, r.mu.clusters)
		}
	}
	r, _ := newTable()
	r.register(broker("ghost", "", 0), topics(1, 6, "T"), new(fakeLink))
	if got, err := r.register(broker("a", "A:1", 1), topics(1, 6, "T"), new(fakeLink)); err != nil || got != (header.RegisterBrokerResponse{}) {
		t.Errorf("a slave without a master was told %+v", got)
	}
}

// TestOneLinkManyBrokers: all brokers that registered by a connection go with it.
func TestOneLinkManyBrokers(t *testing.T) {
	r, _ := newTable()
	l := new(fakeLink)
	for i := range 3 {
		r.register(broker(fmt.Sprint("b", i), fmt.Sprint("A:", i), 0), topics(1, 6, "T"), l)
	}
	r.linkClosed(l, "test")
	if len(r.mu.live)+len(r.mu.brokers)+len(r.mu.topics) != 0 {
		t.Errorf("left over: %v, %v, %v, %v", r.mu.live, r.mu.brokers, r.mu.topics, r.mu.clusters)
	}
}

// TestAnswersAreFresh: whatever happens in whatever order, the bytes that are kept are those that would be made now,
// and the tables agree with one another.
func TestAnswersAreFresh(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, clock := newTable()
		links := []*fakeLink{new(fakeLink), new(fakeLink), new(fakeLink)}
		name := rapid.SampledFrom([]string{"a", "b"})
		addr := rapid.SampledFrom([]string{"A:1", "B:1", "C:1", ""})
		topic := rapid.SampledFrom([]string{"T", "U", "V"})
		link := rapid.SampledFrom(links)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0, 1:
				req := broker(name.Draw(rt, "name"), addr.Draw(rt, "addr"), rapid.Int64Range(0, 1).Draw(rt, "id"))
				b := topics(rapid.Int64Range(0, 3).Draw(rt, "version"), rapid.Int32Range(4, 7).Draw(rt, "perm"), rapid.SliceOfN(topic, 0, 3).Draw(rt, "topics")...)
				if rapid.Bool().Draw(rt, "filter") {
					b.FilterServerList = []string{"F:1"}
				}
				r.register(req, b, link.Draw(rt, "link"))
			case 2:
				r.unregister(name.Draw(rt, "name"), addr.Draw(rt, "addr"))
			case 3:
				r.setWritePerm(name.Draw(rt, "name"), rapid.Bool().Draw(rt, "write"))
			case 4:
				r.deleteTopic(topic.Draw(rt, "topic"), rapid.SampledFrom([]string{"", "C", "D"}).Draw(rt, "cluster"))
			case 5:
				r.linkClosed(link.Draw(rt, "link"), "test")
			case 6:
				clock.now = clock.now.Add(50 * time.Second)
				r.expire()
			}
			for _, topic := range []string{"T", "U", "V"} {
				for _, standard := range []bool{false, true} {
					kept := r.route(topic, standard, "")
					if tr := r.mu.topics[topic]; tr != nil {
						tr.changedLocked()
					}
					if made := r.route(topic, standard, ""); !bytes.Equal(kept, made) {
						rt.Fatalf("kept %s, now %s", kept, made)
					}
				}
			}
			list, err := r.allTopics()
			r.names.Store(nil)
			if made, err2 := r.allTopics(); err != nil || err2 != nil || !bytes.Equal(list, made) {
				rt.Fatalf("kept %s, now %s; %v, %v", list, made, err, err2)
			}
			if bytes := counted(r); bytes != r.mu.bytes {
				rt.Fatalf("%d bytes are noted, %d are there", r.mu.bytes, bytes)
			}
			for name, set := range r.mu.brokers {
				if len(set.addrs) == 0 {
					rt.Fatalf("broker %s has no address", name)
				}
				for _, addr := range set.addrs {
					if l := r.mu.live[addr]; l == nil || l.name != name {
						rt.Fatalf("address %s of broker %s does not live", addr, name)
					}
				}
				for topic := range set.topics {
					if _, ok := r.mu.topics[topic].queues[name]; !ok {
						rt.Fatalf("broker %s names topic %s in vain", name, topic)
					}
				}
			}
			for topic, tr := range r.mu.topics {
				for name := range tr.queues {
					if set := r.mu.brokers[name]; set == nil || !set.topics[topic] {
						rt.Fatalf("topic %s names broker %s in vain", topic, name)
					}
				}
			}
		}
	})
}

func TestOrderIsPartOfTheAnswer(t *testing.T) {
	r, _ := newTable()
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), new(fakeLink))
	for _, order := range []string{"", "a:4", "a:8", ""} {
		got := bytes.Contains(r.route("T", false, order), []byte(`"orderTopicConf":"`+order+`"`))
		if got != (order != "") {
			t.Errorf("order %q: %s", order, r.route("T", false, order))
		}
	}
}

// TestTogether: readers and writers at once. What is read is whole JSON of one of the states that there were.
func TestTogether(t *testing.T) {
	r, _ := newTable()
	r.register(broker("keep", "K:1", 0), topics(1, 6, "T"), new(fakeLink))
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			name, addr, l := fmt.Sprint("b", w), fmt.Sprint("A:", w), new(fakeLink)
			for i := range int64(200) {
				r.register(broker(name, addr, 0), topics(i, 4+int32(i%2)*2, "T"), l)
				r.setWritePerm(name, i%3 == 0)
				switch i % 4 {
				case 0:
					r.unregister(name, addr)
				case 1:
					r.linkClosed(l, "test")
				}
			}
			r.unregister(name, addr)
		})
		all.Go(func() {
			for range 400 {
				if b := r.route("T", true, ""); !json.Valid(b) || !bytes.Contains(b, []byte("K:1")) {
					t.Errorf("read %s", b)
				}
				r.clusterInfo()
				r.clusterTopics("C")
				r.systemTopics()
			}
		})
	}
	all.Wait()
	if got := string(r.route("T", true, "")); strings.Count(got, "brokerAddrs") != 1 {
		t.Errorf("at the end %s", got)
	}
}

// TestRouteAllocations: an answer that is kept costs nothing.
func TestRouteAllocations(t *testing.T) {
	r, _ := newTable()
	r.register(broker("a", "A:1", 0), topics(1, 6, "T"), new(fakeLink))
	if n := testing.AllocsPerRun(100, func() { r.route("T", true, "") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
