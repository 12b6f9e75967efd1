package broker

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
)

// inFile waits until a file of the tables has a name.
func (p *pathBroker) inFile(file, name string) {
	p.tb.Helper()
	remotingtest.Eventually(p.tb, name+" is in "+file, func() bool {
		data, err := p.files.ReadFile("/store/config/" + file)
		return err == nil && strings.Contains(string(data), `"`+name+`"`)
	})
}

// What a request has made that is refused afterwards is there, so it gets into its file too, though nobody waits for it.
func TestMadeByRefused(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.MaxClientGroups = 1 })
	for _, group := range []string{"First", "Second"} {
		hb := &body.HeartbeatData{ConsumerDataSet: []body.ConsumerData{{GroupName: group, ConsumeType: body.ConsumePassively, MessageModel: body.Clustering}}}
		if a := beatOf(b, hb); (a.Code == int32(protocol.Success)) != (group == "First") {
			t.Fatalf("%s: %+v", group, a)
		}
	}
	b.inFile("subscriptionGroup.json", "Second")
	b.inFile("topics.json", "%RETRY%Second")

	a := b.ask(protocol.SendReplyMessage, sendHeader("Replies", 99, "REPLY_TO_CLIENT=x"), []byte("x"))
	check(t, "no such queue", a, protocol.SystemError, "request queueId[99] is illegal, *", "MSG_REGION", "TRACE_ON")
	b.inFile("topics.json", "Replies")
}

// The topic of timer messages gets into its file by whatever stores the first one.
func TestTimerTopicIsSaved(t *testing.T) {
	t.Run("commit", func(t *testing.T) {
		b := startPathBroker(t, nil)
		h := b.half("T", 1, tran+"|TIMER_DELAY_SEC=50", "timed")
		check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
		b.inFile("topics.json", topics.Timer)
	})
	t.Run("recall", func(t *testing.T) {
		b := startPathBroker(t, nil)
		b.send("T", 0, "", "x")
		at := message.RecallHandle{Topic: "T", BrokerName: "broker-a", Timestamp: strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10), UniqKey: "x"}
		a := b.ask(protocol.RecallMessage, &header.RecallMessageRequest{ProducerGroup: "PG", Topic: "T", RecallHandle: at.String()}, nil)
		check(t, "recall", a, protocol.Success, unsetRemark, "msgId", "MSG_REGION")
		b.inFile("topics.json", topics.Timer)
	})
}
