package topics

import (
	"maps"
	"strings"
	"testing"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// Changes of attributes and their outcome; the remarks are those of 5.3.3.
func TestAlterAttributes(t *testing.T) {
	fifo := map[string]string{MessageType: "FIFO"}
	for _, c := range []struct {
		current map[string]string
		create  bool
		text    string
		want    map[string]string
		err     string
	}{
		{nil, true, "", nil, ""},
		{nil, true, "+message.type=FIFO", fifo, ""},
		{nil, true, "+message.type=FIFO,", fifo, ""},
		{nil, false, "+message.type=DELAY", map[string]string{MessageType: "DELAY"}, ""},
		{fifo, false, "", fifo, ""},
		{fifo, false, "+message.type=MIXED", map[string]string{MessageType: "MIXED"}, ""},
		{fifo, false, "-message.type", nil, ""},
		{nil, true, "-message.type", nil, "only add attribute is supported while creating topic. key: message.type"},
		{nil, false, "-message.type", nil, "attempt to delete a nonexistent key: message.type"},
		{nil, true, "message.type=FIFO", nil, "add/alter attribute format is wrong: message.type"},
		{nil, true, "message.type", nil, "delete attribute format is wrong: message.type"},
		{nil, true, "+message.type=fifo", nil, "value is not in set: "},
		{nil, true, "+message.type=", nil, "value is not in set: "},
		{nil, true, "+queue.type=BatchCQ", nil, "unsupported key: queue.type"},
		{nil, true, "+=x", nil, "kv string format wrong."},
		{nil, true, "++x=y", nil, "kv string format wrong."},
		{fifo, false, "x+=y", nil, "kv string format wrong."},
		{fifo, false, "+message.type=FIFO,+message.type=DELAY", nil, "key duplication: +message.type"},
		{fifo, false, "-message.type,-message.type", nil, "key duplication: -message.type"},
		{fifo, false, "+message.type=DELAY,-message.type", nil, "alter duplication key. key: message.type"},
		{nil, true, "=", nil, "add/alter attribute format is wrong: "},
		{nil, true, ",,-", nil, "delete attribute format is wrong: "},
	} {
		before := maps.Clone(c.current)
		got, err := alterAttributes(c.current, c.create, c.text)
		if text := ""; err != nil {
			if text = err.Error(); c.err == "" || !strings.HasPrefix(text, c.err) {
				t.Errorf("%q: %q, want %q", c.text, text, c.err)
			}
		} else if c.err != "" || !maps.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v, %q", c.text, got, c.want, c.err)
		}
		if !maps.Equal(c.current, before) {
			t.Errorf("%q has changed what was there", c.text)
		}
	}
}

func TestTypeOfMessage(t *testing.T) {
	for text, want := range map[string]string{
		"": TypeNormal, "TAGS\x01x": TypeNormal, "TRAN_MSG\x01true\x02DELAY\x011": TypeTransaction, "TRAN_MSG\x01false": TypeNormal,
		"DELAY\x013": TypeDelay, "TIMER_DELIVER_MS\x015\x02__SHARDINGKEY\x01k": TypeDelay, "__SHARDINGKEY\x01k": TypeFIFO,
	} {
		if got := TypeOfMessage(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The file has the attributes of a topic that has some, as 5.3.3 writes them, and says nothing of others.
func TestAttributesInFile(t *testing.T) {
	c := &Config{TopicName: "T", ReadQueueNums: 1, WriteQueueNums: 2, Perm: 6, TopicFilterType: SingleTag, Attributes: map[string]string{MessageType: "FIFO"}}
	got, err := appendConfig(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n\t\t\"T\":{\n\t\t\t\"attributes\":{\n\t\t\t\t\"message.type\":\"FIFO\"\n\t\t\t},\n\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n\t\t\t\"readQueueNums\":1,\n" +
		"\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n\t\t\t\"topicName\":\"T\",\n\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":2\n\t\t}"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	pretty, err := compat.MarshalPretty(&body.TopicConfigSerializeWrapper{TopicConfigTable: map[string]*Config{"T": c}})
	if err != nil || !strings.Contains(string(pretty), want) {
		t.Errorf("%s, %v", pretty, err)
	}
	back := new(body.TopicConfigSerializeWrapper)
	if err := compat.Unmarshal(pretty, back); err != nil || back.TopicConfigTable["T"].Attributes[MessageType] != "FIFO" {
		t.Errorf("read again: %+v, %v", back.TopicConfigTable["T"], err)
	}
}
