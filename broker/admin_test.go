package broker

import (
	"errors"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

func createTopic(topic string, queues int32) *header.CreateTopicRequest {
	return &header.CreateTopicRequest{Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues,
		Perm: 6, TopicFilterType: "SINGLE_TAG", TopicSysFlag: protocol.Some[int32](0)}
}

func TestUpdateTopic(t *testing.T) {
	p := startPathBroker(t, nil)
	for _, tt := range []struct {
		what   string
		req    *header.CreateTopicRequest
		code   protocol.ResponseCode
		remark string
	}{
		{"new", createTopic("TopicA", 4), protocol.Success, "not set any response code"},
		{"changed", createTopic("TopicA", 6), protocol.Success, "not set any response code"},
		{"no queues", createTopic("TopicB", 0), protocol.Success, "not set any response code"},
		{"blank", createTopic(" ", 4), protocol.SystemError, "The specified topic is blank."},
		{"illegal", createTopic("a.b", 4), protocol.SystemError, "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"},
		{"too long", createTopic(strings.Repeat("x", 128), 4), protocol.SystemError, "The specified topic is longer than topic max length."},
		{"system", createTopic("TBW102", 4), protocol.SystemError, "The topic[TBW102] is conflict with system topic."},
		{"broker's name", createTopic("broker-a", 4), protocol.SystemError, "The topic[broker-a] is conflict with system topic."},
		{"rmq_sys_", createTopic("rmq_sys_x", 4), protocol.SystemError, "The topic[rmq_sys_x] is conflict with system topic."},
		{"negative", createTopic("TopicC", -1), protocol.SystemError, "readQueueNums*"},
		{"huge", createTopic("TopicC", 1<<30), protocol.SystemError, "readQueueNums*"},
	} {
		check(t, tt.what, p.ask(protocol.UpdateAndCreateTopic, tt.req, nil), tt.code, tt.remark)
	}
	wrong := createTopic("TopicC", 1)
	wrong.TopicFilterType = "NO_TAG"
	check(t, "filter type", p.ask(protocol.UpdateAndCreateTopic, wrong, nil), protocol.SystemError, "topicFilterType = [NO_TAG] value invalid")
	if a := p.ask(protocol.UpdateAndCreateTopic, nil, nil); a.Code != int32(protocol.SystemError) {
		t.Errorf("without fields: code %d", a.Code)
	}
	if _, ok := p.topics.Lookup("TopicC"); ok {
		t.Error("a refused topic was created")
	}
	if c, _ := p.topics.Lookup("TopicA"); c == nil || c.ReadQueueNums != 6 || c.Order {
		t.Errorf("TopicA: %+v", c)
	}
	crashed := p.fs.Crash(0, rand.New(rand.NewSource(1)))
	p.close()
	q := startPathBrokerOn(t, crashed, nil)
	if c, _ := q.topics.Lookup("TopicA"); c == nil || c.ReadQueueNums != 6 {
		t.Errorf("after a crash TopicA is %+v", c)
	}
}

func TestDeleteTopic(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 1), nil)
	p.send("TopicA", 0, "", "x")
	p.stored("TopicA", 0, 0, 1)
	for topic, want := range map[string]string{
		"": "The specified topic is blank.", "a/b": "The specified topic contains illegal*", "TBW102": "The topic[TBW102] is conflict with system topic.",
	} {
		a := p.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: topic}, nil)
		if a.Code != int32(protocol.SystemError) || topic != "" && !strings.HasPrefix(a.Remark, strings.TrimSuffix(want, "*")) {
			t.Errorf("%q: code %d, %q", topic, a.Code, a.Remark)
		}
	}
	check(t, "delete", p.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "TopicA"}, nil), protocol.Success, "")
	check(t, "again", p.ask(protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{Topic: "TopicA"}, nil), protocol.Success, "")
	if _, ok := p.topics.Lookup("TopicA"); ok {
		t.Error("the topic is still there")
	}
	if q := p.store.Queues("TopicA"); len(q) != 0 {
		t.Errorf("its queues are still there: %v", q)
	}
	a := p.ask(protocol.GetTopicStatsInfo, &header.GetTopicStatsInfoRequest{Topic: "TopicA"}, nil)
	check(t, "stats of a deleted topic", a, protocol.TopicNotExist, "topic[TopicA] not exist")
}

