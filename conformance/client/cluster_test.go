//go:build conformance

package client

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// patience bounds every wait for something that must happen. It covers the client's own periods: a rebalance every
// 20 s when no notice comes, an offset commit after 10 s and then every 5 s.
const patience = 75 * time.Second

// rebalancePatience bounds the wait for a group's queues to be shared out. On a machine that is very busy the client
// (v2.1.2 was seen doing it) can stop pulling a queue that it keeps; it notices after two minutes.
const rebalancePatience = 3 * time.Minute

// offsetsDir is the variable, read when the client's package is initialised, that says where broadcast consumers keep
// their offsets.
const offsetsDir = "rocketmq.client.localOffsetStoreDir"

var (
	// server serves all cases but those that stop it.
	server *cluster
	// strict creates no topics, and hands out offsets like a broker whose messages have left the memory (so that where
	// to consume from is the client's choice). One case restarts it.
	strict *cluster
)

// cluster is a target as these cases see it.
type cluster struct {
	*target.Target
	namesrv []string
}

func startCluster(conf map[string]string) (*cluster, error) {
	t, err := target.StartMain(target.Options{Brokers: []target.BrokerOptions{{Conf: conf}}})
	if err != nil {
		return nil, err
	}
	return &cluster{t, strings.Split(t.Namesrv, ";")}, nil
}

func (c *cluster) broker() string { return c.Brokers[0].Addr }

func (c *cluster) resolver() primitive.NsResolver { return primitive.NewPassthroughResolver(c.namesrv) }

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(offsetsDir) == "" {
		restartSelf()
	}
	// The cases wait far more than they work; the default of one test a CPU would make them queue for it.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	rlog.SetLogLevel("fatal")
	os.Exit(run(m))
}

// restartSelf starts this test program once more with the environment that the client reads too early to be set from
// within: its folder, and the zone in which it reads the time to consume from (the versions differ in that).
func restartSelf() {
	dir, err := os.MkdirTemp("", "conformance-client-")
	if err == nil {
		var self string
		if self, err = os.Executable(); err == nil {
			err = syscall.Exec(self, os.Args, append(os.Environ(), offsetsDir+"="+dir, "TZ=UTC"))
		}
	}
	fmt.Fprintln(os.Stderr, "start again:", err)
	os.Exit(1)
}

