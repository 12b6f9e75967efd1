package broker

import (
	"strings"
	"testing"

	"rocketd/broker/topics"
	"rocketd/protocol/message"
	"rocketd/store"
)

// text writes a properties text with | and = for the separators.
func text(s string) string { return strings.NewReplacer("|", "\x02", "=", "\x01").Replace(s) }

// plain is the reverse of text.
func plain(s string) string { return strings.NewReplacer("\x02", "|", "\x01", "=").Replace(s) }

// TestSendText: what is stored of a producer's properties, by SendMessageProcessor of 4.9.8.
func TestSendText(t *testing.T) {
	cases := []struct {
		name, in          string
		single, batch     string // as stored
		wait, transaction bool
		delay             string
	}{
		{"nothing", "", "CLUSTER=C", "CLUSTER=C", true, false, ""},
		{"as the Java client sends", "UNIQ_KEY=1|WAIT=true|TAGS=A", "UNIQ_KEY=1|TAGS=A|CLUSTER=C", "UNIQ_KEY=1|WAIT=true|TAGS=A|CLUSTER=C", true, false, ""},
		{"as the Go client sends, with a last separator", "TAGS=A|", "TAGS=A|CLUSTER=C", "TAGS=A|CLUSTER=C", true, false, ""},
		{"WAIT=false", "WAIT=false", "CLUSTER=C", "WAIT=false|CLUSTER=C", false, false, ""},
		{"WAIT of another text is false", "WAIT=1", "CLUSTER=C", "WAIT=1|CLUSTER=C", false, false, ""},
		{"any case of true", "WAIT=TRUE", "CLUSTER=C", "WAIT=TRUE|CLUSTER=C", true, false, ""},
		{"the cluster is ours", "CLUSTER=X|TAGS=A", "TAGS=A|CLUSTER=C", "TAGS=A|CLUSTER=C", true, false, ""},
		{"unreadable entries go", "x|=v|n=|a=b", "a=b|CLUSTER=C", "a=b|CLUSTER=C", true, false, ""},
		{"a value may have a separator", "a=b=c", "a=b=c|CLUSTER=C", "a=b=c|CLUSTER=C", true, false, ""},
		{"delay and transaction", "DELAY=3|TRAN_MSG=true", "DELAY=3|TRAN_MSG=true|CLUSTER=C", "DELAY=3|TRAN_MSG=true|CLUSTER=C", true, true, "3"},
		{"the last of a name counts", "DELAY=3|DELAY=4|WAIT=false|WAIT=true", "DELAY=3|DELAY=4|CLUSTER=C", "DELAY=3|DELAY=4|WAIT=false|WAIT=true|CLUSTER=C", true, false, "4"},
	}
	for _, c := range cases {
		got, st := appendSendText([]byte("before"), text(c.in), "C", true)
		if plain(string(got)) != "before"+c.single {
			t.Errorf("%s: single %q, want %q", c.name, plain(string(got)), c.single)
		}
		if st.waits() != c.wait || st.transaction() != c.transaction || st.delay != c.delay {
			t.Errorf("%s: waits %v, transaction %v, delay %q", c.name, st.waits(), st.transaction(), st.delay)
		}
		if got, _ = appendSendText(nil, text(c.in), "C", false); plain(string(got)) != c.batch {
			t.Errorf("%s: batch %q, want %q", c.name, plain(string(got)), c.batch)
		}
	}
}