func TestTopicLists(t *testing.T) {
	p := startPathBroker(t, nil)
	a := p.ask(protocol.GetAllTopicConfig, nil, nil)
	check(t, "all topics", a, protocol.Success, "", "{}")
	w := new(body.TopicConfigSerializeWrapper)
	if err := compat.Unmarshal(a.Body, w); err != nil || len(w.TopicConfigTable) != 8 || !reflect.DeepEqual(*w.TopicConfigTable["SCHEDULE_TOPIC_XXXX"], topics.Config{
		TopicName: "SCHEDULE_TOPIC_XXXX", ReadQueueNums: 18, WriteQueueNums: 18, Perm: 6, TopicFilterType: "SINGLE_TAG"}) {
		t.Errorf("all topics: %s, %v", a.Body, err)
	}
	a = p.ask(protocol.GetSystemTopicListFromBroker, nil, nil)
	check(t, "system topics", a, protocol.Success, "")
	list := new(body.TopicList)
	if err := compat.Unmarshal(a.Body, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TBW102", "RMQ_SYS_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "broker-a", "DefaultCluster", "DefaultCluster_REPLY_TOPIC"} {
		if !slices.Contains(list.TopicList, want) {
			t.Errorf("system topics: no %s in %v", want, list.TopicList)
		}
	}
}

func TestStats(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 2), nil)
	p.send("TopicA", 1, "", "one")
	p.send("TopicA", 1, "", "two")
	stored := p.stored("TopicA", 1, 0, 2)
	a := p.ask(protocol.GetTopicStatsInfo, &header.GetTopicStatsInfoRequest{Topic: "TopicA"}, nil)
	check(t, "topic stats", a, protocol.Success, "")
	table := new(body.TopicStatsTable)
	if err := compat.Unmarshal(a.Body, table); err != nil {
		t.Fatal(err)
	}
	q0, q1 := p.messageQueue("TopicA", 0), p.messageQueue("TopicA", 1)
	if len(table.OffsetTable) != 2 || table.OffsetTable[q0] != (body.TopicOffset{}) ||
		table.OffsetTable[q1] != (body.TopicOffset{MaxOffset: 2, LastUpdateTimestamp: stored[1].StoreTimestamp}) {
		t.Errorf("topic stats %s", a.Body)
	}
	if !strings.HasPrefix(string(a.Body), `{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:{"lastUpdateTimestamp":0,`) {
		t.Errorf("not the official form: %s", a.Body)
	}

	p.offsets.Commit(p.anyone(), "G", "TopicA", 1, 1)
	for _, topic := range []string{"TopicA", "", " "} {
		a = p.ask(protocol.GetConsumeStats, &header.GetConsumeStatsRequest{ConsumerGroup: "G", Topic: topic}, nil)
		check(t, "consume stats", a, protocol.Success, "")
		stats := new(body.ConsumeStats)
		if err := compat.Unmarshal(a.Body, stats); err != nil {
			t.Fatal(err)
		}
		want := body.OffsetWrapper{BrokerOffset: 2, ConsumerOffset: 1, LastTimestamp: stored[0].StoreTimestamp}
		if len(stats.OffsetTable) != 2 || stats.OffsetTable[q1] != want || stats.OffsetTable[q0] != (body.OffsetWrapper{}) {
			t.Errorf("consume stats of %q: %s", topic, a.Body)
		}
	}
	newer := p.request(protocol.GetConsumeStats, &header.GetConsumeStatsRequest{ConsumerGroup: "G"}, nil)
	newer.Version = protocol.V5_0_0_SNAPSHOT
	if a = p.peer.Ask(newer); !strings.Contains(string(a.Body), `,"pullOffset":1}`) {
		t.Errorf("consume stats for 5.x: %s", a.Body)
	}
	a = p.ask(protocol.GetConsumeStats, &header.GetConsumeStatsRequest{ConsumerGroup: "none"}, nil)
	if string(a.Body) != `{"consumeTps":0.0,"offsetTable":{}}` {
		t.Errorf("consume stats of nobody: %s", a.Body)
	}
	p.beat(p.peer, "c1", "G", "TopicB") // online, and does not subscribe TopicA
	a = p.ask(protocol.GetConsumeStats, &header.GetConsumeStatsRequest{ConsumerGroup: "G", Topic: "TopicA"}, nil)
	if string(a.Body) != `{"consumeTps":0.0,"offsetTable":{}}` {
		t.Errorf("consume stats of a topic that is not subscribed: %s", a.Body)
	}
}

