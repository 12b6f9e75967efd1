//go:build conformance

package admin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/target"
)

// kit is what all cases work with: a cluster with two brokers, and mqadmin.
type kit struct {
	*mqadmin
	target *target.Target
	a, b   *target.Broker
}

// The cases stand in the order in which they run; each says what it leaves for the next.
func TestMqadmin(t *testing.T) {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{
		{Name: "broker-a", Cluster: "ClusterOne"},
		{Name: "broker-b", Cluster: "ClusterTwo", Conf: map[string]string{"autoCreateTopicEnable": "false", "vendorKey": "before"}},
	}})
	k := kit{mqadmin: startMqadmin(t, c, target.Client4, filepath.Join(c.Dir(), "mqadmin")), target: c, a: c.Brokers[0], b: c.Brokers[1]}
	for _, s := range []struct {
		name string
		run  func(*testing.T, kit)
	}{
		{"updateTopic", updateTopic}, {"topicList", topicList}, {"topicRoute", topicRoute},
		{"updateSubGroup", updateSubGroup}, {"messages", messages}, {"topicStatus", topicStatus},
		{"consumerProgress", consumerProgress}, {"clusterList", clusterList}, {"brokerStatus", brokerStatus},
		{"kvConfig", kvConfig}, {"updateOrderConf", updateOrderConf}, {"writePerm", writePerm},
		{"getNamesrvConfig", getNamesrvConfig}, {"statsAll", statsAll}, {"brokerConfig", brokerConfig},
		{"namesrvConfig", namesrvConfig}, {"deleteSubGroup", deleteSubGroup}, {"deleteTopic", deleteTopic},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, k) })
	}
}

// updateTopic leaves AdminTopic (4 queues on A), AdminOrder (2 queues on B, in order).
func updateTopic(t *testing.T, k kit) {
	k.prints(t, "create topic to "+k.a.Addr+" success.\n"+
		"TopicConfig [topicName=AdminTopic, readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]",
		"updateTopic", "-c", "ClusterOne", "-t", "AdminTopic", "-r", "4", "-w", "4")
	// The tool asks for the order configuration before it puts one, and prints what it is told.
	got := k.run(t, "updateTopic", "-b", k.b.Addr, "-t", "AdminOrder", "-r", "2", "-w", "2", "-o", "true")
	for _, want := range []string{
		"CODE: 22  DESC: No config item, Namespace: ORDER_TOPIC_CONFIG Key: AdminOrder",
		"set broker orderConf. isOrder=true, orderConf=[broker-b:2]",
		"create topic to " + k.b.Addr + " success.",
		"perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=true]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("updateTopic -o true prints\n%s\nwithout %q", got, want)
		}
	}
	k.fails(t, "CODE: 1  DESC: The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
		"updateTopic", "-b", k.a.Addr, "-t", "bad topic!")
	k.fails(t, "CODE: 1  DESC: The topic[TBW102] is conflict with system topic.", "updateTopic", "-b", k.a.Addr, "-t", "TBW102")
}

