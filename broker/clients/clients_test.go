package clients

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// clock is a time that a test turns.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func newClock() *clock { return &clock{time.UnixMilli(1_700_000_000_000)} }

var quiet = slog.New(slog.DiscardHandler)

func unlimited() *Memory { return NewMemory(func() Limits { return Limits{} }) }

// client makes a client with a connection of its own. The tables use connections as keys only.
func client(id string) Client {
	return Client{Conn: new(remoting.Conn), ClientId: id, Language: protocol.Java, Version: 409}
}

// group is what a push consumer's heartbeat says: topics with their subVersion.
func group(name string, version int64, topics ...string) *body.ConsumerData {
	d := &body.ConsumerData{GroupName: name, ConsumeType: body.ConsumePassively, MessageModel: body.Clustering,
		ConsumeFromWhere: body.ConsumeFromLastOffset}
	for _, topic := range topics {
		d.SubscriptionDataSet = append(d.SubscriptionDataSet, body.SubscriptionData{Topic: topic, SubString: "*", SubVersion: version})
	}
	return d
}

// Members who subscribe different topics are named in the log, not with every heartbeat, and not one who is gone.
func TestQuarrel(t *testing.T) {
	var text strings.Builder
	clock := newClock()
	table := NewConsumers(clock.time, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})), unlimited())
	a, b := client("a"), client("b")
	said := func(what string, want int) {
		t.Helper()
		if got := strings.Count(text.String(), "\n"); got != want {
			t.Errorf("%s: %d warnings, want %d: %s", what, got, want, text.String())
		}
	}
	table.Register(a, group("G", 1, "T", "%RETRY%G"))
	table.Register(a, group("G", 2, "U", "%RETRY%G")) // its own
	said("a change of mind", 0)
	table.Register(b, group("G", 1, "V", "%RETRY%G"))
	said("a rival", 1)
	if s := text.String(); !strings.Contains(s, "clientId=b otherClientId=a lost=[U]") {
		t.Error(s)
	}
	for range 9 {
		clock.now = clock.now.Add(30 * time.Second)
		table.Register(a, group("G", 2, "U", "%RETRY%G"))
		table.Register(b, group("G", 1, "V", "%RETRY%G"))
	}
	said("more heartbeats", 1)
	clock.now = clock.now.Add(30 * time.Second)
	table.Register(a, group("G", 2, "U", "%RETRY%G"))
	said("five minutes later", 2)
	clock.now = clock.now.Add(time.Hour)
	table.Unregister(a.Conn, "G")
	table.Register(b, group("G", 1, "V", "%RETRY%G"))
	said("a former member's", 2)
}

