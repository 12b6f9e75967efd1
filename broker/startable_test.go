package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/store/vfs"
)

// What UPDATE_BROKER_CONFIG takes, the next start takes too: a value that it would refuse is refused at once, and
// leaves configuration and file alone.
func TestUpdateKeepsTheBrokerStartable(t *testing.T) {
	const conf = "/conf/broker.conf"
	fs := vfs.NewMem(time.Now)
	files := vfs.Files{FS: fs}
	if err := errors.Join(files.MkdirAll("/conf"), files.WriteFile(conf, []byte("vendorKey=7\n"))); err != nil {
		t.Fatal(err)
	}
	p := startPathBrokerOn(t, fs, func(c *Config) { c.file = conf })
	check(t, "send", p.ask(protocol.SendMessage, sendHeader("TopicA", 0, ""), []byte("x")), protocol.Success, "", "msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON")
	before := p.Config()
	update := func(text string) *protocol.Command {
		return p.ask(protocol.UpdateBrokerConfig, nil, []byte(text))
	}
	for _, text := range []string{
		"messageDelayLevel=1s 2x", "messageDelayLevel=", "mappedFileSizeCommitLog=1", "mappedFileSizeCommitLog=33554432",
		"mappedFileSizeConsumeQueue=3000", "maxIndexNum=0", "maxHashSlotNum=0", "maxMessageSize=-1", "maxMessageSize=0",
		"mappedFileSizeConsumeQueueExt=100", "fileReservedTime=-5",
		"flushIntervalConsumeQueue=-1", "cleanResourceInterval=-1", "brokerIP1=0.0.0.0", "listenPort=99999", "frameMaxLength=10",
		"defaultTopicQueueNums=-3", "defaultTopicQueueNums=2147483647", "flushDiskType=X", "brokerRole=X",
		"maxHashSlotNum=500000000\nmaxIndexNum=100000000",
	} {
		a := update(text + "\n")
		if a.Code != int32(protocol.SystemError) || !strings.HasPrefix(a.Remark, "the configuration is left as it was") {
			t.Errorf("%q: code %d, %q", text, a.Code, a.Remark)
		}
	}
	now := p.Config()
	if now.MaxMessageSize != before.MaxMessageSize || now.FileReservedTime != before.FileReservedTime {
		t.Error("a refused value is in force")
	}
	if text, _ := files.ReadFile(conf); string(text) != "vendorKey=7\n" {
		t.Errorf("the file is now\n%s", text)
	}
	// What waits for the next start counts: each of these would do alone.
	if a := update("maxHashSlotNum=400000000\n"); a.Code != 0 {
		t.Errorf("code %d, %q", a.Code, a.Remark)
	}
	if a := update("maxIndexNum=40000000\n"); a.Code != int32(protocol.SystemError) {
		t.Errorf("together more than 2 GiB: code %d, %q", a.Code, a.Remark)
	}
}

// A host name with dots is Java's default for brokerName. Its topic is in the routes, where tools look for it; sends to
// it are refused as by TopicValidator of 4.9.8.
func TestBrokerNameWithDots(t *testing.T) {
	const name = "mq-1.example.org"
	p := startPathBroker(t, func(c *Config) { c.BrokerName = name })
	if _, ok := p.topics.Lookup(name); !ok {
		t.Error("no topic of the broker's name")
	}
	a := p.ask(protocol.SendMessage, sendHeader(name, 0, ""), []byte("x"))
	if a.Code != int32(protocol.SystemError) || !strings.HasPrefix(a.Remark, "The specified topic contains illegal characters") {
		t.Errorf("send: code %d, %q", a.Code, a.Remark)
	}
}

// A broker and a cluster may have names that no topic may have. The topics of these names are then not there, and
// nothing is written below such a name.
func TestNamesThatAreNoTopics(t *testing.T) {
	const name, cluster = "../../x", ".."
	p := startPathBroker(t, func(c *Config) { c.BrokerName, c.BrokerClusterName = name, cluster })
	for _, topic := range []string{name, cluster} {
		if a := p.ask(protocol.SendMessage, sendHeader(topic, 0, ""), []byte("x")); a.Code == 0 {
			t.Errorf("a message to topic %q was taken", topic)
		}
	}
	all, _ := p.topics.All()
	for _, c := range all {
		if strings.Contains(c.TopicName, "/") || c.TopicName == cluster {
			t.Errorf("topic %q", c.TopicName)
		}
	}
}