func TestGroups(t *testing.T) {
	p := startPathBroker(t, nil)
	text := `{"brokerId":0,"consumeBroadcastEnable":false,"consumeEnable":false,"consumeFromMinEnable":true,"groupName":"G",` +
		`"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":3,"retryQueueNums":2,"whichBrokerWhenConsumeSlowly":1}`
	check(t, "update", p.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(text)), protocol.Success, "")
	for _, broken := range []string{"", "{", "{}", `{"groupName":"X","retryQueueNums":99999999}`} {
		if a := p.ask(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(broken)); a.Code != int32(protocol.SystemError) {
			t.Errorf("%q: code %d, %q", broken, a.Code, a.Remark)
		}
	}
	a := p.ask(protocol.GetAllSubscriptionGroupConfig, nil, nil)
	check(t, "all groups", a, protocol.Success, "")
	if !strings.Contains(string(a.Body), text) {
		t.Errorf("all groups: %s", a.Body)
	}
	p.offsets.Commit(p.anyone(), "G", "TopicA", 0, 5)
	a = p.ask(protocol.GetAllConsumerOffset, nil, nil)
	check(t, "all offsets", a, protocol.Success, "")
	if string(a.Body) != `{"offsetTable":{"TopicA@G":{0:5}}}` {
		t.Errorf("all offsets: %s", a.Body)
	}
	a = p.ask(protocol.GetAllDelayOffset, nil, nil)
	check(t, "all delay offsets", a, protocol.Success, "")
	if err := compat.Unmarshal(a.Body, new(body.DelayOffsetSerializeWrapper)); err != nil {
		t.Errorf("all delay offsets: %s: %v", a.Body, err)
	}
	check(t, "delete", p.ask(protocol.DeleteSubscriptionGroup, &header.DeleteSubscriptionGroupRequest{GroupName: "G"}, nil), protocol.Success, "")
	if _, known := p.offsets.Query("G", "TopicA", 0); !known {
		t.Error("the offsets went without being asked to")
	}
	p.ask(protocol.DeleteSubscriptionGroup, &header.DeleteSubscriptionGroupRequest{GroupName: "G", RemoveOffset: true}, nil)
	if _, known := p.offsets.Query("G", "TopicA", 0); known {
		t.Error("the offsets are still there")
	}
	if _, ok := p.groups.Lookup("G"); ok {
		t.Error("the group is still there")
	}
}

// Every key that a live official broker answers is answered; testdata/runtime-keys.txt.
func TestRuntimeInfo(t *testing.T) {
	p := startPathBroker(t, nil)
	p.send("TopicA", 0, "", "x")
	p.stored("TopicA", 0, 0, 1)
	p.send("TopicA", 0, "DELAY=1", "x")
	a := p.ask(protocol.GetBrokerRuntimeInfo, nil, nil)
	check(t, "runtime info", a, protocol.Success, "")
	kv := new(body.KVTable)
	if err := compat.Unmarshal(a.Body, kv); err != nil {
		t.Fatal(err)
	}
	keys, err := os.ReadFile("testdata/runtime-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	for key := range strings.Lines(string(keys)) {
		key = strings.TrimSpace(key)
		if _, ok := kv.Table[key]; !ok {
			t.Errorf("no key %s", key)
		}
	}
	for key, want := range map[string]string{"brokerVersionDesc": "V4_9_8", "brokerVersion": "409", "msgGetTotalTodayNow": "1",
		"putMessageTimesTotal": "2", "commitLogMinOffset": "0", "putTps": "  ", "getTotalTps": "0.0 0.0 0.0"} {
		if kv.Table[key] != want {
			t.Errorf("%s = %q, want %q", key, kv.Table[key], want)
		}
	}
}