// The rules of ConsumerManager and ConsumerGroupInfo of 4.9.8.
func TestRegister(t *testing.T) {
	table := NewConsumers(newClock().time, quiet, unlimited())
	a, b := client("a"), client("b")
	step := func(what string, c Client, d *body.ConsumerData, want bool) {
		t.Helper()
		if got, err := table.Register(c, d); got != want || err != nil {
			t.Errorf("%s: changed %v, want %v", what, got, want)
		}
	}
	step("first member", a, group("G", 1, "T", "%RETRY%G"), true)
	step("the same again", a, group("G", 1, "T", "%RETRY%G"), false)
	step("a larger subVersion only", a, group("G", 2, "T", "%RETRY%G"), false)
	if s, ok := table.Group("G").Subscription("T"); !ok || s.SubVersion != 2 {
		t.Errorf("subscription %+v, %v", s, ok)
	}
	step("a smaller subVersion", a, group("G", 1, "T", "%RETRY%G"), false)
	if s, _ := table.Group("G").Subscription("T"); s.SubVersion != 2 {
		t.Errorf("a smaller subVersion has replaced: %+v", s)
	}
	step("second member", b, group("G", 2, "T", "%RETRY%G"), true)
	step("a topic more", b, group("G", 3, "T", "U", "%RETRY%G"), true)
	step("the first member has not got it", a, group("G", 2, "T", "%RETRY%G"), true)
	if _, ok := table.Group("G").Subscription("U"); ok {
		t.Error("a topic that is not in the latest heartbeat is still there")
	}
	d := group("G", 2, "T", "%RETRY%G")
	d.ConsumeType, d.MessageModel, d.ConsumeFromWhere = body.ConsumeActively, body.Broadcasting, body.ConsumeFromFirstOffset
	step("another type", a, d, false)
	g := table.Group("G")
	if g.ConsumeType() != body.ConsumeActively || g.MessageModel() != body.Broadcasting || g.ConsumeFromWhere() != body.ConsumeFromFirstOffset {
		t.Errorf("%v %v %v", g.ConsumeType(), g.MessageModel(), g.ConsumeFromWhere())
	}
	if ids := g.ClientIds(); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("ids %v", ids)
	}
	renamed := a
	renamed.ClientId = "a2"
	step("the same connection under another name", renamed, group("G", 2, "T", "%RETRY%G"), false)
	if ids := g.ClientIds(); !slices.Equal(ids, []string{"a2", "b"}) {
		t.Errorf("ids %v", ids)
	}
	if table.Group("none") != nil {
		t.Error("a group out of nothing")
	}
	if got := table.Subscribers("T"); !slices.Equal(got, []string{"G"}) {
		t.Errorf("subscribers %v", got)
	}
}

func TestUnregisterAndClose(t *testing.T) {
	table := NewConsumers(newClock().time, quiet, unlimited())
	a, b := client("a"), client("b")
	for _, name := range []string{"G", "H"} {
		table.Register(a, group(name, 1, "T"))
		table.Register(b, group(name, 1, "T"))
	}
	if table.Unregister(a.Conn, "none") {
		t.Error("an unknown group was there")
	}
	if !table.Unregister(a.Conn, "G") {
		t.Error("the group was not there")
	}
	if ids := table.Group("G").ClientIds(); !slices.Equal(ids, []string{"b"}) {
		t.Errorf("ids %v", ids)
	}
	if left := table.OnClose(a.Conn); !slices.Equal(left, []string{"H"}) {
		t.Errorf("left %v, want H", left)
	}
	if left := table.OnClose(a.Conn); left != nil {
		t.Errorf("left %v the second time", left)
	}
	left := table.OnClose(b.Conn)
	slices.Sort(left)
	if !slices.Equal(left, []string{"G", "H"}) {
		t.Errorf("left %v", left)
	}
	if table.Group("G") != nil || table.Group("H") != nil || len(table.mu.byConn) != 0 {
		t.Error("groups without members are still there")
	}
}

func TestConsumersExpire(t *testing.T) {
	c := newClock()
	table := NewConsumers(c.time, quiet, unlimited())
	a, b := client("a"), client("b")
	table.Register(a, group("G", 1, "T"))
	c.now = c.now.Add(time.Second)
	table.Register(b, group("G", 1, "T"))
	c.now = c.now.Add(Expiry - time.Second) // exactly 120 s for a
	if expired, left := table.Scan(); expired != nil || left != nil {
		t.Errorf("expired %d, left %v", len(expired), left)
	}
	c.now = c.now.Add(time.Millisecond)
	expired, left := table.Scan()
	if len(expired) != 1 || expired[0] != a.Conn || !slices.Equal(left, []string{"G"}) {
		t.Errorf("expired %d, left %v", len(expired), left)
	}
	if ids := table.Group("G").ClientIds(); !slices.Equal(ids, []string{"b"}) {
		t.Errorf("ids %v", ids)
	}
	c.now = c.now.Add(time.Second)
	if table.Scan(); table.Group("G") != nil {
		t.Error("the group outlives its last member")
	}
}

