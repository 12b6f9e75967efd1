//go:build conformance

package bugs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// fake is a broker that exists only by its registrations, which a raw connection makes.
type fake struct {
	*server
	name, addr string
	version    int
}

// newFake connects to the name server as a broker would.
func newFake(t *testing.T, name, addr string) *fake {
	t.Helper()
	return &fake{dial(t, shared.NameServers[0].Addr), name, addr, 0}
}

func (f *fake) header(code int) *wire.Frame {
	return wire.Request(code, "brokerName", f.name, "brokerAddr", f.addr, "clusterName", "FakeCluster", "haServerAddr", f.addr, "brokerId", "0")
}

// register registers with just these topics, each of four queues, and with a data version that is news.
func (f *fake) register(topics ...string) {
	f.t.Helper()
	f.registerWith("[]", topics...)
}

// registerWith is register with a list of filter servers.
func (f *fake) registerWith(filterServers string, topics ...string) {
	f.t.Helper()
	f.version++
	var table []string
	for _, topic := range topics {
		table = append(table, fmt.Sprintf(`%q:{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":%q,`+
			`"topicSysFlag":0,"writeQueueNums":4}`, topic, topic))
	}
	f.Done(f.header(103).WithBody(fmt.Appendf(nil, `{"filterServerList":%s,"topicConfigSerializeWrapper":{"dataVersion":{"counter":%d,"timestamp":1},`+
		`"topicConfigTable":{%s}}}`, filterServers, f.version, strings.Join(table, ","))))
}

func (f *fake) unregister() {
	f.t.Helper()
	f.Done(f.header(104))
}

// route is what clients see of a topic's route.
type route struct {
	BrokerDatas []struct {
		BrokerName  string
		BrokerAddrs map[string]string
	}
	QueueDatas []struct {
		BrokerName string
		Perm       int
	}
	OrderTopicConf string
}

// brokers are the names of the brokers in the route's queues, sorted.
func (r route) brokers() (names []string) {
	for _, q := range r.QueueDatas {
		names = append(names, q.BrokerName)
	}
	slices.Sort(names)
	return names
}

// perm is the topic's permission on its first broker; -1 when there is none.
func (r route) perm() int {
	if len(r.QueueDatas) == 0 {
		return -1
	}
	return r.QueueDatas[0].Perm
}

// route asks for a topic's route; false: there is none.
func (s *server) route(topic string) (r route, ok bool) {
	s.t.Helper()
	answer := s.Ask(wire.Request(105, "topic", topic))
	switch answer.Code {
	case success:
	case topicNotExist:
		return r, false
	default:
		s.t.Fatalf("route of %s: %d %s", topic, answer.Code, answer.Remark)
	}
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		s.t.Fatalf("route of %s: %v in %s", topic, err, answer.Body)
	}
	return r, true
}

// H12 (#288): a topic deleted on one of two brokers stays in the route of that broker: a registration without it may be one that
// carries only what has changed, so the name server can't tell. The official server does the same; DELETE_TOPIC_IN_NAMESRV
// takes it off, of one cluster's brokers or of all.
func TestTopicGoneFromOneBroker(t *testing.T) {
	t.Parallel()
	a, b := newFake(t, "H12-a", "127.0.0.1:11"), newFake(t, "H12-b", "127.0.0.1:12")
	a.register("H12", "H12-other")
	b.register("H12", "H12-other")
	a.register("H12-other")
	r, _ := a.route("H12")
	if got := r.brokers(); !slices.Equal(got, []string{"H12-a", "H12-b"}) {
		t.Errorf("after a registration without the topic: %v", got)
	}
	a.Done(wire.Request(216, "topic", "H12"))
	if r, ok := a.route("H12"); ok {
		t.Errorf("after DELETE_TOPIC_IN_NAMESRV: %v", r)
	}
	b.register("H12", "H12-other")
	if r, _ := a.route("H12"); !slices.Equal(r.brokers(), []string{"H12-b"}) {
		t.Errorf("after the next registration of the broker that has it: %v", r.brokers())
	}
}

// H16 (#5374): a broker that is unregistered late, when another of its name and id has registered from a new address, must not
// take that one along. The official server removes by the id alone, and the new one is away until its next heartbeat.
func TestLateUnregister(t *testing.T) {
	t.Parallel()
	before, now := newFake(t, "H16", "127.0.0.1:13"), newFake(t, "H16", "127.0.0.1:14")
	before.register("H16")
	now.register("H16")
	before.unregister()
	r, ok := now.route("H16")
	if official() {
		if ok {
			t.Errorf("%v", r)
		}
		return
	}
	if !ok || len(r.BrokerDatas) != 1 || r.BrokerDatas[0].BrokerAddrs["0"] != now.addr {
		t.Errorf("%v", r)
	}
}