func run(m *testing.M) (code int) {
	defer os.RemoveAll(os.Getenv(offsetsDir))
	var err error
	defer func() {
		for _, c := range []*cluster{server, strict} {
			if c == nil {
				continue
			}
			if code != 0 {
				fmt.Fprintln(os.Stderr, c.LogTails(40))
			}
			if err := c.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}()
	if server, err = startCluster(map[string]string{"autoCreateTopicEnable": "true", "enablePropertyFilter": "true", "traceTopicEnable": "true",
		"transactionCheckInterval": "1000", "transactionTimeOut": "1500", "transactionCheckMax": "1000"}); err == nil {
		strict, err = startCluster(map[string]string{"autoCreateTopicEnable": "false", "accessMessageInMemoryMaxRatio": "0"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll(t, 20*time.Millisecond, patience, what, holds)
}

// eventuallyEvery is for conditions that do something each time, such as sending one more message.
func eventuallyEvery(t *testing.T, period time.Duration, what string, holds func() bool) {
	t.Helper()
	poll(t, period, patience, what, holds)
}

// eventuallyWithin is for conditions with a patience of their own.
func eventuallyWithin(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	poll(t, 20*time.Millisecond, patience, what, holds)
}

func poll(t *testing.T, period, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	every := time.NewTicker(period)
	defer every.Stop()
	for end := time.Now().Add(patience); !holds(); <-every.C {
		if time.Now().After(end) {
			t.Fatalf("after %s still not: %s", patience, what)
		}
	}
}

func (c *cluster) admin(t *testing.T) adminClient {
	t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(c.resolver()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// adminClient is what both versions of the client's admin can do.
type adminClient interface {
	CreateTopic(ctx context.Context, opts ...admin.OptionCreate) error
	DeleteTopic(ctx context.Context, opts ...admin.OptionDelete) error
	FetchAllTopicList(ctx context.Context) (*admin.TopicList, error)
	FetchPublishMessageQueues(ctx context.Context, topic string) ([]*primitive.MessageQueue, error)
	GetAllSubscriptionGroup(ctx context.Context, brokerAddr string, timeout time.Duration) (*admin.SubscriptionGroupWrapper, error)
	Close() error
}

// newTopic creates the topic of a case and waits until clients can find it.
func (c *cluster) newTopic(t *testing.T, name string, queues int) string {
	t.Helper()
	a := c.admin(t)
	var err error
	for range 3 { // the client gives a server, which all cases ask for topics at once, five seconds
		if err = a.CreateTopic(context.Background(), admin.WithTopicCreate(name), admin.WithBrokerAddrCreate(c.broker()),
			admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues)); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	eventually(t, name+" is routed", func() bool { return c.isRouted(t, name) })
	return name
}

// newGroup makes a consumer group known, with its retry topic, as an earlier member's heartbeat would have. A Go consumer
// looks for the retry topic when it starts, and if it is not there yet, only every 30 s.
func (c *cluster) newGroup(t *testing.T, group string) string {
	t.Helper()
	f := c.ask(t, c.broker(), wire.Request(34).WithBody([]byte(`{"clientID":"earlier member","consumerDataSet":[{"consumeFromWhere":`+
		`"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"`+group+`","messageModel":"CLUSTERING",`+
		`"subscriptionDataSet":[],"unitMode":false}],"producerDataSet":[]}`)))
	if f.Code != 0 {
		t.Fatalf("heartbeat: %d %s", f.Code, f.Remark)
	}
	eventually(t, "the retry topic is routed", func() bool { return c.isRouted(t, "%RETRY%"+group) })
	return group
}

func (c *cluster) isRouted(t *testing.T, topic string) bool {
	t.Helper()
	f := c.ask(t, c.namesrv[0], wire.Request(105, "topic", topic))
	return f.Code == 0
}

// ask makes a raw request, for facts that the client's interface hides.
func (c *cluster) ask(t *testing.T, addr string, request *wire.Frame) *wire.Frame {
	t.Helper()
	f, err := wire.CallOnce(addr, request, patience)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// committed is the offset that the broker keeps for a group's queue.
func (c *cluster) committed(t *testing.T, group, topic string, queueId int) string {
	t.Helper()
	f := c.ask(t, c.broker(), wire.Request(14, "consumerGroup", group, "topic", topic, "queueId", fmt.Sprint(queueId)))
	if f.Code != 0 {
		return fmt.Sprintf("none (code %d)", f.Code)
	}
	return f.Ext["offset"]
}

// awaitCommitted waits until a group has committed all messages of a topic. The listener's return and the commit are two
// things: who ends a consumer in between will see messages again.
func (c *cluster) awaitCommitted(t *testing.T, group, topic string, queues int) {
	t.Helper()
	for q := range queues {
		end := fmt.Sprint(c.messagesInQueue(t, topic, q))
		eventually(t, fmt.Sprintf("%s has committed %s in queue %d", group, end, q), func() bool { return c.committed(t, group, topic, q) == end })
	}
}

// messagesIn counts the messages of a topic.
func (c *cluster) messagesIn(t *testing.T, topic string, queues int) int {
	t.Helper()
	n := 0
	for q := range queues {
		n += c.messagesInQueue(t, topic, q)
	}
	return n
}

func (c *cluster) messagesInQueue(t *testing.T, topic string, queueId int) int {
	t.Helper()
	var end int
	f := c.ask(t, c.broker(), wire.Request(30, "topic", topic, "queueId", fmt.Sprint(queueId)))
	if _, err := fmt.Sscan(f.Ext["offset"], &end); err != nil {
		t.Fatal(err)
	}
	return end
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}