// A client that has come back while its old connection is not yet known dead is listed once.
func TestDoubleClientId(t *testing.T) {
	c := newClock()
	table := NewConsumers(c.time, quiet, unlimited())
	old, again := client("a"), client("a")
	table.Register(old, group("G", 1, "T"))
	c.now = c.now.Add(time.Second)
	if joined, _ := table.Register(again, group("G", 1, "T")); !joined {
		t.Error("a new connection is no change")
	}
	g := table.Group("G")
	if ids := g.ClientIds(); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("ids %v", ids)
	}
	if m, ok := g.Find("a"); !ok || m.Conn != again.Conn {
		t.Error("not the newest connection")
	}
	if n := len(g.Conns()); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestProducers(t *testing.T) {
	c := newClock()
	table := NewProducers(c.time, quiet, unlimited())
	a := client("a")
	table.Register(a, "P")
	table.Register(a, "CLIENT_INNER_PRODUCER")
	if table.Find("a") != a.Conn {
		t.Error("a is not found")
	}
	if m := table.Members("P"); len(m) != 1 || m[0].Client != a || !m[0].LastUpdate.Equal(c.now) {
		t.Errorf("members %+v", m)
	}
	if table.Members("none") != nil {
		t.Error("members of a group out of nothing")
	}
	table.Unregister(a.Conn, "P")
	if table.Members("P") != nil || table.Find("a") != a.Conn {
		t.Error("one group left: the group is there, or the client is not")
	}
	again := client("a") // by a new connection, before the old one's end is seen
	table.Register(again, "P")
	table.OnClose(a.Conn)
	if table.Find("a") != again.Conn {
		t.Error("the old connection's end has taken the new one away")
	}
	c.now = c.now.Add(Expiry + time.Millisecond)
	if expired := table.Scan(); len(expired) != 1 || expired[0] != again.Conn {
		t.Errorf("%d expired", len(expired))
	}
	if len(table.All()) != 0 || table.Find("a") != nil || len(table.mu.byConn) != 0 {
		t.Error("something is left")
	}
}

// A connection that says another client id in every heartbeat leaves nothing of the earlier ones.
func TestRenamedClients(t *testing.T) {
	consumers, producers := NewConsumers(time.Now, quiet, unlimited()), NewProducers(time.Now, quiet, unlimited())
	c := client("first")
	producers.Register(c, "kept") // bears the first id all the time
	for i := range 100 {
		renamed := c
		renamed.ClientId = fmt.Sprint("c", i)
		producers.Register(renamed, "P")
		consumers.Register(renamed, group("G", 1, "T"))
		if producers.Find(renamed.ClientId) != c.Conn || producers.Find("first") != c.Conn {
			t.Fatal("a current id is not found")
		}
	}
	if n := len(producers.mu.byId); n != 2 {
		t.Errorf("%d producer ids, want 2", n)
	}
	if ids := consumers.Group("G").ClientIds(); !slices.Equal(ids, []string{"c99"}) {
		t.Errorf("consumers %v", ids)
	}
	producers.OnClose(c.Conn)
	consumers.OnClose(c.Conn)
	if len(producers.mu.byId)+len(producers.mu.byConn)+len(producers.mu.groups)+len(consumers.mu.byConn)+len(consumers.mu.groups) != 0 {
		t.Error("something is left")
	}
}

// anybody may be asked.
func anybody(*Client) bool { return true }