// H17 (#313; alibaba/rocketmq#243, #447): wiped write permission holds until ADD_WRITE_PERM_OF_BROKER. With the official server it
// is undone by the broker's next registration that has news, say of another topic.
func TestWipedWritePermission(t *testing.T) {
	t.Parallel()
	f := newFake(t, "H17", "127.0.0.1:15")
	f.register("H17", "H17-other")
	perm := func() int {
		t.Helper()
		r, _ := f.route("H17")
		return r.perm()
	}
	if n := f.Number("wipeTopicCount", wire.Request(205, "brokerName", "H17")); n != 2 || perm() != 4 {
		t.Errorf("wiped %d topics; perm %d", n, perm())
	}
	f.register("H17", "H17-other", "H17-new")
	want := 4
	if official() {
		want = 6
	}
	if got := perm(); got != want {
		t.Errorf("after a registration with a new topic: perm %d, want %d", got, want)
	}
	f.Number("addTopicCount", wire.Request(327, "brokerName", "H17"))
	if got := perm(); got != 6 {
		t.Errorf("after ADD_WRITE_PERM_OF_BROKER: perm %d", got)
	}
}

// H32 (rust#113), of a registration: the route drops a broker with its unregistration, and with the end of its connection. The
// official server does the same.
func TestUnregisteredBroker(t *testing.T) {
	t.Parallel()
	s := dial(t, shared.NameServers[0].Addr)
	f := newFake(t, "H32", "127.0.0.1:16")
	f.register("H32")
	f.unregister()
	if r, ok := s.route("H32"); ok {
		t.Errorf("after its unregistration: %v", r)
	}
	f.register("H32")
	if r, ok := s.route("H32"); !ok || !slices.Equal(r.brokers(), []string{"H32"}) {
		t.Errorf("registered again: %v", r)
	}
	f.Conn.Close()
	until(t, "the broker has left the route with its connection", func() bool {
		_, ok := s.route("H32")
		return !ok
	})
}

// Trap 7: routes are JSON that any parser reads, for clients from 4.9.4 on and for those that ask; others get fastjson's bare
// numbers as keys, which old clients expect. Wiped permissions, order configurations and topics deleted by cluster change nothing
// in that. The official server does the same.
func TestRoutesAreJSON(t *testing.T) {
	t.Parallel()
	f := newFake(t, "Trap7", "127.0.0.1:17")
	f.register("Trap7", "Trap7-gone")
	f.Done(wire.Request(205, "brokerName", "Trap7"))
	f.Done(wire.Request(100, "namespace", "ORDER_TOPIC_CONFIG", "key", "Trap7", "value", `Trap7:4;"quoted":1`))
	f.Done(wire.Request(216, "topic", "Trap7-gone", "clusterName", "FakeCluster"))
	if _, ok := f.route("Trap7-gone"); ok {
		t.Error("the topic deleted by its cluster is still routed")
	}
	ask := func(version int, standard string) []byte {
		t.Helper()
		request := wire.Request(105, "topic", "Trap7")
		request.Version = version
		if standard != "" {
			request.Set("acceptStandardJsonOnly", standard)
		}
		return f.Done(request).Body
	}
	for _, c := range []struct {
		version  int
		accept   string
		standard bool
	}{{409, "", true}, {401, "", true}, {400, "", false}, {317, "true", true}, {317, "false", false}} {
		text := ask(c.version, c.accept)
		if json.Valid(text) != c.standard || strings.Contains(string(text), "{0:") == c.standard {
			t.Errorf("version %d, acceptStandardJsonOnly %q: %s", c.version, c.accept, text)
		}
		v, err := wire.ParseJSON(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		data := v.(map[string]any)
		addrs := data["brokerDatas"].([]any)[0].(map[string]any)["brokerAddrs"].(map[string]any)
		if addrs["0"] != f.addr || data["orderTopicConf"] != `Trap7:4;"quoted":1` || data["queueDatas"].([]any)[0].(map[string]any)["perm"] != 4.0 {
			t.Errorf("version %d: %s", c.version, text)
		}
	}
	f.Done(wire.Request(102, "namespace", "ORDER_TOPIC_CONFIG", "key", "Trap7"))
}

// The name server of 4.9 still hands on the filter servers that a broker of 3.x registers with, though no broker of 4.9 has any.
func TestFilterServersInRoute(t *testing.T) {
	t.Parallel()
	f := newFake(t, "broker-of-old", "127.0.0.1:3")
	defer f.unregister()
	for _, step := range []struct{ list, want string }{
		{`["127.0.0.1:5","127.0.0.1:6"]`, `"filterServerTable":{"127.0.0.1:3":["127.0.0.1:5","127.0.0.1:6"]}`},
		{`["127.0.0.1:7"]`, `"filterServerTable":{"127.0.0.1:3":["127.0.0.1:7"]}`},
		{`[]`, `"filterServerTable":{}`},
	} {
		f.registerWith(step.list, "OldTopic")
		if a := f.Done(wire.Request(105, "topic", "OldTopic")); !strings.Contains(string(a.Body), step.want) {
			t.Errorf("registered with %s: %s, want %s", step.list, a.Body, step.want)
		}
	}
}