// TestDelayedText: section 14 of message-format.md shows such a text; the order is free.
func TestDelayedText(t *testing.T) {
	m := &message.Message{Topic: "TopicA", QueueId: 2}
	in := text("REAL_TOPIC=forged|KEYS=kd|WAIT=true|DELAY=3|TAGS=TagA|CLUSTER=x")
	got := appendDelayedText([]byte("before"), m, in, "C", 3, sendText{delay: "3"})
	if want := "beforeKEYS=kd|WAIT=true|DELAY=3|TAGS=TagA|CLUSTER=C|REAL_TOPIC=TopicA|REAL_QID=2"; plain(string(got)) != want {
		t.Errorf("%q, want %q", plain(string(got)), want)
	}
	got = appendDelayedText(nil, m, text("DELAY=99"), "C", 18, sendText{delay: "99"})
	if want := "CLUSTER=C|REAL_TOPIC=TopicA|REAL_QID=2|DELAY=18"; plain(string(got)) != want {
		t.Errorf("beyond the highest level: %q, want %q", plain(string(got)), want)
	}
}

func TestTopicText(t *testing.T) {
	c := &topics.Config{TopicName: "T", ReadQueueNums: 4, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG", Order: true}
	if got, want := topicText(c), "TopicConfig [topicName=T, readQueueNums=4, writeQueueNums=8, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=true]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSentBack: the copy of a message that was sent back, as AbstractSendMessageProcessor#consumerSendMsgBack of 4.9.8 makes it.
func TestSentBack(t *testing.T) {
	levels, err := store.ParseDelayLevels("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{path: messagePath{levels: levels}}
	cases := []struct {
		name, properties, topic string
		level                   int
		wantTopic               string
		wantQueue               int32
		want                    string
	}{
		{"first time", "TAGS=A", "%RETRY%g", 3, topics.Schedule, 2,
			"TAGS=A|RETRY_TOPIC=T|ORIGIN_MESSAGE_ID=00000000000000000000000000000063|WAIT=false|DELAY=3|REAL_TOPIC=%RETRY%g|REAL_QID=5"},
		{"second time", "RETRY_TOPIC=Orig|ORIGIN_MESSAGE_ID=ID|WAIT=false|DELAY=3|REAL_TOPIC=%RETRY%g|REAL_QID=1", "%RETRY%g", 4, topics.Schedule, 3,
			"RETRY_TOPIC=Orig|ORIGIN_MESSAGE_ID=ID|WAIT=false|DELAY=4|REAL_TOPIC=%RETRY%g|REAL_QID=5"},
		{"beyond the highest level", "RETRY_TOPIC=O|ORIGIN_MESSAGE_ID=I", "%RETRY%g", 19, topics.Schedule, 17,
			"RETRY_TOPIC=O|ORIGIN_MESSAGE_ID=I|WAIT=false|DELAY=18|REAL_TOPIC=%RETRY%g|REAL_QID=5"},
		{"dead", "RETRY_TOPIC=O|ORIGIN_MESSAGE_ID=I|DELAY=18", "%DLQ%g", 0, "%DLQ%g", 5,
			"RETRY_TOPIC=O|ORIGIN_MESSAGE_ID=I|DELAY=0|WAIT=false"},
	}
	for _, c := range cases {
		m := &message.Message{Topic: "T", QueueId: 9, ReconsumeTimes: 2, Properties: text(c.properties), PhyOffset: 99, QueueOffset: 7,
			PreparedTransactionOffset: 5, SysFlag: message.Compressed, Body: []byte("x")}
		b.sentBack(m, c.topic, 5, c.level)
		if m.Topic != c.wantTopic || m.QueueId != c.wantQueue || m.ReconsumeTimes != 3 || plain(m.Properties) != c.want {
			t.Errorf("%s: %s/%d, %d times, %q; want %s/%d, 3, %q", c.name, m.Topic, m.QueueId, m.ReconsumeTimes, plain(m.Properties), c.wantTopic, c.wantQueue, c.want)
		}
		if m.SysFlag != message.Compressed || string(m.Body) != "x" || m.PreparedTransactionOffset != 0 {
			t.Errorf("%s: %+v", c.name, m)
		}
	}
}

func BenchmarkSendText(b *testing.B) {
	in := text("UNIQ_KEY=7F000001000018B4AAC20A1B2C3D0000|WAIT=true|TAGS=TagA")
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = appendSendText(buf[:0], in, "DefaultCluster", true)
	}
}