// Members are asked one after the other; connections that have ended are not.
func TestNextProducer(t *testing.T) {
	mux := remoting.NewMux(nil)
	conns := make(chan *remoting.Conn, 3)
	server := remotingtest.StartWith(t, remotingtest.Config(), mux, remoting.Events{Connected: func(c *remoting.Conn) { conns <- c }})
	table := NewProducers(time.Now, quiet, unlimited())
	if table.Next("G", anybody) != nil {
		t.Error("a member of no group")
	}
	var members []*remoting.Conn
	for _, id := range []string{"a", "b", "c"} {
		remotingtest.Dial(t, remotingtest.Addr(server))
		c := <-conns
		members = append(members, c)
		table.Register(Client{Conn: c, ClientId: id}, "G")
		table.Next("G", anybody) // the order is made anew with each member
	}
	count := func(n int) (times [3]int) {
		for range n {
			times[slices.Index(members, table.Next("G", anybody))]++
		}
		return times
	}
	if got := count(30); got != [3]int{10, 10, 10} {
		t.Errorf("asked %v times", got)
	}
	for range 6 {
		if got := table.Next("G", func(c *Client) bool { return c.ClientId == "c" }); got != members[2] {
			t.Error("one is asked that may not be")
		}
	}
	if table.Next("G", func(*Client) bool { return false }) != nil {
		t.Error("asked, though nobody may be")
	}
	members[1].Close()
	remotingtest.Eventually(t, "the connection has ended", func() bool { return !members[1].Active() })
	if got := count(30); got[1] != 0 || got[0] == 0 || got[2] == 0 {
		t.Errorf("asked %v times", got)
	}
	table.OnClose(members[1])
	if got := count(30); got != [3]int{15, 0, 15} {
		t.Errorf("asked %v times", got)
	}
	table.OnClose(members[0])
	table.OnClose(members[2])
	if table.Next("G", anybody) != nil {
		t.Error("a member that has left")
	}
}

func TestAllProducers(t *testing.T) {
	table := NewProducers(newClock().time, quiet, unlimited())
	table.Register(client("b"), "P")
	table.Register(client("a"), "P")
	table.Register(client("c"), "Q")
	got := map[string][]string{}
	for name, members := range table.All() {
		for _, m := range members {
			got[name] = append(got[name], m.ClientId)
		}
	}
	if want := map[string][]string{"P": {"a", "b"}, "Q": {"c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestConcurrentClients(t *testing.T) {
	consumers, producers := NewConsumers(time.Now, quiet, unlimited()), NewProducers(time.Now, quiet, unlimited())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range 200 {
				c := client(fmt.Sprintf("c%d", i))
				name := fmt.Sprintf("G%d", n%3)
				consumers.Register(c, group(name, int64(n), "T"))
				producers.Register(c, name)
				if g := consumers.Group(name); g != nil {
					g.ClientIds()
					g.Subscription("T")
				}
				consumers.Scan()
				consumers.OnClose(c.Conn)
				producers.OnClose(c.Conn)
			}
		}()
	}
	wg.Wait()
	if len(consumers.mu.groups) != 0 || len(producers.mu.groups) != 0 {
		t.Error("groups are left")
	}
}

func TestSubscriptionAllocatesNothing(t *testing.T) {
	table := NewConsumers(time.Now, quiet, unlimited())
	table.Register(client("a"), group("G", 1, "T"))
	if n := testing.AllocsPerRun(1000, func() { table.Group("G").Subscription("T") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A client id that an open connection of one account bears can't be taken by another's; the account's own newest connection has it.
func TestClientIdOfAnAccount(t *testing.T) {
	conns := make(chan *remoting.Conn, 3)
	server := remotingtest.StartWith(t, remotingtest.Config(), remoting.NewMux(nil), remoting.Events{Connected: func(c *remoting.Conn) { conns <- c }})
	table := NewProducers(time.Now, quiet, unlimited())
	connect := func() *remoting.Conn {
		remotingtest.Dial(t, remotingtest.Addr(server))
		return <-conns
	}
	first, thief, second := connect(), connect(), connect()
	register := func(conn *remoting.Conn, account string, want *remoting.Conn) {
		t.Helper()
		if err := table.Register(Client{Conn: conn, ClientId: "id", AccessKey: account}, "G"); err != nil || table.Find("id") != want {
			t.Errorf("%v, the id is that of another connection", err)
		}
	}
	register(first, "owner", first)
	register(thief, "thief", first)
	register(thief, "thief", first)
	register(second, "owner", second)
	register(first, "owner", second)
	first.Close()
	second.Close()
	remotingtest.Eventually(t, "the connections have ended", func() bool { return !first.Active() && !second.Active() })
	table.OnClose(first)
	table.OnClose(second)
	register(thief, "thief", thief)
}