func TestBrokerConfig(t *testing.T) {
	const conf = "/conf/broker.conf"
	fs := vfs.NewMem(time.Now)
	files := vfs.Files{FS: fs}
	text := []byte("# mine\nbrokerName=broker-a\nvendorKey=7\nmaxMessageSize=1000\n")
	if err := errors.Join(files.MkdirAll("/conf"), files.WriteFile(conf, text)); err != nil {
		t.Fatal(err)
	}
	p := startPathBrokerOn(t, fs, func(c *Config) {
		read, err := c.merge(text, conf)
		if err != nil {
			t.Fatal(err)
		}
		*c = read
		c.file = conf
	})
	items := func() map[string]string {
		a := p.ask(protocol.GetBrokerConfig, nil, nil)
		check(t, "get", a, protocol.Success, "", "version")
		if v := field(t, a, "version"); !strings.HasPrefix(v, `{"counter":`) {
			t.Errorf("version %s", v)
		}
		all := map[string]string{}
		for line := range strings.Lines(string(a.Body)) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			all[key] = value
		}
		return all
	}
	if got := items(); got["vendorKey"] != "7" || got["maxMessageSize"] != "1000" || got["brokerPermission"] != "6" {
		t.Errorf("items: %v", got)
	}
	for _, tt := range []struct {
		text   string
		code   protocol.ResponseCode
		remark string
	}{
		{"", protocol.Success, ""},
		{"noSuchKey=1\n", protocol.Success, ""},
		{"maxMessageSize=2000\nnoSuchKey=1\n", protocol.Success, ""},
		{"brokerConfigPath=/etc/passwd\n", protocol.NoPermission, "Can not update config in black list."},
		{"rocketmqHome=/x\n", protocol.NoPermission, "Can not update config in black list."},
		{"maxMessageSize=3000\nconfigBlackList=\n", protocol.NoPermission, "Can not update config in black list."},
		{"brokerPermission=six\n", protocol.SystemError, "the configuration is left as it was*"},
		{"brokerRole=SLAVE\n", protocol.SystemError, "the configuration is left as it was*"},
		{"aclEnable=false\n", protocol.NoPermission, "Can not update config in black list."}, // it would count at the next start
		{"useTLS=false\n", protocol.NoPermission, "Can not update config in black list."},
		{"bindAddress=0.0.0.0\n", protocol.NoPermission, "Can not update config in black list."},
	} {
		check(t, tt.text, p.ask(protocol.UpdateBrokerConfig, nil, []byte(tt.text)), tt.code, tt.remark)
	}
	if got := items(); got["maxMessageSize"] != "2000" || got["brokerPermission"] != "6" || got["aclEnable"] != "false" || got["noSuchKey"] != "" {
		t.Errorf("items after updates: %v", got)
	}
	if got := p.store.Config().MaxMessageSize; got != 2000 {
		t.Errorf("the store has maxMessageSize %d", got)
	}
	if text, _ := files.ReadFile(conf); string(text) != "# mine\nbrokerName=broker-a\nvendorKey=7\nmaxMessageSize=2000\n" {
		t.Errorf("the file is now\n%s", text)
	}
}

// Without a configuration file an update is kept below the store.
func TestUpdateWithoutFile(t *testing.T) {
	p := startPathBroker(t, nil)
	check(t, "update", p.ask(protocol.UpdateBrokerConfig, nil, []byte("traceOn=false\nregionId=Elsewhere\nbrokerName=broker-b\n")), protocol.Success, "")
	if cfg := p.config(); cfg.TraceOn || cfg.BrokerName != "broker-a" {
		t.Errorf("now: traceOn %v, brokerName %s", cfg.TraceOn, cfg.BrokerName)
	}
	if a := p.ask(protocol.GetBrokerConfig, nil, nil); !strings.Contains(string(a.Body), "\nbrokerName=broker-b\n") {
		t.Error("what counts from the next start on is not shown")
	}
	fs := p.fs
	p.close()
	q := startPathBrokerOn(t, fs, nil)
	if cfg := q.config(); cfg.TraceOn || cfg.RegionId != "Elsewhere" || cfg.BrokerName != "broker-b" {
		t.Errorf("after a restart: traceOn %v, regionId %s, brokerName %s", cfg.TraceOn, cfg.RegionId, cfg.BrokerName)
	}
}

func TestUnsupported(t *testing.T) {
	p := startPathBroker(t, nil)
	for _, code := range []protocol.RequestCode{protocol.GetTopicNameList, protocol.ResumeConsumer, protocol.GetBrokerClusterAclConfig, 12345} {
		a := p.ask(code, nil, nil)
		check(t, code.String(), a, protocol.RequestCodeNotSupported, " request type "+numberOf(code)+" not supported")
	}
	fast := remotingtest.Dial(t, remotingtest.Addr(p.fast))
	a := fast.Ask(p.request(protocol.PullMessage, pullHeader("TopicA", 0, 0), nil))
	check(t, "pull by the fast port", a, protocol.RequestCodeNotSupported, " request type 11 not supported")
	a = fast.Ask(p.request(protocol.LitePullMessage, pullHeader("TopicA", 0, 0), nil))
	check(t, "lite pull by the fast port", a, protocol.RequestCodeNotSupported, " request type 361 not supported")
	a = fast.Ask(p.request(protocol.SendMessage, sendHeader("TopicA", 0, ""), []byte("x")))
	if a.Code != 0 {
		t.Errorf("send by the fast port: code %d, %q", a.Code, a.Remark)
	}
}

func numberOf(code protocol.RequestCode) string {
	const digits = "0123456789"
	if code < 10 {
		return digits[code : code+1]
	}
	return numberOf(code/10) + digits[code%10:code%10+1]
}

// Every declared code is routed or excused, and none both.
func TestEveryCode(t *testing.T) {
	p := startPathBroker(t, nil)
	for _, code := range protocol.RequestCodes() {
		_, excused := Unsupported[code]
		if routed := slices.Contains(p.mux.Codes(), code); routed == excused {
			t.Errorf("%v: routed %v, excused %v", code, routed, excused)
		}
	}
}
