package broker

import (
	"fmt"
	"slices"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

func queueDump(topic string, queueId int32, index int64, count int32, group string) *header.QueryConsumeQueueRequest {
	return &header.QueryConsumeQueueRequest{Topic: topic, QueueId: queueId, Index: index, Count: count, ConsumerGroup: group}
}

// The texts are those of a live official broker's answers to mqadmin queryCq.
func TestQueryConsumeQueue(t *testing.T) {
	p := startPathBroker(t, nil)
	for i := range 3 {
		p.send("T", 1, "TAGS\x01TagA\x02", fmt.Sprint(i))
	}
	ms := p.stored("T", 1, 0, 3)
	row := func(i int) string {
		size := ms[1].PhyOffset - ms[0].PhyOffset
		return fmt.Sprintf(`{"eval":false,"physicOffset":%d,"physicSize":%d,"tagsCode":2598919}`, ms[i].PhyOffset, size)
	}
	ask := func(req *header.QueryConsumeQueueRequest) *protocol.Command {
		return p.ask(protocol.QueryConsumeQueue, req, nil)
	}
	for _, tt := range []struct {
		what   string
		req    *header.QueryConsumeQueueRequest
		code   protocol.ResponseCode
		remark string
		body   string
	}{
		{"two", queueDump("T", 1, 0, 2, ""), 0, "not set any response code", `{"maxQueueIndex":3,"minQueueIndex":0,"queueData":[` + row(0) + "," + row(1) + `]}`},
		{"more than there are", queueDump("T", 1, 2, 1<<31-1, ""), 0, "not set any response code", `{"maxQueueIndex":3,"minQueueIndex":0,"queueData":[` + row(2) + `]}`},
		{"none", queueDump("T", 1, 2, -1, ""), 0, "not set any response code", `{"maxQueueIndex":3,"minQueueIndex":0,"queueData":[]}`},
		{"group", queueDump("T", 1, 2, 1, "G"), 0, "not set any response code", `{"filterData":"G@T is not online!","maxQueueIndex":3,"minQueueIndex":0,"queueData":[` + row(2) + `]}`},
		{"behind the end", queueDump("T", 1, 3, 5, ""), 0, "Index 3 of 1@T is not exist!", ""},
		{"negative", queueDump("T", 1, -1, 5, ""), 0, "Index -1 of 1@T is not exist!", ""},
		{"no such queue", queueDump("T", 7, 0, 5, ""), 1, "7@T is not exist!", ""},
		{"no such topic", queueDump("None", 0, 0, 5, ""), 1, "0@None is not exist!", ""},
	} {
		a := ask(tt.req)
		check(t, tt.what, a, tt.code, tt.remark)
		if string(a.Body) != tt.body {
			t.Errorf("%s: %s, want %s", tt.what, a.Body, tt.body)
		}
	}
	p.beat(p.peer, "c1", "G", "T")
	a := ask(queueDump("T", 1, 2, 1, "G"))
	s, ok := p.consumers.Group("G").Subscription("T")
	if want := fmt.Sprintf(`{"filterData":"null","maxQueueIndex":3,"minQueueIndex":0,"queueData":[%s],"subscriptionData":{"classFilterMode":false,`+
		`"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":%d,"tagsSet":[],"topic":"T"}}`, row(2), s.SubVersion); !ok || string(a.Body) != want {
		t.Errorf("a group that is online: %s, want %s", a.Body, want)
	}
}

func TestCleaningRequests(t *testing.T) {
	p := startPathBroker(t, nil)
	p.send("Kept", 0, "", "x")
	p.send("Gone", 0, "", "x")
	p.stored("Gone", 0, 0, 1)
	p.topics.Delete("Gone")
	check(t, "316", p.ask(protocol.CleanUnusedTopic, nil, nil), protocol.Success, "")
	if got := p.store.Topics(); slices.Contains(got, "Gone") || !slices.Contains(got, "Kept") {
		t.Errorf("after CLEAN_UNUSED_TOPIC there are %v", got)
	}
	check(t, "306", p.ask(protocol.CleanExpiredConsumeQueue, nil, nil), protocol.Success, "")
	check(t, "329", p.ask(protocol.DeleteExpiredCommitLog, nil, nil), protocol.Success, "")
	if !slices.Contains(p.store.Topics(), "Kept") {
		t.Error("a queue went whose message is in the log")
	}
}

// maxMessageSize counts from the answer to UPDATE_BROKER_CONFIG on, up and down.
func TestMaxMessageSizeLive(t *testing.T) {
	p := startPathBroker(t, nil)
	large := make([]byte, 5000)
	for _, tt := range []struct {
		size int
		code protocol.ResponseCode
	}{{4999, protocol.MessageIllegal}, {5000, protocol.Success}, {100, protocol.MessageIllegal}, {8 << 20, protocol.Success}} {
		check(t, "25", p.ask(protocol.UpdateBrokerConfig, nil, fmt.Appendf(nil, "maxMessageSize=%d\n", tt.size)), protocol.Success, "")
		if a := p.ask(protocol.SendMessage, sendHeader("T", 0, ""), large); a.Code != int32(tt.code) {
			t.Errorf("maxMessageSize %d, body of %d: code %d, %q; want %d", tt.size, len(large), a.Code, a.Remark, tt.code)
		}
	}
}

// The store's settings that the official broker has for its memory are taken and change nothing that is promised.
func TestMemorySettings(t *testing.T) {
	p := startPathBroker(t, func(c *Config) {
		c.TransientStorePoolEnable, c.WarmMapedFileEnable, c.FastFailIfNoBufferInStorePool = true, true, true
		c.CommitIntervalCommitLog, c.CommitCommitLogLeastPages, c.CommitCommitLogThoroughInterval = 60_000, 1000, 60_000
		c.FlushIntervalCommitLog, c.FlushCommitLogLeastPages, c.FlushCommitLogThoroughInterval = 60_000, 1000, 60_000
		c.FlushCommitLogTimed = false
	})
	p.send("T", 0, "", "at once")
	p.stored("T", 0, 0, 1)
	// What is written is in the file, whatever the intervals: a process that dies loses nothing.
	f, err := p.fs.OpenRead("/store/commitlog/00000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 91)
	if _, err := f.ReadAt(b, 0); err != nil || b[4] != 0xDA || b[5] != 0xA3 {
		t.Errorf("the log begins with % x, %v", b[:8], err)
	}
}

// messageIndexEnable=false makes no index; messages are there all the same.
func TestNoIndex(t *testing.T) {
	p := startPathBroker(t, func(c *Config) { c.MessageIndexEnable = false })
	p.send("T", 0, "KEYS\x01k\x02UNIQ_KEY\x01u\x02", "x")
	p.stored("T", 0, 0, 1)
	a := p.ask(protocol.QueryMessage, &header.QueryMessageRequest{Topic: "T", Key: "k", MaxNum: 32, EndTimestamp: 1 << 60}, nil)
	if a.Code != int32(protocol.QueryNotFound) {
		t.Errorf("a query: code %d, %q", a.Code, a.Remark)
	}
	if files, err := p.fs.List("/store/index"); err == nil && len(files) > 0 {
		t.Errorf("index files: %v", files)
	}
	remotingtest.Eventually(t, "dispatch", func() bool { return p.store.DispatchBehind() == 0 })
}