// What a fresh broker of 4.9 has. The transaction topics come when the first check runs, so they do not count.
var systemTopics = []string{"BenchmarkTest", "OFFSET_MOVED_EVENT", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC"}

var transactionTopics = []string{"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"}

func topicList(t *testing.T, k kit) {
	want := append([]string{
		"AdminTopic", "AdminOrder", "TBW102", "ClusterOne", "ClusterTwo", "broker-a", "broker-b", "ClusterOne_REPLY_TOPIC", "ClusterTwo_REPLY_TOPIC",
	}, systemTopics...)
	slices.Sort(want)
	k.eventually(t, func(out string) bool {
		got := slices.DeleteFunc(strings.Fields(out), func(s string) bool { return slices.Contains(transactionTopics, s) })
		slices.Sort(got)
		return slices.Equal(got, want)
	}, "topicList")
	// -c: cluster, topic and, where one has consumed, group.
	got := map[string]bool{}
	for _, row := range table(k.run(t, "topicList", "-c")) {
		if len(row) == 2 {
			got[row[0]+" "+row[1]] = true
		}
	}
	// The tool names one cluster, any, of a topic that is in both.
	for _, w := range []string{"ClusterOne AdminTopic", "ClusterTwo AdminOrder", "ClusterOne TBW102"} {
		if !got[w] {
			t.Errorf("topicList -c lacks %q, has %v", w, slices.Sorted(maps.Keys(got)))
		}
	}
	if got["ClusterTwo TBW102"] {
		t.Error("topicList -c has TBW102 in ClusterTwo, whose broker creates no topics")
	}
	k.prints(t, "ClusterOne", "topicClusterList", "-t", "AdminTopic")
}

// route is the text of topicRoute for a topic on one broker.
func route(cluster string, b *target.Broker, perm, queues int, orderConf string) string {
	order := ""
	if orderConf != "" {
		order = fmt.Sprintf("\t\"orderTopicConf\":%q,\n", orderConf)
	}
	return fmt.Sprintf(`{
	"brokerDatas":[
		{
			"brokerAddrs":{0:%q
			},
			"brokerName":%q,
			"cluster":%q
		}
	],
	"filterServerTable":{},
%s	"queueDatas":[
		{
			"brokerName":%q,
			"perm":%d,
			"readQueueNums":%d,
			"topicSysFlag":0,
			"writeQueueNums":%d
		}
	]
}`, b.Addr, b.Name, cluster, order, b.Name, perm, queues, queues)
}

func topicRoute(t *testing.T, k kit) {
	k.prints(t, route("ClusterOne", k.a, 6, 4, ""), "topicRoute", "-t", "AdminTopic")
	rows := table(k.run(t, "topicRoute", "-l", "-t", "AdminTopic"))
	if want := []string{"ClusterOne", "broker-a", "{0=" + k.a.Addr + "}", "4", "4", "6"}; len(rows) == 0 || !slices.Equal(rows[0], want) {
		t.Errorf("topicRoute -l: %v, want %v first", rows, want)
	}
	k.fails(t, "CODE: 17  DESC: No topic route info in name server for the topic: AdminMissing", "topicRoute", "-t", "AdminMissing")
}

// updateSubGroup leaves AdminGroup on A.
func updateSubGroup(t *testing.T, k kit) {
	k.prints(t, "create subscription group to "+k.a.Addr+" success.\n"+
		"SubscriptionGroupConfig [groupName=AdminGroup, consumeEnable=true, consumeFromMinEnable=false, consumeBroadcastEnable=false, "+
		"retryQueueNums=1, retryMaxTimes=16, brokerId=0, whichBrokerWhenConsumeSlowly=1, notifyConsumerIdsChangedEnable=true]",
		"updateSubGroup", "-c", "ClusterOne", "-g", "AdminGroup")
	k.prints(t, "create subscription group to "+k.a.Addr+" success.\n"+
		"SubscriptionGroupConfig [groupName=AdminGroup, consumeEnable=true, consumeFromMinEnable=true, consumeBroadcastEnable=false, "+
		"retryQueueNums=2, retryMaxTimes=5, brokerId=0, whichBrokerWhenConsumeSlowly=1, notifyConsumerIdsChangedEnable=true]",
		"updateSubGroup", "-b", k.a.Addr, "-g", "AdminGroup", "-s", "true", "-m", "true", "-d", "false", "-q", "2", "-r", "5", "-i", "0", "-w", "1", "-a", "true")
}

// messages leaves 12 messages in AdminTopic, queues 0 to 3, and checks all ways of finding them.
func messages(t *testing.T, k kit) {
	type sent struct {
		msgId, offsetMsgId, keys, tag, body string
		queue, offset                       int
	}
	var all []sent
	for i := range 12 {
		s := sent{
			keys: fmt.Sprintf("key-%d shared", i), tag: "Tag" + string(rune('A'+i%2)),
			body: fmt.Sprintf("admin body %d", i), queue: i % 4,
		}
		f := strings.Fields(k.run(t, "@send", "AdminTopic", "broker-a", strconv.Itoa(s.queue), s.tag, s.keys, s.body))
		if len(f) != 3 {
			t.Fatalf("send: %v", f)
		}
		s.msgId, s.offsetMsgId = f[0], f[1]
		s.offset, _ = strconv.Atoi(f[2])
		if s.offset != i/4 {
			t.Errorf("message %d got queueOffset %d, want %d", i, s.offset, i/4)
		}
		all = append(all, s)
	}
	one := all[6]
	shown := func(t *testing.T, out string) {
		t.Helper()
		got := pairs(out)
		for name, want := range map[string]string{
			"Topic": "AdminTopic", "Tags": "[" + one.tag + "]", "Keys": "[" + one.keys + "]", "Queue ID": "2", "Queue Offset": "1",
			"Reconsume Times": "0", "Store Host": k.a.Addr, "System Flag": "0",
			"Message Body Path": "/tmp/rocketmq/msgbodys/" + one.msgId,
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %q in\n%s", name, got[name], want, out)
			}
		}
		if !strings.HasPrefix(got["Born Host"], "127.0.0.1:") {
			t.Errorf("Born Host is %q", got["Born Host"])
		}
		for _, p := range []string{"KEYS=" + one.keys, "UNIQ_KEY=" + one.msgId, "CLUSTER=ClusterOne", "TAGS=" + one.tag} {
			if !strings.Contains(got["Properties"], p) {
				t.Errorf("Properties %q lack %q", got["Properties"], p)
			}
		}
		if body, err := os.ReadFile("/tmp/rocketmq/msgbodys/" + one.msgId); err != nil || string(body) != one.body {
			t.Errorf("body file: %q, %v; want %q", body, err, one.body)
		}
	}
	t.Run("queryMsgById", func(t *testing.T) {
		out := k.run(t, "queryMsgById", "-i", one.offsetMsgId)
		if got := pairs(out)["OffsetID"]; got != one.offsetMsgId {
			t.Errorf("OffsetID is %q, want %q", got, one.offsetMsgId)
		}
		shown(t, out)
		none := one.offsetMsgId[:16] + "0000010000000000"
		k.fails(t, "CODE: 1  DESC: can not find message by the offset, 1099511627776", "queryMsgById", "-i", none)
	})
	t.Run("queryMsgByOffset", func(t *testing.T) {
		shown(t, k.run(t, "queryMsgByOffset", "-t", "AdminTopic", "-b", "broker-a", "-i", "2", "-o", "1"))
	})
	t.Run("queryMsgByUniqueKey", func(t *testing.T) {
		shown(t, k.eventually(t, func(out string) bool { return strings.Contains(out, "Queue ID") },
			"queryMsgByUniqueKey", "-i", one.msgId, "-t", "AdminTopic"))
	})
	t.Run("queryMsgByKey", func(t *testing.T) {
		out := k.eventually(t, func(out string) bool { return len(table(out)) == 12 }, "queryMsgByKey", "-t", "AdminTopic", "-k", "shared")
		var got, want []string
		for _, row := range table(out) {
			got = append(got, strings.Join(row, " "))
		}
		for _, s := range all {
			want = append(want, fmt.Sprintf("%s %d %d", s.msgId, s.queue, s.offset))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if rows := table(k.run(t, "queryMsgByKey", "-t", "AdminTopic", "-k", "key-6")); len(rows) != 1 || rows[0][0] != one.msgId {
			t.Errorf("key-6: %v, want %s", rows, one.msgId)
		}
		k.fails(t, "CODE: 208  DESC: query message by key finished, but no message.", "queryMsgByKey", "-t", "AdminTopic", "-k", "no-such-key")
	})
	t.Run("printMsg", func(t *testing.T) {
		printed := regexp.MustCompile(`(?m)^MSGID: (\S+) .*queueId=(\d+),.* queueOffset=(\d+),.* BODY: (.*)$`)
		for _, c := range []struct{ filter, tag string }{{"*", ""}, {"TagB", "TagB"}} {
			out := k.run(t, "printMsg", "-t", "AdminTopic", "-s", c.filter, "-d", "true")
			var got, want []string
			for _, m := range printed.FindAllStringSubmatch(out, -1) {
				got = append(got, strings.Join(m[1:], " "))
			}
			for _, s := range all {
				if c.tag == "" || s.tag == c.tag {
					want = append(want, fmt.Sprintf("%s %d %d %s", s.msgId, s.queue, s.offset, s.body))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("-s %s: got %v, want %v in\n%s", c.filter, got, want, out)
			}
			if want := "minOffset=0, maxOffset=3, MessageQueue [topic=AdminTopic, brokerName=broker-a, queueId=1]"; !strings.Contains(out, want) {
				t.Errorf("-s %s lacks %q:\n%s", c.filter, want, out)
			}
		}
	})
}

func topicStatus(t *testing.T, k kit) {
	rows := table(k.run(t, "topicStatus", "-t", "AdminTopic"))
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	if len(rows) != 4 {
		t.Fatalf("got %v, want 4 queues", rows)
	}
	for i, row := range rows {
		if want := []string{"broker-a", strconv.Itoa(i), "0", "3"}; !slices.Equal(row[:4], want) || len(row) != 6 || !stamp.MatchString(row[4]) {
			t.Errorf("got %v, want %v and the time of the last message", row, want)
		}
	}
	// A queue without messages has no time.
	for _, row := range table(k.run(t, "topicStatus", "-t", "AdminOrder")) {
		if want := []string{"broker-b", row[1], "0", "0"}; !slices.Equal(row, want) {
			t.Errorf("got %v, want %v", row, want)
		}
	}
	k.fails(t, "CODE: 17  DESC: No topic route info in name server for the topic: AdminMissing", "topicStatus", "-t", "AdminMissing")
}
